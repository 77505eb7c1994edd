"""An MDP is the model it is written as, and models of other programs become MDPs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange_cases import example
from mdp_checks import optimal_values, same
from tsallax.errors import InvalidInput
from tsallax.planning.formats import explicit_model as explicit
from tsallax.planning.formats.explicit_model import ExplicitModel, mdp_arguments, model_of
from tsallax.planning.mdp import MDP
from tsallax.problems import garnet


def model(**changes) -> ExplicitModel:
    """Two states: one with two choices, one that returns to itself."""
    fields = {
        "pointer": np.array([0, 2, 3]),
        "indptr": np.array([0, 2, 3, 4]),
        "target": np.array([0, 1, 0, 1]),
        "probability": np.array([0.5, 0.5, 1.0, 1.0]),
        "rewards": np.array([1.0, 2.0, 0.0]),
        "terminal": np.zeros(2, bool),
        "sink": np.zeros(2, bool),
        **changes,
    }
    return ExplicitModel(**fields)


@given(seed=st.integers(0, 10**6))
def test_random_termination_and_terminal_states_come_back(seed: int):
    rng = np.random.default_rng(seed)
    base = garnet(6, 2, 3, seed=seed)
    stops = rng.choice([0.0, 0.25, 1.0], base.n_pairs)
    transitions = base.transitions.multiply(1 - stops[:, None]).tocsr()
    mdp = MDP(
        transitions, base.rewards, 0.9, termination=stops,
        terminal=np.flatnonzero(rng.random(6) < 0.3)[:5],
    )  # fmt: skip
    assert same(MDP(**mdp_arguments(model_of(mdp), None)), mdp)


def test_the_sink_and_the_loops_do_not_change_the_values():
    mdp = example()
    written = model_of(mdp)
    chain = ExplicitModel(**{
        **written.__dict__, "terminal": np.zeros(4, bool), "sink": np.zeros(4, bool)
    })  # fmt: skip
    loops = MDP(**mdp_arguments(chain, None))
    assert loops.n_states == 4
    assert not loops.terminal.any()
    np.testing.assert_allclose(optimal_values(loops)[:3], optimal_values(mdp), atol=1e-12)
    assert (optimal_values(loops)[2:] == 0).all()


def test_a_label_makes_a_state_terminal_only_if_nothing_happens_there():
    mask = np.array([True, True])
    mdp = MDP(**mdp_arguments(model(terminal=mask), 0.9))
    assert mdp.terminal.tolist() == [False, True]
    earning = model(terminal=mask, rewards=np.array([1.0, 2.0, 0.1]))
    assert not MDP(**mdp_arguments(earning, 0.9)).terminal.any()


def test_a_state_without_choices_is_terminal():
    mdp = MDP(**mdp_arguments(
        model(pointer=np.array([0, 2, 2]), indptr=np.array([0, 2, 3]), target=np.array([0, 1, 0]),
              probability=np.array([0.5, 0.5, 1.0]), rewards=np.array([1.0, 2.0])), 0.9,
    ))  # fmt: skip
    assert mdp.terminal.tolist() == [False, True]


def test_choices_of_a_state_with_the_same_label_become_different_actions():
    mdp = MDP(**mdp_arguments(
        model(action=np.array([1, 1, 0]), action_names=["a", "b"]), 0.9
    ))  # fmt: skip
    assert mdp.action_names == ("a", "b", "b (2)")
    assert mdp.action_of.tolist() == [1, 2, 0]
    taken = model(action=np.array([1, 1, 0]), action_names=["b (2)", "b"])
    assert MDP(**mdp_arguments(taken, 0.9)).action_names == ("b (2)", "b", "b (2)_")


def test_without_labels_actions_are_counted_in_each_state():
    assert MDP(**mdp_arguments(model(), 0.9)).action_of.tolist() == [0, 1, 0]


def test_the_discount_must_come_from_somewhere():
    with pytest.raises(InvalidInput, match="holds no discount: give discount, such as discount="):
        mdp_arguments(model(), None)
    assert mdp_arguments(model(discount=0.5), None)["discount"] == 0.5
    assert mdp_arguments(model(discount=0.5), 0.7)["discount"] == 0.7


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf])
def test_numbers_that_are_no_probabilities_are_refused_with_their_place(bad):
    with pytest.raises(
        InvalidInput, match="state 0, choice 1: the probability of reaching state 0"
    ):
        mdp_arguments(model(probability=np.array([0.5, 0.5, bad, 1.0])), 0.9)


def test_expectations_of_equal_rewards_are_exact():
    probability = np.array([0.1] * 10 + [0.3, 0.7])
    rewards = np.array([1 / 3] * 10 + [1.0, 2.0])
    found = explicit.expected(np.array([0, 10, 10, 12]), probability, rewards)
    assert found[0] == 1 / 3
    assert found[1] == 0
    assert found[2] == pytest.approx(1.7, abs=1e-15)


def test_rationals_are_rounded_once():
    assert explicit.rational(1, 3) == 1 / 3
    assert explicit.rational(2**200 + 1, 2**200) == 1.0
    assert np.isnan(explicit.rational(1, 0))
    assert np.isnan(explicit.rational(10**400, 1))
