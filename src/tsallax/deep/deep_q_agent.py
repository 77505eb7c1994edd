"""`DeepQ`, the agent of sparse deep Q-learning and of its soft, hard and Tsallis variants."""

from typing import Any, ClassVar

import jax
import numpy as np
from numpy.typing import NDArray

from tsallax.deep import deep_q
from tsallax.deep.agent import Agent
from tsallax.deep.deep_q_config import DeepQConfig


class DeepQ(Agent):
    """Deep Q-learning with a sparse, soft, epsilon-greedy or Tsallis policy and update.

    Args:
        env: the id of an environment, a function or class that makes one, a Gymnasium environment
            or vector environment, or one of `tsallax.envs`. Those that exist in JAX run there:
            InvertedPendulum-v5, Reacher-v5. A single environment is evaluated in another one, made
            by `gymnasium.make(env.spec)`: attributes that were assigned to it are not there.
        actions: levels per dimension of a continuous action; a Discrete environment needs none.
        explore, update, alpha, ...: the options of `DeepQConfig`, see `tsallax config`.
        seed: fixes everything.
        backend: "jax" or "gymnasium"; default: jax where there is such an environment.
        env_options: further arguments of `gymnasium.make` or of the function.
        action_mask: a function of a single environment that gives the mask of the actions that its
            state allows; default: `info["action_mask"]`, where the environment has it.

    >>> import tsallax
    >>> agent = tsallax.DeepQ(
    ...     "MultiGoal-v0", actions=3, gamma=0.9, net_arch=(8,), batch_size=8, buffer_size=48,
    ...     learning_starts=0, target_update_interval=25,
    ... )
    >>> agent = agent.learn(steps=100)
    >>> agent.steps, len(agent.policy([0.0, 0.0]))
    (100, 9)
    """

    kind = "deep_q"
    Config: ClassVar[type] = DeepQConfig
    build_algorithm = staticmethod(deep_q.build_algorithm)
    check_effects = staticmethod(deep_q.check_effects)
    member_options = deep_q.MEMBER_OPTIONS
    continuous_actions = False
    config: DeepQConfig
    _algorithm: deep_q.DeepQLearning

    def policy(self, observation: Any, mask: Any = None) -> NDArray[np.float32]:
        """The probabilities of the actions, for an observation or for each of several.

        Those of factored actions are the probabilities of the choices in the first dimension, then
        in the second, and so on: `agent.spec.choices` has their numbers. `mask` is as in `predict`.
        """
        x, single = self.spec.encode(observation)
        allowed = self.spec.mask(mask, len(x), single)
        p = np.asarray(_policy(self._algorithm, self._learner, x, self.steps, allowed))
        return p[0] if single else p

    def q(self, observation: Any) -> NDArray[np.float32]:
        """Q(s, .; theta), for an observation or for each of several; in the order of `policy`.

        Actions that a state does not allow have values, too, which mean nothing.
        """
        x, single = self.spec.encode(observation)
        q = np.asarray(_values(self._algorithm, self._learner, x))
        return q[0] if single else q

    def _summary(self) -> str:
        c = self.config
        choices = self.spec.choices or ()
        actions = f"{self.spec.n_actions} actions"
        if self.spec.factored:
            actions = f"{len(choices)} factored actions of {_numbers(choices)}"
        masked = ", masked" * self.spec.masked
        return f"{actions}{masked}, explore={c.explore!r}, update={c.update!r}"


def _numbers(choices: tuple[int, ...]) -> str:
    """The numbers of choices, from the least to the most."""
    least, most = min(choices), max(choices)
    return str(least) if least == most else f"{least} to {most}"


_policy = jax.jit(
    lambda a, learner, x, step, mask: a.policy(learner, x, step, mask), static_argnums=0
)
_values = jax.jit(lambda a, learner, x: a.values(learner, x), static_argnums=0)
