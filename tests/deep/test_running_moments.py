"""Running moments are those of all vectors at once, and standardised numbers are bounded."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tsallax.deep import running_moments

take_in, standardize = map(jax.jit, (running_moments.update, running_moments.standardize))


@given(st.integers(0, 2**31), st.integers(1, 6), st.floats(0, 1))
def test_running_moments_are_those_of_numpy(seed: int, pieces: int, share: float) -> None:
    draw = np.random.default_rng(seed)
    known, kept = running_moments.init(2), []
    for _ in range(pieces):
        x = (100 + draw.normal(size=(5, 2))).astype(np.float32)
        valid = draw.random(5) < share
        known = take_in(known, x, valid)
        kept.append(x[valid])
    seen = np.concatenate(kept).astype(np.float64)
    assert int(known.number) == len(seen)
    if len(seen):
        np.testing.assert_allclose(known.mean, seen.mean(0), rtol=1e-6)
        np.testing.assert_allclose(known.variance, seen.var(0), rtol=1e-3, atol=1e-3)
    else:
        np.testing.assert_array_equal(known.variance, 1)


def test_moments_stay_exact_over_many_steps() -> None:
    x = np.random.default_rng(0).normal([5.0, -300.0], [0.1, 7.0], (20_000, 2)).astype(np.float32)
    known, _ = jax.lax.scan(
        lambda m, row: (running_moments.update(m, row[None]), None),
        running_moments.init(2),
        jnp.asarray(x),
    )
    np.testing.assert_allclose(known.mean, x.mean(0, np.float64), rtol=1e-5)
    np.testing.assert_allclose(np.sqrt(known.variance), x.std(0, np.float64), rtol=1e-3)


def test_a_number_that_never_changes_does_no_harm() -> None:
    known = take_in(running_moments.init(2), np.full((5, 2), 4.0, np.float32), np.ones(5, bool))
    z = standardize(known, np.float32([4.0, 1e9]))
    assert z.tolist() == [0.0, running_moments.CLIP]
