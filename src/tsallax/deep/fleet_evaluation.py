"""Evaluation episodes of several agents in Gymnasium environments, side by side."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax.deep.evaluation_episodes import Episodes
from tsallax.deep.loop import episode_seed
from tsallax.envs.gymnasium.environment_workers import EnvironmentWorkers

Choose = Callable[[NDArray[np.uint8], NDArray[np.uint32] | None], Any]
"""An action for each row of bytes, (environments, 1, bytes): drawn by its seed, or the best."""


def play_in_turn(
    pool: EnvironmentWorkers,
    slots: NDArray[Any],
    choose: Choose,
    seeds: Sequence[int],
    episodes: int,
    deterministic: bool,
) -> list[Episodes]:
    """Play `episodes` episodes with each of the agents, which have these seeds.

    The agents have equal shares of the slots, slot i that of agent i modulo their number; the
    environments of an agent take its episodes in turn.
    """
    n = len(slots)
    stride = n // len(seeds)
    agent, number = np.arange(n) % len(seeds), np.arange(n) // len(seeds)
    """The agent of each environment, and the number of the episode in it."""
    returns = np.zeros((len(seeds), episodes))
    lengths = np.zeros_like(returns, np.int64)

    def episode_seeds(chosen: Any, ahead: int = 0, offset: Any = 0) -> list[int]:
        offsets = np.broadcast_to(offset, agent.shape)[chosen]
        given = zip(agent[chosen], offsets, number[chosen] + ahead, strict=True)
        return [episode_seed(seeds[a], int(o), int(i)) for a, o, i in given]

    everyone = np.arange(n)
    pool.reset(slots, episode_seeds(everyone))
    pool.seed[slots] = episode_seeds(everyone, stride)
    while len(playing := np.flatnonzero(number < episodes)):
        keys = None
        if not deterministic:
            done = lengths[agent, np.minimum(number, episodes - 1)]
            keys = np.asarray(episode_seeds(everyone, 0, done + 1), np.uint32)
        rows = pool.rows[slots].view(np.uint8).reshape(n, 1, -1)
        action = np.asarray(choose(rows, keys)).reshape(n, *pool.shared.action.shape[1:])
        now, at = slots[playing], (agent[playing], number[playing])
        pool.send(now, action[playing])
        pool.wait()
        returns[at] += pool.reward[now]
        lengths[at] += 1
        over = pool.rows["terminated"][now] | pool.rows["truncated"][now]
        number[playing] += stride * over
        pool.seed[now[over]] = episode_seeds(playing[over], stride)
    return [Episodes(*pair) for pair in zip(returns, lengths, strict=True)]
