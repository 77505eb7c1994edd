"""Compiled inner loops of planning, in float64 on the CPU (Numba), and the threads they use."""

import os

from numba import get_num_threads

# Threads that spin while they wait make a solve a hundred times slower where other work wants the
# cores; threads that sleep at once make it twice as slow where none does: spin for a moment.
# GNU OpenMP reads this when the first parallel kernel runs; settings of the user's own stand.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")

PARALLEL_TRANSITIONS = 50_000
"""Transitions from which a second thread saves more than it costs."""


def thread_blocks() -> int:
    """The number of blocks of states for the threads: several for each, as blocks differ."""
    return 4 * int(get_num_threads())
