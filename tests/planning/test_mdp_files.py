"""A saved MDP comes back bit by bit, and a damaged or hostile file is refused."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdp_checks import same
from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP
from tsallax.problems import garnet, gridworld


def example() -> MDP:
    """An MDP that uses every field."""
    return MDP(
        [[0.25, 0.5, 0], [0, 0.1, 0.9], [1 / 3, 1 / 3, 1 / 3]], [1.0, -2.0, 3.0], 0.9,
        [0.5, 0.5, 0], pairs=[(0, 0), (1, 0), (1, 2)], terminal=[2],
        termination=[0.25, 0.0, 0.0], state_names=["a", "ß", "c d"], action_names=["x", "y", "z"],
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    """The file of the example."""
    path = tmp_path_factory.mktemp("whole") / "mdp.npz"
    example().save(path)
    return path.read_bytes()


def assert_unchanged_by_a_file(mdp: MDP, path: Path) -> None:
    mdp.save(str(path))
    loaded = MDP.load(str(path))
    assert same(loaded, mdp)
    first = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == first
    assert [p.name for p in path.parent.iterdir() if "partial" in p.name] == []


@given(seed=st.integers(0, 10**6), states=st.integers(1, 30), actions=st.integers(1, 5))
def test_saving_and_loading_changes_no_bit(seed, states, actions, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any name"
    assert_unchanged_by_a_file(garnet(states, actions, (states + 1) // 2, seed=seed), path)


@pytest.mark.parametrize("mdp", [example(), gridworld(4, 3)])
def test_every_optional_field_is_kept(mdp: MDP, tmp_path: Path):
    assert_unchanged_by_a_file(mdp, tmp_path / "mdp.npz")


def test_saving_leaves_the_old_file_and_no_other_when_it_fails(tmp_path: Path, monkeypatch):
    path = tmp_path / "mdp.npz"
    example().save(path)
    before = path.read_bytes()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gridworld(3).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["mdp.npz"]


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
        ({"data": np.ones(7)}, r"state 0 \('a'\), action 0 \('x'\) sum to 2.25"),
        ({"data": np.ones(5)}, "indptr does not divide 5 transitions"),
        ({"indices": np.array([0, 1, 1, 2, 0, 1, 9])}, "indices names state 9, not 0 to 2"),
        ({"indices": np.array([0, 1, -1, 2, 0, 1, 2])}, "indices names state -1, not 0 to 2"),
        ({"indices": np.array([0, 1, 1])}, "transitions are damaged"),
        ({"indptr": np.array([0, 2, 7])}, "transitions are damaged"),
        ({"indptr": np.array([0, 5, 4, 7])}, "indptr does not divide 7 transitions"),
        ({"indptr": -np.array([0, 2, 4, 7])}, "indptr does not divide 7 transitions"),
        ({"indptr": np.array([1, 2, 4, 7])}, "indptr does not divide 7 transitions"),
        ({"indptr": np.zeros(0, int)}, "indptr does not divide 7 transitions"),
        ({"pointer": np.array([0, 1, 2, 2])}, "pointer does not divide 3 pairs"),
        ({"pointer": np.zeros(0, int)}, "pointer does not divide 3 pairs"),
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
    refuses(tmp_path, "no such file")
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


def test_a_header_that_promises_too_much_is_refused(tmp_path: Path, whole):
    path = tmp_path / "huge.npz"
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "rewards.npy":
                content = content.replace(b"(3,), }           ", b"(9999999999999,), }")
                assert b"9999999999999" in content
            new.writestr(name, content)
    refuses(path, "not a readable MDP file")
