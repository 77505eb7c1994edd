"""The Bellman sweep of a stored MDP in JAX, with transitions laid out for an accelerator.

States are put into a few *groups* with about as many actions and successors each.  Within a group
the transitions are arrays (K, A, n): successor k of action a of the n states, so that neighbouring
threads read neighbouring numbers, and

    Q(a, s) = r(a, s) + gamma sum_k p(k, a, s) v(successor(k, a, s))

is one pass over them.  What a state lacks is padded: successors with p = 0, actions with r = -inf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from tsallax.planning.accelerator.column_maximum import column_maxima
from tsallax.planning.accelerator.device_sweep import (
    AXIS,
    DeviceSweep,
    Survey,
    copied,
    entropy_bonus,
    gathered,
    regularized_maximum,
    sweep_numbers,
)
from tsallax.planning.mdp import MDP
from tsallax.regularizer import Regularizer

UNROLLED = 32
"""Successors up to which the sum over them is written out, which XLA makes one pass of."""


class Group(NamedTuple):
    """States with about as many actions and successors, laid out for the sweep."""

    states: Any  # their indices (n,); None for all states in order
    successors: Any  # (K, A, n)
    probabilities: Any  # (K, A, n)
    rewards: Any  # (A, n), -inf where the state lacks the action


class FollowedGroup(NamedTuple):
    """The transitions of a policy in the states of a group."""

    states: Any
    successors: Any  # (K, m, n)
    weights: Any  # (K, m, n), probability of action and successor
    reward: Any  # (n,), with the entropy bonus


STATES = PartitionSpec(AXIS)
COLUMNS = PartitionSpec(None, AXIS)
TRANSITIONS = PartitionSpec(None, None, AXIS)
GROUP_PARTS = Group(STATES, TRANSITIONS, TRANSITIONS, COLUMNS)
FOLLOWED_PARTS = FollowedGroup(STATES, TRANSITIONS, TRANSITIONS, STATES)
"""The division of the arrays of groups over the devices of a mesh."""


class StoredSweep:
    """The sweeps of one MDP with its transitions on a device, or divided over a mesh of them.

    Over a mesh, every device has the transitions of a part of the states and a copy of v.
    """

    def __init__(self, mdp: MDP, dtype: Any, mesh: Mesh | None = None) -> None:
        self.n_states, self.n_pairs = mdp.n_states, mdp.n_pairs
        self.width, self.terms = mdp.max_actions, mdp.max_successors
        self.roundings = self.terms
        self.longest_list = 1  # sweeps make no lists
        self._discount, self.dtype, self._mesh = mdp.discount, dtype, mesh
        self._pointer = mdp.pointer
        # the numbers of actions that states have, and how many states have each
        self._counts, self._states_with = np.unique(np.diff(mdp.pointer), return_counts=True)
        self.survey = Survey(
            copied(np.asarray(mdp.terminal), mesh),
            bool(mdp.terminal.any()) or mdp.termination is not None,
            float(mdp.max_reward),
        )
        self._groups = [_layout(mdp, states, dtype, mesh) for states in group_states(mdp)]
        self._sweep: Callable[..., DeviceSweep] = jax.jit(self._sweep_groups)
        self._prepared: Callable[..., list[FollowedGroup]] = jax.jit(
            self._prepared_groups, static_argnums=3
        )
        self._follow: Callable[..., Array] = jax.jit(self._follow_groups)

    def place(self, v: NDArray[Any]) -> Array:
        """v on the device, or on all of them."""
        return copied(v.astype(self.dtype), self._mesh)

    def sweep(self, regularizer: Regularizer, v: Array, size: int) -> DeviceSweep:
        """Uv and what is known of it; the policy is its action values, whatever `size` is."""
        return self._sweep(self._groups, regularizer, v)

    def compacted(self, policy: list[Array]) -> None:
        """Action values take much memory, and a sweep is quick."""

    def prepared(
        self, regularizer: Regularizer, policy: list[Array], size: int
    ) -> list[FollowedGroup]:
        """The transitions of a greedy policy, of which no state uses more than `size` actions."""
        followed = self._prepared(self._groups, regularizer, policy, size)
        return [
            part if part.successors is not None else part._replace(successors=group.successors)
            for part, group in zip(followed, self._groups, strict=True)
        ]

    def follow_cost(self, size: int) -> float:
        """The time of `follow` with `size` actions of every state, in sweeps of U."""
        return float(np.minimum(self._counts, size) @ self._states_with) / self.n_pairs

    def follow(self, policy: list[FollowedGroup], v: Array) -> Array:
        """r_pi + alpha Omega(pi) + gamma T_pi v."""
        return self._follow(policy, v)

    def pair_policy(self, regularizer: Regularizer, policy: list[Array]) -> NDArray[np.float64]:
        """The probability of every pair of the MDP, of the greedy policy of a sweep."""
        pi = np.zeros(self.n_pairs)
        for group, q in zip(self._groups, policy, strict=True):
            p = gathered(_policy(regularizer, q))
            states = np.arange(self.n_states) if group.states is None else gathered(group.states)
            states = states[states < self.n_states]
            counts = self._pointer[states + 1] - self._pointer[states]
            p = p[: len(states)]
            has = np.arange(p.shape[1]) < counts[:, None]
            pi[(self._pointer[states][:, None] + np.arange(p.shape[1]))[has]] = p[has]
        return pi

    def refuse(self) -> None:
        """An MDP was checked when it was made."""

    def _sweep_groups(self, groups: list[Group], regularizer: Regularizer, v: Array) -> DeviceSweep:
        def one(group: Group, v: Array) -> tuple[Array, Array, Array]:
            expected = _expectation(group.successors, group.probabilities, v)
            q = lax.optimization_barrier(group.rewards + self._discount * expected)
            return q, *column_maxima(regularizer, q)

        updated, used = jnp.zeros_like(v), jnp.zeros(self.n_states, jnp.int32)
        values = []
        for group in groups:
            q, value, count = self._divided(one, (COLUMNS, STATES, STATES), group, v)
            values.append(q)
            updated = self._put(updated, group.states, value)
            used = self._put(used, group.states, count)
        return DeviceSweep(updated, values, *sweep_numbers(v, updated, used))

    def _prepared_groups(
        self, groups: list[Group], regularizer: Regularizer, values: list[Array], size: int
    ) -> list[FollowedGroup]:
        """The policy in each group; without successors where all actions are followed."""

        def one(group: Group, q: Array) -> FollowedGroup:
            p, _ = regularized_maximum(regularizer, q.T)
            weights, successors = p.T, None
            probabilities, rewards = group.probabilities, group.rewards
            if size < len(rewards):
                largest, actions = lax.top_k(p, size)
                weights, chosen = largest.T, actions.T  # (m, n)
                take = partial(jnp.take_along_axis, indices=chosen[None], axis=1)
                successors, probabilities = take(group.successors), take(probabilities)
                rewards = jnp.take_along_axis(rewards, chosen, 0)
            reward = jnp.sum(jnp.where(weights > 0.0, weights * rewards, 0.0), 0)
            return FollowedGroup(
                group.states,
                successors,
                probabilities * weights,
                reward + entropy_bonus(regularizer, p),
            )

        def parts(group: Group) -> FollowedGroup:
            chosen = TRANSITIONS if size < len(group.rewards) else None
            return FOLLOWED_PARTS._replace(states=_if_listed(group), successors=chosen)

        return [
            self._divided(one, parts(group), group, q)
            for group, q in zip(groups, values, strict=True)
        ]

    def _follow_groups(self, policy: list[FollowedGroup], v: Array) -> Array:
        def one(group: FollowedGroup, v: Array) -> Array:
            expected = jnp.sum(_expectation(group.successors, group.weights, v), 0)
            value: Array = group.reward + self._discount * expected
            return value

        new = jnp.zeros_like(v)
        for group in policy:
            new = self._put(new, group.states, self._divided(one, STATES, group, v))
        return new

    def _divided(self, function: Any, out_specs: Any, group: Any, other: Array) -> Any:
        """function(group, other), by every device for its part of the group's states."""
        if self._mesh is None:
            return function(group, other)
        parts: Any = GROUP_PARTS if isinstance(group, Group) else FOLLOWED_PARTS
        parts = parts._replace(states=_if_listed(group))
        second = COLUMNS if other.ndim == 2 else PartitionSpec()
        return jax.shard_map(
            function, mesh=self._mesh, in_specs=(parts, second), out_specs=out_specs,
            check_vma=False,
        )(group, other)  # fmt: skip

    def _put(self, whole: Array, states: Array | None, part: Array) -> Array:
        """`whole` with the numbers of a group's states, on every device."""
        if self._mesh is not None:
            everywhere = NamedSharding(self._mesh, PartitionSpec())
            part = lax.with_sharding_constraint(part, everywhere)
        if states is None:
            return part[: self.n_states]
        return whole.at[states].set(part, mode="drop")


