"""Training of a fleet in JAX environments: `loop_jax` with the agents as a leading axis.

On an accelerator all agents make each step together. On a CPU that would only cost cache misses:
there the agents of a segment run one after another.
"""

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from tsallax.deep import checkpoint, loop_jax
from tsallax.deep.algorithm import Algorithm
from tsallax.deep.evaluation_episodes import EpisodeRequest, Episodes, play_jax
from tsallax.deep.loop import EPISODES_PREFIX, CycleLog, FleetLog
from tsallax.deep.loop_jax import JaxEpisodes
from tsallax.envs.jax.environment import Environment

CONCURRENT_KERNELS = "xla_gpu_command_buffer_scheduling_mode"
"""XLA's option for whether kernels that do not depend on each other run at the same time."""

Carry = tuple[Any, JaxEpisodes]


class JaxFleetLoop:
    """The loop of a fleet in copies of a JAX environment.

    `action_table` has the real actions by number, where the algorithm chooses numbers. A slot is an
    entry of the agents' axis.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        environment: Environment,
        *,
        action_table: Array | None,
        seeds: Sequence[int],
        hyperparameters: Sequence[Any],
        together: bool,
    ) -> None:
        self.algorithm, self.environment, self.action_table = algorithm, environment, action_table
        self.together, self._seeds = together, seeds
        self._hyperparameters = stack(hyperparameters)
        self.learners: Any = None
        self.episodes: Any = None

    def start(self) -> None:
        """Make the learners and begin the first episodes."""
        self.learners, self.episodes = self._first_state()

    def _first_state(self) -> Carry:
        keys = jnp.stack([jax.random.PRNGKey(seed) for seed in self._seeds])
        first: Carry = start(self.algorithm, self.environment, keys, self._hyperparameters)
        return first

    def run(self, learning: bool, step: int, steps: int, active: Sequence[bool]) -> FleetLog:
        """Make `steps` steps, a multiple of `train_freq`, from `step`."""
        cycles = steps // self.algorithm.config.train_freq
        program = self.algorithm, self.environment, learning, cycles, self.together
        state = self.learners, self.episodes, self.action_table
        run_cycles = compiled_run_cycles(jax.default_backend())
        self.learners, self.episodes, log = run_cycles(
            *program, *state, jnp.asarray(step, jnp.int32), jnp.asarray(active)
        )
        reward, ended = (
            np.moveaxis(np.asarray(x)[..., 0], 1, 2).reshape(-1, x.shape[1])
            for x in (log.reward, log.ended)
        )
        return FleetLog(reward.astype(np.float64), ended, np.asarray(log.loss))

    def copy(self) -> None:
        """Copy the online networks to the target networks."""
        self.learners = self.algorithm.copy(self.learners)

    def acting_state(self, slot: int) -> Any:
        """The acting state of the agent in a slot."""
        return take(self.algorithm.acting_state(self.learners), slot)

    def keep(self, slots: Sequence[int]) -> None:
        """Keep the agents in these slots only."""
        state = self.learners, self.episodes
        self.learners, self.episodes = take(state, np.asarray(slots))

    def play(self, state: Any, member: int, asked: EpisodeRequest) -> Episodes:
        """Play episodes with the acting state of a member; the same as those of an agent alone."""
        learner = take(self.learners, 0)._replace(
            hyperparameters=take(self._hyperparameters, member)
        )
        learner = self.algorithm.restore_acting(state, learner)
        return play_jax(self.algorithm, self.environment, learner, self.action_table, asked)

    def arrays(self, step: int) -> dict[str, NDArray[Any]]:
        """The learners and the episodes in progress after `step` steps, as named arrays."""
        found = checkpoint.flatten_learner(self.learners, step, many=True)
        return found | checkpoint.flatten(EPISODES_PREFIX, self.episodes)

    def restore(self, arrays: dict[str, NDArray[Any]], slots: Sequence[int], step: int) -> None:
        """Take the state from the arrays of a file, of the members `slots` after `step` steps."""
        learners, episodes = jax.eval_shape(
            lambda: jax.tree.map(lambda x: x[: len(slots)], self._first_state())
        )
        hyperparameters = take(self._hyperparameters, jnp.asarray(slots))
        self.learners = checkpoint.restore_learner(
            learners, hyperparameters, arrays, step, many=True
        )
        self.episodes = checkpoint.restore(EPISODES_PREFIX, episodes, arrays)

    def close(self) -> None:
        """Do nothing: there are no processes to end."""


@jax.jit
def take(tree: Any, index: Any) -> Any:
    """The entries `index` of the leading axis of every array."""
    return jax.tree.map(lambda x: x[index], tree)


def stack(trees: Sequence[Any]) -> Any:
    """Pytrees as one, with a new leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


