"""Refuses a model whose functions overflow 32-bit integers, which wrap around without an error.

Coordinates have 32 bits, so that `action * 10**9` is not what it says.  Functions that multiply
integers, or contain large ones, are called with coordinates of 64 bits as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tsallax.errors import InvalidInput
from tsallax.planning.precision import double_precision

GROWING = {"mul", "integer_pow", "pow", "dot_general", "reduce_prod", "cumprod", "shift_left"}
"""Primitives of JAX that make large integers of small ones."""
CHECKED_BRANCHES = 2**20
"""The largest number of triples (state, action, event) that are checked."""
LARGE = 2**24
"""The integer from which on a constant makes overflow likely."""


class Results(NamedTuple):
    """What the functions return at some pairs; 0 where a pair or an event is not possible."""

    post: list[Array]
    reward: Array
    next_state: list[Array]
    event_reward: Array


def refuse_overflow(mdp: Any) -> None:
    """Refuse a `FunctionalMDP` whose functions overflow 32-bit integers.

    At all pairs of a small model, and at as many as `CHECKED_BRANCHES` allow of a larger one, the
    first and the last among them.  Differences below a thousandth of the largest result are
    rounding: JAX divides 32-bit integers in single precision.
    """
    if not _may_overflow(mdp):
        return
    most = min(mdp.n_pairs, max(CHECKED_BRANCHES // mdp.events.size, 16))
    pairs = np.linspace(0, mdp.n_pairs - 1, most).astype(np.int64)
    state, action = np.divmod(pairs, mdp.n_actions)
    with double_precision():
        try:
            both = _compiled_results(mdp)(jnp.asarray(state), jnp.asarray(action))
        except (TypeError, ValueError):  # functions that accept 32-bit integers only
            return
    short, long = (jax.tree.map(np.asarray, results) for results in both)
    for name in Results._fields:
        parts = jax.tree.leaves(getattr(short, name)), jax.tree.leaves(getattr(long, name))
        for given, exact in zip(*parts, strict=True):
            size = np.abs(np.where(np.isfinite(exact), exact, 0.0)).max(initial=0.0)
            differs = np.abs(given - exact) > 1e-3 * size + (given.dtype.kind == "i")
            if differs.any():
                at = tuple(np.argwhere(differs)[0])
                function = "decide" if name in ("post", "reward") else "evolve"
                raise InvalidInput(
                    f"{function} overflows 32-bit integers at state "
                    f"{mdp.states.describe(int(state[at[0]]))}, action "
                    f"{mdp.actions.describe(int(action[at[0]]))}: it returns {given[at].item()}, "
                    f"and {exact[at].item()} for 64-bit integers; compute with real numbers, "
                    "such as 1e9 * action"
                )


def _may_overflow(mdp: Any) -> bool:
    """Whether the functions multiply integers or contain large ones."""
    with double_precision():
        zero = jnp.zeros((), jnp.int32)
        state, action = mdp.states.element(zero), mdp.actions.element(zero)
        post = jax.eval_shape(mdp.decide, state, action)[0]
        traced = (
            jax.make_jaxpr(mdp.decide)(state, action),
            jax.make_jaxpr(mdp.evolve)(post, mdp.events.element(zero)),
        )
        constants = [np.asarray(c) for jaxpr in traced for c in jaxpr.consts]
    if any(c.dtype.kind in "iu" and np.abs(c).max(initial=0) >= LARGE for c in constants):
        return True
    return any(_grows(equation) for jaxpr in traced for equation in _equations(jaxpr.jaxpr))


def _equations(jaxpr: Any) -> Iterator[Any]:
    """The equations of a traced function, and of the functions within it."""
    for equation in jaxpr.eqns:
        yield equation
        for parameter in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_jaxpr):
            if _is_jaxpr(parameter):
                yield from _equations(getattr(parameter, "jaxpr", parameter))


def _is_jaxpr(x: Any) -> bool:
    return hasattr(x, "eqns")


def _grows(equation: Any) -> bool:
    """Whether an equation multiplies integers, or has a large one as an argument."""
    if not any(jnp.issubdtype(x.aval.dtype, jnp.integer) for x in equation.outvars):
        return False
    literals = [x.val for x in equation.invars if hasattr(x, "val")]
    large = any(np.abs(np.asarray(x, np.float64)).max(initial=0.0) >= LARGE for x in literals)
    return large or equation.primitive.name in GROWING


def _compiled_results(mdp: Any) -> Callable[[Array, Array], tuple[Results, Results]]:
    """What the functions return at pairs, for coordinates of 32 and of 64 bits."""
    events = jnp.arange(mdp.events.size, dtype=jnp.int32)

    def results(convert: Callable[[Any], Any], s: Array, a: Array) -> Results:
        state, action = mdp.states.element(s), mdp.actions.element(a)
        post = mdp.decide(state, action)[0]
        decided, reward, allowed = mdp.decide(convert(state), convert(action))
        allowed = jnp.asarray(allowed, bool)

        def branch(e: Array, p: Array) -> Any:
            after, earned, ends = mdp.evolve(convert(post), convert(mdp.events.element(e)))
            happens = allowed & (p > 0.0)
            stays = happens & ~jnp.asarray(ends, bool)
            return [_where(stays, x) for x in jax.tree.leaves(after)], _where(happens, earned)

        following = jax.vmap(branch)(events, mdp.probabilities_at(state, post))
        decided = [_where(allowed, x) for x in jax.tree.leaves(decided)]
        return Results(decided, _where(allowed, reward), *following)

    def both(s: Array, a: Array) -> tuple[Results, Results]:
        return results(lambda x: x, s, a), results(_long, s, a)

    return jax.jit(jax.vmap(both))


def _where(condition: Array, x: Any) -> Array:
    return jnp.where(condition, x, jnp.zeros_like(x))


def _long(coordinates: Any) -> Any:
    """Coordinates with integers of 64 bits."""

    def one(x: Any) -> Array:
        found: Array = jnp.asarray(x)
        integer = jnp.issubdtype(found.dtype, jnp.integer)
        return found.astype(jnp.int64) if integer else found

    return jax.tree.map(one, coordinates)
