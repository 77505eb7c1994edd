"""Arrays are read back as they were written; other files are refused with their name."""

import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refusals import refused
from tsallax.errors import InvalidInput
from tsallax.files import npz

FORMAT = npz.Format("test-format", 3, "test", "a test", {"x": ("f", 1)}, {"name": ("U", 0)})


def test_arrays_are_read_back_and_the_bytes_depend_on_them_alone(tmp_path: Path):
    arrays = {"x": np.arange(3.0), "name": "ü", "other": np.ones((2, 2), np.int8)}
    for file in ("a", "b"):
        npz.write(tmp_path / file, FORMAT, arrays)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    found = npz.read(tmp_path / "a", FORMAT)
    assert {*found} == {"x", "name"}
    np.testing.assert_array_equal(found["x"], arrays["x"])
    everything = npz.read_all(tmp_path / "a", FORMAT)
    assert {*everything} == {"x", "name", "other"}
    assert everything["other"].dtype == np.int8
    with np.load(tmp_path / "a", allow_pickle=False) as file:
        assert file["version"] == 3


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "incomplete: x missing"),
        ({"x": np.arange(3)}, "x has type int64"),
        ({"x": np.zeros((1, 1))}, "x has type float64 and 2 dimensions"),
        ({"x": np.zeros(1), "version": 4}, "version 4, but this tsallax reads version 3"),
        (
            {"x": np.zeros(1), "format": "other"},
            "not a file written by a test, but of the format 'oth",
        ),
    ],
)
def test_other_contents_are_refused_with_the_name_of_the_file(tmp_path: Path, arrays, message):
    path = tmp_path / "a.npz"
    npz.write(path, FORMAT, arrays)
    with refused(message, source=path):
        npz.read(path, FORMAT)


def test_damage_pickles_and_unwritable_paths_are_refused(tmp_path: Path):
    path = tmp_path / "a.npz"
    npz.write(path, FORMAT, {"x": np.arange(30.0)})
    content = bytearray(path.read_bytes())
    content[content.index(np.float64(29.0).tobytes())] ^= 1
    path.write_bytes(content)
    with refused("does not match its checksum"):
        npz.read(path, FORMAT)
    with pytest.raises(ValueError, match="allow_pickle"):
        npz.write(path, FORMAT, {"x": np.array([object()])})
    assert path.read_bytes() == bytes(content)
    with refused("cannot be written"):
        npz.write(tmp_path / "missing" / "a.npz", FORMAT, {"x": np.zeros(1)})
    with refused("no such file"):
        npz.read(tmp_path / "missing.npz", FORMAT)


