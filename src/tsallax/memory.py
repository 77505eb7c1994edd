"""Freed memory, back to the system: glibc keeps arrays of up to 32 MiB in its heap for later."""

import ctypes
from contextlib import suppress

LARGE = 2**23


def trim(freed: int) -> None:
    """Return the free pages of the heap, if as many bytes were freed as make it worth the while.

    Does nothing where the C library cannot.
    """
    if freed > LARGE:
        with suppress(AttributeError, OSError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)
