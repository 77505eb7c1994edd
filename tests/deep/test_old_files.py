"""Descriptions and observations in files of version 0.1 are read as those of today."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from small_agents import TINY, assert_same
from tsallax import DeepQ, DeepQConfig
from tsallax.deep import checkpoint, deep_q
from tsallax.deep.action_layout import ActionLayout
from tsallax.deep.deep_q import DeepQLearning
from tsallax.deep.environment_description import from_description
from tsallax.deep.options import with_defaults
from tsallax.deep.regularizer_choice import Choice
from tsallax.envs.observation_format import ObservationFormat
from tsallax.errors import InvalidInput

OLD = {
    "name": "Env-v0", "observation_size": 6, "observation_shape": [2, 3], "first_observation": None,
    "n_actions": 9, "first_action": 0, "action_shape": [1, 2], "low": [-1.0, 0.0],
    "high": [1.0, 1.0], "levels": [3, 3], "jax": False, "n_envs": 1, "limit": None, "options": {},
    "by_name": True,
}  # fmt: skip
"""A description of version 0.1."""


def test_a_description_of_version_0_1_gives_the_same_spaces():
    real = from_description(OLD)
    assert (real.n_actions, real.action.levels, real.factored) == (9, (3, 3), False)
    assert real.encode(np.ones((4, 2, 3)))[0].shape == (4, 6)
    assert real.action.decode(np.array([8])).tolist() == [[[1.0, 1.0]]]
    integer = {**OLD, "observation_shape": [], "first_observation": 2, "first_action": 5}
    discrete = from_description({**integer, "levels": None, "low": None, "high": None})
    assert discrete.encode(7)[0].tolist() == [5]
    assert discrete.action.decode(np.array([8])).tolist() == [13]
    vector = from_description({**OLD, "n_actions": None, "levels": None})
    assert vector.n_actions is None
    assert (vector.action.space.low, vector.action.space.high) == ((-1.0, 0.0), (1.0, 1.0))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("n_actions", None, "with the levels"),
        ("n_actions", 4, "4 actions with the levels [3, 3]"),
        ("n_actions", 0, "n_actions must be an integer of at least 1"),
        ("observation_size", 0, "observation_size must be an integer of at least 1"),
        ("observation_size", 10**15, "observations of shape (2, 3) and size"),
    ],
)
def test_a_description_of_version_0_1_that_makes_no_sense_is_refused(key, value, message):
    with pytest.raises(InvalidInput, check=lambda e: message in str(e)):
        from_description({**OLD, key: value})


@pytest.mark.slow
def test_one_hot_observations_of_version_0_1_become_integers(tmp_path):
    agent = DeepQ("FrozenLake-v1", **TINY).learn(episodes=4)
    agent.save(tmp_path / "agent")
    about, arrays = checkpoint.read(tmp_path / "agent")
    seen = arrays.pop("learner.replay.observations")
    rows = arrays["learner.replay.rows"]
    one_hot = np.eye(16, dtype=np.float32)[seen].reshape(len(rows), 32)
    arrays["learner.replay.rows"] = np.concatenate([one_hot, rows], 1)
    checkpoint.write(tmp_path / "old", about, arrays)
    old = DeepQ.load(tmp_path / "old")
    assert_same(old, agent)
    assert_same(old.learn(episodes=6), agent.learn(episodes=6))


@pytest.mark.parametrize("agents", [None, 2])
def test_moments_of_all_rows_are_those_of_the_last_update_in_earlier_files(agents):
    config = DeepQConfig(batch_size=8, buffer_size=16)
    choice = Choice((("sparse", None),))
    form, layout = ObservationFormat.vector(3), ActionLayout((deep_q.DENSE_OUTPUTS + 1,), False)
    static = with_defaults(config, deep_q.MEMBER_OPTIONS)
    algorithm = DeepQLearning(form, layout, False, (4,), choice, choice, False, static)
    learner = algorithm.init(jax.random.PRNGKey(0), deep_q.hyperparameters_of(config))
    if agents:
        learner = jax.tree.map(lambda x: jnp.stack([x] * agents), learner)
    count = learner.adam.count + 7 + jnp.arange(agents or 1).reshape(learner.adam.count.shape)
    learner = learner._replace(adam=learner.adam._replace(count=count))
    arrays = checkpoint.flatten_learner(learner, 5, many=bool(agents))
    assert not arrays.pop("learner.adam.written").any()
    found = checkpoint.restore_learner(
        learner, learner.hyperparameters, arrays, 5, many=bool(agents)
    )
    written = np.broadcast_to(np.asarray(count)[..., None], learner.adam.written.shape)
    expected = learner.adam._replace(written=written.astype(np.int32))
    jax.tree.map(np.testing.assert_array_equal, found.adam, expected)
