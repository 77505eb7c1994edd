"""The Bellman sweep of a stored MDP in JAX, with transitions laid out for an accelerator.

States are put into a few *groups* with about as many actions and successors each.  Within a group
the transitions are arrays (K, A, n): successor k of action a of the n states, so that neighbouring
threads read neighbouring numbers, and

    Q(a, s) = r(a, s) + gamma sum_k p(k, a, s) v(successor(k, a, s))

is one pass over them.  What a state lacks is padded: successors with p = 0, actions with r = -inf.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from tsallax.planning.accelerator.device_sweep import (
    DeviceSweep,
    entropy_bonus,
    extremes,
    regularized_maximum,
)
from tsallax.planning.mdp import MDP
from tsallax.regularizer import Regularizer

UNROLLED = 32
"""Successors up to which the sum over them is written out, which XLA makes one pass of."""


class Group(NamedTuple):
    """States with about as many actions and successors, laid out for the sweep."""

    states: Array | None  # their indices (n,); None for all states in order
    successors: Array  # (K, A, n)
    probabilities: Array  # (K, A, n)
    rewards: Array  # (A, n), -inf where the state lacks the action


class FollowedGroup(NamedTuple):
    """The transitions of a policy in the states of a group."""

    states: Array | None
    successors: Array  # (K, m, n)
    weights: Array  # (K, m, n), probability of action and successor
    reward: Array  # (n,), with the entropy bonus


class StoredSweep:
    """The sweeps of one MDP with its transitions on a device, or divided over a mesh of them."""

    def __init__(self, mdp: MDP, dtype: Any, mesh: Any = None) -> None:
        self.n_states, self.n_pairs = mdp.n_states, mdp.n_pairs
        self.width, self.terms = mdp.max_actions, mdp.max_successors
        self._terminal = jnp.asarray(mdp.terminal)
        self._discount, self.dtype, self._mesh = mdp.discount, dtype, mesh
        self._ends = bool(mdp.terminal.any()) or mdp.termination is not None
        self._reward = mdp.max_reward
        self._groups = [_layout(mdp, states, dtype) for states in group_states(mdp)]
        self._sweep = jax.jit(self._sweep_groups)
        self._fixed = jax.jit(self._fixed_groups, static_argnums=3)
        self._follow = jax.jit(self._follow_groups)

    def sweep(self, regularizer: Regularizer, v: Array) -> DeviceSweep:
        """Uv and what is known of it."""
        return self._sweep(self._groups, regularizer, v)

    def fixed(self, regularizer: Regularizer, policy: Any, size: int) -> list[FollowedGroup]:
        """The transitions of a greedy policy, of which no state uses more than `size` actions."""
        return self._fixed(self._groups, regularizer, policy, size)

    def follow(self, policy: list[FollowedGroup], v: Array) -> Array:
        """r_pi + alpha Omega(pi) + gamma T_pi v."""
        return self._follow(policy, v)

    def shifted(self, v: Array, by: Array) -> Array:
        """v + by, with the terminal states left at zero."""
        return jnp.where(self._terminal, 0.0, v + by)

    def refuse(self) -> None:
        """An MDP was checked when it was made."""

    def _sweep_groups(
        self, groups: list[Group], regularizer: Regularizer, v: Array
    ) -> DeviceSweep:
        updated, used = jnp.zeros_like(v), jnp.zeros(self.n_states, jnp.int32)
        policies = []
        for group in groups:
            q = group.rewards + self._discount * _expectation(
                group.successors, group.probabilities, v
            )
            p, value = regularized_maximum(regularizer, q.T)
            policies.append(p)
            updated = _put(updated, group.states, value)
            used = _put(used, group.states, jnp.sum(p > 0.0, -1, dtype=jnp.int32))
        low, high, size = extremes(v, updated, used > 0)
        return DeviceSweep(
            updated=updated,
            policy=policies,
            low=low,
            high=high,
            size=size,
            valid=jnp.all(jnp.isfinite(updated)),
            ends=jnp.asarray(self._ends),
            reward=jnp.asarray(self._reward, self.dtype),
            pairs_used=jnp.sum(used.astype(self.dtype)),
            max_support=jnp.max(used),
        )

    def _fixed_groups(
        self, groups: list[Group], regularizer: Regularizer, policies: list[Array], size: int
    ) -> list[FollowedGroup]:
        followed = []
        for group, p in zip(groups, policies, strict=True):
            weights, actions = lax.top_k(p, min(size, p.shape[-1]))
            chosen = actions.T  # (m, n)
            rewards = jnp.take_along_axis(group.rewards, chosen, 0)
            reward = jnp.sum(jnp.where(weights.T > 0.0, weights.T * rewards, 0.0), 0)
            take = partial(jnp.take_along_axis, indices=chosen[None], axis=1)
            followed.append(
                FollowedGroup(
                    group.states,
                    take(group.successors),
                    take(group.probabilities) * weights.T,
                    reward + entropy_bonus(regularizer, p),
                )
            )
        return followed

    def _follow_groups(self, policy: list[FollowedGroup], v: Array) -> Array:
        new = jnp.zeros_like(v)
        for group in policy:
            ahead = jnp.sum(_expectation(group.successors, group.weights, v), 0)
            new = _put(new, group.states, group.reward + self._discount * ahead)
        return new


def group_states(mdp: MDP) -> list[NDArray[np.int64] | None]:
    """The states that have actions, by powers of two of their actions and successors.

    None stands for all states in order.
    """
    actions = np.diff(mdp.pointer)
    lengths = np.diff(mdp.transitions.indptr)
    has_some = np.flatnonzero(actions)
    longest = np.zeros(mdp.n_states, lengths.dtype)
    longest[has_some] = np.maximum.reduceat(lengths, mdp.pointer[:-1][has_some])
    key = np.frexp(actions)[1].astype(np.int64) * 64 + np.frexp(longest)[1]
    kinds = np.unique(key[has_some])
    if len(kinds) == 1 and len(has_some) == mdp.n_states:
        return [None]
    return [np.flatnonzero((key == kind) & (actions > 0)) for kind in kinds]


def _layout(mdp: MDP, states: NDArray[np.int64] | None, dtype: Any) -> Group:
    """Lay the transitions of some states out, on the device."""
    pointer, indptr = mdp.pointer, mdp.transitions.indptr
    first = pointer[:-1] if states is None else pointer[states]
    last = pointer[1:] if states is None else pointer[states + 1]
    width = int((last - first).max())
    lengths = np.diff(indptr)
    regular = (
        states is None
        and mdp.n_pairs == width * mdp.n_states
        and lengths.min() == lengths.max()
    )
    shape = (len(first), width, int(lengths.max()))
    data, indices = mdp.transitions.data, mdp.transitions.indices
    if regular:
        rewards, probabilities = mdp.rewards.reshape(shape[:2]), data.reshape(shape)
        successors = indices.reshape(shape)
    else:
        pair = first[:, None] + np.arange(width)
        missing = pair >= last[:, None]
        pair[missing] = 0
        shape = (*shape[:2], int(lengths[pair[~missing]].max()))
        entry = indptr[pair][..., None] + np.arange(shape[2])
        padded = missing[..., None] | (np.arange(shape[2]) >= lengths[pair][..., None])
        entry[padded] = 0
        rewards = np.where(missing, -np.inf, mdp.rewards[pair])
        probabilities = np.where(padded, 0.0, data[entry])
        successors = np.where(padded, 0, indices[entry])
    index_type = np.int32 if mdp.n_states < 2**31 else np.int64
    return Group(
        None if states is None else jnp.asarray(states, index_type),
        _transposed(np.asarray(successors, index_type)),
        _transposed(np.asarray(probabilities, dtype)),
        _transposed(np.asarray(rewards, dtype)),
    )


@partial(jax.jit, donate_argnums=0)
def _reversed(x: Array) -> Array:
    return x.T


def _transposed(x: NDArray[Any]) -> Array:
    """x with its axes in reverse order, transposed on the device."""
    return _reversed(jax.device_put(x))


def _expectation(successors: Array, probabilities: Array, v: Array) -> Array:
    """sum_k p(k, ...) v(successor(k, ...))."""
    def term(k: Any) -> Array:
        return probabilities[k] * v.at[successors[k]].get(mode="promise_in_bounds")

    if len(successors) <= UNROLLED:
        total = term(0)
        for k in range(1, len(successors)):
            total = total + term(k)
        return total
    zero = jnp.zeros(successors.shape[1:], v.dtype)
    return lax.fori_loop(0, len(successors), lambda k, total: total + term(k), zero)


def _put(whole: Array, states: Array | None, part: Array) -> Array:
    return part if states is None else whole.at[states].set(part)

