"""`Algorithm`: the pure functions of one learner that agents, fleets and both loops run."""

import dataclasses
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
from jax import Array
from jax.typing import ArrayLike

from tsallax.deep.replay import Transition


@partial(jax.jit, static_argnums=0)
def init_learner(algorithm: "Algorithm", key: Array, hyperparameters: Any) -> Any:
    """The learner before the first step, compiled."""
    return algorithm.init(key, hyperparameters)


class Metrics(NamedTuple):
    """Averages over the batch of an update: the loss and the target value."""

    loss: Array
    value: Array


class Algorithm(Protocol):
    """A learning algorithm as frozen data; its state is a learner, which every method takes.

    A learner is a named tuple of pytrees. Agents, fleets, loops and files know four of its fields:

        online            the networks that learn, the arrays of `Agent.parameters`
        replay            the memory, a `Replay`
        hyperparameters   the options in which members of a fleet may differ; None in files
        key               the random key, from which `loop.step_keys` makes those of each step
    """

    @property
    def config(self) -> Any:
        """The options that shape the compiled program.

        Of them, agents, fleets and loops read n_envs, train_freq, learning_starts,
        target_update_interval, buffer_size and batch_size.
        """

    def init(self, key: Array, hyperparameters: Any) -> Any:
        """The learner before the first step."""

    def act(
        self,
        learner: Any,
        observation: Array,
        step: ArrayLike,
        key: Array,
        mask: Array | None = None,
    ) -> tuple[Array, Array]:
        """An exploring action for each observation, and the mean support ratio of the policy.

        A `mask` (n, number of actions) says which actions are allowed; None allows all.
        """

    def greedy(self, learner: Any, observation: Array, mask: Array | None = None) -> Array:
        """The best action for each observation."""

    def sample(
        self,
        learner: Any,
        observation: Array,
        step: ArrayLike,
        key: Array,
        mask: Array | None = None,
    ) -> Array:
        """An action of the stochastic policy for each observation."""

    def store(self, learner: Any, transition: Transition, step: ArrayLike) -> Any:
        """Add a transition of each environment to the replay memory."""

    def end_episodes(self, learner: Any, written: ArrayLike) -> Any:
        """End the episode of each environment, which was lost, with its newest transition."""

    def learn(self, learner: Any, written: ArrayLike, key: Array) -> tuple[Any, Metrics]:
        """One update from a memory to which `written` transitions were written."""

    def copy(self, learner: Any) -> Any:
        """Copy the online network to the target network."""

    def acting_state(self, learner: Any) -> Any:
        """What `greedy` and `sample` depend on beside the hyperparameters."""

    def restore_acting(self, state: Any, learner: Any) -> Any:
        """The learner with an acting state put in: it acts like the one the state came from."""


def acting_learner(state: Any, algorithm: Algorithm, key: jax.Array, hyperparameters: Any) -> Any:
    """A learner with an acting state, and a memory of one transition."""
    least = dataclasses.replace(algorithm.config, buffer_size=1, batch_size=1)
    small: Any = dataclasses.replace(algorithm, config=least)  # type: ignore[type-var]
    return algorithm.restore_acting(state, init_learner(small, key, hyperparameters))
