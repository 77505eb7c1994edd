"""The random numbers and the draws of simulated episodes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tsallax.planning.kernels.episodes import cumulative, draw, next_uniform


def xoshiro256plusplus(state):
    """The reference algorithm in Python integers; returns 64 bits and the next state."""
    mask = 2**64 - 1

    def rotated(x, k):
        return ((x << k) | (x >> (64 - k))) & mask

    a, b, c, d = state
    result = (rotated((a + d) & mask, 23) + a) & mask
    t = (b << 17) & mask
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    return result, (a, b, c, rotated(d, 45))


def test_the_generator_is_xoshiro256plusplus():
    # the first outputs of the authors' C code from the state 1, 2, 3, 4
    published = [41943041, 58720359, 3588806011781223, 3591011842654386]
    state, numbers = (1, 2, 3, 4), []
    for _ in published:
        bits, state = xoshiro256plusplus(state)
        numbers.append(bits)
    assert numbers == published


@given(st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4))
def test_uniform_numbers_are_the_upper_53_bits(words):
    generator, state = np.array(words, np.uint64), tuple(words)
    for _ in range(20):
        bits, state = xoshiro256plusplus(state)
        assert next_uniform(generator) == (bits >> 11) / 2**53


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5]), min_size=1, max_size=12).filter(any),
    st.floats(0, 1, exclude_max=True),
)
def test_a_draw_inverts_the_cumulative_distribution_and_never_gives_a_weight_of_zero(weights, u):
    p = np.array(weights) / sum(weights)
    pointer = np.array([0, 3, 3, 3 + len(p)])  # the third row of three
    sums = np.empty(3 + len(p))
    cumulative(pointer, np.concatenate(([1.0, 0.0, 0.0], p)), sums)
    i = int(draw(sums, 3, 3 + len(p), u)) - 3
    assert p[i] > 0
    assert p[:i].sum() <= u + 1e-15
    assert u <= p[: i + 1].sum() + 1e-15


def test_no_draw_gives_an_action_after_the_last_positive_one():
    weights = np.array([0.1] * 10 + [0.0])  # sums to 1 - 1e-16
    sums = np.empty(11)
    cumulative(np.array([0, 11]), weights, sums)
    assert draw(sums, 0, 11, 1 - 2.0**-53) == 9
