"""A lock on a file or folder, so that two processes do not write to it at the same time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tsallax.errors import InvalidInput


@contextmanager
def locked(path: Path, problem: str, source: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of what is at `path`; `problem` is refused where another process holds it.

    Windows, and file systems without such locks, are taken to have no other process.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(problem, source=source) from None
        except OSError:  # some network file systems
            pass
        yield
    finally:
        os.close(descriptor)
