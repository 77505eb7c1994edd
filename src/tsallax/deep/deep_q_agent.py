"""`DeepQ`, the agent that learns by sparse deep Q-learning or one of its relatives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax.deep.agent import Agent
from tsallax.deep.deep_q import Learner, program
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.deep.environment_spec import World, world_of
from tsallax.deep.options import settings_of


class DeepQ(Agent):
    """Deep Q-learning with a sparse, soft, epsilon-greedy or Tsallis policy and update.

    Args:
        env: the id of an environment, a Gymnasium environment or vector environment, or one of
            `tsallax.envs`. Those that exist in JAX run there: InvertedPendulum-v5, Reacher-v5.
        actions: levels per dimension of a continuous action; a Discrete environment needs none.
        explore, update, alpha, ...: the options of `DeepQConfig`, see `tsallax config`.
        seed: fixes everything.
        backend: "jax" or "gymnasium"; default: jax where there is such an environment.
        env_options: further arguments of `gymnasium.make`.

    >>> import tsallax
    >>> agent = tsallax.DeepQ("Reacher-v5", actions=5, net_arch=(16,), learning_starts=50)
    >>> agent = agent.learn(episodes=3)
    >>> agent.steps, agent.history.episodes, len(agent.policy([0.0] * 10))
    (150, 3, 25)
    """

    kind: ClassVar[str] = "deep_q"
    Config: ClassVar[type] = DeepQConfig
    config: DeepQConfig

    def __init__(
        self,
        env: Any,
        *,
        actions: int | Iterable[int] | None = None,
        seed: int = 0,
        config: DeepQConfig | Mapping[str, Any] | None = None,
        backend: str = "auto",
        env_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        settings = settings_of(DeepQConfig, config, options)
        world = world_of(
            env,
            actions=actions,
            n_envs=settings.n_envs,
            continuous=False,
            backend=backend,
            options=env_options or {},
        )
        super().__init__(world, settings, seed)

    def _build(self, world: World, settings: DeepQConfig, seed: int) -> tuple[Any, Learner]:
        algorithm, (knobs,) = program(world, [settings])
        return algorithm, _init(algorithm, jax.random.PRNGKey(seed), knobs)

    def policy(self, observation: ArrayLike) -> NDArray[np.float32]:
        """The probabilities of the actions, for an observation or for each of several."""
        seen, single = self._observations(observation)
        p = np.asarray(_policy(self._algorithm, self._learner, seen, self.steps))
        return p[0] if single else p

    def q(self, observation: ArrayLike) -> NDArray[np.float32]:
        """Q(s, .; theta), for an observation or for each of several."""
        seen, single = self._observations(observation)
        q = np.asarray(_values(self._algorithm, self._learner, seen))
        return q[0] if single else q

    def _words(self) -> str:
        c = self.config
        return f"{self._world.n_actions} actions, explore={c.explore!r}, update={c.update!r}"


_init = jax.jit(lambda a, key, knobs: a.init(key, knobs), static_argnums=0)
_policy = jax.jit(lambda a, learner, seen, step: a.policy(learner, seen, step), static_argnums=0)
_values = jax.jit(lambda a, learner, seen: a.values(learner, seen), static_argnums=0)
