"""Time limits of computations, which end where they ask for it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class DeadlineReached(Exception):
    """The time limit of a computation has passed while it was under way."""


_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def deadline(at: float) -> Iterator[None]:
    """Let `check_deadline` raise from the time `at` on, in the units of `time.monotonic`."""
    before = _deadline.set(at)
    try:
        yield
    finally:
        _deadline.reset(before)


def check_deadline() -> None:
    """Raise `DeadlineReached` where the deadline has passed: to be called within long work."""
    if time.monotonic() >= _deadline.get():
        raise DeadlineReached
