"""Tar archives, plain or compressed, read into memory within stated limits.

Nothing is ever extracted to the disk. Links, devices, sparse files, duplicate members and names
that leave the archive are refused, and so is data that unpacks to more than `MAX_EXPANSION`
times the size of the file.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import BinaryIO

from tsallax import checks
from tsallax.errors import InvalidInput, one_line
from tsallax.files.atomic import atomic_path

MAX_EXPANSION = 100
"""Compressed data may unpack to this many times the size of the file, or to `ALWAYS_ALLOWED`."""
ALWAYS_ALLOWED = 1 << 26
MAX_XZ_MEMORY = 1 << 28
"""Memory that the xz decoder may use; `xz -9` needs a quarter of it."""
MAX_NAME = 1 << 12
"""Longest name of a member, in bytes."""

BLOCK = 512
_CHUNK = 1 << 20
_READERS: dict[bytes, tuple[str, str]] = {
    b"\x1f\x8b": ("gzip", "gunzip"),
    b"BZh": ("bzip2", "bunzip2"),
    b"\xfd7zXZ\0": ("xz", "unxz"),
}


def read_members(path: str | PathLike[str], wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """Read the members of an archive whose names are wanted."""
    checks.input_file(path)
    try:
        with open(path, "rb") as file:
            return _members(_open(file), wanted)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = one_line(error) or type(error).__name__
        raise InvalidInput(f"not a readable archive: {reason}", source=path) from None
    except InvalidInput as error:
        raise error.of(path) from None


def write_members(path: str | PathLike[str], members: Mapping[str, memoryview | bytes]) -> None:
    """Write an uncompressed archive, completely or not at all, its bytes without a date."""
    with atomic_path(path) as temporary, open(temporary, "xb") as file:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            size = entry.size = memoryview(content).nbytes
            file.write(entry.tobuf(tarfile.GNU_FORMAT))
            file.write(content)
            file.write(bytes(-size % BLOCK))
        file.write(bytes(2 * BLOCK))


class _Stream:
    """Bytes in the order of the file, with a limit on how many there are."""

    def __init__(self, chunks: Iterator[bytes], limit: int, remedy: str) -> None:
        self.chunks, self.limit, self.remedy = chunks, limit, remedy
        self.ready = memoryview(b"")

    def pieces(self, size: int) -> Iterator[memoryview]:
        """The next bytes, piece by piece; fewer only at the end of the data."""
        self.require(size)
        self.limit -= size
        while size:
            if not self.ready:
                self.ready = memoryview(next(self.chunks, b""))
                if not self.ready:
                    return
            piece, self.ready = self.ready[:size], self.ready[size:]
            size -= len(piece)
            yield piece

    def require(self, size: int) -> None:
        """Refuse to go on for more bytes than the limit leaves."""
        if size > self.limit:
            raise InvalidInput(self.remedy)

    def read(self, size: int, what: str) -> bytes:
        """The next bytes, all of them."""
        content = b"".join(self.pieces(size))
        if len(content) < size:
            raise InvalidInput(f"truncated in {what}")
        return content

    def drain(self) -> None:
        """Go on to the end of the data, where the checksum of compressed data is."""
        while sum(map(len, self.pieces(min(_CHUNK, self.limit)))):
            pass
        if self.ready or any(self.chunks):
            raise InvalidInput(self.remedy)

    def skip(self, size: int, what: str) -> None:
        """Pass over the next bytes."""
        if sum(map(len, self.pieces(size))) < size:
            raise InvalidInput(f"truncated in {what}")


def _open(file: BinaryIO) -> _Stream:
    size = os.fstat(file.fileno()).st_size
    magic = file.read(6)
    file.seek(0)
    for start, (kind, command) in _READERS.items():
        if magic.startswith(start):
            limit = max(MAX_EXPANSION * size, ALWAYS_ALLOWED)
            remedy = f"unpacks to more than {limit} bytes: unpack it with {command} first"
            return _Stream(_unpacked(file, kind), limit, remedy)
    return _Stream(iter(lambda: file.read(_CHUNK), b""), size, "truncated: it ends in a member")


def _unpacked(file: BinaryIO, kind: str) -> Iterator[bytes]:
    """The unpacked data in pieces of bounded size."""
    if kind == "xz":
        yield from _unpacked_xz(file)
        return
    with gzip.GzipFile(fileobj=file) if kind == "gzip" else bz2.BZ2File(file) as reader:
        while piece := reader.read(_CHUNK):
            yield piece


def _unpacked_xz(file: BinaryIO) -> Iterator[bytes]:
    decoder = lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY)
    data = b""
    while True:
        if decoder.eof:
            data = decoder.unused_data.lstrip(b"\0") or file.read(_CHUNK).lstrip(b"\0")
            if not data:
                return
            decoder = lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY)
        elif decoder.needs_input:
            data = file.read(_CHUNK)
            if not data:
                raise EOFError("the compressed data ends before its end marker")
        piece = decoder.decompress(data, _CHUNK)
        data = b""
        if piece:
            yield piece


def _members(stream: _Stream, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    seen: set[str] = set()
    long_name: str | None = None
    long_size: int | None = None
    while True:
        header = b"".join(stream.pieces(min(BLOCK, stream.limit)))
        if not header.strip(b"\0"):
            break
        if len(header) < BLOCK:
            raise InvalidInput("truncated in the header of a member")
        raw, size, kind = _header(header)
        name = _text(raw) if long_name is None else long_name
        size = size if long_size is None else long_size
        padding = -size % BLOCK
        if kind in (b"x", b"g", b"L"):
            if size > MAX_NAME:
                raise InvalidInput(f"{name!r}: an extended header of {size} bytes")
            content = stream.read(size, name)
            stream.skip(padding, name)
            if kind == b"L":
                long_name = _text(content.rstrip(b"\0"))
            elif kind == b"x":
                long_name, long_size = _extended(content, long_name)
            continue
        long_name = long_size = None
        name = _inside(name)
        if kind == b"5":
            stream.skip(size + padding, name)
            continue
        if kind not in (b"0", b"\0"):
            raise InvalidInput(f"{name!r} is not a plain file but of type {_text(kind)!r}")
        if name in seen:
            raise InvalidInput(f"{name!r} is there twice")
        seen.add(name)
        if wanted(name):
            stream.require(size + padding)
            found[name] = stream.read(size, name)
        else:
            stream.skip(size, name)
        stream.skip(min(padding, stream.limit), name)
    stream.drain()
    return found


def _header(block: bytes) -> tuple[bytes, int, bytes]:
    """Name, size and type of a member."""
    if block[257:262] != b"ustar":
        raise InvalidInput("not a tar archive")
    stated = _number(block[148:156], "checksum")
    if stated != sum(block[:148]) + 8 * 32 + sum(block[156:]):
        raise InvalidInput("damaged: the header of a member does not match its checksum")
    name = block[:100].split(b"\0")[0]
    prefix = block[345:500].split(b"\0")[0] if block[257:263] == b"ustar\0" else b""
    size = _number(block[124:136], "size")
    return prefix + b"/" * bool(prefix) + name, size, block[156:157]


def _number(field: bytes, what: str) -> int:
    """A number in octal digits, or in binary if its first bit is set."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.rstrip(b" \0").lstrip(b" ")
    if digits.strip(b"01234567"):
        raise InvalidInput(f"damaged: the {what} in the header of a member")
    return int(digits or b"0", 8)


def _extended(content: bytes, name: str | None) -> tuple[str | None, int | None]:
    """Name and size from a pax header, whose records are `length key=value` and a newline."""
    size = None
    while content:
        digits = content.split(b" ", 1)[0]
        length = int(digits) if digits.isdigit() and len(digits) < 8 else 0
        record = content[len(digits) + 1 : length]
        if length > len(content) or not record.endswith(b"\n") or b"=" not in record:
            raise InvalidInput("damaged: an extended header")
        key, value = record[:-1].split(b"=", 1)
        if key == b"path":
            name = _text(value)
        elif key == b"size":
            if not value.isdigit() or len(value) > 19:
                raise InvalidInput("damaged: the size in an extended header")
            size = int(value)
        elif key.startswith(b"GNU.sparse"):
            raise InvalidInput("a sparse member: pack the files again without holes")
        content = content[length:]
    return name, size


def _inside(name: str) -> str:
    """The name of a member without `./`, if it stays inside the archive."""
    name = name.removeprefix("./")
    if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
        raise InvalidInput(f"{name!r} leads out of the archive")
    return name


def _text(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"damaged: the name {name[:80]!r} of a member") from None
