"""Policies as lists of actions of every state, and their sweeps, for models from functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tsallax.planning.accelerator.action_values import ActionValues, expectation
from tsallax.planning.accelerator.device_sweep import over_range


class ActionLists(NamedTuple):
    """A fixed policy as lists of actions, with its expected immediate reward."""

    weights: Array  # pi(a|s), (S, K)
    actions: Array  # a, (S, K)
    reward: Array  # sum_a pi(a|s) r(s, a) of `decide`, and alpha Omega(pi(s)), (S,)

    @property
    def size(self) -> int:
        """The number of actions that are listed for each state."""
        return self.actions.shape[-1]


class ListSweep:
    """The sweeps of policies, of one block of evaluations of the functions after the other."""

    def __init__(self, values: ActionValues, block: int, mesh: Any) -> None:
        self._values, self._block, self._mesh = values, block, mesh
        self._constants = values.constants
        self._follow: Callable[..., Array] = jax.jit(self._follow_states)
        self._missing: Callable[..., Array] = jax.jit(self._missing_actions)
        self._rewards: Callable[..., Array] = jax.jit(self._rewards_of_lists)
        self._discounted_transition: Callable[..., Array] = jax.jit(self._push_forward)
        self._transposed: Callable[..., Array] = jax.jit(self._pull_back)

    def follow(self, policy: ActionLists, v: Array) -> Array:
        """r_pi + alpha Omega(pi) + gamma T_pi v."""
        return self._follow(self._constants, policy, v)

    def discounted_transition(self, policy: ActionLists, v: Array) -> Array:
        """gamma T_pi v, without the rounding of rewards."""
        return self._discounted_transition(self._constants, policy, v)

    def listed(self, weights: Array, actions: Array) -> ActionLists:
        """A policy from probabilities (S, K) and actions (S, K), without an entropy bonus."""
        return ActionLists(weights, actions, self._rewards(self._constants, weights, actions))

    def missing_actions(self, weights: Array, actions: Array, terminal: Array) -> Array:
        """What is wrong with a policy, given as for `listed`, in each state.

        The place of an action in its list that the state lacks, the length of the list where the
        policy takes none, and -1 where it is right.
        """
        return self._missing(self._constants, weights, actions, terminal)

    def transposed(self, policy: ActionLists) -> Callable[[Array], Array]:
        """The map y -> gamma T_pi' y."""
        return partial(self._transposed, self._constants, policy)

    def _over_states(self, function: Callable[..., Any], work: int, *arrays: Array) -> Any:
        """function(state, numbers of the state in each of the arrays), for all states."""
        states = self._values.mdp.states

        def one(s: Array) -> Any:
            return function(states.element(s), *(x[s] for x in arrays))

        block = max(self._block // work, 1)
        return over_range(jax.vmap(one), states.size, block, self._mesh)

    def _rewards_of_lists(self, constants: Any, weights: Array, actions: Array) -> Array:
        reward = partial(reward_of_list, self._values, constants)
        rewards: Array = self._over_states(reward, weights.shape[-1], weights, actions)
        return rewards

    def _follow_states(self, constants: Any, policy: ActionLists, v: Array) -> Array:
        post_values, stored = v, self._values.stored
        if stored is not None:
            at_once = max(self._block // self._values.mdp.events.size, 1)
            post_values = over_posts(self._values, constants, v, at_once, self._mesh)[0]

        def one(state: Any, weights: Array, actions: Array, reward: Array) -> Array:
            pairs = self._values.pairs(constants, post_values, state, actions)
            return reward + expectation(weights, pairs.continuation)

        work = policy.size * (self._values.mdp.events.size if stored is None else 1)
        value: Array = self._over_states(one, work, *policy)
        return value

    def _push_forward(self, constants: Any, policy: ActionLists, v: Array) -> Array:
        follow = partial(self._follow_states, constants, policy)
        found: Array = jax.jvp(follow, (jnp.zeros_like(v),), (v,))[1]
        return found

    def _pull_back(self, constants: Any, policy: ActionLists, y: Array) -> Array:
        _, pull = jax.vjp(lambda v: self._follow_states(constants, policy, v), jnp.zeros_like(y))
        found: Array = pull(y)[0]
        return found

    def _missing_actions(
        self, constants: Any, weights: Array, actions: Array, terminal: Array
    ) -> Array:
        def one(state: Any, weights: Array, actions: Array, terminal: Array) -> Array:
            _, allowed = self._values.decided(constants, state, actions)
            lacks = (weights > 0.0) & ~allowed
            place = jnp.where(jnp.any(lacks), jnp.argmax(lacks), -1)
            place = jnp.where(jnp.all(weights == 0.0), len(weights), place)
            return jnp.where(terminal, -1, place)

        found: Array = self._over_states(one, weights.shape[-1], weights, actions, terminal)
        return found


def over_posts(
    values: ActionValues,
    constants: Any,
    v: Array,
    block: int,
    mesh: Any,
    first: Any = 0,
    count: int | None = None,
) -> Any:
    """`ActionValues.expected` of all stored post-decision states, or of `count` from `first` on."""
    space = values.stored
    assert space is not None

    def one(x: Array) -> Any:
        return values.expected(constants, v, space.element(x))

    return over_range(jax.vmap(one), space.size, block, mesh, first, count)


def reward_of_list(
    values: ActionValues, constants: Any, state: Any, weights: Array, actions: Array
) -> Array:
    """sum_a pi(a|s) r(s, a) of `decide`, for one state."""
    reward, _ = values.decided(constants, state, actions)
    return expectation(weights, reward)