@partial(jax.jit, static_argnums=(0, 1))
def start(
    algorithm: Algorithm, environment: Environment, keys: Array, hyperparameters: Any
) -> Carry:
    """The learners and the first episodes, those of agents alone with these keys."""

    def one(key: Array, hyperparameters: Any) -> Carry:
        first_key = jax.random.fold_in(key, 1)
        episodes = loop_jax.start_episodes(environment, 1, first_key)
        return algorithm.init(key, hyperparameters), episodes

    return jax.vmap(one)(keys, hyperparameters)


def _run_cycles(
    algorithm: Algorithm,
    environment: Environment,
    learning: bool,
    cycles: int,
    together: bool,
    learners: Any,
    episodes: JaxEpisodes,
    action_table: Array | None,
    step: Array,
    active: Array,
) -> tuple[Any, JaxEpisodes, CycleLog]:
    """`cycles` cycles of all agents together, or one by one of those that are `active`.

    The log has the cycles as first axis and the agents as second.
    """
    size = algorithm.config.n_envs * algorithm.config.train_freq
    one = partial(loop_jax.run_cycle, algorithm, environment, learning)
    cycle = jax.vmap(one, (0, 0, None, None)) if together else one

    def body(carry: Carry, i: Array) -> tuple[Carry, CycleLog]:
        learner, episodes, log = cycle(*carry, action_table, step + i * size)
        return (learner, episodes), log

    def all_cycles(carry: Carry) -> tuple[Carry, CycleLog]:
        return lax.scan(body, carry, jnp.arange(cycles, dtype=jnp.int32))

    if together:
        (learners, episodes), log = all_cycles((learners, episodes))
    else:
        empty = jax.eval_shape(all_cycles, jax.tree.map(lambda x: x[0], (learners, episodes)))[1]

        def skip(carry: Carry) -> tuple[Carry, CycleLog]:
            return carry, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), empty)

        def run_if_active(given: tuple[Array, Carry]) -> tuple[Carry, CycleLog]:
            result: tuple[Carry, CycleLog] = lax.cond(given[0], all_cycles, skip, given[1])
            return result

        (learners, episodes), log = lax.map(run_if_active, (active, (learners, episodes)))
        log = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), log)
    return learners, episodes, log


@cache
def compiled_run_cycles(backend: str) -> Callable[..., tuple[Any, JaxEpisodes, CycleLog]]:
    """`_run_cycles` compiled for a kind of device."""
    return jax.jit(
        _run_cycles,
        static_argnums=(0, 1, 2, 3, 4),
        donate_argnums=(5, 6),
        compiler_options=compiler_options(backend),
    )


def compiler_options(backend: str) -> dict[str, Any] | None:
    """XLA's options for programs of fleets; the variable XLA_FLAGS takes precedence."""
    ours = backend == "gpu" and CONCURRENT_KERNELS not in os.environ.get("XLA_FLAGS", "")
    return {CONCURRENT_KERNELS: "CONCURRENT"} if ours else None
