"""The compiled functions of a fleet's step in Gymnasium environments.

What an environment returned is a row of bytes, of the type `environment_workers.row_type`: one
transfer to the device for all agents. `together` is whether learner, rows and actions have the
agents as a leading axis.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tsallax.deep.algorithm import Algorithm
from tsallax.deep.loop import step_keys
from tsallax.deep.loop_fleet import compiler_options
from tsallax.deep.replay import Transition


def unpack(row: np.dtype[Any], name: str, packed: Array) -> Array:
    """A field of rows given as bytes, (..., bytes)."""
    assert row.fields is not None
    kind, offset = row.fields[name][:2]
    base, shape = kind.subdtype or (kind, ())
    lead = packed.shape[:-1]
    part = packed[..., offset : offset + kind.itemsize].reshape(*lead, *shape, base.itemsize)
    if base == np.bool_:
        return part[..., 0] != 0
    if base.itemsize == 1:
        part = part[..., 0]
    return lax.bitcast_convert_type(part, base)


def _mask(row: np.dtype[Any], name: str, packed: Array) -> Array | None:
    """The mask in rows, None where they have none."""
    return unpack(row, name, packed) if name in (row.names or ()) else None


def act_one(algorithm: Algorithm, row: np.dtype[Any], learner: Any, rows: Array, step: Any) -> Any:
    """The actions of one agent for its rows, (environments, bytes), and the rows."""
    observation, mask = unpack(row, "observation", rows), _mask(row, "mask", rows)
    key = step_keys(learner.key, step)[0]
    return algorithm.act(learner, observation, step, key, mask)[0], rows


def _act(
    algorithm: Algorithm, row: np.dtype[Any], together: bool, learner: Any, rows: Array
) -> tuple[Array, Array]:
    """Actions for the observations in rows, and the rows on the device."""
    step = unpack(row, "step", rows).reshape(-1)[0]
    act = partial(act_one, algorithm, row)
    if together:
        act = jax.vmap(act, (0, 0, None))
    found: tuple[Array, Array] = act(learner, rows, step)
    return found


def _store_learn(
    algorithm: Algorithm,
    row: np.dtype[Any],
    together: bool,
    update: bool,
    learner: Any,
    before: Array,
    action: Array,
    after: Array,
    loss: Array,
) -> tuple[Any, Array]:
    """Store the transitions between two rows, make an `update`, and add its loss to `loss`."""
    step = unpack(row, "step", before).reshape(-1)[0]

    def one(learner: Any, before: Array, action: Array, after: Array, step: Array) -> Any:
        seen = unpack(row, "observation", before)
        transition = Transition(
            observation=seen,
            action=action,
            reward=unpack(row, "reward", after),
            next_observation=unpack(row, "next_observation", after),
            terminated=unpack(row, "terminated", after),
            truncated=unpack(row, "truncated", after),
            valid=jnp.ones(len(seen), jnp.bool_),
            mask=_mask(row, "next_mask", after),
        )
        learner = algorithm.store(learner, transition, step)
        if not update:
            return learner, jnp.zeros(())
        key = step_keys(learner.key, step)[1]
        learner, metrics = algorithm.learn(learner, step + len(seen), key)
        return learner, metrics.loss

    run = jax.vmap(one, (0, 0, 0, 0, None)) if together else one
    learner, new = run(learner, before, action, after, step)
    return learner, loss + new


def _store_learn_act(
    algorithm: Algorithm,
    row: np.dtype[Any],
    together: bool,
    update: bool,
    overlap: bool,
    learner: Any,
    before: Array,
    action: Array,
    after: Array,
    loss: Array,
) -> tuple[Any, Array, Array, Array]:
    """`_store_learn` and `_act` in one program, in the same order as the two."""
    choices = algorithm, row, together
    updated, loss = _store_learn(*choices, update, learner, before, action, after, loss)
    following, rows = _act(*choices, learner if overlap else updated, after)
    return updated, following, rows, loss


class Programs(NamedTuple):
    """The compiled functions of a step."""

    act: Callable[..., Any]
    store_learn: Callable[..., Any]
    all: Callable[..., Any]


@cache
def compiled_step(backend: str) -> Programs:
    """The functions of a step, compiled for a kind of device."""
    jit = partial(jax.jit, compiler_options=compiler_options(backend))
    return Programs(
        jit(_act, static_argnums=(0, 1, 2)),
        jit(_store_learn, static_argnums=(0, 1, 2, 3), donate_argnums=4),
        jit(_store_learn_act, static_argnums=(0, 1, 2, 3, 4), donate_argnums=5),
    )


@partial(jax.jit, static_argnums=(0, 1, 2))
def choose_all(
    algorithm: Algorithm,
    row: np.dtype[Any],
    many: bool,
    learner: Any,
    agents: tuple[Any, Any, Any],
    rows: Array,
    seeds: Any,
) -> Array:
    """An action for each row: of the stochastic policy by its seed, or the best.

    `agents` are acting state, hyperparameters and step of one agent, or with `many` of one for each
    row.
    """

    def one(agent: tuple[Any, Any, Any], rows: Array, seed: Any) -> Array:
        state, hyperparameters, step = agent
        actor = algorithm.restore_acting(state, learner._replace(hyperparameters=hyperparameters))
        observation, mask = unpack(row, "observation", rows), _mask(row, "mask", rows)
        if seed is None:
            return algorithm.greedy(actor, observation, mask)
        return algorithm.sample(actor, observation, step, jax.random.PRNGKey(seed), mask)

    chosen: Array = jax.vmap(one, (0 if many else None, 0, 0))(agents, rows, seeds)
    return chosen


@partial(jax.jit, static_argnums=(0, 1))
def end_episodes(algorithm: Algorithm, together: bool, learner: Any, lost: Array, step: Any) -> Any:
    """End the episodes of the `lost` agents with their newest transitions."""

    def one(learner: Any, lost: Array) -> Any:
        ended = algorithm.end_episodes(learner, step)
        return jax.tree.map(partial(jnp.where, lost), ended, learner)

    return jax.vmap(one)(learner, lost) if together else one(learner, lost[0])


@partial(jax.jit, static_argnums=0)
def init_learners(algorithm: Algorithm, keys: Array, hyperparameters: Any) -> Any:
    """The learners, those of an agent alone for each key and hyperparameters."""
    return jax.vmap(algorithm.init)(keys, hyperparameters)
