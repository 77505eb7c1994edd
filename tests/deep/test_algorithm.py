"""Every algorithm acts the same after its acting state is put into another learner."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from small_agents import CORRIDOR, TINY
from tsallax.deep.environment_spec import make_spec
from tsallax.deep.learners import LEARNERS

SMALL = {"net_arch": TINY["net_arch"], "buffer_size": 96, "batch_size": 8}


@pytest.mark.parametrize("learner", LEARNERS.values())
def test_an_acting_state_is_all_that_acting_depends_on(learner):
    continuous = learner.continuous_actions
    spec = make_spec(CORRIDOR, actions=None if continuous else 3, n_envs=1, continuous=continuous)
    algorithm, (hyperparameters,) = learner.build_algorithm(spec, [learner.Config(**SMALL)])

    @jax.jit
    def actions(key):
        """Of a learner, and of another one with its acting state."""
        both = jax.vmap(lambda k: algorithm.init(k, hyperparameters))(jax.random.split(key))
        one, other = (jax.tree.map(lambda leaf, i=i: leaf[i], both) for i in (0, 1))
        twin = algorithm.restore_acting(algorithm.acting_state(one), other)
        three = jax.tree.map(lambda *leaves: jnp.stack(leaves), one, twin, other)
        x = jax.random.normal(key, (50, 2))
        return jax.vmap(lambda a: (algorithm.greedy(a, x), algorithm.sample(a, x, 5, key)))(three)

    for taken in actions(jax.random.PRNGKey(0)):
        one, twin, other = np.asarray(taken)
        np.testing.assert_array_equal(one, twin)
        assert not continuous or not np.array_equal(one, other)
