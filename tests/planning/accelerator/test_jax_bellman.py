"""The operator in JAX: certificates that hold."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planning.functional_models import stock_model
from tsallax import MDP, Hard, InvalidInput, Soft, Sparse, problems, solve
from tsallax.planning.accelerator import functional_sweep
from tsallax.planning.devices import make_operator
from tsallax.planning.iteration import Target, iterate_to
from tsallax.planning.precision import double_precision
from tsallax.planning.validation import ULPS

MAZE = problems.maze(5, 5)


@pytest.mark.parametrize("method", ["modified_policy_iteration", "policy_iteration"])
@pytest.mark.parametrize("precision", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_every_method_ends_within_its_certificate(method, precision):
    regularizer, exact = Sparse(0.5), solve(MAZE, Sparse(0.5), 1e-10)
    tolerance = 1e-7 if precision == "float64" else 2e-2
    operator = (
        make_operator(MAZE, regularizer, "cpu", precision)
        if precision == "float32"
        else (_in_jax(regularizer))
    )
    found = iterate_to(operator, method, Target(tolerance), operator.start(None), lambda *_: None)
    c = found.certificate
    lower, upper = (operator.on_host(operator.shifted(c.updated, x)) for x in (c.low, c.high))
    assert found.reason == ""
    assert (lower <= exact.upper).all()
    assert (exact.lower <= upper).all()
    assert c.error <= tolerance


def _in_jax(regularizer):
    from tsallax.planning.accelerator.jax_bellman import JaxBellman
    from tsallax.planning.accelerator.stored_sweep import StoredSweep

    with double_precision():
        return JaxBellman(StoredSweep(MAZE, jnp.float64), regularizer, MAZE.discount)


def test_policies_that_use_most_actions_are_not_swept_with():
    wide = problems.garnet(20, 7, 3, discount=0.9, seed=0)
    operator = make_operator(wide, Soft(1.0), precision="float32")
    certificate = operator.certify(operator.start(None))
    v, sweeps, _ = operator.policy_sweeps(certificate, certificate.updated, 5, 0.0)
    assert sweeps == 0
    assert v is certificate.updated


@pytest.mark.parametrize("regularizer", [Sparse(0.001), Soft(0.01)])
def test_next_to_discount_one_policies_that_use_most_actions_take_few_sweeps(regularizer):
    lake = MDP.from_gymnasium("FrozenLake8x8-v1", 0.9999)
    operator = make_operator(lake, regularizer, mesh=jax.sharding.Mesh(jax.devices(), ("states",)))
    for method in ("auto", "policy_iteration"):
        start = operator.start(None)
        found = iterate_to(operator, method, Target(1e-5), start, lambda *_: None)
        assert found.certificate.error <= 1e-5
        assert found.sweeps < 100  # value iteration takes more than a hundred thousand


def test_a_state_with_many_actions_does_not_keep_the_others_from_linear_systems():
    rng = np.random.default_rng(0)
    pairs = [(s, a) for s in range(60) for a in range(30 if s == 0 else 2)]
    rows = (
        0.5 * np.eye(60)[[s for s, _ in pairs]] + 0.5 * np.eye(60)[[(s + 1) % 60 for s, _ in pairs]]
    )
    mdp = MDP(rows, rng.random(len(pairs)), 0.9999, pairs=pairs)
    operator = make_operator(mdp, Soft(0.5), mesh=jax.sharding.Mesh(jax.devices(), ("states",)))
    found = iterate_to(
        operator, "policy_iteration", Target(1e-5), operator.start(None), lambda *_: None
    )
    assert found.certificate.error <= 1e-5
    assert found.sweeps < 20


def test_policies_are_not_listed_where_the_lists_would_not_fit(monkeypatch):
    monkeypatch.setattr(functional_sweep, "MAX_LISTED", 24)
    model = stock_model(
        actions=24, states=5, discount=0.9,
        decide=lambda s, a: (s, -0.01 * a, True), evolve=lambda x, e: (x % 5, 1.0 * x, False),
    )  # fmt: skip
    solution = solve(model, Soft(0.5), 1e-8)
    expected = solve(model.to_mdp(), Soft(0.5), 1e-8)
    assert np.abs(solution.value - expected.value).max() <= 2e-8
    operator, greedy = solution.greedy.operator, solution.greedy.policy
    assert greedy.greedy.listed.size <= functional_sweep.FEW
    assert operator.model.follow_cost(24) == np.inf
    certificate = operator.certify(operator.start(None))
    assert operator.policy_sweeps(certificate, certificate.updated, 5, 0.0)[1] == 0
    found, _ = operator.policy_value(certificate, certificate.updated, 1e-6, None)
    assert found is certificate.updated
    np.testing.assert_array_equal(solution.actions, expected.policy.argmax(-1))
    assert greedy.greedy.listed.size <= functional_sweep.FEW


def test_the_bound_on_rounding_holds_for_the_sum_that_divides_the_probabilities():
    terms, v = 500, np.array([1.0, -1.0])
    model = stock_model(
        decide=lambda s, a: (s, 0.0, True), evolve=lambda x, e: (jnp.minimum(e, 1), 0.0, False),
        states=2, actions=1, post=2, events=terms, probabilities=np.full(terms, 1 / terms),
    )  # fmt: skip
    operator = make_operator(model, Hard())
    bound = operator.certify(operator.start(v)).rounding * (1.0 - model.discount)
    # (n - 1) u of the sum, u of each quotient, and n u of the expectation, of numbers up to gamma
    assert bound >= 2 * terms * 2.0**-53 * 0.9
    assert operator.action_value_rounding(v) >= 2 * terms * 2.0**-53 * 0.9


@pytest.mark.parametrize("off", [-1, 1])
def test_the_enclosure_holds_where_a_row_is_off_by_as_much_as_is_accepted(off):
    mdp = MDP([[[1.0 + off * ULPS]]], [[1.0]], 1 - 1e-9)
    exact = 1 / (1 - Fraction(mdp.discount) * Fraction(float(mdp.transitions.data[0])))
    operator = make_operator(mdp, Hard(), mesh=jax.sharding.Mesh(jax.devices(), ("states",)))
    c = operator.certify(operator.start(None))
    lower, upper = (operator.on_host(operator.shifted(c.updated, x))[0] for x in (c.low, c.high))
    assert Fraction(lower) <= exact <= Fraction(upper)


def test_a_discount_too_close_to_one_for_float32_is_refused():
    with pytest.raises(InvalidInput, match="float32"):
        make_operator(MAZE.with_discount(1 - 1e-8), Hard(), precision="float32")


@pytest.mark.parametrize("reward", [1e-40, -3e-39, 1e-44, 1e-322])
def test_enclosures_hold_where_numbers_are_flushed_to_zero(reward):
    solution = solve(MDP([[[1.0]]], [[reward]], 0.3), Hard(), 1e-30, precision="float32")
    exact = Fraction(reward) / (1 - Fraction(0.3))
    assert Fraction(float(solution.lower[0])) <= exact <= Fraction(float(solution.upper[0]))
