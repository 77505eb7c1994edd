"""The Bellman sweep of a model from functions, in blocks of states.

The action values of a block are computed (`action_values`), and their regularised maxima taken
(`row_maximum`), while they are in a cache.  A sweep also lists the actions that its greedy policy
uses in every state, so that the policy can be followed without another pass over all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tsallax.errors import InvalidInput
from tsallax.memory import require_memory
from tsallax.planning.accelerator.action_lists import (
    ActionLists,
    ListSweep,
    over_posts,
    reward_of_list,
)
from tsallax.planning.accelerator.action_values import ActionValues
from tsallax.planning.accelerator.device_sweep import (
    DeviceSweep,
    Survey,
    copied,
    in_parts,
    over_range,
    regularized_maximum,
    sweep_numbers,
)
from tsallax.planning.accelerator.row_maximum import row_maxima
from tsallax.planning.functional_checks import check_functions, find_invalid
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.regularizer import Hard, Regularizer
from tsallax.wording import plural

MAX_LISTED = 2**27
"""The largest number of actions that are listed, of all states together."""
FEW = 4
"""Actions of each state that may be listed to follow a policy, however many states there are."""
CPU_BLOCK, GPU_BLOCK = 2**17, 2**25
"""Evaluations of the functions at a time: on a CPU, what fits into the caches of its cores."""
CPU_PART, GPU_PART = 128, 1024
"""Such blocks from one look at the time limit to the next, after a second or less."""


class ImplicitPolicy(NamedTuple):
    """The policy that is greedy in v, given by the post-decision values of v."""

    post_values: Array  # w of every post-decision state, or v
    listed: ActionLists | None  # the first actions in use in each state, maybe not all of them


class FunctionalSweep:
    """The sweeps of one functional MDP, of one block of evaluations after the other.

    Where it is too large for one program, a part of the groups or of the post-decision states is
    computed at a time: programs with the argument `first` compute the part that begins there.

    Attributes:
        lists: the sweeps of policies that are given as lists of actions.
    """

    def __init__(self, mdp: FunctionalMDP, dtype: Any, mesh: Any = None) -> None:
        self.mdp, self.dtype, self._mesh = mdp, dtype, mesh
        self.n_states, self.width = mdp.n_states, mdp.n_actions
        self.n_pairs, self.terms = mdp.n_pairs, mdp.events.size
        self.roundings = 2 * self.terms
        on_gpu = _platform(mesh) == "gpu"
        self._block, blocks = (GPU_BLOCK, GPU_PART) if on_gpu else (CPU_BLOCK, CPU_PART)
        self._values = ActionValues(mdp, dtype)
        self._constants = self._values.constants
        # groups and post-decision states of a block, and of a part
        self._groups_at_once = max(self._block // self._values.group_work, 1)
        self._posts_at_once = max(self._block // self.terms, 1)
        self._group_part = min(self._values.outer.size, blocks * self._groups_at_once)
        posts = 0 if self._values.stored is None else self._values.stored.size
        self._post_part = min(posts, blocks * self._posts_at_once)
        self._rows = jax.jit(self._rows_of_groups, static_argnames=("size", "excluding"))
        self._ordered = jax.jit(lambda arrays: [self._values.in_order(x) for x in arrays])
        self._expectations = jax.jit(self._expectations_of_posts)
        self._group_survey = jax.jit(self._survey_of_groups)
        self._post_survey = jax.jit(self._survey_of_posts)
        self._sweep: Callable[..., DeviceSweep] = self._sweep_states
        self._survey: Callable[..., tuple[Array, ...]] = self._survey_states
        if self._group_part == self._values.outer.size and self._post_part == posts:
            self._sweep = jax.jit(self._sweep_states, static_argnames=("size", "excluding"))
            self._survey = jax.jit(self._survey_states)
        self._policy: Callable[..., Array] = jax.jit(self._policy_of_states)
        self._q: Callable[..., Array] = jax.jit(self._action_values_of_states)
        self.lists = ListSweep(self._values, self._block, mesh)

    def sweep(self, regularizer: Regularizer, v: Array, size: int) -> DeviceSweep:
        """Uv and what is known of it, with up to `size` actions of the policy in every state."""
        size = 1 if isinstance(regularizer, Hard) else size
        return self._sweep(self._constants, regularizer, v, size=size, excluding=self._excluding)

    def prepared(self, regularizer: Regularizer, policy: ImplicitPolicy, size: int) -> ActionLists:
        """The policy as lists of its actions; no state uses more than `size` of them."""
        listed = policy.listed
        if listed is not None and (listed.size >= size or isinstance(regularizer, Hard)):
            return listed
        return self._greedy(
            self._constants, regularizer, policy.post_values, size, self._excluding
        )[2]

    def most_probable(
        self, regularizer: Regularizer, policy: ImplicitPolicy, size: int
    ) -> NDArray[np.int32]:
        """The most probable action of every state; no state uses more than `size` actions."""
        if policy.listed is None or policy.listed.size < size:
            policy, size = self.compacted(policy), 1
        lists = self.prepared(regularizer, policy, size)
        first = jnp.argmax(lists.weights, axis=-1, keepdims=True)
        return np.asarray(jnp.take_along_axis(lists.actions, first, axis=-1)[:, 0], np.int32)

    def compacted(self, policy: ImplicitPolicy) -> ImplicitPolicy:
        """The policy without its lists, which `prepared` makes again."""
        return policy._replace(listed=None)

    def follow_cost(self, size: int) -> float:
        """The time of `follow` with `size` actions of every state, in sweeps of U.

        Both are counted in evaluations of the functions; products of matrices are quick.  Infinity
        for lists that would take too much memory.
        """
        if size > max(self.longest_list, FEW):
            return math.inf
        stored = self._values.stored
        if stored is not None:
            branches = stored.size * self.terms
            return (branches + size * self.n_states) / (branches + self.n_pairs)
        return size * self.n_states / (self.width * self._values.outer.size)

    @property
    def longest_list(self) -> int:
        """The largest number of actions of every state that a sweep lists."""
        return max(MAX_LISTED // self.n_states, 1)

    def follow(self, policy: ActionLists, v: Array) -> Array:
        """r_pi + alpha Omega(pi) + gamma T_pi v."""
        return self.lists.follow(policy, v)

    def policy_rows(
        self, regularizer: Regularizer, policy: ImplicitPolicy, states: NDArray[Any]
    ) -> NDArray[np.float64]:
        """pi(a|s) of some states, a row for each."""
        program = partial(self._policy, self._constants, regularizer, policy.post_values)
        return self._in_rows(program, states)

    def post_values(self, v: Array) -> Array:
        """The post-decision values of v, or v where none are stored, for `action_value_rows`."""
        return self._post_values(self._constants, v)

    def action_value_rows(self, post_values: Array, states: NDArray[Any]) -> NDArray[np.float64]:
        """Q(s, .) of some states, a row for each; -inf where the state lacks the action."""
        return self._in_rows(partial(self._q, self._constants, post_values), states)

    def _in_rows(
        self, function: Callable[[Array], Array], states: NDArray[Any]
    ) -> NDArray[np.float64]:
        """function(states), (n, A), computed for one block of the states after the other."""
        terms = self.terms if self._values.stored is None else 1
        block = max(self._block // (self.width * terms), 1)
        rows = np.empty((len(states), self.width))
        for first in range(0, len(states), block):
            some = np.resize(states[first : first + block], min(block, len(states)))
            rows[first : first + block] = np.asarray(function(jnp.asarray(some)))[
                : len(states) - first
            ]
        return rows

    def place(self, v: NDArray[Any]) -> Array:
        """v on the device, or on all of them."""
        return copied(v.astype(self.dtype), self._mesh)

    def refuse(self) -> None:
        """Raise `InvalidInput` for the first pair that is not valid, if there is one."""
        find_invalid(self.mdp)

    @cached_property
    def survey(self) -> Survey:
        """Terminal states, whether episodes end, and a bound on rewards, by one pass."""
        terminal, ends, reward, _ = self._surveyed
        if bool(jnp.all(terminal)):
            raise InvalidInput("every state is terminal: there is nothing to decide")
        return Survey(terminal, bool(ends), float(reward))

    @property
    def _excluding(self) -> bool:
        """Whether some states of a group exclude an event, by its probability, that is not valid.

        Sweeps then take two products of matrices instead of one.
        """
        return bool(self._surveyed[3])

    @cached_property
    def _surveyed(self) -> tuple[Array, ...]:
        return self._survey(self._constants)

    def _sweep_states(
        self, constants: Any, regularizer: Regularizer, v: Array, size: int, excluding: bool
    ) -> DeviceSweep:
        post_values = self._post_values(constants, v)
        updated, used, listed = self._greedy(constants, regularizer, post_values, size, excluding)
        numbers = sweep_numbers(v, updated, used)
        return DeviceSweep(updated, ImplicitPolicy(post_values, listed), *numbers)

    def _survey_states(self, constants: Any) -> tuple[Array, ...]:
        """Which states are terminal, whether episodes end, a bound on |r(s, a)|, `_excluding`."""
        groups, stored = self._values.outer.size, self._values.stored
        found = in_parts(partial(self._group_survey, constants), groups, self._group_part)
        terminal = self._values.in_order(found[0])
        reward, ends = jnp.max(found[1]), jnp.any(found[2]) | jnp.any(terminal)
        if stored is not None:
            survey = partial(self._post_survey, constants)
            more, ending = in_parts(survey, stored.size, self._post_part)
            reward, ends = reward + jnp.max(more), ends | jnp.any(ending)
        return terminal, ends, reward, jnp.any(found[3])

    def _post_values(self, constants: Any, v: Array) -> Array:
        """w of all post-decision states, or v where none are stored."""
        if self._values.stored is None:
            return v
        expectations = partial(self._expectations, constants, v)
        post_values: Array = in_parts(expectations, self._values.stored.size, self._post_part)
        return post_values

    def _greedy(
        self,
        constants: Any,
        regularizer: Regularizer,
        post_values: Array,
        size: int,
        excluding: bool,
    ) -> tuple[Array, Array, ActionLists]:
        """Uv, the number of actions in use, and up to `size` of these, in every state."""
        rows = partial(
            self._rows, constants, regularizer, post_values, size=size, excluding=excluding
        )
        found = in_parts(rows, self._values.outer.size, self._group_part)
        updated, used, *listed = self._ordered(found)
        return updated, used, ActionLists(*listed)

    def _expectations_of_posts(self, constants: Any, v: Array, first: Any) -> Array:
        """w(x) of some post-decision states."""
        post_values: Array = self._over_posts(constants, v, first)[0]
        return post_values

    def _survey_of_posts(self, constants: Any, first: Any) -> tuple[Array, Array]:
        """The largest |r| of some post-decision states, and whether an event ends the episode."""
        zero = jnp.zeros(self.n_states, self.dtype)
        _, reward, ends = self._over_posts(constants, zero, first)
        return reward, ends

    def _over_posts(self, constants: Any, v: Array, first: Any) -> Any:
        return over_posts(
            self._values, constants, v, self._posts_at_once, self._mesh, first, self._post_part
        )

    def _rows_of_groups(
        self,
        constants: Any,
        regularizer: Regularizer,
        post_values: Array,
        first: Any,
        size: int,
        excluding: bool,
    ) -> tuple[Array, ...]:
        """Value, number of actions in use, weights, actions and reward of some groups' states."""

        def some(groups: Array) -> tuple[Array, ...]:
            pairs = self._values.groups(constants, post_values, groups, excluding)
            q = pairs.reward + pairs.continuation
            q = jnp.where(pairs.allowed, jnp.where(q > -jnp.inf, q, jnp.nan), -jnp.inf)
            found = row_maxima(regularizer, q, size)
            states = jax.vmap(self._values.group_states)(groups)
            reward = jax.vmap(jax.vmap(partial(reward_of_list, self._values, constants)))
            earned = found.bonus + reward(states, found.weights, found.actions)
            rows = (found.value, found.used, found.weights, found.actions, earned)
            return rows if self._values.inner else tuple(x[:, 0] for x in rows)

        part = self._group_part
        rows: tuple[Array, ...] = over_range(
            some, self._values.outer.size, self._groups_at_once, self._mesh, first, part
        )
        return rows

    def _survey_of_groups(self, constants: Any, first: Any) -> tuple[Array, ...]:
        """Which states of some groups are terminal.

        Of each group: the largest |r|, whether it ends episodes, `has_exclusions`.
        """
        post_values = jnp.zeros(self.n_states if self._values.stored is None else 1, self.dtype)

        def some(groups: Array) -> tuple[Array, ...]:
            pairs = self._values.groups(constants, post_values, groups)
            reward = jnp.where(pairs.allowed, jnp.abs(pairs.reward), 0.0)
            most = jnp.max(reward, axis=(1, 2)) + jnp.max(pairs.event_reward, axis=(1, 2))
            terminal = ~jnp.any(pairs.allowed, axis=-1)
            ends = jnp.any(pairs.ends, axis=(1, 2))
            exclusions = self._values.has_exclusions(constants, groups)
            return terminal if self._values.inner else terminal[:, 0], most, ends, exclusions

        part = self._group_part
        found: tuple[Array, ...] = over_range(
            some, self._values.outer.size, self._groups_at_once, self._mesh, first, part
        )
        return found

    def _policy_of_states(
        self, constants: Any, regularizer: Regularizer, post_values: Array, states: Array
    ) -> Array:
        q = self._action_values_of_states(constants, post_values, states)
        return regularized_maximum(regularizer, q)[0]

    def _action_values_of_states(self, constants: Any, post_values: Array, states: Array) -> Array:
        actions = jnp.arange(self.width, dtype=jnp.int32)

        def one(s: Array) -> Array:
            pairs = self._values.pairs(constants, post_values, self.mdp.states.element(s), actions)
            return jnp.where(pairs.allowed, pairs.reward + pairs.continuation, -jnp.inf)

        found: Array = jax.vmap(one)(states)
        return found


def _platform(mesh: Any) -> str:
    """The kind of device on which arrays are, here and now: "cpu", "gpu", ..."""
    devices = jnp.zeros(()).devices() if mesh is None else mesh.devices.flat
    return str(next(iter(devices)).platform)


@lru_cache(maxsize=8)
def checked_sweep(
    mdp: FunctionalMDP, dtype: Any, mesh: Any, device: jax.Device | None
) -> FunctionalSweep:
    """The sweeps of a model, checked; the last ones are kept, as they take seconds to compile."""
    _require_memory(mdp, np.dtype(dtype).itemsize, device)
    check_functions(mdp, single=dtype == jnp.float32)
    return FunctionalSweep(mdp, dtype, mesh)


def _require_memory(mdp: FunctionalMDP, number: int, device: jax.Device | None) -> None:
    """Refuse a model of which not even v, Uv, r_pi and lists of one action fit into memory."""
    posts = mdp.post.size if mdp.post is not None and not mdp.given_state else 0
    size = mdp.n_states * (4 * number + 8) + posts * number
    what = f"the values of {plural(mdp.n_states, 'state')}"
    what += f" and {plural(posts, 'post-decision state')}" if posts else ""
    require_memory(size, what, "use coarser spaces", device or jax.local_devices()[0])
