"""Models from functions that are named on the command line."""

import sys

import pytest

from command_line import assert_error, call
from tsallax import InvalidInput
from tsallax.cli.model_source import make_model, names_model, search_current_folder
from tsallax.problems import forest

MODELS = """
import tsallax
from tsallax import problems

def small():
    return problems.inventory(capacity=4, lead_time=1, max_order=2)

def broken():
    raise ValueError("no\\ndata")

def number():
    return 3

def needs(x):
    return x

constant = 3
ready = small()
stored = ready.to_mdp()

class Stock:
    @staticmethod
    def small():
        return stored

def with_error():
    return tsallax.MDP.from_functions(
        lambda s, a: (min(s, a), 1.0, True), lambda p, e: (p, 0.0, False),
        states=3, actions=2, events=1, probabilities=[1.0], discount=0.9,
    )
"""


WITH_DATACLASS = """
from __future__ import annotations
from dataclasses import dataclass
from neighbour_of_model import LEVELS
from tsallax import problems

@dataclass
class Forest:
    states: int

def make():
    return problems.forest(states=Forest(LEVELS).states)
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "warehouse_models.py"
    path.write_text(MODELS)
    return path


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("models:large", True),
        ("models:Stock.large", True),
        ("a/b.py:large-one", True),
        ("a/b.py:large", True),
        ("C:\\models.py:large", True),
        ("FrozenLake-v1", False),
        ("package:Maze-v0", False),
        (":large", False),
        ("models:", False),
        ("mdp.npz", False),
    ],
)
def test_a_name_in_a_module_is_distinguished_from_an_environment_and_a_file(source, expected):
    assert names_model(source) is expected


def test_a_function_is_found_in_a_file_and_in_a_module_of_the_current_folder(path, monkeypatch):
    assert make_model(f"{path}:small").n_states == 15
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    assert make_model("warehouse_models:small").n_states == 15


def test_a_model_may_be_ready_and_the_function_an_attribute(path, capsys):
    for name, kind in (("ready", "FunctionalMDP"), ("stored", "MDP"), ("Stock.small", "MDP")):
        model = make_model(f"{path}:{name}")
        assert (type(model).__name__, model.n_states) == (kind, 15)
    assert "15 states" in call(capsys, f"solve {path}:Stock.small --alpha 1 --discount 0.9").out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "models.py",
            "models.py: is Python: name the MDP, or the function that returns it, such as ",
        ),
        ("models.py:", "models.py:NAME"),
        ("absent.py", "absent.py: no such file"),
        ("text.csv", "text.csv: unknown ending .csv: choose from .npz, .umb, .drn, .tra"),
        ("absent.csv", "absent.csv: no such file"),
        ("text", "text: not a readable MDP file"),
    ],
)
def test_what_is_no_model_is_named_with_what_is(tmp_path, capsys, name, message):
    for other in ("models.py", "text.csv", "text"):
        (tmp_path / other).write_text("state,action")
    assert_error(call(capsys, f"solve {tmp_path}/{name} --alpha 1"), message)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("absent", "has no absent$"),
        ("smal", r"has no smal: did you mean small\?"),
        ("Stock.large", "has no Stock.large$"),
        ("a-b", "has no a-b$"),
        ("constant", "constant must be an MDP or a function that returns one, not int"),
        ("broken", r"broken\(\) fails with ValueError: no data \(warehouse_models.py, line 9\)"),
        ("with_error", r"boolean .* \(warehouse_models.py, line 28\): use jnp.where for if"),
        ("needs", r"needs\(\) fails with TypeError"),
        ("number", r"number\(\) must return an MDP, not int"),
    ],
)
def test_what_makes_no_model_is_refused_in_one_line(path, function, message):
    with pytest.raises(InvalidInput, match=message) as refused:
        make_model(f"{path}:{function}")
    assert "\n" not in str(refused.value)


def test_a_file_may_have_dataclasses_and_import_its_neighbours(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "neighbour_of_model.py").write_text("LEVELS = 3")
    (tmp_path / "model.py").write_text(WITH_DATACLASS)
    assert make_model(f"{tmp_path}/model.py:make").n_states == 3
    monkeypatch.chdir(tmp_path)
    assert make_model("model.py:make").n_states == 3
    assert sys.path.count(str(tmp_path)) == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("no_such_module:f", "cannot be imported: ModuleNotFoundError"),
        ("absent.py:f", "absent.py: no such file"),
        ("FOLDER/odd.py:f", "SyntaxError"),
    ],
)
def test_what_cannot_be_imported_is_refused(source, message, tmp_path):
    (tmp_path / "odd.py").write_text("def (:")
    with pytest.raises(InvalidInput, match=message):
        make_model(source.replace("FOLDER", str(tmp_path)))


def test_only_a_source_with_a_module_adds_the_current_folder_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = [*sys.path]
    search_current_folder(None)
    search_current_folder("CartPole-v1")
    assert sys.path == before
    for _ in range(2):
        search_current_folder("maze:Maze-v0")
        assert sys.path == [str(tmp_path), *before]


TWO_REWARDS = """
@type: MDP
@reward_models
coins lives
@nr_states
1
@nr_choices
1
@model
state 0 [0, 0] init
\taction stay [3, 5]
\t\t0 : 1
"""


def test_one_of_several_reward_structures_is_chosen(tmp_path, capsys):
    file, page = tmp_path / "two.drn", tmp_path / "page.html"
    file.write_text(TWO_REWARDS.lstrip())
    solving = f"solve {file} --regularizer hard --discount 0.5"
    exploring = f"explore {file} --discount 0.5 --alphas 1 --q 2 --out {page}"
    for line in (solving, exploring):
        output = call(capsys, line)
        assert_error(output, "has 2 reward structures: give --rewards, such as --rewards 'coins'")
        output = call(capsys, line, "--rewards gold")
        assert_error(output, "no reward structure 'gold', but coins, lives")
    assert '"regularized_return": 10.0' in call(capsys, solving, "--rewards lives --json").out
    assert call(capsys, exploring, "--rewards coins").code == 0


@pytest.mark.parametrize(
    "source", ["forest", "FrozenLake-v1", "tsallax.problems:forest", "FOLDER/forest.npz"]
)
def test_other_sources_have_no_reward_structures(source, tmp_path, capsys):
    forest().save(tmp_path / "forest.npz")
    source = source.replace("FOLDER", str(tmp_path))
    assert_error(call(capsys, f"solve {source} --alpha 1 --rewards r"), "leave --rewards out")
