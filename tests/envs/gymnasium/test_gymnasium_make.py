"""Environments that cannot be made are refused in one line with the remedy."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from counting_environments import Count
from refusals import refused
from tsallax.envs import GymnasiumAdapter
from tsallax.envs.gymnasium.gymnasium_make import check_id, make
from tsallax.errors import InvalidInput


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        ("CartPoole-v1", {}, "CartPoole-v1: there is no such environment: did you mean CartPole-v"),
        ("ALE/Pong-v5", {}, "ALE/Pong-v5: needs the Arcade Learning Environment: pip install ale"),
        ("CartPole-v1", {"wheels": 4}, "unexpected keyword argument 'wheels'"),
        ("mine/Maze-v0", {}, "give the module that registers it, MODULE:mine/Maze-v0"),
        ("absent:Maze-v0", {}, "absent:Maze-v0: there is no module absent here"),
        ("absent.py:maze", {}, "absent.py:maze: there is no module absent"),
        ("./absent:maze", {}, "./absent:maze: there is no module ./absent here: name it as Python"),
        ("math:Maze-v0", {}, "math:Maze-v0: the module math has no such id"),
        ("math:maze", {}, "math:maze: the module math has no function or class of that name"),
        ("math:gcd", {}, "math:gcd: returned 0, which is not a (single) Gymnasium environment"),
        ("math:sqrt", {}, "math:sqrt: math.sqrt() takes exactly one argument (0 given)"),
        (object, {}, "object: returned <object object at "),
    ],
    ids=str,
)
def test_environments_that_cannot_be_made_are_refused_in_one_line(
    env: Any, options: Any, message: str
) -> None:
    with refused(message):
        GymnasiumAdapter(env, options=options)


def test_a_function_makes_environments_with_its_options() -> None:
    host = GymnasiumAdapter(Count, n_envs=2, options={"end": 7})
    assert (host.name, host.n_envs) == ("Count", 2)
    assert [one.end for one in host._members] == [7, 7]
    assert make("counting_environments:Count", {"cut": 5}).cut == 5
    with pytest.raises(ZeroDivisionError):
        make(lambda: 1 / 0)


def test_an_id_prevails_over_a_function_of_the_same_name(monkeypatch: Any) -> None:
    gymnasium.register("Count", entry_point="counting_environments:Count", kwargs={"end": 9})
    made = make("counting_environments:Count")
    del gymnasium.registry["Count"]
    assert made.unwrapped.end == 9


def test_a_module_that_lacks_another_one_is_not_said_to_be_absent(
    tmp_path: Path, monkeypatch: Any
) -> None:
    (tmp_path / "needs_torch_maze.py").write_text("import torch_maze\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("needs_torch_maze:Maze-v0", "needs_torch_maze:maze"):
        with refused("No module named 'torch_maze'"):
            make(name)


@pytest.mark.parametrize("name", ["broken_maze:Maze", "broken_maze:Maze-v0"])
def test_what_a_constructor_raises_is_named_with_its_type_and_line(
    name: str, tmp_path: Path, monkeypatch: Any
) -> None:
    module = tmp_path / "broken_maze.py"
    module.write_text(
        "import gymnasium\n"
        "class Maze(gymnasium.Env):\n"
        "    def __init__(self):\n"
        "        self.walls = {}['walls']\n"
        "gymnasium.register('Maze-v0', Maze)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        with pytest.raises(InvalidInput) as caught:
            make(name)
    finally:
        gymnasium.registry.pop("Maze-v0", None)
        sys.modules.pop("broken_maze", None)
    assert str(caught.value).startswith(f"{name}: KeyError: ")
    assert "'walls'" in str(caught.value)
    assert str(caught.value).endswith(" (broken_maze.py, line 4)")
    assert isinstance(caught.value.__cause__, KeyError), "with the traceback"


@pytest.mark.parametrize("name", ["CartPole-v1", "CartPole", "tsallax/Reacher-v5", "absent:A-v0"])
def test_an_id_is_looked_up_with_or_without_its_version(name: str) -> None:
    check_id(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CartPol-v1", "CartPol-v1: there is no such environment: did you mean CartPole-v1?"),
        ("CartPol", "CartPol: there is no such environment: did you mean CartPole-v1?"),
        ("CartPole-v7", "CartPole-v7: "),
        ("runs/nope", "runs/nope: "),
        ("/runs/nope", "/runs/nope: "),
    ],
)
def test_an_id_that_no_environment_has_is_refused_without_making_one(
    name: str, message: str
) -> None:
    with refused(message):
        check_id(name)


@pytest.mark.slow
def test_what_is_not_installed_is_named() -> None:
    program = """
import sys
from tsallax import envs
assert envs.jax_environment("Reacher-v5") is envs.Reacher
assert not {"gymnasium", "mujoco", "matplotlib"} & {*sys.modules}
for missing in ("mujoco", "gymnasium"):
    sys.modules[missing] = None
    try:
        envs.GymnasiumAdapter("Reacher-v5", actions=3)
    except ValueError as error:
        print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    first, second = run.stdout.splitlines()
    assert first.startswith("Reacher-v5: needs MuJoCo: pip install mujoco imageio, or use tsal")
    assert second == "Reacher-v5: needs Gymnasium: pip install gymnasium"
