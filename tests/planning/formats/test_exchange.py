"""Files of every format hold the whole MDP; mutated ones are read or refused in one line."""

from __future__ import annotations

import random
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest

import exchange_cases as cases
from command_line import call
from mdp_checks import optimal_values, same
from tsallax.errors import InvalidInput
from tsallax.planning.formats import text_lines
from tsallax.planning.mdp import MDP
from tsallax.problems import garnet

FORMATS = ("umb", "drn", "tra")


MODELS = {**cases.models(), "example": cases.example()}


@pytest.mark.parametrize("block", [64, 1 << 22])
@pytest.mark.parametrize("ending", [".npz", ".umb", ".drn", ""])
@pytest.mark.parametrize("mdp", MODELS.values(), ids=MODELS)
def test_a_file_holds_the_whole_mdp_bit_by_bit(mdp: MDP, ending, block, tmp_path, monkeypatch):
    monkeypatch.setattr(text_lines, "BLOCK", block)
    one, other = tmp_path / f"a{ending}", tmp_path / f"b{ending}"
    mdp.save(one)
    loaded = MDP.load(one)
    assert same(loaded, mdp)
    loaded.save(other)
    assert one.read_bytes() == other.read_bytes()
    assert MDP.load(str(one), discount=0.5).discount == 0.5


@pytest.mark.parametrize("ending", ["umb", "drn"])
@pytest.mark.parametrize("mdp", cases.models().values(), ids=cases.models())
def test_storm_finds_the_same_values_and_writes_the_model_back(mdp: MDP, ending, tmp_path: Path):
    stormpy = pytest.importorskip("stormpy", reason=cases.NO_STORM)
    one, other = str(tmp_path / f"a.{ending}"), str(tmp_path / f"b.{ending}")
    mdp.save(one)
    model = getattr(stormpy, f"build_model_from_{ending}")(one)
    formula = f'R{{"reward"}}max=? [Cdiscount={mdp.discount}]'
    found = stormpy.model_checking(model, stormpy.parse_property(formula)).get_value_vector()
    expected = optimal_values(mdp)
    np.testing.assert_allclose(found[: mdp.n_states], expected, rtol=1e-5, atol=1e-5)
    assert not any(found[mdp.n_states :])
    getattr(stormpy.io, f"export_to_{ending}")(model, other)
    again = MDP.load(other, mdp.discount)
    np.testing.assert_array_equal(again.terminal, mdp.terminal)
    # in text, Storm writes six digits
    close = 1e-6 if ending == "drn" else 1e-12
    np.testing.assert_allclose(optimal_values(again), expected, atol=close)


def test_an_npz_file_has_no_reward_structures(tmp_path: Path):
    garnet(5, 2, 3, seed=0).save(tmp_path / "a.npz")
    with pytest.raises(InvalidInput, match=r"a.npz: holds only one reward .*: leave rewards out"):
        MDP.load(tmp_path / "a.npz", rewards="r")


@pytest.mark.parametrize("name", ["a.csv", "a.npy", "a.UMB"])
def test_an_mdp_is_not_written_under_an_unknown_ending(name, tmp_path: Path):
    known = r"\.npz, \.umb, \.drn, \.tra"
    with pytest.raises(InvalidInput, match=rf"{name}: unknown ending .*: choose from {known}"):
        cases.example().save(tmp_path / name)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("ending", FORMATS)
def test_names_that_are_no_text_are_refused(ending, tmp_path: Path):
    mdp = MDP([[[1.0]]], [[2.0]], 0.5, state_names=["\ud800"])
    with pytest.raises(InvalidInput, match="is not Unicode text"):
        mdp.save(tmp_path / f"a.{ending}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", FORMATS)
def test_the_command_line_solves_them(ending, tmp_path: Path, capsys):
    garnet(5, 2, 3, seed=0).save(tmp_path / f"a.{ending}")
    done = call(capsys, "solve", tmp_path / f"a.{ending}", "--alpha 0.1 --discount 0.9 --json")
    assert done.code == 0
    assert '"discount": 0.9' in done.out
    if ending == "tra":
        assert "--discount" in call(capsys, "solve", tmp_path / "a.tra", "--alpha 0.1").err
    absent = call(capsys, "solve", tmp_path / f"absent.{ending}", "--alpha 0.1")
    assert absent.code == 2
    assert "no such file" in absent.err


def refusal(path: Path, discount: float | None) -> str | None:
    """Why a file is refused; None where it is read."""
    try:
        MDP.load(path, discount)
    except InvalidInput as error:
        return str(error)
    return None


def mutations_are_read_or_refused(ending: str, folder: Path, count: int, seed: int) -> int:
    """Load mutated files; the number of those that were refused."""
    rng = random.Random(seed)
    mdp = cases.with_everything_of_prism() if ending == "tra" else cases.example()
    source = folder / f"source.{ending}"
    mdp.save(source)
    endings = ("tra", "tra", "lab", "sta", "srew", "trew") if ending == "tra" else (ending,)
    target, refused = folder / f"mutated.{ending}", 0
    for other in set(endings):
        shutil.copy(source.with_suffix(f".{other}"), target.with_suffix(f".{other}"))
    for _ in range(count):
        changed = rng.choice(endings)
        path = target.with_suffix(f".{changed}")
        if ending == "umb":
            cases.mutated_archive(source, rng, target)
        else:
            original = source.with_suffix(f".{changed}").read_bytes()
            path.write_bytes(cases.mutated(original, rng))
        message = refusal(target, rng.choice((0.9, None)))
        refused += message is not None
        assert message is None or ("\n" not in message and len(message) < 1000)
        if ending == "tra":
            shutil.copy(source.with_suffix(f".{changed}"), path)
    return refused


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("ending", FORMATS)
def test_a_thousand_mutations_are_read_or_refused(ending, tmp_path: Path):
    refused = mutations_are_read_or_refused(ending, tmp_path, 400, seed=1)
    assert 100 < refused < 400


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("ending", FORMATS)
def test_a_hundred_thousand_mutations_are_read_or_refused_in_little_memory(ending, tmp_path: Path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert mutations_are_read_or_refused(ending, tmp_path, 34_000, seed=2) > 10_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes
