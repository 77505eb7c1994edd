"""Models from functions: what is refused, and the same model with its transitions stored."""

import jax.numpy as jnp
import numpy as np
import pytest

from planning.functional_models import decide, evolve, stock_mdp, stock_model
from tsallax import MDP, Hard, InvalidInput, solve


def test_a_model_with_its_transitions_stored_is_the_one_written_out_by_hand():
    stored, expected = stock_model().to_mdp(), stock_mdp()
    np.testing.assert_allclose(stored.transitions.toarray(), expected.transitions.toarray())
    np.testing.assert_allclose(stored.rewards, expected.rewards)
    np.testing.assert_allclose(stored.termination, expected.termination)
    np.testing.assert_array_equal(stored.action_of, expected.action_of)


def test_a_stored_model_starts_and_ends_as_the_model_does():
    model = stock_model(decide=lambda s, a: (s + a, 1.0, (s > 0) & (s + a < 6)))
    stored = model.to_mdp()
    np.testing.assert_array_equal(np.flatnonzero(stored.terminal), [0])
    np.testing.assert_array_equal(stored.initial, model.initial)
    found, again = solve(model, Hard(), 1e-10), solve(stored, Hard(), 1e-10)
    assert found.regularized_return == pytest.approx(again.regularized_return, abs=3e-11)
    assert stock_model(initial=3).to_mdp().initial.tolist() == [0, 0, 0, 1, 0, 0]


def test_tables_in_single_precision_are_summed_in_double_precision():
    chances = jnp.array([[0.1, 0.9, 0.0], [0.7, 0.1, 0.2]], jnp.float32)
    earned = jnp.array([0.1, 0.7, 0.3], jnp.float32)
    model = stock_model(
        decide=lambda s, a: (s, 0.0, True),
        evolve=lambda x, e: (jnp.minimum(e, 1), earned[e], False),
        probabilities=lambda x: chances[x],
        states=2, post=2, discount=0.99,
    )  # fmt: skip
    stored = model.to_mdp()
    p = np.array(chances, np.float64)
    p /= p.sum(1, keepdims=True)
    expected = np.repeat(p @ np.array(earned, np.float64), 4)
    np.testing.assert_allclose(stored.rewards, expected, rtol=1e-15)
    found, again = solve(model, Hard(), 1e-10), solve(stored, Hard(), 1e-10)
    assert np.abs(found.value - again.value).max() <= found.error + again.error + 1e-12


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"evolve": lambda x, e: (x + e, 1.0, False)},
            "evolve leaves `states` at state 1, action 3, event 2: it returns 6",
        ),
        (
            {"probabilities": lambda x: jnp.array([0.5, 0.3, 0.0])},
            "probabilities sum to 0.8, not to 1, at state 0, action 0",
        ),
    ],
)
def test_what_solve_refuses_is_not_stored(changes, message):
    model = stock_model(**changes)
    for refuse in (lambda: solve(model, Hard()), model.to_mdp):
        with pytest.raises(InvalidInput) as refused:
            refuse()
        assert str(refused.value) == message


def test_a_start_and_another_discount_are_kept():
    model = stock_model(initial=2).with_discount(0.5)
    assert model.to_mdp().discount == 0.5
    np.testing.assert_array_equal(model.initial, np.eye(6)[2])
    np.testing.assert_allclose(stock_model().initial, 1 / 6)


SQUARES = [0, 1, 4, 9, 16, 25]


def with_branch(state, action):
    if state > 2:
        return state, 1.0, True
    return action, 0.0, True


