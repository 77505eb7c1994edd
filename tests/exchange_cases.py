"""Models and mutations that the tests of the exchange files share."""

from __future__ import annotations

import gzip
import json
import random
import re
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np

from tsallax.planning.mdp import MDP
from tsallax.problems import garnet, gridworld

NO_STORM = "stormpy has wheels for Linux on x86-64 only"
NASTY = (
    b"nan", b"inf", b"-1", b"-0.5", b"1e400", b"18446744073709551616", b"9" * 400, b"", b"0x10",
    b"1/0", b"1/3", b"999999999999", b"1_0", b"\xff\xfe", b"\0", b"[", b"]", b":", b"//", b'"',
    b"true", b"null", b"{", b"}", b"0.5.5", b"4294967295", b"2",
)  # fmt: skip
"""Words that are put in the place of others."""


def example() -> MDP:
    """An MDP that uses every field."""
    return MDP(
        [[0.25, 0.5, 0], [0, 0.1, 0.9], [1 / 3, 1 / 3, 1 / 3]], [1.0, -2.0, 3.0], 0.9,
        [0.25, 0.75, 0], pairs=[(0, 0), (1, 0), (1, 2)], terminal=[2],
        termination=[0.25, 0.0, 0.0], state_names=["a", "ß", "c d"],
        action_names=["go on", "y", "z"],
    )  # fmt: skip


def with_everything_of_prism() -> MDP:
    """An MDP that uses every field that PRISM's files have."""
    return MDP(
        [[0.25, 0.5, 0], [0, 0.1, 0.9], [1 / 3, 1 / 3, 1 / 3]], [1.0, -2.0, 1 / 3], 0.9,
        1, pairs=[(0, 0), (1, 0), (1, 1)], terminal=[2],
        termination=[0.25, 0.0, 0.0], state_names=["a", "ß", "c d"], action_names=["x", "z"],
    )  # fmt: skip


def models() -> dict[str, MDP]:
    """Models with and without names, terminal states, termination and missing actions."""
    sparse = [[0.25, 0.75, 0], [0, 0.5, 0.5], [1, 0, 0]]
    missing = MDP(sparse, [1.0, 0.1, -3.0], 0.95, 0, pairs=[(0, 3), (1, 0), (2, 1)])
    return {
        "garnet": garnet(20, 3, 4, seed=1).with_discount(0.9),
        "gridworld": gridworld(4, 3),
        "missing": missing,
        "prism": with_everything_of_prism(),
    }


def rewritten(path: Path, edit: Callable[[dict[str, bytes]], None], target: Path) -> Path:
    """Write a UMB file with its members edited."""
    with tarfile.open(path) as archive:
        members = {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}  # type: ignore[union-attr]
    edit(members)
    with tarfile.open(target, "w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, BytesIO(content))
    return target


def with_index(
    path: Path, target: Path, edit: Callable[[dict], None], changed: dict[str, bytes] | None = None
) -> Path:
    """Write a UMB file with its index edited and some members changed or added."""

    def edit_index(members: dict[str, bytes]) -> None:
        index = json.loads(members["index.json"])
        edit(index)
        members |= {"index.json": json.dumps(index).encode(), **(changed or {})}

    return rewritten(path, edit_index, target)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Some bytes, words or lines changed, moved, repeated or left out."""
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(7)
        at = rng.randrange(len(content) + 1)
        to = min(len(content), at + rng.choice((1, 1, 2, 8, 30, 600)))
        if kind == 0:
            content = (
                content[:at] + bytes(rng.randrange(256) for _ in range(to - at)) + content[to:]
            )
        elif kind == 1:
            content = content[:at] + content[to:]
        elif kind == 2:
            content = content[:at] + content[at:to] * 2 + content[to:]
        elif kind == 3:
            content = content[:at]
        elif kind == 4 and (words := list(re.finditer(rb"[\w.+/-]+", content))):
            word = rng.choice(words)
            content = content[: word.start()] + rng.choice(NASTY) + content[word.end() :]
        elif kind == 5:
            lines = content.split(b"\n")
            a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[a], lines[b] = lines[b], lines[a]
            content = b"\n".join(lines)
        elif len(content) >= 8:
            at = 8 * rng.randrange(len(content) // 8)
            value = rng.choice(
                (0, 1, 2**63, 2**64 - 1, 2**32, 10**15, 3, 0x7FF8 << 48, 0xFFF0 << 48)
            )
            content = content[:at] + value.to_bytes(8, "little") + content[at + 8 :]
    return content


def mutated_archive(path: Path, rng: random.Random, target: Path) -> Path:
    """A UMB file with mutated members, or mutated as a whole, perhaps compressed."""
    if rng.random() < 0.3:
        content = path.read_bytes()
        if rng.random() < 0.5:
            content = gzip.compress(content, 1)
        target.write_bytes(mutated(content, rng))
        return target

    def edit(members: dict[str, bytes]) -> None:
        name = rng.choice([*members, "index.json", "index.json"])
        members[name] = mutated(members[name], rng)

    return rewritten(path, edit, target)


def numbers(rng: np.random.Generator, count: int) -> list[float]:
    """Floats of all magnitudes."""
    return (rng.standard_normal(count) * 10.0 ** rng.integers(-300, 300, count)).tolist()
