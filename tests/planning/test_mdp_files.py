"""A saved MDP comes back bit by bit, and a damaged or hostile file is refused."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange_cases import example, mutated
from mdp_checks import same
from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP
from tsallax.problems import garnet


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    """The file of the example."""
    path = tmp_path_factory.mktemp("whole") / "mdp.npz"
    example().save(path)
    return path.read_bytes()


@given(seed=st.integers(0, 10**6), states=st.integers(1, 30), actions=st.integers(1, 5))
def test_saving_and_loading_changes_no_bit(seed, states, actions, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any name"
    mdp = garnet(states, actions, (states + 1) // 2, seed=seed)
    mdp.save(path)
    assert same(MDP.load(path), mdp)


def refuses(path: Path, message: str | None = None) -> None:
    """Check that a file is refused in one line with its name."""
    with pytest.raises(InvalidInput, match=message) as caught:
        MDP.load(path)
    assert str(caught.value).count(str(path)) == 1
    assert "\n" not in str(caught.value)


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path: Path, whole):
    path = tmp_path / "part.npz"
    for end in [*range(0, len(whole), 61), len(whole) - 1]:
        path.write_bytes(whole[:end])
        refuses(path)


def test_a_flipped_bit_is_refused_or_harmless(tmp_path: Path, whole):
    path = tmp_path / "flipped.npz"
    messages, positions = [], range(0, len(whole), 11)
    for at in positions:
        flipped = bytearray(whole)
        flipped[at] ^= 1 << (at % 8)
        path.write_bytes(flipped)
        try:
            assert same(MDP.load(path), example()), at
        except InvalidInput as error:
            messages.append(str(error))
    assert all(str(path) in message and "\n" not in message for message in messages)
    assert len(messages) > 0.6 * len(positions)


def assert_refused_or_whole(path: Path, whole: bytes, seeds: Iterable[int]) -> int:
    """Load mutations of a file; return how many were refused, in one line with its name."""
    messages = []
    for seed in seeds:
        path.write_bytes(mutated(whole, random.Random(seed)))
        try:
            assert same(MDP.load(path), example()), seed
        except InvalidInput as error:
            messages.append(str(error))
    assert all(text.count(str(path)) == 1 and "\n" not in text for text in messages)
    return len(messages)


def test_a_random_mutation_is_refused_or_harmless(tmp_path: Path, whole):
    assert assert_refused_or_whole(tmp_path / "mutated.npz", whole, range(400)) > 250


@pytest.mark.slow
def test_many_random_mutations_are_refused_or_harmless(tmp_path: Path, whole):
    assert assert_refused_or_whole(tmp_path / "mutated.npz", whole, range(100_000)) > 60_000


@pytest.mark.parametrize("seed", range(3))
def test_arrays_with_random_contents_are_refused_or_make_an_mdp(tmp_path: Path, whole, seed):
    """Checksums right, contents wrong: other lengths, types and numbers."""
    rng = np.random.default_rng(seed)
    path, keys = tmp_path / "wrong.npz", ["data", "indices", "indptr", "rewards", "pointer"]
    keys += ["action_of", "discount", "initial", "termination", "state_names", "action_names"]
    messages: list[str] = []
    numbers = [0, 1, -1, 3, 2**31, 2**62, 0.5, 1e308, np.nan, np.inf, -np.inf]
    for _ in range(100):
        changes = {}
        for key in rng.choice(keys, rng.integers(1, 3), replace=False):
            length = int(rng.choice([0, 1, 2, 3, 4, 7]))
            chosen = [numbers[i] for i in rng.integers(len(numbers), size=length)]
            changes[key] = np.array(chosen)
            if rng.random() < 0.5:
                with np.errstate(all="ignore"):
                    changes[key] = changes[key].astype(rng.choice(["i4", "i8", "f4", "U2", "?"]))
        rewrite(path, whole, **changes)
        try:
            assert isinstance(MDP.load(path), MDP)
        except InvalidInput as error:
            messages.append(str(error))
    assert len(messages) > 80
    assert "\n" not in "".join(messages)


def test_a_compressed_file_is_read(tmp_path: Path, whole):
    with np.load(io.BytesIO(whole)) as file:
        np.savez_compressed(tmp_path / "mdp.npz", **file)
    assert same(MDP.load(tmp_path / "mdp.npz"), example())
    with pytest.raises(InvalidInput, match="more than the limit of 100"):
        MDP.load(tmp_path / "mdp.npz", max_bytes=100)


def rewrite(path: Path, whole: bytes, **changes: Any) -> None:
    """Write a file with some arrays exchanged, or left out where None."""
    with np.load(io.BytesIO(whole)) as file:
        arrays = {**{key: file[key] for key in file.files}, **changes}
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": None}, "not a file written by MDP.save"),
        ({"version": None}, "version -1, but"),
        ({"version": "1"}, "version 1, but"),
        ({"rewards": None, "initial": None}, "incomplete: rewards, initial missing"),
        ({"rewards": np.array(["a"] * 3)}, "rewards has type <U1 and 1 dimensions"),
        ({"data": np.ones(6, complex)}, "data has type complex128"),
        ({"data": np.ones(7)}, r"state 0 \('a'\), action 0 \('go on'\) sum to 2.25"),
        ({"data": np.ones(5)}, "indices has 7 numbers, not 5"),
        ({"indices": np.array([0, 1, 1, 2, 0, 1, 9])}, "indices names state 9, not 0 to 2"),
        ({"indices": np.array([0, 1, -1, 2, 0, 1, 2])}, "indices names state -1, not 0 to 2"),
        ({"indices": np.array([0, 1, 1])}, "indices has 3 numbers, not 7"),
        ({"indptr": np.array([0, 2, 7])}, "indptr has 3 numbers, not 4"),
        ({"indptr": np.array([0, 5, 4, 7])}, "indptr does not divide 7 transitions"),
        ({"indptr": -np.array([0, 2, 4, 7])}, "indptr does not divide 7 transitions"),
        ({"indptr": np.array([1, 2, 4, 7])}, "indptr does not divide 7 transitions"),
        ({"indptr": np.zeros(0, int)}, "indptr has 0 numbers, not 4"),
        ({"pointer": np.array([0, 1, 2, 2])}, "pointer does not divide 3 pairs"),
        ({"pointer": np.zeros(0, int)}, "initial has 3 numbers, not -1"),
        ({"action_of": np.array([0, 2, 2])}, "state 1, action 2 twice"),
        ({"action_of": np.array([0, -1, 2])}, "action -1"),
        ({"rewards": np.array([1.0, np.nan, 2.0])}, "reward of state 1 .* is not finite: nan"),
        ({"rewards": np.zeros(2)}, "rewards has 2 numbers, not 3"),
        ({"termination": np.zeros(4)}, "termination has 4 numbers, not 3"),
        ({"discount": 1.5}, "discount must be a number"),
        ({"initial": np.zeros(3)}, "initial probabilities sum to 0"),
        ({"state_names": np.array(["a", "a", "b"])}, "holds 'a' twice"),
    ],
)
def test_a_file_with_wrong_contents_is_refused(tmp_path: Path, whole, changes, message):
    path = tmp_path / "wrong.npz"
    rewrite(path, whole, **changes)
    refuses(path, message)


def test_what_is_no_such_file_is_refused(tmp_path: Path):
    refuses(tmp_path, "is a folder, give the name of a file")
    text = tmp_path / "text.npz"
    text.write_text("hello")
    refuses(text, "not a readable MDP file")
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    refuses(tmp_path / "zip.npz", "not a file written by MDP.save")


class Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __reduce__(self) -> Any:
        return open, (self.marker, "w")


@pytest.mark.parametrize("key", ["format", "version", "data", "state_names", "discount"])
def test_a_pickle_inside_a_file_is_never_run(tmp_path: Path, whole, key):
    marker, path = tmp_path / "marker", tmp_path / "bomb.npz"
    bomb = np.empty(1, object)
    bomb[0] = Bomb(marker)
    rewrite(path, whole, **{key: bomb})
    refuses(path)
    assert not marker.exists()
    np.load(path, allow_pickle=True)[key]
    assert marker.exists(), "the file would have done harm"


def test_an_action_that_only_a_terminal_state_has_keeps_its_name(tmp_path):
    mdp = MDP(
        [[0, 1.0], [1, 0]], [1.0, 2], 0.9, pairs=[(0, 0), (1, 1)], terminal=[1],
        action_names=["a", "b"],
    )  # fmt: skip
    mdp.save(tmp_path / "mdp.npz")
    again = MDP.load(tmp_path / "mdp.npz")
    assert again.action_names == ("a", "b")
    assert again.n_actions == mdp.n_actions == 2
