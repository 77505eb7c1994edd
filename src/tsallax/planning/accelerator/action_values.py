"""The action values of a model from functions, for one state or group of states at a time.

With the events' probabilities p given the post-decision state x of a pair,

    w(x)    = sum_e p(e|x) [r(x, e) + gamma v(next(x, e))]     once for each post-decision state
    Q(s, a) = r(s, a) + w(x(s, a))

Where the probabilities depend on the state itself, the sum is over p(e|s).  States with the same
post-decision states then share next(x, e), and Q is a product of matrices for each such group: the
axes of the states that `decide` does not use for its post-decision state are found from its trace.
Where no post-decision states are declared, the pair is one, and the sum is taken pair by pair.

A pair whose functions leave their space, whose probabilities are no distribution or whose rewards
are not finite has Q = NaN, so that no sweep passes over it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.interpreters import partial_eval

from tsallax.planning.function_space import Space
from tsallax.planning.functional_checks import SUM_TOLERANCE
from tsallax.planning.functional_mdp import FunctionalMDP


class Pairs(NamedTuple):
    """What is known of some pairs, with one axis for the actions."""

    reward: Array  # of `decide`
    continuation: Array  # the expectation of what follows, NaN where the pair is not valid
    allowed: Array
    event_reward: Array  # the largest |r| of an event that `continuation` is the expectation of
    ends: Array  # whether one of these events ends the episode


class _Traced:
    """A function of the caller, traced once, with its constants as an argument.

    Outputs that no input changes, such as a reward of zero, are hidden from XLA, which would take
    their maximum over all pairs while it compiles.
    """

    def __init__(self, function: Callable[..., Any], *examples: Any) -> None:
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*examples)
        self.constants = closed.consts
        self._jaxpr: Any = closed.jaxpr
        self._tree = jax.tree.structure(shape)
        n = len(self._jaxpr.outvars)
        self._varies = [any(self.uses([i == j for j in range(n)])) for i in range(n)]

    def __call__(self, constants: Any, *arguments: Any) -> Any:
        leaves = jax.tree.leaves(arguments)
        cast = [
            jnp.asarray(x).astype(v.aval.dtype)
            for x, v in zip(leaves, self._jaxpr.invars, strict=True)
        ]
        out = jax.core.eval_jaxpr(self._jaxpr, constants, *cast)
        hidden = [
            x if varies else lax.optimization_barrier(x)
            for x, varies in zip(out, self._varies, strict=True)
        ]
        return jax.tree.unflatten(self._tree, hidden)

    def uses(self, outputs: list[bool]) -> list[bool]:
        """Which of the inputs these outputs depend on."""
        _, used = partial_eval.dce_jaxpr(self._jaxpr, outputs)
        return list(used)


class ActionValues:
    """The functions of a model as JAX functions of indices, with their constants as an argument.

    Attributes:
        stored: the space whose expectations w are taken once in a sweep; None where there is none.
        outer: the space of the groups of states that share their post-decision states.
        inner: the space of the states of a group; None where each is a group of its own.
    """

    def __init__(self, mdp: FunctionalMDP, dtype: Any) -> None:
        self.mdp, self.dtype = mdp, dtype
        zero = jnp.zeros((), jnp.int32)
        state, action = mdp.states.element(zero), mdp.actions.element(zero)
        self._decide = _Traced(mdp.decide, state, action)
        post = jax.eval_shape(mdp.decide, state, action)[0]
        example = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), post)
        if mdp.post is not None:
            example = mdp.post.element(zero)
        self._evolve = _Traced(mdp.evolve, example, mdp.events.element(zero))
        if callable(mdp.probabilities):
            given = state if mdp.given_state else example
            self._probability: Any = _Traced(mdp.probabilities, given)
            tables: Any = self._probability.constants
        else:
            self._probability, tables = None, jnp.asarray(mdp.probabilities, dtype)
        self.constants = (self._decide.constants, self._evolve.constants, tables)
        self.stored = None if mdp.given_state else mdp.post
        axes = range(len(mdp.states.axes))
        self._outer, self._inner = list(axes), []
        if mdp.given_state:
            leaves = len(jax.tree.leaves(post))
            used = self._decide.uses([i < leaves for i in range(leaves + 2)])
            self._outer = [i for i in axes if used[i]]
            self._inner = [i for i in axes if not used[i]]
        self.outer = Space(tuple(mdp.states.axes[i] for i in self._outer), single=False)
        inner = Space(tuple(mdp.states.axes[i] for i in self._inner), single=False)
        self.inner = inner if self._inner else None

    @property
    def group_work(self) -> int:
        """Numbers that are computed for one group of states at a time."""
        width, terms = self.mdp.n_actions, self.mdp.events.size
        if self.stored is not None:
            return width
        return (width + (self.inner.size if self.inner else 0)) * terms

    def expected(self, constants: Any, v: Array, post: Any) -> tuple[Array, Array, Array]:
        """w(x), the largest |r| of an event, whether one ends the episode."""
        after, reward, ends = self._branches(constants, v, post)
        return expectation(self._distribution(constants, post), after), reward, ends

    def pair(self, constants: Any, post_values: Array, state: Any, action: Array) -> Pairs:
        """What is known of one pair, where `post_values` are w of the stored space, or v."""
        post, reward, allowed = self._decide(constants[0], state, self.mdp.actions.element(action))
        more, ends = lax.optimization_barrier((jnp.zeros((), self.dtype), jnp.asarray(False)))
        if self.stored is not None:
            index, inside = self.stored.index(post)
            continuation = jnp.where(
                inside, post_values.at[index].get(mode="promise_in_bounds"), jnp.nan
            )
        elif self.mdp.given_state:
            after, more, ends = self._branches(constants, post_values, post)
            continuation = expectation(self._distribution(constants, state), after)
        else:
            continuation, more, ends = self.expected(constants, post_values, post)
        return Pairs(
            jnp.asarray(reward, self.dtype), continuation, jnp.asarray(allowed, bool), more, ends
        )

    def groups(
        self, constants: Any, post_values: Array, groups: Array, excluding: bool = True
    ) -> Pairs:
        """The pairs of some groups, (X, Y, A) for the Y states of each.

        Without `excluding`, none of the groups may be one that `has_exclusions`.
        """
        states = jax.vmap(self.group_states)(groups)
        if self.inner is None:
            actions = jnp.arange(self.mdp.n_actions, dtype=jnp.int32)
            pairs = partial(self.pairs, constants, post_values)
            return jax.vmap(jax.vmap(lambda state: pairs(state, actions)))(states)
        after, more, ends = self._group_branches(constants, post_values, states)
        p = jax.vmap(jax.vmap(partial(self._distribution, constants)))(states)  # (X, Y, E)
        reward, allowed = self._group_decided(constants, states)
        continuation = expectations(p, after) if excluding else product(p, after)
        return Pairs(reward, continuation, allowed, more[:, None], ends[:, None])

    def has_exclusions(self, constants: Any, groups: Array) -> Array:
        """Which groups have an allowed pair with an event that is not valid in any state of it.

        It does no harm to the states in which its probability is 0, which `groups` must find out.
        """
        if self.inner is None:
            return jnp.zeros(groups.shape, bool)
        states = jax.vmap(self.group_states)(groups)
        post_values = jnp.zeros(self.mdp.n_states, self.dtype)
        after, _, _ = self._group_branches(constants, post_values, states)
        _, allowed = self._group_decided(constants, states)
        return jnp.any(jnp.any(jnp.isnan(after), axis=-1) & jnp.any(allowed, axis=1), axis=-1)

    def _group_branches(self, constants: Any, post_values: Array, states: Any) -> tuple[Array, ...]:
        """`_branches` of the actions of some groups, (X, A, E), (X, A) and (X, A)."""

        def branches(state: Any, action: Array) -> Any:
            post, _, _ = self._decide(constants[0], state, self.mdp.actions.element(action))
            return self._branches(constants, post_values, post)

        first = jax.tree.map(lambda x: x[:, 0], states)
        actions = jnp.arange(self.mdp.n_actions, dtype=jnp.int32)
        found: tuple[Array, ...] = jax.vmap(jax.vmap(branches, (None, 0)), (0, None))(
            first, actions
        )
        return found

    def _group_decided(self, constants: Any, states: Any) -> tuple[Array, Array]:
        """`decided` of the states of some groups with all actions, (X, Y, A)."""
        actions = jnp.arange(self.mdp.n_actions, dtype=jnp.int32)
        found: tuple[Array, Array] = jax.vmap(
            jax.vmap(lambda state: self.decided(constants, state, actions))
        )(states)
        return found

    def pairs(self, constants: Any, post_values: Array, state: Any, actions: Array) -> Pairs:
        """The pairs of one state with some actions."""
        return jax.vmap(partial(self.pair, constants, post_values, state))(actions)

    def decided(self, constants: Any, state: Any, actions: Array) -> tuple[Array, Array]:
        """r(s, a), without that of events, and whether a is allowed, for some actions."""

        def one(action: Array) -> tuple[Array, Array]:
            _, reward, allowed = self._decide(constants[0], state, self.mdp.actions.element(action))
            return jnp.asarray(reward, self.dtype), jnp.asarray(allowed, bool)

        return jax.vmap(one)(actions)

    def group_states(self, group: Array) -> Any:
        """The coordinates of the states of a group, with an axis for them."""
        inner = jnp.arange(self.inner.size if self.inner else 1, dtype=jnp.int32)
        positions = dict(zip(self._outer, self.outer.unravel(group), strict=True))
        positions = {i: jnp.broadcast_to(p, inner.shape) for i, p in positions.items()}
        if self.inner is not None:
            positions |= zip(self._inner, self.inner.unravel(inner), strict=True)
        return self.mdp.states.coordinates([positions[i] for i in range(len(positions))])

    def in_order(self, x: Array) -> Array:
        """Numbers (X, Y, ...) of each group and state in it, or (S, ...), as (S, ...)."""
        if self.inner is None:
            return x
        axes = [*self._outer, *self._inner]
        shape = [self.mdp.states.sizes[i] for i in axes]
        more = list(x.shape[2:])
        order = [axes.index(i) for i in range(len(axes))]
        order += range(len(axes), len(axes) + len(more))
        return x.reshape(shape + more).transpose(order).reshape(-1, *more)

    def _branch(self, constants: Any, v: Array, post: Any, event: Array) -> tuple[Array, ...]:
        """r(x, e) + gamma v(next(x, e)), NaN where that is not a state; r; whether it ends."""
        after, reward, ends = self._evolve(constants[1], post, self.mdp.events.element(event))
        index, inside = self.mdp.states.index(after)
        reward = jnp.asarray(reward, self.dtype)
        ends = jnp.asarray(ends, bool)
        valid = (inside | ends) & jnp.isfinite(reward)
        continuation = jnp.where(
            ends, 0.0, self.mdp.discount * v.at[index].get(mode="promise_in_bounds")
        )
        return jnp.where(valid, reward + continuation, jnp.nan), jnp.where(valid, reward, 0.0), ends

    def _branches(self, constants: Any, v: Array, post: Any) -> tuple[Array, Array, Array]:
        """`_branch` of all events: values (E,), the largest |r|, whether one of them ends."""
        events = jnp.arange(self.mdp.events.size, dtype=jnp.int32)
        values, reward, ends = jax.vmap(partial(self._branch, constants, v, post))(events)
        return values, jnp.max(jnp.abs(reward)), jnp.any(ends)

    def _distribution(self, constants: Any, given: Any) -> Array:
        """p(e|given), NaN where it is no distribution."""
        p = constants[2] if self._probability is None else self._probability(constants[2], given)
        p = jnp.asarray(p, self.dtype).reshape(-1)
        total = jnp.sum(p)
        valid = jnp.all(p >= 0.0) & (jnp.abs(total - 1.0) <= SUM_TOLERANCE)
        return jnp.where(valid, p / total, jnp.nan)


def expectation(p: Array, x: Array) -> Array:
    """sum_i p_i x_i, to which entries of probability 0 contribute nothing."""
    return jnp.sum(jnp.where(p == 0.0, 0.0, p * x))


def expectations(p: Array, x: Array) -> Array:
    """`expectation` of all pairs of a row of p (X, Y, E) and one of `x` (X, A, E), (X, Y, A).

    By two products of matrices: 0 NaN is NaN, so that the first finds the rows of p in which an
    event whose `x` is NaN has a positive probability.
    """
    invalid = jnp.isnan(x)
    possible = product((p > 0.0).astype(p.dtype), invalid.astype(p.dtype)) > 0.0
    return jnp.where(possible, jnp.nan, product(p, jnp.where(invalid, 0.0, x)))


def product(p: Array, x: Array) -> Array:
    """`expectations` where every `x` is a number."""
    return jnp.einsum("xye,xae->xya", p, x, precision=lax.Precision.HIGHEST)
