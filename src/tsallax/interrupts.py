"""Ctrl-C and SIGTERM, treated the same way everywhere.

Both raise `KeyboardInterrupt`, which the command line turns into one line and exit code 130. A loop
whose state must stay consistent checks a flag between two pieces of work instead (`deferred`),
saves, and then raises. Drafts of files are removed as the exception passes.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

REPEAT_SECONDS = 0.05
"""The time to a second try of a signal during an import, or of one that a callback discarded."""
IMPORT_MACHINERY = "<frozen importlib._bootstrap>"


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt where a library turned it into another exception.

    A call of Numba may raise SystemError from it, the import of an extension module ImportError.
    """
    handled = sys.exception()
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and cause is not handled:
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt(*cause.args) from error
            cause = cause.__cause__ or cause.__context__
        raise


@contextmanager
def deferred() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a flag, to be checked between pieces of work; a second raises."""
    received = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield received.is_set
        return

    def handler(number: int, frame: Any) -> None:
        received.set()
        signal.signal(signal.SIGINT, previous)

    previous = signal.signal(signal.SIGINT, handler)
    try:
        yield received.is_set
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM, by which clusters end a job, as on Ctrl-C.

    A shell starts background jobs with SIGINT ignored: SIGTERM interrupts those as well. During an
    import, where extension modules lose exceptions or crash, the signal waits until the import is
    done; where a callback discards the exception, as JAX's callback of the garbage collector does,
    it is raised a second time.
    """
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return

    def handler(number: int, frame: FrameType | None) -> None:
        current = signal.getsignal(signal.SIGINT)
        if _is_importing(frame):
            signal.setitimer(signal.ITIMER_REAL, REPEAT_SECONDS)
        elif callable(current) and current is not handler:
            current(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt

    def repeat(discarded: Any) -> None:
        if issubclass(discarded.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, REPEAT_SECONDS)
        else:
            hook(discarded)

    numbers = [signal.SIGTERM, signal.SIGALRM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    previous = {number: signal.signal(number, handler) for number in numbers}
    hook, sys.unraisablehook = sys.unraisablehook, repeat
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in numbers:
            signal.signal(number, previous[number])


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a frame belongs to the import of a module."""
    while frame is not None and frame.f_code.co_filename != IMPORT_MACHINERY:
        frame = frame.f_back
    return frame is not None
