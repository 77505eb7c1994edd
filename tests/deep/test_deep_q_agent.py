"""`DeepQ` as people use it: predictions, policies and values, and what it refuses."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from refusals import refused
from small_agents import CORRIDOR, TINY, Episodic, cart_pole, corridor, trained
from tsallax import DeepQ, DeepQConfig
from tsallax.deep import checkpoint


def test_predictions_are_actions_of_the_environment():
    agent = trained(corridor)
    seen = np.array([[0.0, 1.0], [2.0, 3.0], [-1.0, 0.0]])
    q, p = agent.q(seen), agent.policy(seen)
    assert q.shape == p.shape == (3, 3)
    assert p.sum(-1) == pytest.approx(1.0)
    assert np.array_equal(agent.predict(seen), agent.actions[np.argmax(q, -1)])
    assert np.array_equal(agent.predict(seen[1]), agent.actions[np.argmax(q[1])])
    np.testing.assert_allclose(agent.policy(seen[1]), p[1], atol=1e-6)
    drawn = [agent.predict(seen[0], deterministic=False)[0] for _ in range(200)]
    possible = agent.actions[p[0] > 0, 0]
    assert len(possible) > 1
    assert set(drawn) == set(possible)


def test_predictions_for_a_discrete_environment_are_plain_integers():
    action = trained(cart_pole).predict(np.zeros(4))
    assert type(action) is int
    assert action in (0, 1)
    assert trained(cart_pole).predict(np.zeros((5, 4))).shape == (5,)
    assert "2 actions" in repr(trained(cart_pole))


@pytest.mark.parametrize(
    ("observations", "actions"),
    [
        (Box(-1, 1, (3, 2)), Discrete(4)),
        (Box(0, 255, (8, 8), np.uint8), MultiDiscrete([2, 2])),
        (Discrete(5), Box(-1, 1, (5,))),
        (MultiBinary(3), Dict(a=Discrete(2), b=Discrete(2))),
    ],
    ids=str,
)
def test_no_observations_have_no_actions(observations, actions):
    env = Episodic(observations, actions)
    agent = DeepQ(env, actions=3 if isinstance(actions, Box) else None, **TINY)
    none = np.zeros((0, *observations.shape), observations.dtype)
    n = sum(agent.spec.choices)
    assert agent.q(none).shape == agent.policy(none, mask="all").shape == (0, n)
    assert len(agent.predict(none)) == len(agent.predict(none, deterministic=False)) == 0
    assert len(agent.predict(none, mask=np.zeros((0, n), np.int8))) == 0


@pytest.mark.parametrize("ask", [DeepQ.predict, DeepQ.policy, DeepQ.q])
def test_observations_of_the_wrong_size_are_refused(ask):
    with refused("observation of shape"):
        ask(trained(corridor), [1.0])


BAD_AGENTS = [
    ({"alhpa": 0.1}, "unknown option 'alhpa': did you mean alpha"),
    ({"buffer_size": 10**14}, "buffer_size must be an integer of at least 1 and below"),
    ({"net_arch": [10**7, 10**7]}, "not enough memory for the networks and a replay of"),
    ({"seed": True}, "seed must be an integer"),
    ({"actions": None}, "give actions, such as actions=31"),
    ({"actions": 1}, "at least 2"),
    ({"backend": "torch"}, "unknown backend 'torch'"),
    ({"config": {"alpah": 1}}, "did you mean alpha"),
    ({"env_options": {"render_mode": "human"}}, "env_options"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_AGENTS, ids=str)
def test_bad_arguments_are_refused_in_one_line(arguments, message):
    with refused(message):
        DeepQ(CORRIDOR, **{"actions": 3, **arguments})


class Structured(Episodic):
    """An action that is a dict, and an observation that is a tuple."""

    def __init__(self) -> None:
        seen = Tuple([Discrete(3), Box(-1, 1, (2,))])
        super().__init__(seen, Dict(gear=Discrete(3, start=1), turn=Box(-1, 1, (1,))))


IMAGES = Box(0, 255, (9, 8, 3), np.uint8)
FORMS = {
    "several choices": (lambda: Episodic(None, MultiDiscrete([3, 2])), None, (3, 2)),
    "bits": (lambda: Episodic(None, MultiBinary(3)), None, (2, 2, 2)),
    "structures": (Structured, 3, (3, 3)),
    "three real dimensions": (lambda: Episodic(None, Box(-1, 1, (3,))), 5, (5, 5, 5)),
    "integers": (lambda: Episodic(Discrete(7)), None, (2,)),
    "images": (lambda: Episodic(IMAGES), None, (2,)),
}


SLOW = ("integers", "several choices", "bits", "three real dimensions")


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * (case in SLOW)) for case in FORMS]
)
def test_agents_learn_act_and_are_saved_in_any_form_of_spaces(case, tmp_path):
    make, actions, choices = FORMS[case]
    env, other = make(), make()
    agent = DeepQ(env, actions=actions, **TINY).learn(steps=30)
    assert agent.spec.choices == choices
    assert agent.spec.factored == (case not in ("integers", "images"))
    assert agent.evaluate(2, env=other).returns.tolist() == [5.0, 5.0]
    seen = [env.observation_space.sample() for _ in range(4)]
    agent.save(tmp_path / "agent")
    again = DeepQ.load(tmp_path / "agent")
    for x, y in zip(jax.tree.leaves(agent._learner), jax.tree.leaves(again._learner), strict=True):
        np.testing.assert_array_equal(x, y)
    for deterministic in (True, False):
        chosen = again.predict(seen, deterministic)
        assert len(chosen) == 4
        assert all(action in env.action_space for action in chosen)
        assert agent.predict(seen[0], deterministic) in env.action_space
    shares = np.add.reduceat(agent.policy(seen), np.cumsum((0, *choices[:-1])), axis=1)
    np.testing.assert_allclose(shares, 1, rtol=1e-5)
    assert agent.q(seen).shape == (4, sum(choices))


def test_factored_actions_of_a_jax_environment_are_the_levels_of_each_dimension():
    agent = DeepQ("MultiGoal-v0", actions=(3, 5), factored=True, **TINY).learn(steps=40)
    assert agent.spec.n_actions == 8
    action = agent.predict(np.zeros((6, 2)), deterministic=False)
    assert action.shape == (6, 2)
    levels = agent.spec.action.discretize.level_table
    assert np.isin(action[:, 0], levels[0, :3].astype("f4")).all()
    assert np.isin(action[:, 1], levels[1].astype("f4")).all()
    assert agent.evaluate(3).returns.shape == (3,)


def test_a_network_that_cannot_take_the_observations_is_refused():
    with refused("Episodic: network=mlp cannot learn from", "such as network=cnn"):
        DeepQ(Episodic(IMAGES), network="mlp", **TINY)
    with refused(r"(height, width, channels), at least 8 x 8, not Box((4,), float32)"):
        DeepQ(Episodic(), network="cnn", **TINY)


def test_normalization_of_integers_is_refused_but_for_files_that_have_it(tmp_path):
    options = {**TINY, "normalize_observations": True}
    with refused("FrozenLake-v1: normalize_observations is for vectors, not for integers"):
        DeepQ("FrozenLake-v1", **options)
    plain = DeepQ("FrozenLake-v1", **TINY)
    plain.save(tmp_path / "agent.npz")
    about, arrays = checkpoint.read(tmp_path / "agent.npz")
    about["config"]["normalize_observations"] = True  # as earlier versions wrote it
    checkpoint.write(tmp_path / "agent.npz", about, arrays)
    assert DeepQ.load(tmp_path / "agent.npz").config == DeepQConfig(**options)
    with refused("normalize_observations cannot change"):
        plain.change(normalize_observations=True)
