"""When compiled loops use several threads, and into how many blocks they divide the states."""

from numba import get_num_threads

PARALLEL_TRANSITIONS = 50_000
"""Transitions from which a second thread saves more than it costs."""


def thread_blocks() -> int:
    """The number of blocks of states for the threads: several for each, as blocks differ."""
    return 4 * int(get_num_threads())
