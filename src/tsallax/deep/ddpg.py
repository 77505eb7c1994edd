"""Deep deterministic policy gradient (Lillicrap et al. 2015), the paper's baseline.

    a_t = mu(s_t; phi) with noise, in its actions or in phi; at random for the first steps
    s_{t+1}, r_t from the environment; store (s_t, a_t, r_t, s_{t+1})
    draw a batch (s_j, a_j, r_j, s'_j)
    y_j = r_j + gamma Q(s'_j, mu(s'_j; phi^-); theta^-)
    a step down  mean_j (y_j - Q(s_j, a_j; theta))^2  by theta
    a step up    mean_j Q(s_j, mu(s_j; phi); theta)   by phi
    theta^- <- theta^- + tau (theta - theta^-),  phi^- <- phi^- + tau (phi - phi^-)

The networks see observations in units of their running mean and deviation, and actions in units of
half their range. Two additions make it reliable, and options turn them off: y is clipped to the
range of discounted sums of the rewards so far (`bounded`), and the mean square of u, mu = tanh(u),
is added to the cost of phi (`action_penalty`), as the gradient vanishes for an actor at a bound.

Everything here is a pure function of one agent; many agents are the same functions under
`jax.vmap`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from tsallax.deep import adam, exploration_noise, linear_schedule, network, replay, running_moments
from tsallax.deep.adam import Adam
from tsallax.deep.algorithm import Metrics
from tsallax.deep.ddpg_config import DDPGConfig
from tsallax.deep.environment_spec import EnvironmentSpec
from tsallax.deep.exploration_noise import Noise
from tsallax.deep.linear_schedule import Linear
from tsallax.deep.network import Network
from tsallax.deep.options import with_defaults
from tsallax.deep.replay import Batch, Replay, Transition
from tsallax.deep.running_moments import Moments
from tsallax.envs.observation_format import ObservationFormat
from tsallax.errors import InvalidInput


class Hyperparameters(NamedTuple):
    """The options in which agents that share a compiled program may differ, as numbers."""

    sigma: Linear
    beta: Linear
    learning_rate: Array
    actor_learning_rate: Array
    tau: Array
    action_penalty: Array


MEMBER_OPTIONS = Hyperparameters._fields


class Pair(NamedTuple):
    """mu and Q."""

    actor: Network
    critic: Network


class Learner(NamedTuple):
    """The state of the algorithm: with the environment's, it determines an agent's future."""

    online: Pair
    target: Pair
    actor_adam: Adam
    critic_adam: Adam
    replay: Replay
    moments: Moments | None
    rewards: Array
    """The smallest and the largest reward so far, and 0."""
    noise: Noise
    hyperparameters: Hyperparameters
    key: Array


class ActingState(NamedTuple):
    """What acting depends on beside the hyperparameters."""

    actor: Network
    moments: Moments | None
    noise: Noise


@dataclass(frozen=True)
class PolicyGradient:
    """The algorithm as frozen data: sizes and options that shape the compiled program."""

    observation_size: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    config: DDPGConfig

    def init(self, key: Array, hyperparameters: Hyperparameters) -> Learner:
        """theta^- = theta, phi^- = phi and an empty memory."""
        key, for_actor, for_critic, for_noise = jax.random.split(key, 4)
        c, size, d = self.config, self.observation_size, len(self.low)
        actor = network.init(for_actor, size, c.net_arch, d, c.output_scale)
        critic = network.init(for_critic, size + d, c.net_arch, 1, c.output_scale)
        vectors = ObservationFormat.vector(size)
        online, sigma = Pair(actor, critic), hyperparameters.sigma.start
        noise = exploration_noise.init(c.noise, for_noise, (c.n_envs, d), actor, sigma)
        return Learner(
            online=online,
            target=jax.tree.map(jnp.copy, online),
            actor_adam=adam.init(actor),
            critic_adam=adam.init(critic),
            replay=replay.init(c.buffer_size, vectors, (d,), jnp.result_type(float), c.n_envs),
            moments=running_moments.init(size) if c.normalize else None,
            rewards=jnp.zeros(2),
            noise=noise,
            hyperparameters=hyperparameters,
            key=key,
        )

    def greedy(self, learner: Learner, observation: Array, mask: Array | None = None) -> Array:
        """mu(s; phi^-): an average over recent updates, which varies less than phi."""
        return self._real(self._mu(learner.target.actor, self._inputs(learner, observation)))

    def act(
        self,
        learner: Learner,
        observation: Array,
        step: ArrayLike,
        key: Array,
        mask: Array | None = None,
    ) -> tuple[Array, Array]:
        """An exploring action for each observation; its support ratio is undefined, NaN."""
        key, other = jax.random.split(key)
        actor, process = learner.online.actor, learner.noise.process
        moved = self._explore(learner, actor, observation, step, key, process)
        anything = jax.random.uniform(other, moved.shape, minval=-1.0, maxval=1.0)
        action = jnp.where(jnp.asarray(step) < self.config.learning_starts, anything, moved)
        return self._real(action), jnp.full((), jnp.nan)

    def sample(
        self,
        learner: Learner,
        observation: Array,
        step: ArrayLike,
        key: Array,
        mask: Array | None = None,
    ) -> Array:
        """mu(s; phi^-) with noise; that of `ou` is drawn from its stationary distribution."""
        actor = learner.target.actor
        return self._real(self._explore(learner, actor, observation, step, key, None))

    def store(self, learner: Learner, transition: Transition, step: ArrayLike) -> Learner:
        """Add a transition of each environment to the memory, and advance the noise."""
        now = learner.noise
        key = jax.random.fold_in(jax.random.fold_in(learner.key, step), 3)
        ended = transition.terminated | transition.truncated
        if now.process is not None:
            process = exploration_noise.ou_step(now.process, self.config.ou_rate, ended, key)
            now = now._replace(process=process)
        if now.actor is not None and now.size is not None:
            redrawn = exploration_noise.perturb(learner.online.actor, now.size, key)
            pick = jax.tree.map(lambda a, b: jnp.where(ended[0], a, b), redrawn, now.actor)
            now = now._replace(actor=pick)
        known = learner.moments
        if known is not None:
            known = running_moments.update(known, transition.observation, transition.valid)
        r = jnp.where(transition.valid, transition.reward, 0)
        low, high = learner.rewards
        return learner._replace(
            replay=replay.add(learner.replay, transition, step),
            moments=known,
            rewards=jnp.stack([jnp.minimum(low, jnp.min(r)), jnp.maximum(high, jnp.max(r))]),
            noise=now,
        )

    def end_episodes(self, learner: Learner, written: ArrayLike) -> Learner:
        """End the episode of each environment, which was lost, with its newest transition."""
        memory = replay.end_newest(learner.replay, written, self.config.n_envs)
        return learner._replace(replay=memory)

    def learn(self, learner: Learner, written: ArrayLike, key: Array) -> tuple[Learner, Metrics]:
        """One update of theta, phi and their targets, from `written` transitions."""
        c, hyperparameters, memory = self.config, learner.hyperparameters, learner.replay
        key, other = jax.random.split(key)
        batch = replay.sample(memory, key, c.batch_size, written, c.gamma, c.n_envs, c.n_step)
        s, a = self._inputs(learner, batch.observation), self._scaled(batch.action)
        y = self._target(learner, batch)
        weight = jnp.ones(())
        if c.priority > 0:
            beta = linear_schedule.at(hyperparameters.beta, written)
            weight = replay.importance(batch, written, memory.capacity, beta)

        def loss(critic: Network) -> tuple[Array, Array]:
            error = y - self._q(critic, s, a)
            return jnp.mean(weight * error**2), error

        actor, critic = learner.online
        (mean, error), slope = jax.value_and_grad(loss, has_aux=True)(critic)
        slope = adam.clip_by_norm(slope, c.max_grad_norm)
        critic, critic_adam = adam.update(
            learner.critic_adam, critic, slope, hyperparameters.learning_rate
        )

        def cost(actor: Network) -> Array:
            u = network.values(actor, s)
            penalty = hyperparameters.action_penalty * jnp.mean(u**2)
            return penalty - jnp.mean(self._q(critic, s, jnp.tanh(u)))

        slope = adam.clip_by_norm(jax.grad(cost)(actor), c.max_grad_norm)
        actor, actor_adam = adam.update(
            learner.actor_adam, actor, slope, hyperparameters.actor_learning_rate
        )
        online = Pair(actor, critic)
        learner = learner._replace(
            online=online,
            target=jax.tree.map(
                lambda t, o: t + hyperparameters.tau * (o - t), learner.target, online
            ),
            actor_adam=actor_adam,
            critic_adam=critic_adam,
        )
        if c.priority > 0:
            memory = replay.prioritize(memory, batch.index, error, c.priority)
            learner = learner._replace(replay=memory)
        if learner.noise.size is not None:
            moved = self._mu(exploration_noise.perturb(actor, learner.noise.size, other), s)
            apart, sigma = (
                moved - self._mu(actor, s),
                linear_schedule.at(hyperparameters.sigma, written),
            )
            size = exploration_noise.adapt(learner.noise.size, apart, sigma)
            learner = learner._replace(noise=learner.noise._replace(size=size))
        return learner, Metrics(mean, jnp.mean(y))

    def copy(self, learner: Learner) -> Learner:
        """The learner as it is: `learn` moves the targets with every update."""
        return learner

    def acting_state(self, learner: Learner) -> ActingState:
        """The target actor, the moments of observations and the noise."""
        return ActingState(learner.target.actor, learner.moments, learner.noise)

    def restore_acting(self, state: ActingState, learner: Learner) -> Learner:
        """The learner with the fields of an acting state, its actor online as well."""
        pair = learner.online._replace(actor=state.actor)
        return learner._replace(online=pair, target=pair, moments=state.moments, noise=state.noise)

    def _explore(
        self,
        learner: Learner,
        actor: Network,
        observation: Array,
        step: ArrayLike,
        key: Array,
        process: Array | None,
    ) -> Array:
        """mu(s) with noise, in half ranges: `process`, or independent draws where it is None."""
        s = self._inputs(learner, observation)
        if learner.noise.actor is not None:
            return self._mu(learner.noise.actor, s)
        mean = self._mu(actor, s)
        draw = jax.random.normal(key, mean.shape) if process is None else process
        return mean + linear_schedule.at(learner.hyperparameters.sigma, step) * draw

    def _target(self, learner: Learner, batch: Batch) -> Array:
        """y = r + gamma Q(s', mu(s'; phi^-); theta^-), between min r and max r over 1 - gamma."""
        after = self._inputs(learner, batch.next_observation)
        value = self._q(learner.target.critic, after, self._mu(learner.target.actor, after))
        y = batch.reward + batch.discount * value
        if self.config.bounded:
            low, high = learner.rewards / (1 - self.config.gamma)
            y = jnp.clip(y, low, high)
        return y

    def _inputs(self, learner: Learner, observation: Array) -> Array:
        """Observations as the networks take them."""
        return running_moments.standardize(learner.moments, observation)

    def _mu(self, actor: Network, s: Array) -> Array:
        """mu(s; phi), between -1 and 1."""
        return jnp.tanh(network.values(actor, s))

    def _q(self, critic: Network, s: Array, a: Array) -> Array:
        """Q(s, a; theta)."""
        return network.values(critic, jnp.concatenate([s, a], -1))[..., 0]

    def _scaled(self, action: Array) -> Array:
        """A real action in units of half the range, from the middle."""
        low, high = jnp.asarray(self.low), jnp.asarray(self.high)
        return (action - (low + high) / 2) / ((high - low) / 2)

    def _real(self, action: Array) -> Array:
        """The action of the environment, clipped to its bounds."""
        low, high = jnp.asarray(self.low), jnp.asarray(self.high)
        return jnp.clip((low + high) / 2 + (high - low) / 2 * action, low, high)


def build_algorithm(
    spec: EnvironmentSpec, configs: Sequence[DDPGConfig]
) -> tuple[PolicyGradient, list[Hyperparameters]]:
    """The algorithm of agents that differ only in MEMBER_OPTIONS, and their hyperparameters."""
    if spec.choices is not None:
        raise InvalidInput("DDPG needs real actions", source=spec.name)
    actions = spec.action.space
    for i, (low, high) in enumerate(zip(actions.low, actions.high, strict=True)):
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InvalidInput(
                f"dimension {i} of its actions ranges from {low:g} to {high:g}: DDPG needs finite "
                "bounds, such as those of gymnasium.wrappers.RescaleAction",
                source=spec.name,
            )
    static = with_defaults(configs[0], MEMBER_OPTIONS)
    algorithm = PolicyGradient(spec.observation.size, actions.low, actions.high, static)
    return algorithm, [hyperparameters_of(config) for config in configs]


def hyperparameters_of(config: DDPGConfig) -> Hyperparameters:
    """The hyperparameters of one agent's configuration."""
    numbers = {name: getattr(config, name) for name in MEMBER_OPTIONS}
    numbers["actor_learning_rate"] = config.actor_learning_rate or config.learning_rate
    return Hyperparameters(**jax.tree.map(jnp.float32, numbers))
