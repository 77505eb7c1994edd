"""Episodes side by side: each is a function of its agent, seed and number alone."""

import numpy as np
import pytest

from fleet_environments import Drift
from tsallax.deep.fleet_evaluation import play_in_turn
from tsallax.deep.loop import episode_seed
from tsallax.envs.gymnasium.environment_workers import EnvironmentWorkers, copies, row_type

ROW = row_type(np.zeros((1, 4), np.float32))


def policy(rows, keys):
    """The sign of the first number; with keys, whether the key is odd."""
    seen = rows.reshape(-1).view(ROW)["observation"]
    return (seen[:, 0] > 0) if keys is None else keys % 2


def alone(seed: int, number: int, deterministic: bool) -> tuple[float, int]:
    env = Drift()
    seen, _ = env.reset(seed=episode_seed(seed, 0, number))
    total, length, over = 0.0, 0, False
    while not over:
        action = int(seen[0] > 0) if deterministic else episode_seed(seed, length + 1, number) % 2
        seen, reward, terminated, truncated, _ = env.step(action)
        total, length, over = total + reward, length + 1, terminated or truncated
    return total, length


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize(("seeds", "slots"), [([5, 6, 7], 3), ([5], 3), ([5, 6], 4)])
def test_episodes_are_those_of_an_agent_alone(seeds, slots, deterministic):
    pool = EnvironmentWorkers("Drift", copies(Drift), slots, ROW, np.int32(0), workers=0)
    found = play_in_turn(pool, slots + np.arange(slots), policy, seeds, 4, deterministic)
    for seed, played in zip(seeds, found, strict=True):
        expected = [alone(seed, number, deterministic) for number in range(4)]
        assert list(zip(played.returns, played.lengths, strict=True)) == expected
