"""`DeepQ` as people use it: predictions, policies and values, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from small_agents import CORRIDOR, cart_pole, corridor, trained
from tsallax import DeepQ
from tsallax.errors import InvalidInput


def test_predictions_are_actions_of_the_environment():
    agent = trained(corridor)
    seen = np.array([[0.0, 1.0], [2.0, 3.0], [-1.0, 0.0]])
    q, p = agent.q(seen), agent.policy(seen)
    assert q.shape == p.shape == (3, 3)
    assert p.sum(-1) == pytest.approx(1.0)
    assert np.array_equal(agent.predict(seen), agent.actions[np.argmax(q, -1)])
    assert np.array_equal(agent.predict(seen[1]), agent.actions[np.argmax(q[1])])
    assert np.array_equal(agent.policy(seen[1]), p[1])
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


@pytest.mark.parametrize("ask", [DeepQ.predict, DeepQ.policy, DeepQ.q])
def test_observations_of_the_wrong_size_are_refused(ask):
    with pytest.raises(InvalidInput, match="observation of shape"):
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
    with pytest.raises(InvalidInput, match=r"^[^\n]*$") as refusal:
        DeepQ(CORRIDOR, **{"actions": 3, **arguments})
    assert message in str(refusal.value)
