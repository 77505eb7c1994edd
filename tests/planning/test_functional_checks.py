"""Functions that define no MDP are refused, with state, action and event."""

import jax.numpy as jnp
import numpy as np
import pytest

from planning.functional_models import stock_model, weather_model
from tsallax import Hard, InvalidInput, Sparse, solve
from tsallax.planning import functional_checks
from tsallax.planning.functional_checks import check_functions, find_invalid
from tsallax.planning.precision import double_precision

INVALID = {
    "evolve leaves `states` at state 0, action 0, event 1: it returns -1": {
        "evolve": lambda x, e: (x - e, 1.0, False)
    },
    "decide leaves `post` at state 3, action 3: it returns 6": {
        "decide": lambda s, a: (s + a, 1.0, True)
    },
    "decide returns the reward inf at state 0, action 2": {
        "decide": lambda s, a: (s, jnp.where(a == 2, jnp.inf, 0.0), True)
    },
    "evolve returns the reward nan at state 1, action 0, event 2": {
        "decide": lambda s, a: (s, 0.0, True),
        "evolve": lambda x, e: (x, jnp.where((x == 1) & (e == 2), jnp.nan, 0.0), False),
    },
    "probabilities sum to 0.9, not to 1, at state 2, action 3": {
        "probabilities": lambda x: jnp.where(x == 5, 0.3, 1 / 3) * jnp.ones(3)
    },
    "the probability of event 1 is -0.5 at state 2, action 0": {
        "decide": lambda s, a: (s, 0.0, True),
        "probabilities": lambda x: jnp.where(
            x == 2, jnp.array([1.5, -0.5, 0.0]), jnp.array([1.0, 0.0, 0.0])
        ),
    },
}


@pytest.mark.parametrize("message", INVALID)
def test_the_first_invalid_pair_is_named(message):
    model = stock_model(**INVALID[message])
    with double_precision(), pytest.raises(InvalidInput) as refused:
        check_functions(model)
    assert str(refused.value) == message


def test_a_coordinate_that_rounding_takes_out_of_an_array_is_refused_with_the_way_out():
    grid = np.linspace(0, 1, 11)
    model = stock_model(
        decide=lambda s, a: (jnp.clip(s + a, 0.0, 1.0), 0.0, True),
        evolve=lambda x, e: (x, 0.0, False),
        states=grid, post=grid, actions=np.array([-0.1, 0.0, 0.1]),
    )  # fmt: skip
    with double_precision(), pytest.raises(InvalidInput, match="compared exactly: give a size"):
        check_functions(model)


def test_valid_functions_pass_whatever_forbidden_pairs_and_impossible_events_do():
    with double_precision():
        find_invalid(stock_model())
        find_invalid(
            stock_model(
                evolve=lambda x, e: (x - e, jnp.where(e < 1, 0.0, jnp.nan), False),
                probabilities=[1.0, 0.0, 0.0],
            )
        )


def test_an_event_that_only_some_states_exclude_counts_in_the_others(monkeypatch):
    solution = solve(weather_model(), Sparse(0.1), 1e-6)
    assert np.abs(solution.value - solve(weather_model().to_mdp(), Sparse(0.1)).value).max() < 1e-6
    monkeypatch.setattr(functional_checks, "CHECKED_BRANCHES", 1)
    refused = "evolve leaves `states` at state .0, 2., action 1, event .2, 0.: it returns .-1, 0."
    with pytest.raises(InvalidInput, match=refused):
        solve(weather_model(lambda weather: jnp.minimum(weather, 1)), Hard())


def test_what_a_sample_misses_the_sweep_finds(monkeypatch):
    monkeypatch.setattr(functional_checks, "CHECKED_BRANCHES", 1)

    def decide(s, a):
        return jnp.where((s == 18) & (a == 1), 36, s), 0.0, True

    model = stock_model(
        decide=decide, evolve=lambda x, e: (x, 0.0, False), states=36, post=36, actions=50
    )
    with double_precision():
        check_functions(model)
    with pytest.raises(InvalidInput, match="decide leaves `post` at state 18, action 1"):
        solve(model, Hard())
