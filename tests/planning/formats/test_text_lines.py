"""Numbers and words in lines are those that Python finds one by one."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange_cases import numbers
from tsallax.errors import InvalidInput
from tsallax.planning.formats import text_lines
from tsallax.planning.formats.text_lines import chosen_lines, read_blocks, split_lines


def lines_of(content: bytes, separators: bytes = b"") -> text_lines.Lines:
    count = max(content.count(b"\n") + (not content.endswith(b"\n")), 1)
    return split_lines(np.frombuffer(content, np.uint8), np.arange(1, count + 1), separators)


@given(
    st.lists(st.lists(st.sampled_from(["a", "bc", "1", ""]), max_size=4), min_size=1, max_size=6)
)
def test_words_are_those_of_split(table):
    texts = [" ".join(row) for row in table]
    lines = lines_of("".join(f"{text}\n" for text in texts).encode())
    assert lines.words.tolist() == [len(text.split()) for text in texts]
    found = lines.texts(np.ones(len(lines.start), bool))
    assert [word.decode() for word in found] == " ".join(texts).split()


def test_numbers_are_read_bit_by_bit():
    values = numbers(np.random.default_rng(0), 1000)
    lines = lines_of("".join(f"{i} : {v!r}\n" for i, v in enumerate(values)).encode(), b":")
    assert lines.integers(lines.place == 0, "an index").tolist() == list(range(1000))
    assert lines.floats(lines.place == 1, "a number").tolist() == values


def test_rationals_are_read():
    lines = lines_of(b"1/3 -2/7 0.5\n")
    assert lines.floats(lines.place >= 0, "a number").tolist() == [1 / 3, -2 / 7, 0.5]


@pytest.mark.parametrize(
    "word", [b"x", b"1_0", b"0x1", b"1.5.5", b"1,5", b"--1", b"1e", b"9" * 500 + b"/x"]
)
def test_other_words_are_refused_with_their_line(word):
    lines = lines_of(b"1\n2\n" + word + b"\n3\n")
    with pytest.raises(InvalidInput, match="line 3: a number is not a number: '"):
        lines.floats(lines.place == 0, "a number")


@pytest.mark.parametrize("word", [b"-1", b"1.0", b"x", b"1e3"])
def test_integers_are_digits(word):
    lines = lines_of(b"1\n" + word + b"\n")
    with pytest.raises(InvalidInput, match="line 2: an index is"):
        lines.integers(lines.place == 0, "an index")


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_blocks_hold_whole_lines_with_their_numbers(size, monkeypatch):
    monkeypatch.setattr(text_lines, "BLOCK", max(size, 4))
    content = b"ab\n\n c d\nef"
    found = []
    for lines in read_blocks(io.BytesIO(content), first=5):
        for word, line in zip(lines.texts(lines.place >= 0), lines.line):
            found.append((int(lines.number[line]), word))
    assert found == [(5, b"ab"), (7, b"c"), (7, b"d"), (8, b"ef")]


def test_a_line_longer_than_a_block_is_refused(monkeypatch):
    monkeypatch.setattr(text_lines, "BLOCK", 16)
    with pytest.raises(InvalidInput, match="line 2 is longer than 16 bytes"):
        list(read_blocks(io.BytesIO(b"a\n" + b"b" * 100)))


def test_chosen_lines_keep_their_numbers():
    part = chosen_lines(lines_of(b"a 1\nb 2\na 3\n"), np.array([True, False, True]))
    assert part.texts(part.place == 1) == [b"1", b"3"]
    assert part.number.tolist() == [1, 3]


def test_compressed_and_missing_files_are_refused(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"\x1f\x8b\x08")
    with pytest.raises(InvalidInput, match="a: is compressed: unpack it first"):
        text_lines.open_text(tmp_path / "a")
    with pytest.raises(InvalidInput, match="no such file"):
        text_lines.open_text(tmp_path / "b")


def test_a_failing_write_leaves_nothing(tmp_path: Path):
    def parts():
        yield "a\n"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        text_lines.write_text(tmp_path / "a", parts())
    assert list(tmp_path.iterdir()) == []
