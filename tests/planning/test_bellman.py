"""The Bellman operator: exact to rounding, Lemmas 1 to 4, its certificates and policies."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import bellman as exact_bellman
from oracle import exact_mdp, optimal_value, to_fraction, to_mpf
from planning_problems import BY_NAME, CHOICES, Problem, gauss, random_rows, stored, truth
from solution_checks import METHODS, assert_enclosed, every_problem, two_choices
from tsallax import (
    MDP,
    Hard,
    InvalidInput,
    Soft,
    Sparse,
    Tsallis,
    bellman,
    performance_bound,
    problems,
    solve,
)
from tsallax.planning.bellman import Bellman
from tsallax.planning.operator import Iterate

REGULARIZERS = [Hard(), Sparse(0.3), Soft(0.3), Tsallis(0.3, 1.5), Tsallis(0.3, 3.0)]
every_regularizer = pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)


@every_problem
def test_the_operator_is_the_exact_one_to_rounding(problem):
    exact, mdp = stored(problem.name), problem.mdp()
    value = np.where(mdp.terminal, 0.0, np.random.default_rng(3).normal(size=mdp.n_states))
    for choice in CHOICES:
        alpha, q = Fraction(choice.alpha(problem)), Fraction(choice.q)
        rationals = [Fraction(float(v)) for v in value]
        if choice.name not in ("hard", "sparse"):
            rationals = [to_mpf(v) for v in rationals]
        expected = [float(to_fraction(v)) for v in exact_bellman(exact, rationals, alpha, q)]
        size = max(np.max(np.abs(mdp.rewards)), np.max(np.abs(value)), float(alpha))
        image = bellman(mdp, choice.regularizer(problem), value)
        assert image.shape == (mdp.n_states,)
        np.testing.assert_allclose(image, expected, rtol=0, atol=1e-14 * size)


@st.composite
def cases(draw):
    """An MDP of up to six states, which may end, a regulariser and a value function."""
    states, ends = draw(st.integers(2, 6)), draw(st.booleans())
    shift, seed = draw(st.sampled_from((-4.0, 0.0, 4.0))), draw(st.integers(0, 10**6))
    terminal = (states - 1,) if ends else ()
    rows = random_rows(
        seed, states, draw(st.integers(1, 5)), lambda g: g.normal() + shift,
        ragged=draw(st.booleans()), terminal=terminal, ending=0.5 if ends else 0.0,
    )  # fmt: skip
    problem = Problem("random", states, rows, draw(st.sampled_from((0.3, 0.9, 0.97))), terminal)
    mdp, rng = problem.mdp(), np.random.default_rng(seed)
    v, step = (np.where(mdp.terminal, 0.0, 5 * rng.normal(size=states)) for _ in range(2))
    return mdp, draw(st.sampled_from(REGULARIZERS)), v, step


def rounding(*arrays):
    """What float64 may lose in one sweep over numbers of this size."""
    return 1e-13 * (1 + max(np.max(np.abs(a)) for a in arrays))


@settings(max_examples=60)
@given(case=cases())
def test_lemma_1_the_operator_is_monotone(case):
    mdp, regularizer, v, step = case
    lower, upper = (bellman(mdp, regularizer, x) for x in (v, v + np.abs(step)))
    assert np.all(lower <= upper + rounding(lower, upper))


@settings(max_examples=60)
@given(case=cases(), c=st.floats(0, 1e3))
def test_lemma_2_a_constant_is_discounted(case, c):
    """U(v + c) = Uv + gamma c, and at most that where episodes end."""
    mdp, regularizer, v, _ = case
    plain = bellman(mdp, regularizer, v)
    shifted = bellman(mdp, regularizer, np.where(mdp.terminal, 0.0, v + c))
    slack = rounding(plain, shifted)
    assert np.all(plain - slack <= shifted)
    assert np.all(shifted <= plain + mdp.discount * c + slack)
    if not mdp.terminal.any() and mdp.termination is None:
        np.testing.assert_allclose(shifted, plain + mdp.discount * c, rtol=0, atol=slack)


@settings(max_examples=60)
@given(case=cases())
def test_lemma_3_the_operator_is_a_contraction(case):
    mdp, regularizer, v, step = case
    images = [bellman(mdp, regularizer, x) for x in (v, v + step)]
    after = np.max(np.abs(images[0] - images[1]))
    assert after <= mdp.discount * np.max(np.abs(step)) + rounding(*images)


@settings(max_examples=60)
@given(case=cases())
def test_lemma_4_regularised_powers_lie_above_the_hard_ones_and_within_the_bound(case):
    mdp, regularizer, v, _ = case
    hard = regularized = v
    for _ in range(8):
        hard, regularized = bellman(mdp, Hard(), hard), bellman(mdp, regularizer, regularized)
        slack = 10 * rounding(hard, regularized)
        assert np.all(hard <= regularized + slack)
        assert np.all(regularized <= hard + performance_bound(mdp, regularizer) + slack)


@two_choices
def test_one_certificate_encloses_the_optimum(problem, choice):
    operator = Bellman(problem.mdp(), choice.regularizer(problem))
    rng = np.random.default_rng(5)
    scale = operator.scale / (1 - operator.mdp.discount)
    v = np.where(operator.mdp.terminal, 0.0, scale * rng.normal(size=operator.mdp.n_states))
    certificate = operator.certify(operator.start(v))
    lower, upper = (
        operator.shifted(certificate.updated, end) for end in (certificate.low, certificate.high)
    )
    enclosure = truth(problem.name, choice.name)
    for low, high, least, largest in zip(lower, upper, enclosure.lower, enclosure.upper):
        assert Fraction(float(low)) <= largest
        assert Fraction(float(high)) >= least
    assert certificate.size == np.abs(v).max()


def assert_same(one, other):
    """Two certificates are equal bit for bit, up to the thresholds' rounding."""
    assert np.array_equal(one.updated, other.updated)
    assert np.array_equal(one.policy.weights, other.policy.weights)
    assert one[3:] == other[3:]


