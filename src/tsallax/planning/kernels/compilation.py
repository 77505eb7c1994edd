"""The decorator of compiled functions, whose cache on disk is keyed by the kernels' sources.

Numba compares a cached function with the file it is written in only, and would run old code after
an edit in another file that it was inlined from.  Here the folder of the cache is named after a
hash of all sources of this package, so that any edit leads to a new one.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba

SOURCES = Path(__file__).parent
config: Any = numba.config


def source_key(folder: Path = SOURCES) -> str:
    """A hash of the names and contents of all Python files of a folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _candidates() -> Iterator[Path]:
    """Folders for the cache: the user's NUMBA_CACHE_DIR, beside the sources, the user's cache."""
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
    yield SOURCES / "__pycache__"
    if os.path.isabs(home := os.path.expanduser("~")):
        yield Path(home, ".cache", "tsallax")


def cache_folder() -> Path | None:
    """The folder of the compiled kernels, made if need be; None where none can be written to."""
    for parent in _candidates():
        folder = parent / f"kernels-{source_key()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    return None


_FOLDER = cache_folder()


def njit(**options: Any) -> Any:
    """`numba.njit` with nogil=True and, where a folder can be written to, cache=True."""
    options = {"nogil": True, "cache": _FOLDER is not None, **options}

    def decorate(function: Any) -> Any:
        before, config.CACHE_DIR = config.CACHE_DIR, str(_FOLDER)  # read while decorating only
        try:
            return numba.njit(**options)(function)
        finally:
            config.CACHE_DIR = before

    return decorate
