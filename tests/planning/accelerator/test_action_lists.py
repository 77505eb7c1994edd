"""Policies as lists of actions, against the same policies of the same MDP stored."""

import jax.numpy as jnp
import numpy as np
import pytest

from planning.functional_models import LEVELS, evolve, stock_mdp, stock_model
from tsallax import evaluate
from tsallax.planning.accelerator.action_lists import ListSweep
from tsallax.planning.accelerator.action_values import ActionValues
from tsallax.planning.precision import double_precision

STORED = stock_mdp()
WEIGHTS = np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75], [0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
ACTIONS = np.array([[0, 3], [2, 0], [1, 0], [0, 2], [1, 0], [0, 0]])
MODELS = {
    "post-decision states": stock_model(),
    "pairs": stock_model(
        decide=lambda s, a: ((s, a), -1.0 * a, s + a < LEVELS),
        evolve=lambda x, e: evolve(x[0] + x[1], e),
        post=None,
    ),
}


@pytest.mark.parametrize("block", [5, 2**17])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_sweeps_of_lists_are_those_of_the_policy_as_a_table(model, block):
    table = np.zeros((LEVELS, 4))
    np.add.at(table, (np.arange(LEVELS)[:, None], ACTIONS), WEIGHTS)
    rng = np.random.default_rng(0)
    v, y = rng.normal(size=(2, LEVELS))
    select = np.zeros((LEVELS, STORED.n_pairs))
    select[STORED.state_of, np.arange(STORED.n_pairs)] = STORED.flatten(table)
    reward = select @ STORED.rewards
    matrix = STORED.discount * select @ STORED.transitions.toarray()
    with double_precision():
        lists = ListSweep(ActionValues(model, jnp.float64), block, None)
        policy = lists.listed(jnp.asarray(WEIGHTS), jnp.asarray(ACTIONS, jnp.int32))
        followed, moved = (
            lists.follow(policy, jnp.asarray(v)),
            lists.discounted_transition(policy, jnp.asarray(v)),
        )
        transposed = lists.transposed(policy)(jnp.asarray(y))
    np.testing.assert_allclose(followed, reward + matrix @ v, rtol=1e-13)
    np.testing.assert_allclose(moved, matrix @ v, rtol=1e-13)
    np.testing.assert_allclose(transposed, matrix.T @ y, rtol=1e-13)
    value = evaluate(STORED, table).value
    np.testing.assert_allclose(np.linalg.solve(np.eye(LEVELS) - matrix, reward), value)


def test_actions_that_a_state_lacks_and_states_without_actions_are_found():
    actions, weights = ACTIONS.copy(), WEIGHTS.copy()
    actions[4], actions[5], weights[2] = [3, 1], [0, 3], 0.0
    with double_precision():
        lists = ListSweep(ActionValues(stock_model(), jnp.float64), 7, None)
        terminal = jnp.arange(LEVELS) == 0
        found = lists.missing_actions(jnp.asarray(weights), jnp.asarray(actions), terminal)
    assert found.tolist() == [-1, -1, 2, -1, 0, -1]
