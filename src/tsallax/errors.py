"""What can go wrong by a user's doing, and Ctrl-C."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class InvalidInput(ValueError):
    """Input that cannot be used, refused before any work starts."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C through as itself: inside a call of Numba it may come out as a SystemError."""
    already = sys.exception()
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None and cause is not already:
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            cause = cause.__cause__ or cause.__context__
        raise
