"""A second environment like one that was given as an object: its wrappers, or why there is none."""

import gymnasium
import pytest

from refusals import refused
from small_agents import TINY, Episodic
from tsallax import DeepQ
from tsallax.envs.gymnasium.second_environment import make_again
from tsallax.errors import InvalidInput


def test_an_environment_is_made_again_with_its_arguments_and_wrappers():
    first = gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=7)
    again = make_again(first)
    assert again.unwrapped is not first.unwrapped
    assert again.spec.kwargs == first.spec.kwargs
    assert again.spec.max_episode_steps == 7
    drawn = {"render_mode": "rgb_array"}
    several = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync", **drawn)
    assert make_again(several, **drawn).render_mode == "rgb_array"


class Unrecorded(gymnasium.Wrapper):
    """A wrapper without Gymnasium's record of its arguments."""


ONCE = {
    "without an id": Episodic,
    "in a wrapper": lambda: Unrecorded(gymnasium.make("CartPole-v1")),
}


@pytest.mark.parametrize("make", ONCE.values(), ids=ONCE)
def test_an_environment_that_cannot_be_made_twice_is_evaluated_in_another_that_is_given(make):
    agent = DeepQ(make(), **TINY)
    for use in (lambda: agent.evaluate(1), lambda: agent.learn(steps=20, eval_every=10)):
        with refused("second time", ": give one to evaluate in"):
            use()
        assert agent.steps == 0
    other = make()
    agent.learn(steps=20, eval_every=10, eval_episodes=2, eval_env=other)
    assert len(agent.history["evaluation_return"]) == 2
    assert agent.evaluate(3, env=other).returns.shape == (3,)


def test_wrappers_of_a_vector_environment_are_there_in_evaluations():
    def short(env):
        return gymnasium.wrappers.TimeLimit(env, 7)

    several = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync", wrappers=[short])
    assert DeepQ(several, **TINY).evaluate(3).lengths.tolist() == [7, 7, 7]
    wrapped = gymnasium.wrappers.vector.ClipReward(
        gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync"), 0.0, 0.5
    )
    with pytest.raises(InvalidInput, match=r"second time \(ClipReward wraps several.*give one"):
        DeepQ(wrapped, **TINY).evaluate(1)
