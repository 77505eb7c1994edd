"""Whether the functions of a model define an MDP: which pair does not, and why.

A pair is valid where `decide` stays in the post-decision states with a finite reward, the
probabilities are a distribution, and every event of positive probability leads to a state, or ends
the episode, with a finite reward.  The model is a `FunctionalMDP`, whose module imports this
one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tsallax.errors import InvalidInput
from tsallax.planning.function_space import Space
from tsallax.planning.integer_overflow import refuse_long_axes, refuse_overflow

SUM_TOLERANCE = 1e-6
"""The largest distance from one of the sum of the events' probabilities, which are rescaled."""
CHECKED_BRANCHES = 2**20
"""Triples (state, action, event) up to which a model is checked in full before a solve."""

Check = Callable[[Array, Array], Array]


def check_functions(mdp: Any, single: bool = False) -> None:
    """Refuse a model with a pair that is not valid, of all pairs or of a random sample of them.

    With `single`, for a solve in float32.
    """
    if single:
        refuse_long_axes(mdp)
    pairs = mdp.n_pairs
    most = max(CHECKED_BRANCHES // mdp.events.size, 16)
    sample: NDArray[np.int64] = np.arange(min(pairs, most))
    if pairs > most:
        sample = np.random.default_rng(0).integers(0, pairs, most)
        sample[:2] = 0, pairs - 1
    _refuse_invalid(mdp, _compiled_check(mdp), sample)
    refuse_overflow(mdp, single)


def find_invalid(mdp: Any) -> None:
    """Refuse the first pair that is not valid, of all pairs; return where all are."""
    most = max(CHECKED_BRANCHES // mdp.events.size, 16)
    check = _compiled_check(mdp)
    for first in range(0, mdp.n_pairs, most):
        _refuse_invalid(mdp, check, np.arange(first, min(first + most, mdp.n_pairs)))


def _refuse_invalid(mdp: Any, check: Check, pairs: NDArray[np.int64]) -> None:
    """Refuse a model of which one of these pairs is not valid."""
    padded = np.resize(pairs, 1 << (len(pairs) - 1).bit_length())
    state, action = np.divmod(padded, mdp.n_actions)
    valid = np.asarray(check(jnp.asarray(state), jnp.asarray(action)))
    if not valid.all():
        i = int(np.flatnonzero(~valid)[0])
        raise InvalidInput(explain(mdp, int(state[i]), int(action[i])))


def _compiled_check(mdp: Any) -> Check:
    """Which pairs of states (n,) and actions (n,) are valid."""
    events = jnp.arange(mdp.events.size, dtype=jnp.int32)

    def valid(s: Array, a: Array) -> Array:
        state = mdp.states.element(s)
        post, reward, allowed = mdp.decide(state, mdp.actions.element(a))
        fine = jnp.isfinite(reward)
        if mdp.post is not None:
            fine = fine & mdp.post.index(post)[1]
        post = mdp.post_given(post)
        p = jnp.asarray(mdp.probabilities_at(state, post), float)
        fine = fine & jnp.all(p >= 0.0) & (jnp.abs(jnp.sum(p) - 1.0) <= SUM_TOLERANCE)

        def branch(e: Array, p: Array) -> Array:
            after, reward, ends = mdp.evolve(post, mdp.events.element(e))
            inside: Array = mdp.states.index(after)[1] | jnp.asarray(ends, bool)
            return (p == 0.0) | (inside & jnp.isfinite(reward))

        fine = fine & jnp.all(jax.vmap(branch)(events, p))
        return fine | ~jnp.asarray(allowed, bool)

    return jax.jit(jax.vmap(valid))


def explain(mdp: Any, s: int, a: int) -> str:
    """Why the pair (s, a) is not valid, from the functions called with its coordinates."""
    state, action = mdp.states.element(jnp.asarray(s)), mdp.actions.element(jnp.asarray(a))
    where = f"state {mdp.states.describe(s)}, action {mdp.actions.describe(a)}"
    post, reward, _ = mdp.decide(state, action)
    if not math.isfinite(float(reward)):
        return f"decide returns the reward {float(reward)} at {where}"
    if mdp.post is not None and not mdp.post.index(post)[1]:
        return f"decide leaves `post` at {where}: it returns {_text(post, mdp.post)}"
    post = mdp.post_given(post)
    p = np.asarray(mdp.probabilities_at(state, post), np.float64)
    if not (p >= 0.0).all():
        e = int(np.flatnonzero(~(p >= 0.0))[0])
        return f"the probability of event {mdp.events.describe(e)} is {p[e]} at {where}"
    if abs(p.sum() - 1.0) > SUM_TOLERANCE:
        return f"probabilities sum to {p.sum():.8g}, not to 1, at {where}"
    for e in np.flatnonzero(p).tolist():
        after, reward, ends = mdp.evolve(post, mdp.events.element(jnp.asarray(e)))
        event = f"{where}, event {mdp.events.describe(e)}"
        if not math.isfinite(float(reward)):
            return f"evolve returns the reward {float(reward)} at {event}"
        if not (bool(ends) or mdp.states.index(after)[1]):
            return f"evolve leaves `states` at {event}: it returns {_text(after, mdp.states)}"
    return f"the functions differ from call to call at {where}"


def _text(coordinates: Any, space: Space) -> str:
    """Coordinates outside a space as text, with what to do where only rounding takes them out."""
    values = [np.asarray(x).item() for x in jax.tree.leaves(coordinates)]
    rounded = any(
        axis.values is not None
        and value not in axis.values
        and np.isclose(value, axis.values).any()
        for axis, value in zip(space.axes, values, strict=True)
    )
    return (
        (str(values[0]) if len(values) == 1 else f"({', '.join(map(str, values))})")
        + "; values of an array are compared exactly: give a size, and look values up by position"
        * rounded
    )
