"""Sparse deep Q-learning, Algorithm 1 of the paper, for any pair of regularisers.

    a_t ~ explore.policy(Q(s_t, .; theta))
    s_{t+1}, r_t from the environment; store (s_t, a_t, r_t, s_{t+1}) with the largest priority
    draw a batch (s_j, a_j, r_j, s'_j) by priority, with importance weights w_j
    y_j = r_j + gamma update.value(Q(s'_j, .; theta^-))
    minimise  sum_j w_j (y_j - Q(s_j, a_j; theta))^2;  priorities from |y_j - Q(s_j, a_j; theta)|
    theta^- <- theta every c steps

With explore = update = Sparse(alpha) and n_step = 1 this is the paper's algorithm; Soft, Hard and
Tsallis give the others. Epsilon-greedy is Hard with a share of uniform actions. With more steps,
r_j is the discounted sum of their rewards and s'_j what they led to.

Factored, an action has a number for each of D dimensions and Q(s, a) = mean_d Q_d(s, a_d): the
policy is the product of the policies of the Q_d, the value the mean of their values. An action that
a state does not allow has Q = -inf.

Everything here is a pure function of one agent; many agents are these functions under `jax.vmap`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from tsallax.deep import (
    adam,
    categorical,
    linear_schedule,
    network,
    replay,
    reward_scale,
    running_moments,
)
from tsallax.deep.action_layout import ActionLayout
from tsallax.deep.adam import Adam
from tsallax.deep.algorithm import Metrics
from tsallax.deep.deep_q_config import AUTO, DeepQConfig
from tsallax.deep.environment_spec import EnvironmentSpec
from tsallax.deep.linear_schedule import Linear
from tsallax.deep.network import Body, Layer, Network
from tsallax.deep.options import hidden_layers, with_defaults
from tsallax.deep.regularizer_choice import Choice
from tsallax.deep.replay import Batch, Replay, Transition
from tsallax.deep.reward_scale import RewardScale
from tsallax.deep.running_moments import Moments
from tsallax.envs.observation_format import ObservationFormat
from tsallax.errors import InvalidInput

MEMBER_OPTIONS = (
    "explore", "update", "alpha", "support", "explore_q", "update_q", "epsilon", "uniform_share",
    "beta", "learning_rate",
)  # fmt: skip
"""The options in which agents that share a compiled program may differ."""

DENSE_OUTPUTS = 128
"""The number of outputs above which Adam writes the moments of the output layer only in the rows of
the batch's actions (`adam.update_rows`)."""
ALPHA_RATE = 0.01
"""The step of log(alpha) in an update, per missing share of the support."""
MAX_LOG_ALPHA = 20.0
"""The largest |log(alpha)|: squares of alpha and 1/alpha are far from the limits of float32."""

Rule = tuple[str, float | None]


class Hyperparameters(NamedTuple):
    """The MEMBER_OPTIONS as numbers, which are arguments of the compiled program."""

    alpha: Linear
    uniform: Linear
    beta: Linear
    learning_rate: Linear
    explore: Array
    update: Array
    support: Linear
    adaptive: Array
    """Whether alpha follows the support."""


class Learner(NamedTuple):
    """The state of the algorithm: with the environment's, it determines an agent's future."""

    online: Network
    target: Network
    adam: Adam
    replay: Replay
    hyperparameters: Hyperparameters
    key: Array
    log_alpha: Array | None = None
    """The logarithm of an alpha that follows the support."""
    moments: Moments | None = None
    """The moments of observations, where these are normalised."""
    rewards: RewardScale | None = None
    """The scale of rewards, where these are normalised."""


ActingState = tuple[Network, Array | None, Moments | None]
"""Network, log(alpha) and moments: what acting depends on beside the hyperparameters."""


