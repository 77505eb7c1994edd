"""The error of a solve over several processes of which one has ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from tsallax.errors import one_line

SIGNS = ("gloo", "nccl", "unavailable", "deadline_exceeded", "coordination")
"""Words, in lower case, of the runtime's errors that concern the connection to other processes."""


class ProcessLost(RuntimeError):
    """Another process of a solve has ended or does not answer; the solve cannot go on."""


@contextmanager
def reporting_lost_processes() -> Iterator[None]:
    """Raise `ProcessLost` where JAX reports that another process is out of reach."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        reason = one_line(error)
        if jax.process_count() == 1 or not any(sign in reason.lower() for sign in SIGNS):
            raise
        raise ProcessLost(f"another process of this solve ended: {reason}") from error
