"""Ctrl-C and SIGTERM, treated the same way everywhere.

A command ends by `KeyboardInterrupt`, which the command line turns into one line and exit code
130. Long loops whose state must stay consistent check a flag between two units of work instead
(`deferred`), save, and then raise. Calls of compiled kernels are wrapped in `interruptible`.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise Ctrl-C as KeyboardInterrupt: inside a call of Numba it may become a SystemError."""
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


@contextmanager
def deferred() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a flag to check between two units of work; a second one raises."""
    seen = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield seen.is_set
        return

    def handler(number: int, frame: Any) -> None:
        seen.set()
        signal.signal(signal.SIGINT, previous)

    previous = signal.signal(signal.SIGINT, handler)
    try:
        yield seen.is_set
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """Handle SIGTERM, by which clusters end a job, like Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