@dataclass(frozen=True)
class DeepQLearning:
    """Algorithm 1 as frozen data: sizes and options that shape the compiled program."""

    observation: ObservationFormat
    layout: ActionLayout
    masked: bool
    hidden: tuple[int, ...]
    explore: Choice
    update: Choice
    adaptive: bool
    """Whether alpha follows the support, in some of the agents."""
    config: DeepQConfig

    def init(self, key: Array, hyperparameters: Hyperparameters) -> Learner:
        """theta = theta^- and an empty memory."""
        key, sub = jax.random.split(key)
        c, layout = self.config, self.layout

        def one(key: Array) -> Network:
            sizes = self.observation, self.hidden, layout.n_outputs
            made = network.init(key, *sizes, c.output_scale, c.shared_value)
            bias = jnp.full_like(made.output.bias, c.initial_value)
            return made._replace(output=made.output._replace(bias=bias))

        online = one(sub) if c.critics == 1 else jax.vmap(one)(jax.random.split(sub, c.critics))
        mask_size = layout.n_outputs if self.masked else 0
        memory = replay.init(
            c.buffer_size, self.observation, layout.shape, jnp.int32, c.n_envs, mask_size
        )
        normalize = c.normalize_observations and self.observation.kind == "vector"
        return Learner(
            online=online,
            target=jax.tree.map(jnp.copy, online),
            adam=adam.init(online, layout.n_outputs if self._updates_rows else None),
            replay=memory,
            hyperparameters=hyperparameters,
            key=key,
            log_alpha=jnp.zeros(()) if self.adaptive else None,
            moments=running_moments.init(self.observation.size) if normalize else None,
            rewards=reward_scale.init(c.n_envs) if c.normalize_rewards else None,
        )

    def policy(
        self, learner: Learner, observation: Array, step: ArrayLike, mask: Array | None = None
    ) -> Array:
        """explore.policy(Q(s, .; theta)), without the uniform share, by network outputs."""
        q = self._rows(learner.online, learner, observation, mask)
        return self.layout.join(self._explore(learner, q, step))

    def values(self, learner: Learner, observation: Array) -> Array:
        """Q(s, .; theta), for each output of the network."""
        return self._outputs(learner.online, self._inputs(learner, observation))

    def greedy(self, learner: Learner, observation: Array, mask: Array | None = None) -> Array:
        """argmax_a Q(s, a; theta)."""
        q = self._rows(learner.online, learner, observation, mask)
        return self.layout.numbers(jnp.argmax(q, -1))

    def act(
        self,
        learner: Learner,
        observation: Array,
        step: ArrayLike,
        key: Array,
        mask: Array | None = None,
    ) -> tuple[Array, Array]:
        """An action of the exploring policy for each observation, and the mean support ratio."""
        q = self._rows(learner.online, learner, observation, mask)
        p, allowed = self._explore(learner, q, step), q > -jnp.inf
        key, coin, other = jax.random.split(key, 3)
        share = linear_schedule.at(learner.hyperparameters.uniform, step)
        uniform = jax.random.bernoulli(coin, share, p.shape[:-2])
        if mask is None:
            anything = jax.random.randint(other, p.shape[:-1], 0, self.layout.sizes)
        else:
            anything = categorical.sample(other, allowed.astype(p.dtype))
        action = jnp.where(uniform[..., None], anything, categorical.sample(key, p))
        return self.layout.numbers(action), jnp.sum(p > 0) / jnp.sum(allowed)

    def sample(
        self,
        learner: Learner,
        observation: Array,
        step: ArrayLike,
        key: Array,
        mask: Array | None = None,
    ) -> Array:
        """An action of explore.policy for each observation, without the uniform share."""
        q = self._rows(learner.online, learner, observation, mask)
        return self.layout.numbers(categorical.sample(key, self._explore(learner, q, step)))

    def store(self, learner: Learner, transition: Transition, step: ArrayLike) -> Learner:
        """Add a transition of each environment to the memory and to the running moments."""
        if learner.moments is not None:
            moments = running_moments.update(
                learner.moments, transition.observation, transition.valid
            )
            learner = learner._replace(moments=moments)
        if learner.rewards is not None:
            rewards = reward_scale.update(learner.rewards, transition, self.config.gamma)
            learner = learner._replace(rewards=rewards)
        return learner._replace(replay=replay.add(learner.replay, transition, step))

    def end_episodes(self, learner: Learner, written: ArrayLike) -> Learner:
        """End the episode of each environment, which was lost, with its newest transition."""
        memory = replay.end_newest(learner.replay, written, self.config.n_envs)
        if learner.rewards is not None:
            learner = learner._replace(rewards=reward_scale.end_episodes(learner.rewards))
        return learner._replace(replay=memory)

    def learn(self, learner: Learner, written: ArrayLike, key: Array) -> tuple[Learner, Metrics]:
        """The gradient steps of one update, from `written` transitions."""
        steps = self.config.gradient_steps
        if steps == 1:
            return self._learn_once(learner, written, key)

        def once(learner: Learner, key: Array) -> tuple[Learner, Metrics]:
            return self._learn_once(learner, written, key)

        learner, metrics = lax.scan(once, learner, jax.random.split(key, steps))
        return learner, Metrics(*(jnp.mean(x) for x in metrics))

    def _learn_once(
        self, learner: Learner, written: ArrayLike, key: Array
    ) -> tuple[Learner, Metrics]:
        """One step of Adam for theta, and the new priorities of its batch."""
        c, memory = self.config, learner.replay
        batch = replay.sample(memory, key, c.batch_size, written, c.gamma, c.n_envs, c.n_step)
        beta = linear_schedule.at(learner.hyperparameters.beta, written)
        weight = replay.importance(batch, written, memory.capacity, beta)
        reward = batch.reward
        if learner.rewards is not None:
            reward = reward / reward_scale.deviation(learner.rewards)
        value, share = self._value(learner, batch, written)
        y = reward + batch.discount * value
        descend = self._descend_rows if self._uses_rows else self._descend_all
        rate = linear_schedule.at(learner.hyperparameters.learning_rate, written)
        online, moments, mean, error = descend(learner, batch, weight, y, rate)
        if c.priority > 0:
            memory = replay.prioritize(memory, batch.index, error, c.priority)
        learner = learner._replace(online=online, adam=moments, replay=memory)
        if c.tau is not None:
            moved = jax.tree.map(lambda t, o: t + c.tau * (o - t), learner.target, online)
            learner = learner._replace(target=moved)
        if learner.log_alpha is not None:
            missing = linear_schedule.at(learner.hyperparameters.support, written) - share
            moved = learner.log_alpha + ALPHA_RATE * missing
            moved = jnp.clip(moved, -MAX_LOG_ALPHA, MAX_LOG_ALPHA)
            learner = learner._replace(log_alpha=moved)
        return learner, Metrics(mean, jnp.mean(y))

    @property
    def _uses_rows(self) -> bool:
        """Whether the loss takes the rows of the batch's actions out of the output layer."""
        return not self.layout.factored and self.config.critics == 1

    @property
    def _updates_rows(self) -> bool:
        """Whether Adam writes the moments of the rows of the batch's actions only."""
        return self._uses_rows and self.layout.n_outputs > DENSE_OUTPUTS

    def _descend_all(
        self, learner: Learner, batch: Batch, weight: Array, y: Array, rate: Array
    ) -> tuple[Network, Adam, Array, Array]:
        """A step of Adam on all networks: they, their moments, the mean loss and the errors."""
        c, x = self.config, self._inputs(learner, batch.observation)
        index = self.layout.output_index(batch.action)

        def loss(online: Network) -> tuple[Array, Array]:
            q = self._every_output(online, x)  # (critics, batch, outputs)
            chosen = jnp.take_along_axis(q, jnp.broadcast_to(index, (len(q), *index.shape)), -1)
            error = y - jnp.mean(chosen, -1)
            cost = jnp.sum(_cost(error, c.huber), 0)
            return jnp.mean(weight * cost), jnp.mean(error, 0)

        (mean, error), gradient = jax.value_and_grad(loss, has_aux=True)(learner.online)
        gradient = adam.clip_by_norm(gradient, c.max_grad_norm)
        online, moments = adam.update(learner.adam, learner.online, gradient, rate)
        return online, moments, mean, error

    def _descend_rows(
        self, learner: Learner, batch: Batch, weight: Array, y: Array, rate: Array
    ) -> tuple[Network, Adam, Array, Array]:
        """The same as `_descend_all`, from the rows of the batch's actions alone."""
        c, x = self.config, self._inputs(learner, batch.observation)

        def loss(body: Body, rows: Layer) -> tuple[Array, Array]:
            error = y - network.action_values(body, rows, x, c.layer_norm)
            return jnp.mean(weight * _cost(error, c.huber)), error

        rows = network.output_rows(learner.online, batch.action)
        slopes = jax.value_and_grad(loss, (0, 1), has_aux=True)
        (mean, error), (body, rows) = slopes(learner.online.body, rows)
        online, moments = self._update_rows(learner, batch.action, body, rows, rate)
        return online, moments, mean, error

    def _update_rows(
        self, learner: Learner, action: Array, body: Body, rows: Layer, rate: Array
    ) -> tuple[Network, Adam]:
        """A step of Adam against the gradient of the body and of the rows of the actions."""
        c = self.config
        written = learner.adam.written
        if written is None:
            gradient = Network(body, adam.scatter_rows(action, rows, self.layout.n_outputs))
            updated: tuple[Network, Adam] = adam.update(
                learner.adam, learner.online, adam.clip_by_norm(gradient, c.max_grad_norm), rate
            )
            return updated
        online, (mean, square, count, _) = learner.online, learner.adam
        count = count + 1
        scale = adam.step_scale(count, rate)
        summed = adam.sum_rows(action, rows, self.layout.n_outputs)
        if c.max_grad_norm is not None:
            dense = sum(jnp.sum(g * g) for g in jax.tree.leaves(body))
            sparse = sum(jnp.sum(g * s) for g, s in zip(rows, summed))
            factor = adam.clip_factor(c.max_grad_norm, dense + sparse)
            body, summed = jax.tree.map(lambda g: factor * g, (body, summed))
        moved = adam.update_dense(online.body, mean.body, square.body, body, scale)
        output = [
            adam.update_rows(p, m, v, count - written, action, g, scale)
            for p, m, v, g in zip(online.output, mean.output, square.output, summed)
        ]
        online, mean, square = (Network(b, Layer(*o)) for b, o in zip(moved, zip(*output)))
        return online, Adam(mean, square, count, written.at[action].set(count))

    def copy(self, learner: Learner) -> Learner:
        """theta^- <- theta, unless theta^- moves with every gradient step."""
        if self.config.tau is not None:
            return learner
        return learner._replace(target=jax.tree.map(jnp.copy, learner.online))

    def acting_state(self, learner: Learner) -> ActingState:
        """The online network, alpha and the moments of observations."""
        return learner.online, learner.log_alpha, learner.moments

    def restore_acting(self, state: ActingState, learner: Learner) -> Learner:
        """The learner with an acting state, its network as target, too."""
        online, log_alpha, moments = state
        return learner._replace(online=online, target=online, log_alpha=log_alpha, moments=moments)

    def _inputs(self, learner: Learner, observation: Array) -> Array:
        """Observations as the networks take them."""
        return running_moments.standardize(learner.moments, observation)

    def _every_output(self, parameters: Network, x: Array) -> Array:
        """The outputs of each critic, (critics, ..., outputs)."""
        c = self.config
        if c.critics == 1:
            return network.values(parameters, x, c.layer_norm)[None]
        return jax.vmap(network.values, (0, None, None))(parameters, x, c.layer_norm)

    def _outputs(self, parameters: Network, x: Array) -> Array:
        """The mean outputs of the critics."""
        q = self._every_output(parameters, x)
        return q[0] if self.config.critics == 1 else jnp.mean(q, 0)

    def _rows(
        self, parameters: Network, learner: Learner, observation: Array, mask: Array | None
    ) -> Array:
        """Q_d(s, .), (..., dimensions, choices); -inf where an action is not allowed."""
        q = self._outputs(parameters, self._inputs(learner, observation))
        return self.layout.split(q if mask is None else jnp.where(mask, q, -jnp.inf))

    def alpha(self, learner: Learner, step: ArrayLike) -> Array:
        """The coefficient of the entropy."""
        fixed = linear_schedule.at(learner.hyperparameters.alpha, step)
        if learner.log_alpha is None:
            return fixed
        return jnp.where(learner.hyperparameters.adaptive, jnp.exp(learner.log_alpha), fixed)

    def _explore(self, learner: Learner, q: Array, step: ArrayLike) -> Array:
        """explore.policy of each dimension of q (..., dimensions, choices)."""
        rows = q.reshape(-1, q.shape[-1])
        alpha = self.alpha(learner, step)
        return self.explore.policy(rows, learner.hyperparameters.explore, alpha).reshape(q.shape)

    def _value(self, learner: Learner, batch: Batch, step: ArrayLike) -> tuple[Array, Array]:
        """mean_d update.value(Q_d(s', .; theta^-)), and the effective share of the support.

        The share, 0 for a policy of one action and 1 for a uniform one, is that of the policy that
        explores or of the policy of the update, whichever is larger; where no state has a choice,
        the one that is asked for.
        """
        alpha, which = self.alpha(learner, step), learner.hyperparameters.update
        after = batch.next_observation, batch.mask
        q = self._rows(learner.target, learner, *after)
        shape = q.shape[:-1]
        rows = q.reshape(-1, q.shape[-1])
        chooses = rows
        if self.config.double:
            chooses = self._rows(learner.online, learner, *after).reshape(rows.shape)
            p = self.update.policy(chooses, which, alpha)
            value = jnp.sum(p * jnp.where(p > 0, rows, 0), -1)
            value = value + alpha * self.update.entropy(p, which)
        else:
            value = self.update.value(rows, which, alpha)
        allowed = jnp.sum(rows > -jnp.inf, -1)
        if self.config.relative_entropy:
            value = value - alpha * self.update.max_entropy(rows.shape[-1], which)[allowed]
        share = jnp.zeros(())
        if self.adaptive:
            policies = (
                self.explore.policy(chooses, learner.hyperparameters.explore, alpha),
                self.update.policy(chooses, which, alpha),
            )
            share = jnp.maximum(*(_support_share(p, allowed) for p in policies))
            share = jnp.where(
                jnp.any(allowed > 1),
                share,
                linear_schedule.at(learner.hyperparameters.support, step),
            )
        return jnp.mean(value.reshape(shape), -1), share


