"""Training of a fleet: the loop of `loop_jax` with the agents as a leading axis of all arrays.

On an accelerator all agents make each step together. On a CPU that would only cost cache misses:
there the agents of a segment run one after another.
"""

import os
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from tsallax.deep import loop_jax
from tsallax.deep.algorithm import Algorithm
from tsallax.deep.loop import CycleLog
from tsallax.deep.loop_jax import JaxEpisodes
from tsallax.envs.jax.environment import Environment

CONCURRENT_KERNELS = "xla_gpu_command_buffer_scheduling_mode"
"""XLA's option for whether kernels that do not depend on each other run at the same time."""

Carry = tuple[Any, JaxEpisodes]


@partial(jax.jit, static_argnums=(0, 1))
def start(algorithm: Algorithm, environment: Environment, keys: Array, knobs: Any) -> Carry:
    """The learners and the first episodes, those of an agent alone for each key and knobs."""

    def one(key: Array, knobs: Any) -> Carry:
        first_key = jax.random.fold_in(key, 1)
        episodes = loop_jax.start_episodes(environment, 1, first_key)
        return algorithm.init(key, knobs), episodes

    return jax.vmap(one)(keys, knobs)


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
    """`_run_cycles` compiled for a kind of device; the variable XLA_FLAGS takes precedence."""
    ours = backend == "gpu" and CONCURRENT_KERNELS not in os.environ.get("XLA_FLAGS", "")
    return jax.jit(
        _run_cycles,
        static_argnums=(0, 1, 2, 3, 4),
        donate_argnums=(5, 6),
        compiler_options={CONCURRENT_KERNELS: "CONCURRENT"} if ours else None,
    )
