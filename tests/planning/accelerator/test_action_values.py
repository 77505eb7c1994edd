"""Action values of a model from functions, against those of the same MDP stored."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planning.functional_models import (
    LEVELS,
    PROBABILITIES,
    evolve,
    stock_mdp,
    stock_model,
    weather_model,
)
from tsallax import Hard, problems
from tsallax.planning.accelerator.action_values import ActionValues, _Traced, expectations
from tsallax.planning.bellman import Bellman
from tsallax.planning.precision import double_precision

PERISHABLES = problems.perishables(max_order=1)
CASES = {
    "of pairs": (
        stock_model(
            decide=lambda s, a: ((s, a), -1.0 * a, s + a < LEVELS),
            evolve=lambda x, e: evolve(x[0] + x[1], e),
            post=None,
            probabilities=lambda x: jnp.asarray(PROBABILITIES) + 0.0 * x[0],
        ),
        stock_mdp(),
    ),
    "of groups of states": (PERISHABLES, PERISHABLES.to_mdp()),
    "of groups with events that some states exclude": (weather_model(), weather_model().to_mdp()),
}


@pytest.mark.parametrize("case", CASES)
def test_action_values_are_those_of_the_stored_mdp(case):
    model, mdp = CASES[case]
    v = np.random.default_rng(0).normal(size=mdp.n_states)
    with double_precision():
        values = ActionValues(model, jnp.float64)
        groups = jnp.arange(values.outer.size)
        pairs = jax.jit(values.groups)(values.constants, jnp.asarray(v), groups)
        q = jnp.where(pairs.allowed, pairs.reward + pairs.continuation, -jnp.inf)
        q = np.asarray(values.in_order(q)).reshape(mdp.n_states, -1)
    expected = mdp.table(Bellman(mdp, Hard()).action_values(v), fill=-np.inf)
    np.testing.assert_allclose(q, expected, rtol=1e-13, atol=1e-13)


def test_states_that_share_post_decision_states_are_a_group():
    with double_precision():
        values = ActionValues(PERISHABLES, jnp.float64)
    assert values.outer.axes == tuple(PERISHABLES.states.axes[i] for i in (0, 1, 3, 4))
    assert values.inner.axes == tuple(PERISHABLES.states.axes[i] for i in (2, 5))
    assert values.group_work == (4 + values.inner.size) * PERISHABLES.events.size


def test_an_event_outside_the_states_counts_where_its_probability_is_positive():
    with double_precision():
        p = jnp.array([[[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1e-300, 1.0, 0.0]]])
        x = jnp.array([[[1.0, 3.0, jnp.nan], [jnp.nan, 4.0, 5.0]]])
        found = expectations(p, x)
    np.testing.assert_array_equal(found, [[[2.0, np.nan], [np.nan, 5.0], [3.0, np.nan]]])


def test_outputs_that_nothing_changes_are_hidden_from_the_compiler():
    traced = _Traced(lambda x: (x + 1, 0.0, True), jnp.zeros((), jnp.int32))
    text = jax.jit(jax.vmap(lambda x: traced([], x))).lower(jnp.arange(3)).as_text()
    assert text.count("stablehlo.optimization_barrier") == 2
    assert [np.asarray(x).tolist() for x in traced([], jnp.int32(4))] == [5, 0.0, True]
