"""The Bellman sweep of a model from functions, vectorised and in blocks of states.

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
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.interpreters import partial_eval
from numpy.typing import NDArray

from tsallax.planning.accelerator.device_sweep import (
    DeviceSweep,
    FixedPolicy,
    copied,
    entropy_bonus,
    extremes,
    maximum_and_support,
    over_range,
    regularized_maximum,
)
from tsallax.planning.function_space import Space
from tsallax.planning.functional_checks import check_functions, find_invalid
from tsallax.planning.functional_mdp import SUM_TOLERANCE, FunctionalMDP
from tsallax.regularizer import Hard, Regularizer

UNROLLED_ACTIONS = 16
"""Actions of a state up to which the sum over them is written out when a policy is followed."""


class Greedy(NamedTuple):
    """The policy that is greedy in v, by what its action values are made of."""

    worth: Array  # w of every post-decision state, or v
    support: Array  # the number of actions in use in each state


class _Traced:
    """A function of the caller, traced once, with its constants as an argument."""

    def __init__(self, function: Callable[..., Any], *examples: Any) -> None:
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*examples)
        self.constants = closed.consts
        self._jaxpr, self._tree = closed.jaxpr, jax.tree.structure(shape)

    def __call__(self, constants: Any, *arguments: Any) -> Any:
        leaves = jax.tree.leaves(arguments)
        cast = [
            jnp.asarray(x).astype(v.aval.dtype)
            for x, v in zip(leaves, self._jaxpr.invars, strict=True)
        ]
        out = jax.core.eval_jaxpr(self._jaxpr, constants, *cast)
        return jax.tree.unflatten(self._tree, out)

    def uses(self, outputs: list[bool]) -> list[bool]:
        """Which of the inputs these outputs depend on."""
        _, used = partial_eval.dce_jaxpr(self._jaxpr, outputs)
        return list(used)


class FunctionalSweep:
    """The sweeps of one functional MDP, of one block of evaluations after the other."""

    def __init__(self, mdp: FunctionalMDP, dtype: Any, mesh: Any = None) -> None:
        self.mdp, self.dtype, self._mesh = mdp, dtype, mesh
        self.n_states, self.width = mdp.n_states, mdp.n_actions
        self.n_pairs, self.terms = mdp.n_pairs, mdp.events.size
        self._block = 2**25 if jax.default_backend() == "gpu" else 2**18
        zero = jnp.zeros((), jnp.int32)
        state, action = mdp.states.element(zero), mdp.actions.element(zero)
        event = mdp.events.element(zero)
        self._decide = _Traced(mdp.decide, state, action)
        post = jax.eval_shape(mdp.decide, state, action)[0]
        example = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), post)
        if mdp.post is not None:
            example = mdp.post.element(zero)
        self._evolve = _Traced(mdp.evolve, example, event)
        given = state if mdp.given_state else example
        if callable(mdp.probabilities):
            self._probability: Any = _Traced(mdp.probabilities, given)
            tables = self._probability.constants
        else:
            self._probability, tables = None, jnp.asarray(mdp.probabilities, dtype)
        self._constants = (self._decide.constants, self._evolve.constants, tables)
        # the space whose expectations are taken once in a sweep
        self._stored = None if mdp.given_state else mdp.post
        self._outer, self._inner = self._groups(len(jax.tree.leaves(post)))
        self._sweep: Callable[..., DeviceSweep] = jax.jit(self._sweep_states)
        self._rows: Callable[..., FixedPolicy] = jax.jit(self._fixed_rows, static_argnums=3)
        self._follow: Callable[..., Array] = jax.jit(self._follow_states)
        self._shifted: Callable[..., Array] = jax.jit(self._shifted_states)
        self._policy: Callable[..., Array] = jax.jit(self._policy_of_states)
        self._check: Callable[..., tuple[Array, Array]] = jax.jit(self._check_states)
        self._transposed: Callable[..., Array] = jax.jit(self._pull_back)

    def sweep(self, regularizer: Regularizer, v: Array) -> DeviceSweep:
        """Uv and what is known of it."""
        return self._sweep(self._constants, regularizer, v)

    def fixed(self, regularizer: Regularizer, policy: Greedy, size: int) -> FixedPolicy:
        """The policy as the `size` most probable actions of every state, which hold its support."""
        return self._rows(self._constants, regularizer, policy, size)

    def follow_cost(self, size: int) -> float:
        """The time of `follow` with `size` actions of every state, in sweeps of U.

        Both are counted in evaluations of the functions; products of matrices are quick.
        """
        if self._stored is not None:
            branches = self._stored.size * self.terms
            return (branches + size * self.n_states) / (branches + self.n_pairs)
        return size * self.n_states / (self.width * self._outer_space.size)

    def follow(self, policy: FixedPolicy, v: Array) -> Array:
        """r_pi + alpha Omega(pi) + gamma T_pi v."""
        return self._follow(self._constants, policy, v)

    def policy_rows(
        self, regularizer: Regularizer, policy: Greedy, states: NDArray[Any]
    ) -> NDArray[np.float64]:
        """pi(a|s) of some states, a row for each."""
        block = max(self._block // (self.width * (self.terms if self._stored is None else 1)), 1)
        rows = []
        for first in range(0, len(states), block):
            some = np.resize(states[first : first + block], min(block, len(states)))
            p = self._policy(self._constants, regularizer, policy, jnp.asarray(some))
            rows.append(np.asarray(p)[: len(states) - first])
        return np.concatenate(rows).astype(np.float64) if rows else np.zeros((0, self.width))

    def pair_policy(self, regularizer: Regularizer, policy: Greedy) -> NDArray[np.float64]:
        """pi(a|s) of every state and action."""
        return self.policy_rows(regularizer, policy, np.arange(self.n_states)).reshape(-1)

    def check_policy(self, policy: FixedPolicy) -> tuple[Array, Array, float]:
        """Which states are terminal, what is wrong with a policy, and a bound on |r(s, a)|.

        The second is for each state the place of an action in its list that it lacks, the number
        of lists where the policy takes none, and -1 where it is right.
        """
        zero = jnp.zeros(self.n_states, self.dtype)
        found = self._sweep(self._constants, Hard(), zero)
        if not found.valid:
            self.refuse()
        return *self._check(self._constants, policy), float(found.reward)

    def transposed(self, policy: FixedPolicy) -> Callable[[Array], Array]:
        """The map y -> gamma T_pi' y."""
        return partial(self._transposed, self._constants, policy)

    def place(self, v: NDArray[Any]) -> Array:
        """v on the device, or on all of them."""
        return copied(v.astype(self.dtype), self._mesh)

    def shifted(self, v: Array, by: Array) -> Array:
        """v + by, with the terminal states left at zero."""
        return self._shifted(self._constants, v, by)

    def refuse(self) -> None:
        """Raise `InvalidInput` for the first pair that is not valid, if there is one."""
        find_invalid(self.mdp)

    def _groups(self, post_leaves: int) -> tuple[list[int], list[int]]:
        """The axes of the states that post-decision states depend on, and the others."""
        axes = len(self.mdp.states.axes)
        if not self.mdp.given_state:
            return list(range(axes)), []
        used = self._decide.uses([i < post_leaves for i in range(post_leaves + 2)])
        outer = [i for i in range(axes) if used[i]]
        return outer, [i for i in range(axes) if not used[i]]

    # --- one state, action or event at a time; vectorised by the callers ---

    def _branch(self, constants: Any, v: Array, post: Any, event: Array) -> tuple[Array, ...]:
        """r(x, e) + gamma v(next(x, e)), NaN where that is not a state; r; whether it ends."""
        after, reward, ends = self._evolve(constants[1], post, self.mdp.events.element(event))
        index, inside = self.mdp.states.index(after)
        reward = jnp.asarray(reward, self.dtype)
        ends = jnp.asarray(ends, bool)
        valid = (inside | ends) & jnp.isfinite(reward)
        ahead = jnp.where(ends, 0.0, self.mdp.discount * v.at[index].get(mode="clip"))
        return jnp.where(valid, reward + ahead, jnp.nan), jnp.where(valid, reward, 0.0), ends

    def _distribution(self, constants: Any, given: Any) -> Array:
        """p(e|given), NaN where it is no distribution."""
        p = constants[2] if self._probability is None else self._probability(constants[2], given)
        p = jnp.asarray(p, self.dtype).reshape(-1)
        total = jnp.sum(p)
        valid = jnp.all(p >= 0.0) & (jnp.abs(total - 1.0) <= SUM_TOLERANCE)
        return jnp.where(valid, p / total, jnp.nan)

    def _branches(self, constants: Any, v: Array, post: Any) -> tuple[Array, Array, Array]:
        """`_branch` of all events: worth (E,), the largest |r|, whether one of them ends."""
        events = jnp.arange(self.mdp.events.size, dtype=jnp.int32)
        worth, reward, ends = jax.vmap(partial(self._branch, constants, v, post))(events)
        reward = lax.optimization_barrier(reward)  # or XLA computes constant rewards itself
        return worth, jnp.max(jnp.abs(reward)), jnp.any(ends)

    def _expected(self, constants: Any, v: Array, post: Any) -> tuple[Array, Array, Array]:
        """w(x), the largest |r|, whether an event ends the episode."""
        worth, reward, ends = self._branches(constants, v, post)
        p = self._distribution(constants, post)
        return _dot(p, worth), reward, ends

    def _pair(self, constants: Any, worth: Array, state: Any, action: Array) -> tuple[Array, ...]:
        """Q(s, a), NaN where the pair is not valid; whether it is allowed; |r|; whether it ends."""
        post, reward, allowed = self._decide(constants[0], state, self.mdp.actions.element(action))
        reward, allowed = jnp.asarray(reward, self.dtype), jnp.asarray(allowed, bool)
        if self._stored is not None:
            index, inside = self._stored.index(post)
            ahead = jnp.where(inside, worth.at[index].get(mode="clip"), jnp.nan)
            more, ends = jnp.zeros((), self.dtype), jnp.asarray(False)
        elif self.mdp.given_state:
            after, more, ends = self._branches(constants, worth, post)
            ahead = _dot(self._distribution(constants, state), after)
        else:
            ahead, more, ends = self._expected(constants, worth, post)
        return reward + ahead, allowed, jnp.abs(reward) + more, ends

    def _group(self, constants: Any, worth: Array, group: Array) -> tuple[Array, ...]:
        """Q (Y, A) of the states of a group, which pairs are allowed, the largest |r|, ends."""
        actions = jnp.arange(self.width, dtype=jnp.int32)
        if not self._inner:
            state = self._state(group, None)
            out = jax.vmap(partial(self._pair, constants, worth, state))(actions)
            q, allowed, reward, ends = out
            return q[None], allowed[None], jnp.max(reward), jnp.any(ends)
        inner = jnp.arange(self._inner_space.size, dtype=jnp.int32)
        states = jax.vmap(lambda y: self._state(group, y))(inner)

        def pair(state: Any, action: Array) -> Any:
            _, reward, allowed = self._decide(constants[0], state, self.mdp.actions.element(action))
            return jnp.asarray(reward, self.dtype), jnp.asarray(allowed, bool)

        reward, allowed = jax.vmap(lambda s: jax.vmap(partial(pair, s))(actions))(states)
        first = jax.tree.map(lambda x: x[0], states)

        def branches(action: Array) -> Any:
            post, _, _ = self._decide(constants[0], first, self.mdp.actions.element(action))
            return self._branches(constants, worth, post)

        after, more, ends = jax.vmap(branches)(actions)  # (A, E)
        p = jax.vmap(partial(self._distribution, constants))(states)  # (Y, E)
        q = reward + jnp.matmul(p, after.T, precision=lax.Precision.HIGHEST)
        largest = jnp.max(jnp.abs(jnp.where(allowed, reward, 0.0))) + jnp.max(more)
        return q, allowed, largest, jnp.any(ends)

    # --- all states ---

    @property
    def _outer_space(self) -> Space:
        return Space(tuple(self.mdp.states.axes[i] for i in self._outer), single=False)

    @property
    def _inner_space(self) -> Space:
        return Space(tuple(self.mdp.states.axes[i] for i in self._inner), single=False)

    def _state(self, outer: Array, inner: Array | None) -> Any:
        """The coordinates of a state from the indices of its group and within it."""
        positions = dict(zip(self._outer, self._outer_space.unravel(outer), strict=True))
        if inner is not None:
            positions |= zip(self._inner, self._inner_space.unravel(inner), strict=True)
        return self.mdp.states.coordinates([positions[i] for i in range(len(positions))])

    def _in_order(self, x: Array) -> Array:
        """A number for each group and state in it, (X, Y), as one for each state."""
        if not self._inner:
            return x.reshape(-1)
        axes = [*self._outer, *self._inner]
        shape = [self.mdp.states.sizes[i] for i in axes]
        return x.reshape(shape).transpose([axes.index(i) for i in range(len(axes))]).reshape(-1)

    def _worth(self, constants: Any, v: Array) -> tuple[Array, Array, Array]:
        """What action values are made of: w of all post-decision states, or v; |r|; ends."""
        space = self._stored
        if space is None:
            return v, jnp.zeros((), self.dtype), jnp.asarray(False)

        def one(x: Array) -> Any:
            return self._expected(constants, v, space.element(x))

        w, reward, ends = over_range(
            jax.vmap(one), space, max(self._block // self.terms, 1), self._mesh
        )
        return w, jnp.max(reward), jnp.any(ends)

    def _sweep_states(self, constants: Any, regularizer: Regularizer, v: Array) -> DeviceSweep:
        worth, reward, ends = self._worth(constants, v)

        def one(group: Array) -> Any:
            q, allowed, most, ends = self._group(constants, worth, group)
            valid = ~jnp.any(allowed & ~jnp.isfinite(q), axis=-1)
            terminal = ~jnp.any(allowed, axis=-1)
            value, used = maximum_and_support(regularizer, jnp.where(allowed, q, -jnp.inf))
            return jnp.where(valid, value, jnp.nan), used, most, ends | jnp.any(terminal)

        each = self._work_of_group()
        out = over_range(jax.vmap(one), self._outer_space, max(self._block // each, 1), self._mesh)
        updated, used = self._in_order(out[0]), self._in_order(out[1])
        low, high, size = extremes(v, updated, used > 0)
        return DeviceSweep(
            updated=updated,
            policy=Greedy(worth, used),
            low=low,
            high=high,
            size=size,
            valid=jnp.all(jnp.isfinite(updated)),
            ends=ends | jnp.any(out[3]),
            reward=reward + jnp.max(out[2]),
            pairs_used=jnp.sum(used.astype(self.dtype)),
            max_support=jnp.max(used),
        )

    def _work_of_group(self) -> int:
        """Numbers that one group of states holds at a time."""
        if self._stored is not None:
            return self.width
        return self.width * self.terms + (self._inner_space.size * self.terms if self._inner else 0)

    def _fixed_rows(
        self, constants: Any, regularizer: Regularizer, policy: Greedy, size: int
    ) -> FixedPolicy:
        def one(group: Array) -> Any:
            q, allowed, _, _ = self._group(constants, policy.worth, group)
            q = jnp.where(allowed, q, -jnp.inf)
            if isinstance(regularizer, Hard) and size == 1:  # the policy itself is not needed
                top, actions = _largest(q)
                return (top > -jnp.inf).astype(q.dtype), actions, jnp.zeros_like(top[..., 0])
            p, _ = regularized_maximum(regularizer, q)
            weights, actions = _largest(p) if size == 1 else _positive(p, size)
            return weights, actions, entropy_bonus(regularizer, p)

        block = max(self._block // self._work_of_group(), 1)
        weights, actions, bonus = over_range(jax.vmap(one), self._outer_space, block, self._mesh)
        columns = [
            (self._in_order(weights[..., i]), self._in_order(actions[..., i])) for i in range(size)
        ]
        return FixedPolicy(
            tuple(c[0] for c in columns), tuple(c[1] for c in columns), self._in_order(bonus)
        )

    def _policy_of_states(
        self, constants: Any, regularizer: Regularizer, policy: Greedy, states: Array
    ) -> Array:
        actions = jnp.arange(self.width, dtype=jnp.int32)

        def one(s: Array) -> Array:
            state = self.mdp.states.element(s)
            pair = partial(self._pair, constants, policy.worth, state)
            q, allowed, _, _ = jax.vmap(pair)(actions)
            p, _ = regularized_maximum(regularizer, jnp.where(allowed, q, -jnp.inf))
            return p

        return jax.vmap(one)(states)

    def _follow_states(self, constants: Any, policy: FixedPolicy, v: Array) -> Array:
        worth, _, _ = self._worth(constants, v)
        size = len(policy.weights)

        def many(s: Array) -> Array:
            state = self.mdp.states.element(s)
            pair = partial(self._pair, constants, worth, state)
            q, _, _, _ = jax.vmap(pair)(jnp.stack([a[s] for a in policy.actions]))
            return policy.bonus[s] + _dot(jnp.stack([w[s] for w in policy.weights]), q)

        def one(s: Array) -> Array:
            state = self.mdp.states.element(s)
            total = policy.bonus[s]
            for weights, actions in zip(policy.weights, policy.actions, strict=True):
                q, _, _, _ = self._pair(constants, worth, state, actions[s])
                total = total + jnp.where(weights[s] > 0.0, weights[s] * q, 0.0)
            return total

        each = size * (self.terms if self._stored is None else 1)
        follow = jax.vmap(one if size <= UNROLLED_ACTIONS else many)
        block = max(self._block // each, 1)
        value: Array = over_range(follow, self.mdp.states, block, self._mesh)
        return value

    def _pull_back(self, constants: Any, policy: FixedPolicy, y: Array) -> Array:
        _, pull = jax.vjp(lambda v: self._follow_states(constants, policy, v), jnp.zeros_like(y))
        found: Array = pull(y)[0]
        return found

    def _check_states(self, constants: Any, policy: FixedPolicy) -> tuple[Array, Array]:
        def one(s: Array) -> tuple[Array, Array]:
            state = self.mdp.states.element(s)
            has_some = jnp.any(self._allowed(constants, state, jnp.arange(self.width)))
            weights = jnp.stack([w[s] for w in policy.weights])
            actions = jnp.stack([a[s] for a in policy.actions])
            lacks = (weights > 0.0) & ~self._allowed(constants, state, actions)
            place = jnp.where(jnp.any(lacks), jnp.argmax(lacks), -1)
            place = jnp.where(jnp.all(weights == 0.0), len(weights), place)
            return ~has_some, jnp.where(has_some, place, -1)

        block = max(self._block // self.width, 1)
        found: tuple[Array, Array] = over_range(jax.vmap(one), self.mdp.states, block, self._mesh)
        return found

    def _allowed(self, constants: Any, state: Any, actions: Array) -> Array:
        """Which of some actions are allowed in a state."""

        def allowed(a: Array) -> Array:
            _, _, fine = self._decide(constants[0], state, self.mdp.actions.element(a))
            return jnp.asarray(fine, bool)

        return jax.vmap(allowed)(actions)

    def _shifted_states(self, constants: Any, v: Array, by: Array) -> Array:
        actions = jnp.arange(self.width, dtype=jnp.int32)

        def one(s: Array) -> Array:
            has_some = jnp.any(self._allowed(constants, self.mdp.states.element(s), actions))
            return jnp.where(has_some, v[s] + by, 0.0)

        block = max(self._block // self.width, 1)
        shifted: Array = over_range(jax.vmap(one), self.mdp.states, block, self._mesh)
        return shifted


def _largest(x: Array) -> tuple[Array, Array]:
    """The largest entry of each row, and its first place; on a CPU far quicker than `argmax`."""
    top = jnp.max(x, axis=-1, keepdims=True)
    places = jnp.arange(x.shape[-1], dtype=jnp.int32)
    return top, jnp.min(jnp.where(x == top, places, x.shape[-1] - 1), axis=-1, keepdims=True)


def _positive(p: Array, size: int) -> tuple[Array, Array]:
    """The positive entries of each row and their places, not more than `size`; 0 fills the rest.

    By a running count and a search in it, where `lax.top_k` would sort the rows on a CPU.
    """
    length = p.shape[-1]
    count = jnp.cumsum((p > 0.0).astype(jnp.int32), axis=-1).reshape(-1, length)
    wanted = jnp.arange(1, size + 1, dtype=jnp.int32)
    at = jax.vmap(lambda row: jnp.searchsorted(row, wanted))(count).astype(jnp.int32)
    at = at.reshape(*p.shape[:-1], size)
    weights = jnp.take_along_axis(p, jnp.minimum(at, length - 1), axis=-1)
    return jnp.where(at < length, weights, 0.0), jnp.minimum(at, length - 1)


def _dot(p: Array, worth: Array) -> Array:
    """The expectation, to which events of probability 0 contribute nothing."""
    return jnp.sum(jnp.where(p == 0.0, 0.0, p * worth))


@lru_cache(maxsize=8)
def checked_sweep(
    mdp: FunctionalMDP, dtype: Any, mesh: Any, device: jax.Device | None
) -> FunctionalSweep:
    """The sweeps of a model, checked; the last ones are kept, as they take seconds to compile."""
    check_functions(mdp)
    return FunctionalSweep(mdp, dtype, mesh)