def _support_share(p: Array, allowed: Array) -> Array:
    """(1 / sum p^2 - 1) / (n - 1) of distributions p over n `allowed` actions, their mean.

    Distributions over a single action do not count.
    """
    share = (1 / jnp.sum(p * p, -1) - 1) / jnp.maximum(allowed - 1, 1)
    return jnp.sum(jnp.where(allowed > 1, share, 0)) / jnp.maximum(jnp.sum(allowed > 1), 1)


def _cost(error: Array, huber: float | None) -> Array:
    """The squared error, or Huber's loss, linear from `huber` on, times two."""
    if huber is None:
        return error**2
    size = jnp.abs(error)
    return jnp.where(size <= huber, error**2, huber * (2 * size - huber))


def build_algorithm(
    spec: EnvironmentSpec, configs: Sequence[DeepQConfig]
) -> tuple[DeepQLearning, list[Hyperparameters]]:
    """The algorithm of agents that differ only in MEMBER_OPTIONS, and their hyperparameters."""
    if spec.choices is None:
        raise InvalidInput("DeepQ needs a finite number of actions", source=spec.name)
    _check_network(spec, configs[0].network)
    rules = [_rules(config) for config in configs]
    explore, update = (tuple(dict.fromkeys(column)) for column in zip(*rules))
    names = (*MEMBER_OPTIONS, "learning_starts", "target_update_interval")
    algorithm = DeepQLearning(
        observation=spec.observation,
        layout=ActionLayout(spec.choices, spec.factored),
        masked=spec.masked,
        hidden=hidden_layers(configs[0], spec.name),
        explore=Choice(explore),
        update=Choice(update),
        adaptive=any(config.alpha == AUTO for config in configs),
        config=with_defaults(configs[0], names),
    )
    hyperparameters = [
        hyperparameters_of(config, explore.index(e), update.index(u))
        for config, (e, u) in zip(configs, rules)
    ]
    return algorithm, hyperparameters