@every_regularizer
@pytest.mark.parametrize("parallel", [False, True])
def test_a_call_does_not_depend_on_earlier_ones(regularizer, parallel):
    """Neither does it change what was returned before."""
    mdp = problems.garnet(200, 5, 4, discount=0.9)
    operator = Bellman(mdp, regularizer)
    operator.parallel = parallel
    v = np.random.default_rng(0).normal(size=200)
    iterate = operator.start(v)
    first = operator.certify(iterate)
    copies = [x.copy() for x in (first.updated, *first.policy, iterate.hint, v)]
    operator.policy_sweeps(first, first.updated, 3, -1.0)
    other = operator.certify(Iterate(-3 * v, first.hint))
    assert not np.array_equal(other.policy.weights, first.policy.weights)
    assert_same(operator.certify(iterate), first)
    for before, now in zip(copies, (first.updated, *first.policy, iterate.hint, v)):
        assert np.array_equal(before, now)


@every_regularizer
def test_threads_change_no_bit(regularizer):
    operator = Bellman(problems.unicycle(), regularizer)
    iterate = operator.start(np.random.default_rng(0).normal(size=operator.mdp.n_states))
    found = []
    for operator.parallel in (False, True):
        certificate = operator.certify(iterate)
        found.append(certificate)
    assert_same(*found)


@every_regularizer
def test_thresholds_found_before_give_the_same_policy(regularizer):
    mdp = problems.garnet(200, 5, 4, discount=0.9)
    operator, v = Bellman(mdp, regularizer), np.random.default_rng(0).normal(size=200)
    cold = operator.certify(operator.start(v))
    warm = operator.certify(Iterate(v, cold.hint))
    np.testing.assert_allclose(warm.policy.weights, cold.policy.weights, rtol=0, atol=1e-13)
    np.testing.assert_allclose(warm.updated, cold.updated, rtol=1e-14)


def test_the_discount_has_a_margin_to_one():
    mdp = Problem("patient", 4, random_rows(21, 4, 3, gauss), 1 - 2.0**-53).mdp()
    with pytest.raises(InvalidInput, match="too close to 1"):
        Bellman(mdp, Hard())


def test_what_is_no_mdp_or_regulariser_is_refused():
    mdp = BY_NAME["garnet"].mdp()
    with pytest.raises(InvalidInput, match=r"bellman needs a regularizer .* not 'x'"):
        bellman(mdp, "x", np.zeros(mdp.n_states))
    with pytest.raises(InvalidInput, match="bellman needs an MDP, not str"):
        bellman("x", Hard(), [0.0])


@pytest.mark.parametrize("reward", [5e-324, 1e-322, -3e-320, 1e-310, 2.3e-308])
@pytest.mark.parametrize("discount", [0.3, 0.9, 0.999])
def test_enclosures_hold_where_numbers_underflow(reward, discount):
    """Products of denormal numbers lose more than the unit roundoff."""
    transitions = [[[0.3, 0.7], [0.9, 0.1]], [[0.5, 0.5], [0.2, 0.8]]]
    mdp = MDP(transitions, [[reward, 0.0], [2 * reward, -reward]], discount)
    exact = optimal_value(exact_mdp(mdp), 0, 2)
    for method in METHODS:
        assert_enclosed(solve(mdp, Hard(), 1e-300, method), exact)