def header(shape: str, dtype: str = "<f8") -> bytes:
    """The header of an array file."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def packed(path: Path, method: int = zipfile.ZIP_STORED, **members: bytes) -> Path:
    """A file of the test's format with these members."""
    npz.write(path, FORMAT, {})
    with zipfile.ZipFile(path, "a", method) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def peak_of(call: Callable[[], Any]) -> int:
    """The most bytes that were allocated at a time."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_file_that_unpacks_to_far_more_is_refused_before_it_does(tmp_path: Path, monkeypatch):
    assert npz.MIN_LIMIT == 256_000_000
    monkeypatch.setattr(npz, "MIN_LIMIT", 25_600_000)
    size = 30_000_000
    path = tmp_path / "bomb.npz"
    npz.write(path, FORMAT, {})
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w", force_zip64=True) as member,
    ):
        member.write(header(f"({size // 8},)"))
        for _ in range(size // 1_000_000):
            member.write(bytes(1_000_000))
    assert path.stat().st_size < size / 100

    def refused() -> None:
        with pytest.raises(InvalidInput, match=r"to 30,000,\d+, more than .* max_bytes=30000\d+"):
            npz.read(path, FORMAT)

    assert peak_of(refused) < 2_000_000
    assert npz.read(path, FORMAT, max_bytes=2 * size)["x"].shape == (size // 8,)
    with pytest.raises(InvalidInput, match="max_bytes must be an integer"):
        npz.read(path, FORMAT, max_bytes=-1)


def test_compressed_files_are_read(tmp_path: Path):
    arrays = {"format": FORMAT.name, "version": FORMAT.version, "x": np.zeros(10_000)}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    assert npz.read(tmp_path / "a.npz", FORMAT)["x"].shape == (10_000,)


def test_numbers_of_the_other_byte_order_are_converted(tmp_path: Path):
    npz.write(tmp_path / "a", FORMAT, {"x": np.arange(3.0).astype(">f8"), "name": "ü"})
    found = npz.read(tmp_path / "a", FORMAT)["x"]
    assert found.dtype == np.float64
    assert found.dtype.isnative
    assert found.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (header("(10000000000000,)"), "x.npy has shape"),
        (header("(-1,)"), "x.npy has shape"),
        (header("(2,)") + bytes(15), "x.npy has shape"),
        (header("(2,)") + bytes(17), "x.npy has shape"),
        (header("(1000000000000,)", "<U0"), "not of numbers or text"),
        (header("(1,)", "|O") + bytes(8), "not of numbers or text"),
        (header("(1,)", "<M8[s]") + bytes(8), "not of numbers or text"),
        (header("(1,)", "|V8") + bytes(8), "not of numbers or text"),
        (header("(1L,)") + bytes(8), "not a readable"),
        (header("(" * 3000), "not a readable"),
        (b"\x93NUMPY\x03\x00" + header("(1,)")[8:] + bytes(8), "version"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\x7f", "not a readable"),
        (b"", "not a readable"),
        (b"PK\x05\x06" * 9, "not a readable"),
    ],
    ids=range(14),
)
def test_a_header_that_is_not_that_of_its_array_is_refused(tmp_path: Path, content, message):
    path = packed(tmp_path / "a.npz", x=content)

    def refused() -> None:
        with pytest.raises(InvalidInput, match=message) as caught:
            npz.read(path, FORMAT)
        assert "\n" not in str(caught.value)

    assert peak_of(refused) < 2_000_000


def test_text_that_is_none_and_unusual_compression_are_refused(tmp_path: Path):
    x = header("(0,)")
    text = packed(tmp_path / "a", x=x, name=header("()", "<U1") + b"\xff\xff\xff\xff")
    with pytest.raises(InvalidInput, match=r"name\.npy is not text"):
        npz.read(text, FORMAT)
    with pytest.raises(InvalidInput, match="not deflate"):
        npz.read(packed(tmp_path / "b", zipfile.ZIP_BZIP2, x=x), FORMAT)


def test_an_array_twice_is_refused(tmp_path: Path):
    path = packed(tmp_path / "a", x=header("(0,)"))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("x.npy", header("(1,)") + bytes(8))
    with pytest.raises(InvalidInput, match="table of contents"):
        npz.read(path, FORMAT)


def _only_scalars(read_array: Callable[..., Any]) -> Callable[..., Any]:
    """`read_array` for the format and version alone."""

    def limited(*arguments: Any, **options: Any) -> Any:
        array = read_array(*arguments, **options)
        assert array.shape == ()
        return array

    return limited


def test_shapes_are_checked_before_arrays_are_read(tmp_path: Path, monkeypatch):
    def check(shapes: npz.Shapes) -> None:
        raise InvalidInput(f"has shapes {dict(shapes)}")

    npz.write(tmp_path / "a", FORMAT, {"x": np.zeros(5), "other": np.zeros(2)})
    monkeypatch.setattr(np.lib.format, "read_array", _only_scalars(np.lib.format.read_array))
    with pytest.raises(InvalidInput, match=r"has shapes {'x': \(5,\)}"):
        npz.read(tmp_path / "a", replace(FORMAT, check_shapes=check))
