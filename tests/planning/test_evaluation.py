"""Policy evaluation against exact rationals; performance bounds and gap certificates."""

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from oracle import bellman, evaluate_policy, exact_mdp, exact_policy, value_of_steps
from planning_problems import (
    BY_NAME,
    CHOICES,
    Problem,
    gauss,
    puterman_two_state,
    random_policy,
    random_rows,
    stored,
    truth,
)
from solution_checks import present, two_choices
from tsallax import (
    MDP,
    Hard,
    InvalidInput,
    NotConverged,
    Soft,
    Sparse,
    Tsallis,
    evaluate,
    gap_certificate,
    performance_bound,
    problems,
    solve,
)
from tsallax.planning.linear_systems import PolicySystem
from tsallax.planning.policy_table import as_text
from tsallax.planning.summary import summarize


def floats(rationals):
    return np.array([float(x) for x in rationals])


def assert_evaluates(evaluation, mdp, pair_policy, alpha, q):
    """Every field of an `Evaluation` against the rational evaluation of the same policy."""
    exact = exact_mdp(mdp)
    expected = evaluate_policy(exact, exact_policy(exact, pair_policy), alpha, q)
    size = max(1e-300, float(max(abs(v) for v in expected.value)), np.max(np.abs(mdp.rewards)))
    close = 1e-12 * size / float(1 - exact.modulus)
    np.testing.assert_allclose(evaluation.value, floats(expected.value), rtol=0, atol=close)
    q_values = mdp.rewards + mdp.discount * (mdp.transitions @ floats(expected.value))
    has = present(mdp)
    np.testing.assert_allclose(evaluation.q[has], q_values, rtol=0, atol=close)
    assert np.all(evaluation.q[~has] == -np.inf)

    visitation = floats(expected.visitation)
    np.testing.assert_allclose(evaluation.visitation, visitation, rtol=1e-10, atol=1e-12)
    pairs = pair_policy * visitation[mdp.state_of]
    table = evaluation.state_action_visitation
    np.testing.assert_allclose(table[has], pairs, rtol=1e-10, atol=1e-12)
    assert np.all(table[~has] == 0)

    assert evaluation.expected_return == pytest.approx(float(expected.expected_return), abs=close)
    assert evaluation.regularized_return == pytest.approx(
        float(expected.regularized_return), abs=close
    )
    if alpha:
        assert evaluation.entropy == pytest.approx(float(expected.entropy), rel=1e-9, abs=1e-12)
    else:
        assert evaluation.entropy == 0
    # J = d'V = rho'r, and the same with the entropy on both sides
    assert mdp.initial @ evaluation.value == pytest.approx(evaluation.regularized_return, abs=close)
    assert table[has] @ mdp.rewards == pytest.approx(evaluation.expected_return, abs=close)


@two_choices
def test_evaluation_is_the_exact_one(problem, choice):
    mdp = problem.mdp()
    policy = random_policy(mdp, 1)
    evaluation = evaluate(mdp, policy, choice.regularizer(problem))
    assert_evaluates(evaluation, mdp, policy, choice.alpha(problem), choice.q)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), discount=st.sampled_from((0.3, 0.9)), ragged=st.booleans())
