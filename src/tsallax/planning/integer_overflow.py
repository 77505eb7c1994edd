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
from jax.interpreters import partial_eval
from numpy.typing import NDArray

from tsallax.errors import InvalidInput
from tsallax.planning.precision import double_precision

GROWING = {"mul", "integer_pow", "pow", "dot_general", "reduce_prod", "cumprod", "shift_left"}
"""Primitives of JAX that make large integers of small ones."""
CHECKED_BRANCHES = 2**20
"""The largest number of triples (state, action, event) that are checked."""
LARGE = 2**24
"""The integer from which on a constant makes overflow likely."""
ROUNDING, SINGLE_ROUNDING = 1e-9, 1e-3
"""Differences that are rounding, in double and single precision, in units of the largest result."""


class Functions(NamedTuple):
    """Something of each function of a model: its trace, or the arrays of what it returns."""

    decide: Any
    probabilities: Any
    evolve: Any


def refuse_overflow(mdp: Any, single: bool = False) -> None:
    """Refuse a `FunctionalMDP` whose functions overflow 32-bit integers.

    At all pairs of a small model, and at as many as `CHECKED_BRANCHES` allow of a larger one, the
    first and the last among them.  With `single`, for a solve in float32, in which JAX has no
    integers of 64 bits at all.

    What a function computes from integers alone must be the same for both.  What it computes in
    single precision, in which JAX divides 32-bit integers, may differ by rounding.
    """
    with double_precision(not single):
        traced = _traced(mdp)
    if not _may_overflow(traced):
        return
    most = min(mdp.n_pairs, max(CHECKED_BRANCHES // mdp.events.size, 16))
    pairs = np.linspace(0, mdp.n_pairs - 1, most).astype(np.int64)
    state, action = np.divmod(pairs, mdp.n_actions)
    with double_precision(not single):
        short, post = _called(mdp, lambda x: x, state, action)
    with double_precision():
        try:
            long, _ = _called(mdp, lambda x: _long(x, single), state, action, post)
        except (TypeError, ValueError):  # functions that accept 32-bit integers only
            return
    possible = _possible(short)
    for name in Functions._fields:
        leaves = (getattr(x, name) for x in (short, long, possible))
        for i, (given, exact, counts) in enumerate(zip(*leaves, strict=True)):
            counts = counts.reshape(counts.shape + (1,) * (given.ndim - counts.ndim))
            differs = counts & _differ(given, exact, _in_single_precision(traced, name, i))
            if differs.any():
                at = tuple(np.argwhere(differs)[0])
                raise InvalidInput(
                    f"{name} overflows 32-bit integers at state "
                    f"{mdp.states.describe(int(state[at[0]]))}, action "
                    f"{mdp.actions.describe(int(action[at[0]]))}: it returns {given[at].item()}, "
                    f"and {exact[at].item()} for 64-bit integers; compute with real numbers, "
                    "such as 1e9 * action"
                )


def refuse_long_axes(mdp: Any) -> None:
    """Refuse integers that 32 bits do not hold as values of an axis, for a solve in float32."""
    for name in ("states", "actions", "events", "post"):
        space = getattr(mdp, name)
        for axis in () if space is None else space.axes:
            values = np.zeros(1, int) if axis.values is None else axis.values
            largest = int(values[np.argmax(np.abs(values))])
            if values.dtype.kind == "i" and not -(2**31) <= largest < 2**31:
                problem = f"{name} has the integer {largest}, and float32 none beyond 32 bits"
                raise InvalidInput(f"{problem} (real numbers may be larger)", omit="precision")


def _traced(mdp: Any) -> Functions:
    """The traces of the functions."""
    zero = jnp.zeros((), jnp.int32)
    state, action = mdp.states.element(zero), mdp.actions.element(zero)
    decided = jax.make_jaxpr(mdp.decide, return_shape=True)(state, action)
    post = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), decided[1][0])
    post = post if mdp.post is None else mdp.post.element(zero)
    return Functions(
        decided[0],
        jax.make_jaxpr(mdp.probabilities_at)(state, post),
        jax.make_jaxpr(mdp.evolve)(post, mdp.events.element(zero)),
    )


def _may_overflow(traced: Functions) -> bool:
    """Whether the functions multiply integers or contain large ones."""
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


def _in_single_precision(traced: Functions, name: str, output: int) -> bool:
    """Whether an output of a function depends on a number that it computes in single precision."""
    jaxpr = getattr(traced, name).jaxpr
    wanted = [output == i for i in range(len(jaxpr.outvars))]
    needed, _ = partial_eval.dce_jaxpr(jaxpr, wanted)
    types = [x.aval.dtype for equation in _equations(needed) for x in equation.outvars]
    return any(jnp.issubdtype(t, jnp.floating) and t.itemsize < 8 for t in types)


def _called(
    mdp: Any, convert: Callable[[Any], Any], states: Any, actions: Any, posts: Any = None
) -> tuple[Functions, Any]:
    """What the functions return at pairs, and the post-decision states that `evolve` was given.

    `convert` makes coordinates of other types; `posts` replace what `decide` returns.
    """
    events = jnp.arange(mdp.events.size, dtype=jnp.int32)

    def one(s: Array, a: Array, post: Any) -> tuple[Functions, Any]:
        state, action = convert(mdp.states.element(s)), convert(mdp.actions.element(a))
        decided = mdp.decide(state, action)
        post = convert(mdp.post_given(decided[0]) if post is None else post)

        def branch(e: Array) -> list[Array]:
            return _leaves(mdp.evolve(post, convert(mdp.events.element(e))))

        p = mdp.probabilities_at(state, post)
        return Functions(_leaves(decided), _leaves(p), jax.vmap(branch)(events)), post

    found = jax.jit(jax.vmap(one))(jnp.asarray(states), jnp.asarray(actions), posts)
    results, given = jax.tree.map(np.asarray, found)
    return results, given


def _leaves(returned: Any) -> list[Array]:
    return [jnp.asarray(x) for x in jax.tree.leaves(returned)]


def _possible(found: Functions) -> Functions:
    """Where what the functions return has a meaning: in allowed pairs and possible events."""
    allowed, ends = found.decide[-1].astype(bool), found.evolve[-1].astype(bool)
    happens = allowed[:, None] & (found.probabilities[0] > 0.0)
    return Functions(
        [*[allowed] * (len(found.decide) - 1), np.ones_like(allowed)],
        [allowed],
        [*[happens & ~ends] * (len(found.evolve) - 2), happens, happens],
    )


def _differ(given: NDArray[Any], exact: NDArray[Any], single: bool) -> NDArray[np.bool_]:
    """Where two results are not the same to within rounding."""
    same: NDArray[np.bool_] = (given == exact) | ((given != given) & (exact != exact))
    real = given.dtype.kind == "f"
    if not (real or single):
        return ~same
    x, y = given.astype(np.float64), exact.astype(np.float64)
    size = np.abs(np.where(np.isfinite(y), y, 0.0)).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        apart = np.abs(x - y)
    rounding = (SINGLE_ROUNDING if single else ROUNDING) * size + (not real)
    same |= apart <= rounding
    return ~same


def _long(coordinates: Any, single: bool) -> Any:
    """Coordinates with integers of 64 bits, and real numbers of 32 bits where `single` is true."""

    def one(x: Any) -> Array:
        found: Array = jnp.asarray(x)
        if jnp.issubdtype(found.dtype, jnp.integer):
            return found.astype(jnp.int64)
        return found.astype(jnp.float32) if single and found.dtype == jnp.float64 else found

    return jax.tree.map(one, coordinates)