@pytest.mark.parametrize(
    ("decide", "remedy"),
    [
        (with_branch, r": use jnp\.where for if"),
        (lambda s, a: (min(s, a), 1.0, True), r": use .* jnp\.minimum for min"),
        (lambda s, a: (s, float(s), True), r": use jnp\.where"),
        (lambda s, a: (s, SQUARES[s], True), r": use jnp\.asarray\(x\)\[i\]"),
        (lambda s, a: (s, np.sin(s), True), r": use the functions of jax\.numpy"),
        (lambda s, a: (s, absent, True), "$"),  # noqa: F821
    ],
)
def test_an_error_in_a_function_names_its_line_and_the_remedy(decide, remedy):
    with pytest.raises(
        InvalidInput, match=rf"\(test_functional_mdp\.py, line \d+\){remedy}"
    ) as refused:
        stock_model(decide=decide)
    assert "\n" not in str(refused.value)
    if decide is with_branch:
        line = with_branch.__code__.co_firstlineno + 1
        assert f"(test_functional_mdp.py, line {line})" in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "culprit"),
    [
        ({"decide": 3}, "decide"),
        ({"decide": lambda s, a: (s + a, 1.0)}, "decide must return"),
        ({"decide": lambda s, a: ((s, a), 1.0, True)}, "1 coordinates as its post"),
        ({"decide": lambda s, a: (s if s > 2 else a, 1.0, True)}, "decide is not a JAX function"),
        ({"evolve": lambda x, e: ((x, e), 1.0, False)}, "coordinates as its next_state"),
        ({"evolve": lambda x, e: (x, np.ones(2), False)}, "one number as its reward"),
        ({"evolve": lambda x, e: (x, [1.0], False)}, "one number as its reward"),
        ({"probabilities": lambda x: [0.2, 0.3, 0.5]}, "must return one array: use jnp.array"),
        ({"probabilities": [0.5, 0.5]}, "2 numbers for 3 events"),
        ({"probabilities": [0.5, 0.5, 0.5]}, "sum to 1.5"),
        ({"probabilities": [1.5, -0.5, 0.0]}, "event 1 is -0.5"),
        ({"probabilities": lambda x: np.ones(2)}, "2 numbers for 3 events"),
        ({"probabilities": "half"}, "probabilities"),
        ({"given": "action"}, "given"),
        ({"discount": 1.5}, "discount"),
        ({"initial": 6}, "initial"),
        ({"initial": [0.5] * 6}, "initial"),
        ({"initial": "empty"}, "initial must be real numbers"),
        ({"initial": {0: 1.0}}, "initial must be real numbers"),
        ({"initial": [[1.0], [0.5, 0.5]]}, "initial must be a regular array"),
        (
            {"initial": [0.5, 0.5]},
            "initial must be the index of a state, as numpy.ravel_multi_index",
        ),
        ({"discount": 1}, r"model\.to_mdp\(\)\.with_discount\(1\)"),
        ({"states": (6, 0)}, r"states\[1\]"),
    ],
)
def test_what_defines_no_model_is_refused(changes, culprit):
    with pytest.raises(InvalidInput, match=culprit):
        stock_model(**changes)


def test_a_model_too_large_to_be_stored_is_refused():
    large = MDP.from_functions(
        decide, evolve, states=10**6, actions=1000, post=10**6, events=3,
        probabilities=[0.2, 0.3, 0.5], discount=0.9,
    )  # fmt: skip
    with pytest.raises(InvalidInput, match="too many to be stored"):
        large.to_mdp()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"evolve": lambda x, e: (x, False, 1.0)}, "a Boolean as its ends, not float64"),
        ({"evolve": lambda x, e: (x, x > 2, 1)}, "a Boolean as its ends, not int64"),
        ({"evolve": lambda x, e: (x, 1.0, 0.05)}, "a Boolean as its ends, not float64"),
        ({"decide": lambda s, a: (s, True, -1.0 * a)}, "a Boolean as its allowed, not float64"),
        ({"evolve": lambda x, e: (x, 1j, False)}, "a real number as its reward, not complex128"),
    ],
)
def test_a_reward_and_a_condition_in_each_others_place_are_refused(changes, message):
    with pytest.raises(InvalidInput, match=r"must return \(.*\), with " + message):
        stock_model(**changes)


def test_an_integer_says_whether_an_action_is_allowed_and_whether_an_episode_ends():
    model = stock_model(
        decide=lambda s, a: (jnp.minimum(s + a, 5), 1.0 * s - a, jnp.where(s + a < 6, 1, 0)),
        evolve=lambda x, e: (jnp.maximum(x - e, 0), 2.0 * e, jnp.where(x == 5, 1, 0)),
    )
    stored = model.to_mdp()
    assert np.array_equal(stored.state_of + stored.action_of < 6, np.full(stored.n_pairs, True))
    found, again = solve(model, Hard(), 1e-9), solve(stored, Hard(), 1e-9)
    np.testing.assert_allclose(found.value, again.value, atol=4e-9)
