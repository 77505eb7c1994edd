"""Sparse deep Q-learning, Algorithm 1 of the paper, for any pair of regularisers.

    a_t ~ explore.policy(Q(s_t, .; theta))
    s_{t+1}, r_t from the environment; store (s_t, a_t, r_t, s_{t+1}) with the largest priority
    draw a batch (s_j, a_j, r_j, s'_j) by priority, with importance weights w_j
    y_j = r_j + gamma update.value(Q(s'_j, .; theta^-))
    minimise  sum_j w_j (y_j - Q(s_j, a_j; theta))^2;  priorities from |y_j - Q(s_j, a_j; theta)|
    theta^- <- theta every c steps

With explore = update = Sparse(alpha) and n_step = 1 this is the paper's algorithm; Soft, Hard and
Tsallis give the others. With more steps, r_j is the discounted sum of their rewards and s'_j what
they led to. Epsilon-greedy is Hard with a share of uniform actions. Everything here is a pure
function of one agent; many agents are the same functions under `jax.vmap`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from tsallax.deep import adam, linear_schedule, network, replay
from tsallax.deep.adam import Adam
from tsallax.deep.algorithm import Metrics
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.deep.environment_spec import EnvironmentSpec
from tsallax.deep.linear_schedule import Linear
from tsallax.deep.network import Body, Layer, Network
from tsallax.deep.options import hidden_layers, with_defaults
from tsallax.deep.regularizer_choice import Choice
from tsallax.deep.replay import Batch, Replay, Transition
from tsallax.errors import InvalidInput

KNOBS = (
    "explore", "update", "alpha", "explore_q", "update_q", "epsilon", "uniform_share", "beta",
    "learning_rate",
)  # fmt: skip
"""The options in which agents that share a compiled program may differ."""

DENSE_ACTIONS = 2
"""With up to so many actions for each transition of a batch, Adam updates the whole output layer;
with more, the rows of the batch's actions (`adam.update_rows`)."""

Rule = tuple[str, float | None]


class Knobs(NamedTuple):
    """The options named in KNOBS as numbers, which are arguments of the compiled program."""

    alpha: Linear
    uniform: Linear
    beta: Linear
    learning_rate: Array
    explore: Array
    update: Array


class Learner(NamedTuple):
    """The state of the algorithm: with the environment's, it determines an agent's future."""

    online: Network
    target: Network
    adam: Adam
    replay: Replay
    knobs: Knobs
    key: Array


