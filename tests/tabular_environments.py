"""An MDP as a Gymnasium environment that records its samples, for tests of tabular learning."""

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from tsallax.planning.mdp import MDP

SOME = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 1, 1]], bool)
"""The actions that the states of a `Masked` chain may allow, (S, A)."""


class Chain(gymnasium.Env):
    """An MDP as an environment that records its samples; states and actions start at `start`."""

    def __init__(self, mdp: MDP, limit: int = 10**9, start: int = 0) -> None:
        self.observation_space = Discrete(mdp.n_states, start=start)
        self.action_space = Discrete(mdp.n_actions, start=start)
        self.mdp, self.limit, self.shift = mdp, limit, start
        self.sums = np.cumsum(mdp.transitions.toarray(), axis=1)
        self.initial = np.cumsum(mdp.initial)
        self.record: list[tuple[int, int, float, int, bool]] = []
        self.resets: list[int | None] = []
        self.closed = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets.append(seed)
        self.age = 0
        self.state = self._draw(self.initial)
        return self.state + self.shift, {}

    def step(self, action):
        s, a = self.state, int(action) - self.shift
        pair = s * self.mdp.n_actions + a
        termination = self.mdp.termination
        stop = termination is not None and self.np_random.random() < termination[pair]
        self.state = self._draw(self.sums[pair] / max(self.sums[pair, -1], 1e-300))
        reward = float(self.mdp.rewards[pair])
        self.age += 1
        self.record.append((s, a, reward, self.state, bool(stop)))
        return self.state + self.shift, reward, bool(stop), self.age >= self.limit, {}

    def close(self):
        self.closed = True

    def _draw(self, sums) -> int:
        last = len(sums) - 1
        return int(min(np.searchsorted(sums, self.np_random.random(), side="right"), last))


class Masked(Chain):
    """A chain whose states allow some actions only, by a table (S, A); the mask is in the infos.

    A terminal state has a mask of zeros. To take another action is an error.
    """

    def __init__(self, mdp: MDP, allowed, limit: int = 10**9, start: int = 0) -> None:
        super().__init__(mdp, limit, start)
        self.allowed = np.asarray(allowed, np.int8)

    def action_mask(self):
        return self.allowed[self.state]

    def reset(self, *, seed=None, options=None):
        seen, _ = super().reset(seed=seed)
        return seen, {"action_mask": self.action_mask()}

    def step(self, action):
        assert self.allowed[self.state, int(action) - self.shift]
        seen, reward, terminated, truncated, _ = super().step(action)
        mask = 0 * self.action_mask() if terminated else self.action_mask()
        return seen, reward, terminated, truncated, {"action_mask": mask}


def restricted(mdp: MDP, allowed) -> MDP:
    """An MDP with all pairs as one that has the allowed ones only."""
    kept = np.flatnonzero(allowed)
    return MDP(
        mdp.transitions.toarray()[kept],
        mdp.rewards[kept],
        mdp.discount,
        pairs=np.argwhere(allowed),
        termination=mdp.termination[kept],
        initial=mdp.initial,
    )


def bandit(rewards) -> MDP:
    """One state whose actions earn these rewards: without a discount, Q = r after one visit."""
    return MDP(np.ones((1, len(rewards), 1)), [rewards], 0.0)


def endings() -> MDP:
    """Four states, three actions, every pair ending with probability 0.1 or not at all."""
    rng = np.random.default_rng(3)
    stop = rng.choice([0.0, 0.1], (4, 3))
    chances = rng.dirichlet(np.ones(4), (4, 3)) * (1.0 - stop[..., None])
    return MDP(chances, rng.normal(size=(4, 3)), 0.8, termination=stop)
