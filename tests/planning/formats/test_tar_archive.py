"""Archives are read whatever packed them, and hostile ones are refused within the limits."""

import bz2
import gzip
import io
import lzma
import tarfile
import tracemalloc
from functools import partial
from pathlib import Path

import pytest

from tsallax.errors import InvalidInput
from tsallax.planning.formats import tar_archive
from tsallax.planning.formats.tar_archive import read_members, write_members

MEMBERS = {"index.json": b"{}", "a/b.bin": bytes(range(256)) * 5, "empty": b""}
PACK = {"plain": bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}


def every(name: str) -> bool:
    return True


def read_or_none(path: Path) -> dict[str, bytes] | None:
    try:
        return read_members(path, every)
    except InvalidInput:
        return None


def packed(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.USTAR_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for entry, content in entries:
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def entry(name: str, **fields) -> tarfile.TarInfo:
    result = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(result, key, value)
    return result


def refused(path: Path, content: bytes, match: str) -> None:
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=match) as caught:
        read_members(path, every)
    assert caught.value.source == str(path)
    assert "\n" not in str(caught.value)


def test_what_is_written_is_read_and_python_reads_it_too(tmp_path: Path):
    path = tmp_path / "a.tar"
    write_members(path, MEMBERS)
    assert read_members(path, every) == MEMBERS
    with tarfile.open(path) as archive:
        assert archive.getnames() == list(MEMBERS)
    assert read_members(path, "empty".__eq__) == {"empty": b""}


@pytest.mark.parametrize("pack", PACK.values(), ids=PACK)
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_all_kinds_of_archives_are_read(pack, form, tmp_path: Path):
    long = "annotations/" + "x" * 60 + "/" + "ä" * 70 + "/values.bin"
    names = (
        ["./index.json", long]
        if form != tarfile.USTAR_FORMAT
        else ["./index.json", "y/" * 60 + "z"]
    )
    content = packed(*((entry(name), name.encode()) for name in names), form=form)
    path = tmp_path / "a.umb"
    path.write_bytes(pack(content))
    expected = {name.removeprefix("./"): name.encode() for name in names}
    assert read_members(path, every) == expected


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, "'a' is not a plain file"),
        ({"type": tarfile.LNKTYPE, "linkname": "b"}, "'a' is not a plain file"),
        ({"type": tarfile.CHRTYPE}, "'a' is not a plain file"),
        ({"type": tarfile.GNUTYPE_SPARSE}, "'a' is not a plain file"),
        ({"name": "../a"}, "leads out of the archive"),
        ({"name": "/etc/passwd"}, "leads out of the archive"),
        ({"name": "b/../../a"}, "leads out of the archive"),
        ({"name": "..\\a"}, "leads out of the archive"),
    ],
)
def test_links_devices_and_names_outside_are_refused(fields, match, tmp_path: Path):
    refused(tmp_path / "a.umb", packed((entry(**{"name": "a", **fields}), b"")), match)


def test_duplicate_members_are_refused(tmp_path: Path):
    refused(tmp_path / "a", packed((entry("a"), b"1"), (entry("./a"), b"2")), "'a' is there twice")


def test_every_truncation_is_refused_or_leaves_whole_members(tmp_path: Path):
    path = tmp_path / "a.umb"
    write_members(path, MEMBERS)
    content = path.read_bytes()
    for cut in range(1, len(content), 37):
        path.write_bytes(content[:cut])
        found = read_or_none(path)
        if found is not None:
            assert all(MEMBERS[name] == part for name, part in found.items())


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_truncated_and_damaged_compressed_data_is_refused(pack, tmp_path: Path):
    content = pack(packed((entry("a"), bytes(range(256)) * 100)))
    path = tmp_path / "a.umb"
    refused(path, content[: len(content) // 2], "not a readable archive")
    damaged = bytearray(content)
    damaged[-20] ^= 255
    refused(path, bytes(damaged), "a.umb: ")


@pytest.mark.parametrize(
    "pack",
    [partial(gzip.compress, compresslevel=1), bz2.compress, partial(lzma.compress, preset=0)],
)
def test_compressed_bombs_are_refused_with_little_memory(pack, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(tar_archive, "ALWAYS_ALLOWED", 1 << 20)
    path = tmp_path / "a.umb"
    bomb = pack(packed((entry("a"), bytes(1 << 23))))
    path.write_bytes(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match=r"unpacks to more than \d+ bytes: unpack it with"):
            read_members(path, every)
        with pytest.raises(InvalidInput, match="unpacks to more than"):
            read_members(path, lambda name: False)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()
    path.write_bytes(pack(packed((entry("a"), b"1")) + bytes(1 << 23)))
    with pytest.raises(InvalidInput, match="unpacks to more than"):
        read_members(path, every)


def test_a_size_beyond_the_file_is_refused_before_it_is_allocated(tmp_path: Path):
    header = entry("a", size=1 << 60).tobuf(tarfile.GNU_FORMAT)
    refused(tmp_path / "a", header + bytes(1024), "truncated")
    pax = entry("a", size=1 << 60).tobuf(tarfile.PAX_FORMAT)
    refused(tmp_path / "b", pax + bytes(1024), "truncated")


def test_long_extended_headers_are_refused(tmp_path: Path):
    content = packed((entry("a" * 5000), b""), form=tarfile.GNU_FORMAT)
    refused(tmp_path / "a", content, "an extended header of 5001 bytes")


def test_other_files_are_refused(tmp_path: Path):
    refused(tmp_path / "a", b"hello" * 200, "not a tar archive")
    with pytest.raises(InvalidInput, match="no such file"):
        read_members(tmp_path / "absent", every)
    with pytest.raises(InvalidInput, match="is a folder"):
        read_members(tmp_path, every)


def test_nothing_is_left_where_a_file_cannot_be_written(tmp_path: Path):
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_members(tmp_path / "absent" / "a.umb", MEMBERS)
    assert list(tmp_path.iterdir()) == []