def _if_listed(group: Any) -> PartitionSpec | None:
    return None if group.states is None else STATES


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


def local_parts(count: int, mesh: Mesh | None) -> Iterator[tuple[Any, slice]]:
    """The devices of this process, each with its part of `count` states."""
    devices = [None] if mesh is None else list(mesh.devices.flat)
    per_device = -(-count // len(devices))
    for i, device in enumerate(devices):
        if device is None or device.process_index == jax.process_index():
            yield device, slice(i * per_device, (i + 1) * per_device)


def _layout(mdp: MDP, states: NDArray[np.int64] | None, dtype: Any, mesh: Mesh | None) -> Group:
    """Lay the transitions of some states out on the devices, each with a part of the states."""
    count = mdp.n_states if states is None else len(states)
    first = mdp.pointer[:-1] if states is None else mdp.pointer[states]
    last = mdp.pointer[1:] if states is None else mdp.pointer[states + 1]
    lengths = np.diff(mdp.transitions.indptr)
    width = int((last - first).max())
    pairs = slice(None) if states is None else np.isin(mdp.state_of, states)
    longest = max(int(lengths[pairs].max()), 1)  # where every action ends the episode: p = 0
    n_devices = 1 if mesh is None else mesh.size
    per_device = -(-count // n_devices)
    parts = []
    for device, here in local_parts(count, mesh):
        listed = np.arange(count)[here] if states is None else states[here]
        arrays = _columns(mdp, listed, first[here], last[here], width, longest, per_device, dtype)
        parts.append([_reversed(jax.device_put(x, device)) for x in arrays])
    if mesh is None:
        order, successors, probabilities, rewards = parts[0]
    else:
        order, successors, probabilities, rewards = (
            _assembled(list(x), per_device * n_devices, mesh) for x in zip(*parts, strict=True)
        )
    return Group(None if states is None else order, successors, probabilities, rewards)


def _columns(
    mdp: MDP, states: NDArray[Any], first: NDArray[Any], last: NDArray[Any],
    width: int, longest: int, padded: int, dtype: Any,
) -> tuple[NDArray[Any], ...]:  # fmt: skip
    """States, successors (n, A, K), probabilities (n, A, K) and rewards (n, A), padded to n."""
    indptr, indices, data = mdp.transitions.indptr, mdp.transitions.indices, mdp.transitions.data
    index_type = np.int32 if mdp.n_states < 2**31 else np.int64
    n, span = len(states), slice(first[0], last[-1]) if len(states) else slice(0, 0)
    entries = slice(indptr[span.start], indptr[span.stop])
    regular = (
        n == padded
        and entries.stop - entries.start == n * width * longest
        and (span.stop - span.start == n * width)
    )
    if regular:
        shape = (n, width, longest)
        return (
            states.astype(index_type),
            indices[entries].reshape(shape).astype(index_type, copy=False),
            data[entries].reshape(shape).astype(dtype, copy=False),
            mdp.rewards[span].reshape(shape[:2]).astype(dtype, copy=False),
        )
    order = np.full(padded, mdp.n_states, index_type)  # an index that is dropped
    successors = np.zeros((padded, width, longest), index_type)
    probabilities = np.zeros((padded, width, longest), dtype)
    rewards = np.full((padded, width), -np.inf, dtype)
    order[:n] = states
    pair = first[:, None] + np.arange(width)
    has = pair < last[:, None]
    rewards[:n][has] = mdp.rewards[pair[has]]
    row = np.argwhere(has)
    start, stop = indptr[pair[has]], indptr[pair[has] + 1]
    length = stop - start
    offset = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
    entry = np.repeat(start, length) + offset
    at = (*np.repeat(row, length, axis=0).T, offset)
    successors[at], probabilities[at] = indices[entry], data[entry]
    return order, successors, probabilities, rewards


def _assembled(parts: list[Array], count: int, mesh: Mesh) -> Array:
    """One array over the mesh from the parts on this process's devices, along the last axis."""
    shape = (*parts[0].shape[:-1], count)
    spec = PartitionSpec(*[None] * (len(shape) - 1), AXIS)
    return jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, spec), parts)


@jax.jit
def _policy(regularizer: Regularizer, q: Array) -> Array:
    p, _ = regularized_maximum(regularizer, q.T)
    return p


@partial(jax.jit, donate_argnums=0)
def _reversed(x: Array) -> Array:
    return x.T


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
    found: Array = lax.fori_loop(0, len(successors), lambda k, total: total + term(k), zero)
    return found
