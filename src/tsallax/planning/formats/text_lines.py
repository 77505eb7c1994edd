"""Lines of numbers and words in large text files, split and parsed in bulk by NumPy.

A file is read in blocks of whole lines, so that the temporary arrays stay small whatever its size.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.files.atomic import atomic_path
from tsallax.planning.formats.explicit_model import rational

BLOCK = 1 << 22
"""Bytes that are read at once, and so the length of the longest line."""
MAX_QUOTED = 40
"""Characters of a word in an error message."""

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Lines:
    """Some lines of a file and the words in them.

    Attributes:
        data: the bytes of all lines.
        number: number of each line in the file, from 1.
        begin: position in `data` of each line.
        start, end: position in `data` of each word.
        line: line of each word, counted in this block.
        place: position of each word in its line.
        words: number of words of each line.
    """

    data: Bytes
    number: Positions
    begin: Positions
    start: Positions
    end: Positions
    line: Positions
    place: Positions
    words: Positions

    def integers(self, chosen: NDArray[np.bool_], what: str) -> Positions:
        """The chosen words as integers from 0."""
        values = self._parsed(chosen, np.int64, what)
        self.require(values >= 0, chosen, f"{what} is negative or too large")
        return values

    def floats(self, chosen: NDArray[np.bool_], what: str) -> NDArray[np.float64]:
        """The chosen words as real numbers, decimal or, as `1/3`, rational."""
        return self._parsed(chosen, np.float64, what)

    def require(self, fits: NDArray[np.bool_], chosen: NDArray[np.bool_], problem: str) -> None:
        """Refuse the line of the first chosen word that does not fit."""
        if not fits.all():
            word = np.flatnonzero(chosen)[int(np.argmin(fits))]
            self.refuse(int(self.line[word]), problem)

    def refuse_any(self, wrong: NDArray[np.bool_], problem: str) -> None:
        """Refuse the first of the lines that are wrong."""
        if wrong.any():
            self.refuse(int(np.argmax(wrong)), problem)

    def refuse(self, line: int, problem: str) -> NoReturn:
        """Refuse a line of this block."""
        raise InvalidInput(f"line {int(self.number[line])}: {problem}")

    def whole_lines(self, chosen: NDArray[np.bool_]) -> Iterator[tuple[int, bytes]]:
        """The chosen lines, each with its position in this block."""
        at = np.flatnonzero(chosen)
        content = self.data.tobytes() if len(at) else b""
        ends = np.append(self.begin[1:], len(self.data))
        for line, a, b in zip(at.tolist(), self.begin[at].tolist(), ends[at].tolist()):
            yield line, content[a:b]

    def texts(self, chosen: NDArray[np.bool_]) -> list[bytes]:
        """The chosen words."""
        content = self.data.tobytes()
        starts, ends = self.start[chosen].tolist(), self.end[chosen].tolist()
        return [content[a:b] for a, b in zip(starts, ends)]

    def _parsed(self, chosen: NDArray[np.bool_], dtype: Any, what: str) -> NDArray[Any]:
        count = int(np.count_nonzero(chosen))
        if not count:
            return np.empty(0, dtype)
        steps = np.zeros(len(self.data) + 1, np.int8)
        steps[self.start[chosen]] += 1
        steps[self.end[chosen]] -= 1
        inside = np.cumsum(steps[:-1], dtype=np.int8).view(bool)
        buffer = np.where(inside, self.data, np.uint8(32)).tobytes()
        try:
            with warnings.catch_warnings(action="error", category=DeprecationWarning):
                values = np.fromstring(buffer, dtype, sep=" ")
        except (ValueError, DeprecationWarning):
            values = np.empty(0, dtype)
        if len(values) == count:
            return values
        read = _integer if dtype is np.int64 else real_number
        slow = [read(word) for word in self.texts(chosen)]
        bad = np.array([value is None for value in slow])
        if bad.any():
            word = np.flatnonzero(chosen)[int(np.argmax(bad))]
            text = self.data[self.start[word] : self.end[word]].tobytes().decode(errors="replace")
            self.refuse(int(self.line[word]), f"{what} is not a number: {text[:MAX_QUOTED]!r}")
        return np.array(slow, dtype)


def _integer(word: bytes) -> int | None:
    return int(word) if word.isdigit() and len(word) < 19 else None


def real_number(word: bytes) -> float | None:
    """A number, decimal or rational; None where the word is none."""
    parts = word.removeprefix(b"-").split(b"/")
    if len(parts) == 2 and all(part.isdigit() and len(part) < 4000 for part in parts):
        value = rational(int(parts[0]), int(parts[1]))
        return -value if word.startswith(b"-") else value
    if len(word) > 400 or b"_" in word:
        return None
    try:
        return float(word)
    except ValueError:
        return None


def split_lines(data: Bytes, number: Positions, separators: bytes = b"") -> Lines:
    """Split lines into words at blanks and, if any, at other separators.

    >>> data = np.frombuffer(b"1 : 0.5\\n2 : 0.25\\n", np.uint8)
    >>> lines = split_lines(data, np.array([7, 8]), b":")
    >>> lines.floats(lines.place == 1, "a probability")
    array([0.5 , 0.25])
    """
    blank = data <= 32
    for byte in separators:
        blank |= data == byte
    edge = np.diff(blank.view(np.int8), prepend=np.int8(1))
    start, end = np.flatnonzero(edge == -1), np.flatnonzero(edge == 1)
    if len(end) < len(start):
        end = np.append(end, len(data))
    begin = np.append(0, np.flatnonzero(data == 10)[: len(number) - 1] + 1)
    bounds = np.append(np.searchsorted(start, begin), len(start))
    words = np.diff(bounds)
    line = np.repeat(np.arange(len(number)), words)
    place = np.arange(len(start)) - bounds[line]
    return Lines(data, number, begin, start, end, line, place, words)


def joined(parts: list[Any], dtype: Any = np.int64) -> Any:
    """What was read block by block as one array, empty where there was no block."""
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def chosen_lines(lines: Lines, chosen: NDArray[np.bool_], separators: bytes = b"") -> Lines:
    """Some of the lines, split into words anew."""
    if chosen.all():
        return split_lines(lines.data, lines.number, separators)
    lengths = np.diff(np.append(lines.begin, len(lines.data)))
    return split_lines(lines.data[np.repeat(chosen, lengths)], lines.number[chosen], separators)


def read_blocks(file: BinaryIO, first: int = 1) -> Iterator[Lines]:
    """Read the rest of a file in blocks of whole lines; `first` is the number of the next line."""
    rest = b""
    while True:
        piece = file.read(BLOCK)
        content = rest + (piece or b"\n" * bool(rest))
        cut = content.rfind(b"\n") + 1
        if cut:
            data = np.frombuffer(content, np.uint8, cut)
            count = content.count(b"\n", 0, cut)
            yield split_lines(data, np.arange(first, first + count))
            first += count
        elif len(content) > BLOCK:
            raise InvalidInput(f"line {first} is longer than {BLOCK} bytes")
        if not piece:
            return
        rest = content[cut:]


def open_text(path: str | PathLike[str]) -> BinaryIO:
    """Open a text file, unless it is missing or compressed."""
    checks.input_file(path)
    try:
        file = open(path, "rb")  # noqa: SIM115, the caller closes it
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror or error}", source=path) from None
    magic = file.read(6)
    if magic.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"PK\x03\x04")):
        file.close()
        raise InvalidInput("is compressed: unpack it first", source=path)
    file.seek(0)
    return file


def write_text(path: str | PathLike[str], parts: Iterable[str]) -> None:
    """Write a text file, completely or not at all."""
    with (
        atomic_path(path) as temporary,
        open(temporary, "x", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(parts)
