"""Blocks of states for the threads."""

import numba

from tsallax.planning.threads import thread_blocks


def test_every_thread_gets_several_blocks():
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = thread_blocks()
        numba.set_num_threads(threads)
        assert thread_blocks() == threads * alone
        assert alone > 1
    finally:
        numba.set_num_threads(threads)