@dataclass(frozen=True)
class DeepQLearning:
    """Algorithm 1 as frozen data: sizes and options that shape the compiled program."""

    observation_size: int
    n_actions: int
    hidden: tuple[int, ...]
    explore: Choice
    update: Choice
    config: DeepQConfig

    def init(self, key: Array, knobs: Knobs) -> Learner:
        """theta = theta^- and an empty memory."""
        key, sub = jax.random.split(key)
        c = self.config
        online = network.init(
            sub, self.observation_size, self.hidden, self.n_actions, c.output_scale, c.shared_value
        )
        bias = jnp.full_like(online.output.bias, c.initial_value)
        online = online._replace(output=online.output._replace(bias=bias))
        memory = replay.init(c.buffer_size, self.observation_size, (), jnp.int32, c.n_envs)
        target = jax.tree.map(jnp.copy, online)
        return Learner(online, target, adam.init(online), memory, knobs, key)

    def policy(self, learner: Learner, observation: Array, step: ArrayLike) -> Array:
        """explore.policy(Q(s, .; theta)), without the uniform share."""
        q, alpha = self.values(learner, observation), linear_schedule.at(learner.knobs.alpha, step)
        return self.explore.policy(q, learner.knobs.explore, alpha)

    def values(self, learner: Learner, observation: Array) -> Array:
        """Q(s, .; theta)."""
        return network.values(learner.online, observation)

    def greedy(self, learner: Learner, observation: Array) -> Array:
        """argmax_a Q(s, a; theta)."""
        return jnp.argmax(self.values(learner, observation), -1)

    def act(
        self, learner: Learner, observation: Array, step: ArrayLike, key: Array
    ) -> tuple[Array, Array]:
        """An action of the exploring policy for each observation, and the mean support ratio."""
        p = self.policy(learner, observation, step)
        key, coin, other = jax.random.split(key, 3)
        share = linear_schedule.at(learner.knobs.uniform, step)
        uniform = jax.random.bernoulli(coin, share, p.shape[:-1])
        anything = jax.random.randint(other, p.shape[:-1], 0, self.n_actions)
        action = jnp.where(uniform, anything, sample_rows(key, p))
        return action, jnp.mean(p > 0)

    def sample(self, learner: Learner, observation: Array, step: ArrayLike, key: Array) -> Array:
        """An action of explore.policy for each observation, without the uniform share."""
        return sample_rows(key, self.policy(learner, observation, step))

    def store(self, learner: Learner, transition: Transition, step: ArrayLike) -> Learner:
        """Add a transition of each environment to the memory."""
        return learner._replace(replay=replay.add(learner.replay, transition, step))

    def learn(self, learner: Learner, written: ArrayLike, key: Array) -> tuple[Learner, Metrics]:
        """One update of theta and of the priorities, from `written` transitions."""
        c, memory = self.config, learner.replay
        batch = replay.sample(memory, key, c.batch_size, written, c.gamma, c.n_envs, c.n_step)
        beta = linear_schedule.at(learner.knobs.beta, written)
        weight = replay.importance(batch, written, memory.capacity, beta)
        y = batch.reward + batch.discount * self._value(learner, batch, written)

        def loss(body: Body, rows: Layer) -> tuple[Array, Array]:
            error = y - network.action_values(body, rows, batch.observation)
            return jnp.mean(weight * _cost(error, c.huber)), error

        rows = network.output_rows(learner.online, batch.action)
        slopes = jax.value_and_grad(loss, (0, 1), has_aux=True)
        (mean, error), gradient = slopes(learner.online.body, rows)
        online, moments = self._descend(learner, batch.action, *gradient)
        if c.priority > 0:
            memory = replay.prioritize(memory, batch.index, error, c.priority)
        learner = learner._replace(online=online, adam=moments, replay=memory)
        return learner, Metrics(mean, jnp.mean(y))

    def _descend(
        self, learner: Learner, action: Array, body: Body, rows: Layer
    ) -> tuple[Network, Adam]:
        """A step of Adam against the gradient of the body and of the rows of the actions."""
        c, rate = self.config, learner.knobs.learning_rate
        if self.n_actions <= DENSE_ACTIONS * c.batch_size:
            gradient = Network(body, adam.scatter_rows(action, rows, self.n_actions))
            updated: tuple[Network, Adam] = adam.update(
                learner.adam, learner.online, adam.clip_by_norm(gradient, c.max_grad_norm), rate
            )
            return updated
        online, (mean, square, count) = learner.online, learner.adam
        scale = adam.step_scale(count + 1, rate)
        summed = adam.sum_rows(action, rows)
        if c.max_grad_norm is not None:
            dense = sum(jnp.sum(g * g) for g in jax.tree.leaves(body))
            sparse = sum(jnp.sum(g * s) for g, s in zip(rows, summed))
            factor = adam.clip_factor(c.max_grad_norm, dense + sparse)
            body, summed = jax.tree.map(lambda g: factor * g, (body, summed))
        moved = adam.update_dense(online.body, mean.body, square.body, body, scale)
        output = [
            adam.update_rows(p, m, v, action, g, scale)
            for p, m, v, g in zip(online.output, mean.output, square.output, summed)
        ]
        online, mean, square = (Network(b, Layer(*o)) for b, o in zip(moved, zip(*output)))
        return online, Adam(mean, square, count + 1)

    def copy(self, learner: Learner) -> Learner:
        """theta^- <- theta."""
        return learner._replace(target=jax.tree.map(jnp.copy, learner.online))

    def acting_state(self, learner: Learner) -> tuple[Network, Knobs]:
        """The online network and the knobs."""
        return learner.online, learner.knobs

    def restore_acting(self, state: tuple[Network, Knobs], learner: Learner) -> Learner:
        """The learner with the networks and the knobs of an acting state."""
        return learner._replace(online=state[0], target=state[0], knobs=state[1])

    def _value(self, learner: Learner, batch: Batch, step: ArrayLike) -> Array:
        """update.value(Q(s', .; theta^-)), the value of what follows."""
        alpha, which = linear_schedule.at(learner.knobs.alpha, step), learner.knobs.update
        q = network.values(learner.target, batch.next_observation)
        if self.config.double:
            p = self.update.policy(self.values(learner, batch.next_observation), which, alpha)
            value = jnp.sum(p * q, -1) + alpha * self.update.entropy(p, which)
        else:
            value = self.update.value(q, which, alpha)
        if self.config.relative_entropy:
            value = value - alpha * self.update.max_entropy(self.n_actions, which)
        return value


def _cost(error: Array, huber: float | None) -> Array:
    """The squared error, or Huber's loss, linear from `huber` on, times two."""
    if huber is None:
        return error**2
    size = jnp.abs(error)
    return jnp.where(size <= huber, error**2, huber * (2 * size - huber))


def sample_rows(key: Array, p: Array) -> Array:
    """A random index from each distribution p (..., n); never one of probability zero."""
    cumulative = jnp.cumsum(p, -1)
    u = jax.random.uniform(key, p.shape[:-1]) * cumulative[..., -1]
    return replay.search(p, cumulative, u)


def build_algorithm(
    spec: EnvironmentSpec, configs: Sequence[DeepQConfig]
) -> tuple[DeepQLearning, list[Knobs]]:
    """The algorithm of agents whose options differ only in KNOBS, and the knobs of each."""
    if spec.n_actions is None:
        raise InvalidInput("DeepQ needs a finite number of actions", source=spec.name)
    rules = [_rules(config) for config in configs]
    explore, update = (tuple(dict.fromkeys(column)) for column in zip(*rules))
    names = (*KNOBS, "learning_starts", "target_update_interval")
    sizes = spec.observation_size, spec.n_actions, hidden_layers(configs[0], spec.name)
    static = with_defaults(configs[0], names)
    algorithm = DeepQLearning(*sizes, Choice(explore), Choice(update), static)
    knobs = [
        knobs_of(config, explore.index(e), update.index(u))
        for config, (e, u) in zip(configs, rules)
    ]
    return algorithm, knobs


def _rules(c: DeepQConfig) -> tuple[Rule, Rule]:
    """The regularisers that explore and update."""
    return ("hard" if c.explore == "epsilon" else c.explore, c.explore_q), (c.update, c.update_q)


def knobs_of(config: DeepQConfig, explore: int = 0, update: int = 0) -> Knobs:
    """The knobs of one agent's configuration; `explore` and `update` index its regularisers."""
    share = config.epsilon if config.explore == "epsilon" else config.uniform_share
    numbers = config.alpha, share, config.beta, config.learning_rate
    which = {"explore": jnp.int32(explore), "update": jnp.int32(update)}
    return Knobs(*jax.tree.map(jnp.float32, numbers), **which)