def test_theorem_2_entropies_are_sums_over_time(seed, discount, ragged):
    """W = E[sum gamma^t (1 - pi(a_t|s_t))/2] and H = E[sum -gamma^t log pi(a_t|s_t)]."""
    mdp = Problem("random", 5, random_rows(seed, 5, 4, gauss, ragged=ragged), discount).mdp()
    policy = random_policy(mdp, seed)
    logs = np.log(np.where(policy > 0, policy, 1.0))
    occupied, sparse_sum, soft_sum, weight = mdp.initial, 0.0, 0.0, 1.0
    while weight > 1e-13:
        pairs = occupied[mdp.state_of] * policy
        sparse_sum += weight * float(pairs @ (0.5 * (1 - policy)))
        soft_sum -= weight * float(pairs @ logs)
        occupied = pairs @ mdp.transitions
        weight *= discount
    w, h = (evaluate(mdp, policy, r).entropy for r in (Sparse(1.0), Soft(1.0)))
    assert w == pytest.approx(sparse_sum, rel=1e-8, abs=1e-10)
    assert h == pytest.approx(soft_sum, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("q", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_lemma_5_entropies_stay_below_that_of_the_uniform_policy(q):
    mdp = Problem("uniform", 4, random_rows(5, 4, 6, gauss), 0.9).mdp()
    regularizer = Tsallis(1.0, q=q)
    largest = 10 * regularizer.max_entropy(6)
    uniform = np.full(mdp.n_pairs, 1 / 6)
    assert evaluate(mdp, uniform, regularizer).entropy == pytest.approx(largest, rel=1e-9)
    for seed in range(20):
        entropy = evaluate(mdp, random_policy(mdp, seed), regularizer).entropy
        assert 0 <= entropy <= largest


def test_without_a_regulariser_the_value_is_that_of_the_rewards():
    mdp = BY_NAME["terminal-ragged"].mdp()
    policy = random_policy(mdp, 4)
    plain = evaluate(mdp, policy)
    assert_evaluates(plain, mdp, policy, 0, 2)
    assert np.array_equal(plain.value, evaluate(mdp, policy, Hard()).value)


def test_puterman_drifting_for_ever_is_worth_its_closed_form():
    mdp = puterman_two_state(0.95).mdp("pairs", initial=0)
    evaluation = evaluate(mdp, np.array([0, 0]))
    np.testing.assert_allclose(evaluation.value, [-60 / 7, -20.0], rtol=1e-13)
    stay = 1 / (1 - 0.95 / 2)
    np.testing.assert_allclose(evaluation.visitation, [stay, 20 - stay], rtol=1e-12)
    mdp, policy = puterman_two_state().mdp("pairs", initial=[0.25, 0.75]), np.array([0.5, 0.5, 1.0])
    assert_evaluates(evaluate(mdp, policy, Soft(0.5)), mdp, policy, 0.5, 1)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    size=st.tuples(st.integers(1, 5), st.integers(1, 4)),
    ends=st.booleans(),
    discount=st.sampled_from([0.0, 0.5, 0.99, 0.9999]),
    choice=st.sampled_from(CHOICES),
)
def test_any_policy_of_any_small_mdp_is_evaluated(seed, size, ends, discount, choice):
    states, actions = size
    terminal = (states - 1,) if ends and states > 1 else ()
    rows = random_rows(
        seed, states, actions, gauss, ragged=True, terminal=terminal, ending=0.5 if ends else 0.0
    )
    problem = Problem("any", states, rows, discount, terminal)
    mdp = problem.mdp()
    policy = random_policy(mdp, seed)
    evaluation = evaluate(mdp, policy, choice.regularizer(problem))
    assert_evaluates(evaluation, mdp, policy, choice.alpha(problem), choice.q)


@pytest.mark.parametrize(("states", "discount"), [(500, 0.999), (3000, 0.99), (3000, 0.9999)])
def test_a_policy_that_moves_in_a_cycle_is_evaluated(states, discount):
    """A random ring, in which the value is a geometric series and every Krylov method is slow."""
    draw = np.random.default_rng(states)
    ring, reward = draw.permutation(states), draw.normal(size=states)
    steps = csr_array((np.ones(states), (ring, np.roll(ring, -1))), shape=(states, states))
    start = int(ring[0])
    mdp = MDP([steps, steps], np.stack([reward, reward + 0.01], 1), discount, initial=start)
    pi = np.full((states, 2), 0.5)
    found = evaluate(mdp, pi, Sparse(0.1))
    weight = discount ** np.arange(states) / -np.expm1(states * np.log(discount))
    assert found.visitation[ring] == pytest.approx(weight, rel=1e-9)
    expected = math.fsum(weight * (reward[ring] + 0.005))
    assert found.expected_return == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert found.entropy == pytest.approx(0.25 / (1 - discount), rel=1e-9)
    assert found.value[start] == pytest.approx(found.regularized_return, rel=1e-9, abs=1e-9)
    assert abs(found.value[start] - (expected + 0.025 / (1 - discount))) <= found.error + 1e-9


@pytest.mark.parametrize("reward", [0.0, 1e-30, -1e-12])
def test_a_policy_that_earns_next_to_nothing_is_evaluated(reward):
    """What others could earn sets the scale of its error."""
    half = np.full((2, 2, 2), 0.5)
    found = evaluate(MDP(half, [[reward, 1.0]] * 2, 0.9), [0, 0])
    assert found.expected_return == pytest.approx(10 * reward, rel=1e-9)
    assert found.value == pytest.approx(np.full(2, 10 * reward), rel=1e-9)


def test_an_inaccurate_evaluation_is_refused(monkeypatch):
    """Where neither linear solver works, an error is raised instead of a wrong value."""
    mdp = problems.forest(states=5, discount=0.9)
    nothing = lambda self, b, *_, **__: np.zeros_like(b)  # noqa: E731
    for name in ("solve", "solve_exactly"):
        monkeypatch.setattr(PolicySystem, name, nothing)
    with pytest.raises(InvalidInput, match="cannot be evaluated in float64"):
        evaluate(mdp, np.zeros(5, int))


@pytest.mark.parametrize("distance", [1e-6, 9e-10, -9e-10, 1e-13, 1e-15])
def test_an_index_next_to_one_is_not_treated_as_one(distance):
    mdp = MDP([[[0.9, 0.1], [1, 0]], [[0, 1], [0.8, 0.2]]], [[1, 0.5], [0, -0.5]], 0.99)
    regularizer = Tsallis(1.0, 1.0 - distance)
    solution = solve(mdp, regularizer, 1e-10)
    found = evaluate(mdp, solution.policy, regularizer)
    assert (found.value >= solution.lower - found.error).all()
    assert found.error < 1e-9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: evaluate(f, [0, 0, 0], "sparse"), "evaluate needs a regularizer .* 'sparse'"),
        (lambda f: performance_bound(f, Sparse(np.array([0.1, 0.2]))), "needs one alpha"),
        (lambda f: gap_certificate(f, "s"), "gap_certificate needs what solve returns, not str"),
        (lambda f: gap_certificate(f, solve(f, Hard()).policy), "not ndarray: .* use evaluate"),
        (lambda f: gap_certificate("f", solve(f, Hard())), "gap_certificate needs an MDP, not str"),
        (lambda f: gap_certificate(f.with_discount(0.5), solve(f, Hard())), "of another MDP"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused_in_one_line(call, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        call(problems.forest())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("n", "discount"), [(1, 0.9), (2, 0.0), (49, 0.99)])
def test_performance_bound_is_the_theorems_formula(n, discount):
    rows = random_rows(0, 3, n, gauss)
    mdp = Problem("bound", 3, rows, discount).mdp()
    alpha = 0.3
    horizon = alpha / (1 - discount)
    assert performance_bound(mdp, Hard()) == 0
    assert performance_bound(mdp, Sparse(alpha)) == pytest.approx(horizon * (n - 1) / (2 * n))
    assert performance_bound(mdp, Soft(alpha)) == pytest.approx(horizon * math.log(n))
    for q in (0.5, 1.5, 3.0):
        largest = (1 - n ** (1 - q)) / (q * (q - 1))
        assert performance_bound(mdp, Tsallis(alpha, q=q)) == pytest.approx(horizon * largest)
    assert performance_bound(mdp, Tsallis(alpha, q=2.0)) == performance_bound(mdp, Sparse(alpha))
    assert performance_bound(mdp, Tsallis(alpha, q=1.0)) == performance_bound(mdp, Soft(alpha))


@two_choices
def test_gap_certificate_covers_the_true_gap_and_keeps_to_the_bound(problem, choice):
    mdp, regularizer = problem.mdp(), choice.regularizer(problem)
    exact, best = stored(problem.name), truth(problem.name, "hard").lower
    bound = performance_bound(mdp, regularizer)
    rough = 1e5 * problem.tolerance
    for tolerance, method in ((problem.tolerance, "auto"), (rough, "value_iteration")):
        solution = solve(mdp, regularizer, tolerance, method)
        certificate = gap_certificate(mdp, solution)
        assert certificate.shape == (mdp.n_states,)
        reached = evaluate_policy(exact, exact_policy(exact, solution.pair_policy)).reward_value
        for s, (high, low) in enumerate(zip(best, reached)):
            assert high >= low
            assert Fraction(float(certificate[s])) >= high - low, f"state {s}"
        assert np.all(certificate <= bound * (1 + 1e-9) + 4 * tolerance)
        assert np.all(certificate[mdp.terminal] == 0)


@given(st.integers(0, 10**6), st.sampled_from([1.0, 0.8]), st.sampled_from([Hard(), Sparse(0.4)]))
@settings(max_examples=15)
def test_gap_certificate_covers_the_true_gap_of_a_finite_horizon(seed, discount, regularizer):
    rows = random_rows(seed, 5, 3, gauss, ragged=True, terminal=(4,), ending=0.3)
    mdp, steps = Problem("random", 5, rows, discount, (4,)).mdp(), 6
    final = np.where(mdp.terminal, 0.0, np.random.default_rng(seed).normal(size=5))
    solution = solve(mdp, regularizer, horizon=steps, final_value=final)
    certificate = gap_certificate(mdp, solution)
    exact = exact_mdp(mdp)
    best = [Fraction(float(x)) for x in final]
    for _ in range(steps):
        best = bellman(exact, best, Fraction(0), Fraction(1))
    policies = [exact_policy(exact, solution.pair_policy_at(t)) for t in range(steps)]
    reached = value_of_steps(exact, policies, final, Fraction(0), Fraction(1))
    for s in range(5):
        assert Fraction(float(certificate[s])) >= best[s] - reached[s] >= 0
    longest = sum(discount**t for t in range(steps))
    bound = longest * float(regularizer.alpha) * float(regularizer.max_entropy(mdp.max_actions))
    assert np.all(certificate <= bound * (1 + 1e-9) + 1e-12)
    assert certificate[4] == 0


def test_next_to_discount_one_a_gap_is_infinite_and_an_evaluation_refused():
    """Sums of rows of a policy may make up for 1 - gamma, by rounding."""
    mdp = MDP(np.ones((1, 100, 1)), np.linspace(0.0, 1.0, 100)[None], 1 - 1e-14)
    with pytest.raises(NotConverged) as unfinished:
        solve(mdp, Sparse(0.1), 1e3, max_sweeps=50)
    assert gap_certificate(mdp, unfinished.value.solution).tolist() == [math.inf]
    with pytest.raises(InvalidInput, match="the error of its value is up to inf"):
        evaluate(mdp, unfinished.value.solution)


def test_gap_certificate_is_tighter_than_the_theorem_on_a_sparse_solution():
    mdp = BY_NAME["garnet"].mdp()
    solution = solve(mdp, Sparse(0.1), 1e-8)
    assert np.max(gap_certificate(mdp, solution)) < 0.9 * performance_bound(mdp, Sparse(0.1))


def test_memory_grows_with_the_pairs_and_not_with_a_table_of_all_actions():
    """One state with 5,000 actions among 20,000: a table (S, A) takes 800 MB."""
    n, many = 20_000, 5_000
    state = np.concatenate([np.zeros(many, int), np.arange(1, n)])
    action = np.concatenate([np.arange(many), np.zeros(n - 1, int)])
    ones = np.ones(n + many - 1)
    rows = csr_array((ones, (np.arange(len(state)), (state * 7 + action + 1) % n)))
    mdp = MDP(rows, np.cos(action), 0.9, pairs=np.stack([state, action], 1))
    tracemalloc.start()
    try:
        solution = solve(mdp, Sparse(0.1))
        found = evaluate(mdp, solution.pair_policy, Sparse(0.1))
        summary = summarize("ragged", solution)
        text = as_text(solution, 3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6
    assert found.pair_q.shape == found.pair_visitation.shape == (mdp.n_pairs,)
    assert found.pair_visitation.sum() == pytest.approx(10)
    assert summary.certified_in + summary.certified_out <= mdp.n_pairs
    assert len(text.splitlines()) == 5


def test_without_discount_only_the_policy_itself_has_to_end():
    lake = MDP.from_gymnasium("FrozenLake-v1", 1.0)
    uniform = np.full((16, 4), 0.25)
    found = evaluate(lake, uniform)
    pi = lake.flatten(uniform)
    chain = np.zeros((16, 16))
    np.add.at(chain, lake.state_of, pi[:, None] * lake.transitions.toarray())
    reward = np.bincount(lake.state_of, pi * lake.rewards, 16)
    exact = np.linalg.solve(np.eye(16) - chain, reward)
    assert np.abs(found.value - exact).max() <= found.error + 1e-12
    assert found.error < 1e-9
    visits = np.linalg.solve(np.eye(16) - chain.T, lake.initial)
    going_on = ~lake.terminal
    np.testing.assert_allclose(found.visitation[going_on], visits[going_on], rtol=1e-9)
    assert abs(found.expected_return - exact @ lake.initial) < 1e-9


@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
def test_without_rewards_every_policy_is_worth_nothing(discount):
    mdp = MDP([[[0.0, 1.0]], [[0.0, 1.0]]], np.zeros((2, 1)), discount, terminal=[1])
    assert evaluate(mdp, [0, 0]).value.tolist() == [0.0, 0.0]


def test_without_discount_a_policy_that_never_ends_is_refused():
    stay = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    mdp = MDP(stay, [[0.0, -1.0], [0.0, 0.0]], 1.0, terminal=[1], state_names=["here", "there"])
    assert evaluate(mdp, [1, 0]).value.tolist() == [-1.0, 0.0]
    assert abs(evaluate(mdp, [[0.9, 0.1], [1.0, 0.0]], Sparse(2.0)).value[0] - 0.8) < 1e-12
    with pytest.raises(InvalidInput, match=r"this policy never ends: state 0 .'here'., and"):
        evaluate(mdp, [0, 0])
