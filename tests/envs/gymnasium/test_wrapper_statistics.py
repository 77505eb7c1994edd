"""Statistics of normalising wrappers are read and set wherever they are, and pooled rightly."""

from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import ClipReward, NormalizeObservation, NormalizeReward
from gymnasium.wrappers import vector as vector_wrappers

from counting_environments import Count
from refusals import refused
from tsallax.envs import GymnasiumAdapter
from tsallax.envs.gymnasium.wrapper_statistics import Statistics, from_arrays, to_arrays


def wrapped() -> Any:
    return NormalizeReward(ClipReward(NormalizeObservation(Count(end=4)), -9, 9), gamma=0.9)


def around(envs: Any) -> Any:
    return vector_wrappers.NormalizeReward(vector_wrappers.NormalizeObservation(envs))


KINDS: dict[str, Any] = {
    "a single one": wrapped,
    "a vector of wrapped ones": lambda: SyncVectorEnv([wrapped] * 2),
    "a wrapped vector": lambda: around(SyncVectorEnv([partial(Count, end=4)] * 2)),
    "both": lambda: around(SyncVectorEnv([wrapped] * 2)),
}


def play(host: GymnasiumAdapter, steps: int) -> list[Any]:
    """The results of steps from new episodes."""
    results = [host.reset([3, 5][: host.n_envs])]
    for _ in range(steps):
        after, rewards, terminated, truncated = host.step([0] * host.n_envs)
        results += [after, rewards]
        for i in np.flatnonzero(terminated | truncated):
            results.append(host.reset_one(int(i), 7))
    return results


@pytest.mark.parametrize("kind", KINDS)
def test_environments_with_the_same_statistics_give_the_same(kind: str) -> None:
    one, other = (GymnasiumAdapter(KINDS[kind]()) for _ in range(2))
    play(one, 11)
    saved = from_arrays(to_arrays(one.statistics()))
    other.set_statistics(saved)
    for x, y in zip(play(one, 9), play(other, 9), strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_equal(to_arrays(one.statistics()), to_arrays(other.statistics()))


def cart_pole() -> Any:
    return NormalizeObservation(gymnasium.make("CartPole-v1"))


def test_statistics_of_other_processes_are_those_of_this_one() -> None:
    here = GymnasiumAdapter(SyncVectorEnv([cart_pole] * 2))
    there = GymnasiumAdapter(AsyncVectorEnv([cart_pole] * 2, context="spawn"))
    try:
        play(here, 5)
        play(there, 5)
        (mine,), (other,) = here.statistics(), there.statistics()
        np.testing.assert_array_equal(mine.mean, other.mean)
        np.testing.assert_array_equal(mine.var, other.var)
        play(here, 5)
        there.set_statistics(here.statistics())
        np.testing.assert_array_equal(there.statistics()[0].count, here.statistics()[0].count)
    finally:
        there._members[0].close()


def test_pooled_statistics_are_those_of_all_samples() -> None:
    rng = np.random.default_rng(0)
    samples = [rng.normal(i, 1 + i, size=(n, 3)) for i, n in enumerate((5, 20, 9))]
    each = Statistics(
        "observation",
        np.array([x.mean(0) for x in samples]),
        np.array([x.var(0) for x in samples]),
        np.array([float(len(x)) for x in samples]),
        np.zeros((3, 0)),
    )
    together, pooled = np.concatenate(samples), each.pooled()
    np.testing.assert_allclose(pooled.mean[0], together.mean(0))
    np.testing.assert_allclose(pooled.var[0], together.var(0))
    assert pooled.count.tolist() == [34.0]


def test_an_evaluation_environment_follows_by_kind_and_is_not_updated() -> None:
    host = GymnasiumAdapter(around(SyncVectorEnv([partial(Count, end=4)] * 2)))
    play(host, 11)
    env = NormalizeObservation(NormalizeReward(Count()))
    single = GymnasiumAdapter(env)
    single.follow_statistics(host.statistics())
    mean = host.statistics()[1].mean[0]
    np.testing.assert_array_equal(env.obs_rms.mean, mean)
    play(single, 7)
    np.testing.assert_array_equal(env.obs_rms.mean, mean)
    with refused("Count: has 0 NormalizeObservation, but the environment of training 1"):
        GymnasiumAdapter(Count()).follow_statistics(host.statistics())
    GymnasiumAdapter(NormalizeObservation(Count())).follow_statistics(host.statistics())


def test_statistics_can_be_held() -> None:
    env = wrapped()
    host = GymnasiumAdapter(env)
    play(host, 6)
    before = to_arrays(host.statistics())
    with host.held_statistics():
        play(host, 6)
        assert not env.update_running_mean
    assert env.update_running_mean
    np.testing.assert_equal(to_arrays(host.statistics()), before)
    assert not host.gives_masks()
    np.testing.assert_equal(to_arrays(host.statistics()), before)


def test_statistics_of_other_wrappers_are_refused() -> None:
    host = GymnasiumAdapter(wrapped())
    arrays = to_arrays(host.statistics())
    with refused("has the normalising wrappers none, but those of the agent are NormalizeReward"):
        GymnasiumAdapter(Count()).set_statistics(from_arrays(arrays))
    for name, value, message in [
        ("wrapper.0.reward.var", np.full(1, np.nan), "not finite"),
        ("wrapper.0.reward.var", np.ones(2), "not the statistics of a wrapper"),
        ("wrapper.0.reward.count", np.zeros(1), "not finite"),
        ("wrapper.1.observation.mean", np.zeros((1, 1), int), "not the statistics"),
        ("wrapper.3.reward.mean", np.zeros(1), "not complete"),
    ]:
        with refused("damaged", message):
            from_arrays({**arrays, name: value})
