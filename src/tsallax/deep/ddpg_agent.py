"""`DDPG`, the agent of deep deterministic policy gradient."""

from typing import ClassVar

from tsallax.deep import ddpg
from tsallax.deep.agent import Agent
from tsallax.deep.ddpg_config import DDPGConfig


class DDPG(Agent):
    """Deep deterministic policy gradient, for environments whose actions are real numbers.

    Args:
        env: the id of an environment, a function or class that makes one, a Gymnasium environment
            or vector environment, or one of `tsallax.envs`. Those that exist in JAX run there:
            InvertedPendulum-v5, Reacher-v5. A single environment is evaluated in another one, made
            by `gymnasium.make(env.spec)`: attributes that were assigned to it are not there.
        seed: fixes everything.
        config: a `DDPGConfig` or a dict of its options.
        backend: "jax" or "gymnasium"; default: jax where there is such an environment.
        env_options: further arguments of `gymnasium.make` or of the function.
        noise, sigma, normalize, ...: the options of `DDPGConfig`.

    >>> import tsallax
    >>> agent = tsallax.DDPG(
    ...     "MultiGoal-v0", noise="ou", net_arch=(8,), batch_size=8, buffer_size=48,
    ...     learning_starts=0,
    ... )
    >>> agent = agent.learn(steps=100)
    >>> agent.steps, agent.predict([0.0, 0.0]).shape
    (100, (2,))
    """

    kind = "ddpg"
    Config: ClassVar[type] = DDPGConfig
    build_algorithm = staticmethod(ddpg.build_algorithm)
    member_options = ddpg.MEMBER_OPTIONS
    continuous_actions = True
    config: DDPGConfig

    def _summary(self) -> str:
        return f"noise={self.config.noise!r}"