def check_effects(spec: EnvironmentSpec, config: DeepQConfig) -> None:
    """Refuse an option that would have no effect; files of earlier versions may hold it."""
    if config.normalize_observations and spec.observation.kind != "vector":
        problem = f"normalize_observations is for vectors, not for {spec.observation.kind}s"
        raise InvalidInput(problem, source=spec.name, omit="normalize_observations")


def _check_network(spec: EnvironmentSpec, kind: str | None) -> None:
    """Refuse a network that cannot take the observations."""
    images = spec.observation.kind == "image"
    if images and kind == "mlp":
        problem = "network=mlp cannot learn from its observations, which are images"
        raise InvalidInput(problem, source=spec.name, add=("network", "cnn"))
    if not images and kind == "cnn":
        problem = "its observations are not images: network=cnn needs a Box of uint8 or bool "
        problem += "of shape (height, width) or (height, width, channels), at least 8 x 8, "
        problem += f"not {spec.encoding.space}"
        raise InvalidInput(problem, source=spec.name, omit="network")


def _rules(c: DeepQConfig) -> tuple[Rule, Rule]:
    """The regularisers that explore and update."""
    return ("hard" if c.explore == "epsilon" else c.explore, c.explore_q), (c.update, c.update_q)


def hyperparameters_of(config: DeepQConfig, explore: int = 0, update: int = 0) -> Hyperparameters:
    """The hyperparameters of one agent; `explore` and `update` index its regularisers."""
    share = config.epsilon if config.explore == "epsilon" else config.uniform_share
    adaptive = config.alpha == AUTO
    alpha = Linear(1.0, 1.0, 0) if adaptive else config.alpha
    schedules = {
        "alpha": alpha,
        "uniform": share,
        "beta": config.beta,
        "learning_rate": config.learning_rate,
        "support": config.support,
    }
    which: dict[str, Any] = {"explore": jnp.int32(explore), "update": jnp.int32(update)}
    return Hyperparameters(
        **jax.tree.map(jnp.float32, schedules), **which, adaptive=jnp.asarray(adaptive)
    )
