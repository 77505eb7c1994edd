"""The paper's lemmas and theorems, and their extension to every entropic index, as properties.

Random MDPs with rows that sum to one, as in the paper; `bellman` is the operator U, `solve` and
`evaluate` give fixed points, policies, visitations and returns. Theorems are numbered as they
appear in the paper: 1 sparse Bellman equation, 2 causal Tsallis entropy, 3 optimality of sparse
value iteration, 4 and 5 the performance bounds of sparse and soft.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning_problems import Problem, random_rows
from tsallax.planning.evaluation import evaluate, performance_bound
from tsallax.planning.mdp import MDP
from tsallax.planning.solver import bellman, solve
from tsallax.regularizer import Hard, Soft, Sparse, Tsallis

DISCOUNTS = (0.3, 0.9, 0.97)
ALPHAS = (0.01, 0.3, 2.0)
INDICES = (0.5, 1.0, 1.5, 2.0, 3.0)


@st.composite
def mdps(draw, ragged=None):
    """A garnet with up to six states and five actions, rewards of either or one sign."""
    states = draw(st.integers(1, 6))
    actions = draw(st.integers(1, 5))
    shift = draw(st.sampled_from((-4.0, 0.0, 4.0)))
    rows = random_rows(
        draw(st.integers(0, 10**6)),
        states,
        actions,
        lambda g: g.normal() + shift,
        ragged=draw(st.booleans()) if ragged is None else ragged,
    )
    return Problem("random", states, rows, draw(st.sampled_from(DISCOUNTS))).mdp()


regularizers = st.one_of(
    st.just(Hard()),
    st.builds(Tsallis, st.sampled_from(ALPHAS), q=st.sampled_from(INDICES)),
)
entropies = st.builds(Tsallis, st.sampled_from(ALPHAS), q=st.sampled_from(INDICES))
sparse = st.builds(Sparse, st.sampled_from(ALPHAS))
seeds = st.integers(0, 10**6)


def vectors(mdp, seed, count=2):
    rng = np.random.default_rng(seed)
    return [5 * rng.normal(size=mdp.n_states) for _ in range(count)]


def rounding(*arrays):
    """What float64 may lose in one sweep over numbers of this size."""
    return 1e-13 * (1 + max(np.max(np.abs(a)) for a in arrays))


def one_state(values):
    """The MDP whose Bellman operator is the regularised maximum of `values`."""
    values = np.atleast_1d(np.asarray(values, float))
    return MDP(np.ones((1, len(values), 1)), values[None, :], 0.0)


def maximum(values, regularizer):
    """max_p <p, values> + alpha Omega(p) in float64."""
    return float(bellman(one_state(values), regularizer, np.zeros(1))[0])


def projection(values, alpha):
    """sparsemax(values/alpha) and alpha*tau by the paper's sorting formula."""
    z = np.asarray(values) / alpha
    top = np.sort(z)[::-1]
    counts = np.arange(1, len(z) + 1)
    k = int(np.count_nonzero(1 + counts * top > np.cumsum(top)))
    tau = (top[:k].sum() - 1) / k
    return np.maximum(z - tau, 0), alpha * tau


def random_policy(mdp, seed):
    rng = np.random.default_rng(seed)
    policy = rng.random(mdp.n_pairs) ** 2 + 1e-3
    return policy / np.add.reduceat(policy, mdp.pointer[:-1])[mdp.state_of]


# eq. (spmax_bnd) and the supporting set

action_values = st.lists(st.floats(-50, 50), min_size=1, max_size=12)


@given(z=action_values, alpha=st.sampled_from((1e-3, 0.3, 2.0, 100.0)), q=st.sampled_from(INDICES))
def test_regularised_maximum_lies_between_max_and_max_plus_largest_entropy(z, alpha, q):
    n = len(z)
    largest = math.log(n) if q == 1 else (1 - n ** (1 - q)) / (q * (q - 1))
    value = maximum(z, Tsallis(alpha, q=q))
    slack = 1e-13 * (abs(max(z)) + alpha)
    assert max(z) - slack <= value <= max(z) + alpha * largest + slack


@given(z=action_values, alpha=st.sampled_from((0.3, 2.0, 100.0)))
def test_spmax_is_the_papers_formula(z, alpha):
    policy, scaled_tau = projection(z, alpha)
    held = np.asarray(z)[policy > 0] / alpha
    tau = scaled_tau / alpha
    formula = alpha * (0.5 * np.sum((held - tau) * (held + tau)) + 0.5)
    assert maximum(z, Sparse(alpha)) == pytest.approx(formula, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("d", [2, 3, 10, 1000])
def test_spmax_bound_is_tighter_than_that_of_log_sum_exp(d):
    assert (d - 1) / (2 * d) <= math.log(d)
    equal = np.zeros(d)
    assert maximum(equal, Sparse(1.0)) == pytest.approx((d - 1) / (2 * d))
    assert maximum(equal, Soft(1.0)) == pytest.approx(math.log(d))
    assert Sparse(1.0).max_entropy(d) < 0.5


@given(mdp=mdps(), regularizer=sparse)
def test_supported_actions_satisfy_the_support_condition(mdp, regularizer):
    """alpha + i Q(a_i) > sum_{j<=i} Q(a_j) for exactly the actions with probability."""
    solution = solve(mdp, regularizer, 1e-9)
    alpha = regularizer.alpha
    for s in range(mdp.n_states):
        pairs = slice(mdp.pointer[s], mdp.pointer[s + 1])
        order = np.argsort(-solution.pair_q[pairs], kind="stable")
        top = solution.pair_q[pairs][order]
        margins = alpha + np.arange(1, len(top) + 1) * top - np.cumsum(top)
        clear = np.abs(margins) > 1e-9
        held = solution.pair_policy[pairs][order] > 0
        assert np.array_equal(held[clear], margins[clear] > 0)


@given(
    z=st.lists(st.floats(-3, 3), min_size=1, max_size=10),
    alphas=st.tuples(*[st.floats(1e-3, 20)] * 2),
)
def test_support_grows_with_alpha_for_fixed_action_values(z, alphas):
    small, large = sorted(alphas)
    mdp = one_state(z)
    narrow, wide = (solve(mdp, Sparse(a), 1e-9) for a in (small, large))
    assert np.all(wide.policy[narrow.policy > 1e-9] > 0)
    assert not np.any((narrow.certified_support == 1) & (wide.certified_support == -1))


@given(z=st.lists(st.floats(-3, 3), min_size=1, max_size=10, unique=True))
def test_support_is_one_action_for_small_alpha_and_all_for_large(z):
    gap = np.sort(z)[::-1][0] - np.sort(z)[::-1][1] if len(z) > 1 else 1.0
    mdp = one_state(z)
    if gap > 1e-6:
        assert solve(mdp, Sparse(0.5 * gap), 1e-9).support.sum() == 1
    everything = len(z) * (max(z) - min(z)) + 1.0
    assert solve(mdp, Sparse(everything), 1e-9).support.all()


# Theorem 1: the sparse Bellman equation, from the KKT conditions


@given(mdp=mdps(), regularizer=sparse)
def test_theorem_1_optimum_satisfies_the_sparse_bellman_equation(mdp, regularizer):
    alpha, tolerance = regularizer.alpha, 1e-10
    solution = solve(mdp, regularizer, tolerance)
    evaluation = evaluate(mdp, solution.policy, regularizer)
    q = mdp.rewards + mdp.discount * (mdp.transitions @ evaluation.value)
    for s in range(mdp.n_states):
        pairs = slice(mdp.pointer[s], mdp.pointer[s + 1])
        policy, scaled_tau = projection(q[pairs], alpha)
        np.testing.assert_allclose(
            solution.pair_policy[pairs], policy, rtol=0, atol=10 * tolerance / alpha + 1e-9
        )
        z, tau = q[pairs][policy > 0] / alpha, scaled_tau / alpha
        value = alpha * (0.5 * np.sum((z - tau) * (z + tau)) + 0.5)
        assert evaluation.value[s] == pytest.approx(value, abs=1e-8)


@given(mdp=mdps(), regularizer=sparse)
def test_theorem_1_optimum_satisfies_the_kkt_conditions(mdp, regularizer):
    """lambda = c_s - rho(s)(Q + alpha/2 - alpha pi) >= 0 and lambda pi = 0, with rho > 0."""
    alpha = regularizer.alpha
    solution = solve(mdp, regularizer, 1e-10)
    evaluation = evaluate(mdp, solution.policy, regularizer)
    assert np.all(evaluation.visitation > 0)
    q, policy = mdp.flatten(evaluation.q), solution.pair_policy
    rho = evaluation.visitation[mdp.state_of]
    gradient = rho * (q + alpha / 2 - alpha * policy)
    multipliers = np.maximum.reduceat(np.where(policy > 0, gradient, -np.inf), mdp.pointer[:-1])[
        mdp.state_of
    ]
    slackness = multipliers - gradient
    size = 1e-7 * (1 + np.max(np.abs(q))) * np.max(rho)
    assert np.all(slackness >= -size)
    assert np.all(np.abs(slackness * policy) <= size)
    np.testing.assert_allclose(np.add.reduceat(policy, mdp.pointer[:-1]), 1, atol=1e-14)


@given(mdp=mdps(), regularizer=entropies, seed=seeds)
def test_theorem_1_no_other_policy_does_better(mdp, regularizer, seed):
    solution = solve(mdp, regularizer, 1e-9)
    best = evaluate(mdp, solution.policy, regularizer).regularized_return
    other = random_policy(mdp, seed)
    for step in (1e-3, 0.1, 1.0):
        mixed = (1 - step) * solution.pair_policy + step * other
        reached = evaluate(mdp, mixed, regularizer).regularized_return
        assert reached <= best + 1e-8 * (1 + abs(best))
    assert best == pytest.approx(float(mdp.initial @ solution.value), abs=2e-9)


# Theorem 2: W is the causal version of the Tsallis entropy


@settings(max_examples=25)
@given(mdp=mdps(), seed=seeds)
def test_theorem_2_w_is_the_causal_tsallis_entropy(mdp, seed):
    """E[sum gamma^t (1 - pi(a_t|s_t))/2], summed over time, is E_pi[S_{2,1/2}(pi(.|s))]."""
    policy = random_policy(mdp, seed)
    w, h = (evaluate(mdp, policy, r).entropy for r in (Sparse(1.0), Soft(1.0)))
    occupied, sparse_sum, soft_sum, weight = mdp.initial, 0.0, 0.0, 1.0
    while weight > 1e-13:
        pairs = occupied[mdp.state_of] * policy
        sparse_sum += weight * float(pairs @ (0.5 * (1 - policy)))
        soft_sum += weight * float(pairs @ -np.log(policy))
        occupied = pairs @ mdp.transitions
        weight *= mdp.discount
    assert w == pytest.approx(sparse_sum, rel=1e-8, abs=1e-10)
    assert h == pytest.approx(soft_sum, rel=1e-8, abs=1e-10)
    rho = evaluate(mdp, policy).visitation
    per_state = 0.5 * (1 - np.add.reduceat(policy**2, mdp.pointer[:-1]))
    assert w == pytest.approx(float(rho @ per_state), rel=1e-9, abs=1e-12)


# Lemmas 1 to 3 and Theorem 3, for every regulariser


@given(mdp=mdps(), regularizer=regularizers, seed=seeds)
def test_lemma_1_the_operator_is_monotone(mdp, regularizer, seed):
    x, step = vectors(mdp, seed)
    y = x + np.abs(step) * (np.random.default_rng(seed).random(mdp.n_states) < 0.5)
    lower, upper = bellman(mdp, regularizer, x), bellman(mdp, regularizer, y)
    assert np.all(lower <= upper + rounding(lower, upper))


@given(mdp=mdps(), regularizer=regularizers, seed=seeds, c=st.floats(-1e3, 1e3))
def test_lemma_2_a_constant_is_discounted(mdp, regularizer, seed, c):
    (x,) = vectors(mdp, seed, 1)
    plain, shifted = bellman(mdp, regularizer, x), bellman(mdp, regularizer, x + c)
    np.testing.assert_allclose(
        shifted, plain + mdp.discount * c, rtol=0, atol=rounding(plain, shifted)
    )


@given(seed=seeds, regularizer=regularizers, c=st.floats(0, 1e3))
def test_lemma_2_is_an_inequality_where_episodes_end(seed, regularizer, c):
    rows = random_rows(seed, 5, 3, lambda g: g.normal(), ending=0.5, terminal=(4,), ragged=True)
    mdp = Problem("ends", 5, rows, 0.9, (4,)).mdp()
    (x,) = vectors(mdp, seed, 1)
    x[4] = 0.0
    up = np.where(mdp.terminal, 0.0, c)
    plain, shifted = bellman(mdp, regularizer, x), bellman(mdp, regularizer, x + up)
    assert np.all(plain - rounding(shifted) <= shifted)
    assert np.all(shifted <= plain + mdp.discount * c + rounding(shifted))


@given(mdp=mdps(), regularizer=regularizers, seed=seeds)
def test_lemma_3_the_operator_is_a_contraction(mdp, regularizer, seed):
    x, y = vectors(mdp, seed)
    images = bellman(mdp, regularizer, x), bellman(mdp, regularizer, y)
    before, after = np.max(np.abs(x - y)), np.max(np.abs(images[0] - images[1]))
    assert after <= mdp.discount * before + rounding(*images)


@settings(max_examples=25)
@given(mdp=mdps(), regularizer=regularizers, seed=seeds)
def test_lemma_3_the_fixed_point_is_unique(mdp, regularizer, seed):
    ends = [solve(mdp, regularizer, 1e-9, initial_value=x).value for x in vectors(mdp, seed)]
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=2e-9)
    image = bellman(mdp, regularizer, ends[0])
    np.testing.assert_allclose(image, ends[0], rtol=0, atol=2e-9)


@settings(max_examples=25)
@given(mdp=mdps(), regularizer=regularizers, seed=seeds)
def test_theorem_3_value_iteration_converges_to_the_optimum_geometrically(mdp, regularizer, seed):
    optimum = solve(mdp, regularizer, 1e-10).value
    (x,) = vectors(mdp, seed, 1)
    distance = np.max(np.abs(x - optimum))
    for _ in range(30):
        x = bellman(mdp, regularizer, x)
        shrunk = np.max(np.abs(x - optimum))
        assert shrunk <= mdp.discount * distance + 1e-9
        distance = shrunk
    policy = random_policy(mdp, seed)
    assert np.all(evaluate(mdp, policy, regularizer).value <= optimum + 1e-8)


# Lemmas 4 and 5


@given(mdp=mdps(), regularizer=entropies, seed=seeds)
def test_lemma_4_regularised_powers_lie_above_the_hard_ones(mdp, regularizer, seed):
    (x,) = vectors(mdp, seed, 1)
    hard = soft = x
    for _ in range(8):
        hard, soft = bellman(mdp, Hard(), hard), bellman(mdp, regularizer, soft)
        assert np.all(hard <= soft + 10 * rounding(hard, soft))


@given(mdp=mdps(), regularizer=entropies)
def test_lemma_4_regularised_fixed_points_lie_above_the_hard_ones(mdp, regularizer):
    hard, regularized = solve(mdp, Hard(), 1e-9), solve(mdp, regularizer, 1e-9)
    assert np.all(hard.lower <= regularized.upper)
    bound = performance_bound(mdp, regularizer)
    assert np.all(regularized.value <= hard.value + bound * (1 + 1e-9) + 2e-9)


@given(mdp=mdps(), seed=seeds, q=st.sampled_from(INDICES))
def test_lemma_5_entropies_stay_under_their_bounds(mdp, seed, q):
    n, horizon = mdp.n_actions, 1 / (1 - mdp.discount)
    policy = random_policy(mdp, seed)
    w, h = (evaluate(mdp, policy, r).entropy for r in (Sparse(1.0), Soft(1.0)))
    assert 0 <= w <= horizon * (n - 1) / (2 * n) + 1e-12
    assert 0 <= h <= horizon * math.log(n) + 1e-12
    regularizer = Tsallis(1.0, q=q)
    assert (
        evaluate(mdp, policy, regularizer).entropy <= horizon * regularizer.max_entropy(n) + 1e-12
    )


@pytest.mark.parametrize("q", INDICES)
def test_lemma_5_the_bounds_are_attained_by_the_uniform_policy(q):
    mdp = Problem("uniform", 4, random_rows(5, 4, 6, lambda g: g.normal()), 0.9).mdp()
    regularizer = Tsallis(1.0, q=q)
    uniform = np.full(mdp.n_pairs, 1 / 6)
    expected = 10 * regularizer.max_entropy(6)
    assert evaluate(mdp, uniform, regularizer).entropy == pytest.approx(expected, rel=1e-9)


# Theorems 4 and 5: performance bounds


@given(mdp=mdps(ragged=False), alpha=st.sampled_from(ALPHAS))
def test_theorem_4_sparse_return_is_within_its_bound(mdp, alpha):
    n = mdp.n_actions
    loss = alpha / (1 - mdp.discount) * (n - 1) / (2 * n)
    assert performance_bound(mdp, Sparse(alpha)) == pytest.approx(loss)
    assert_return_within(mdp, Sparse(alpha), loss)


@given(mdp=mdps(ragged=False), alpha=st.sampled_from(ALPHAS))
def test_theorem_5_soft_return_is_within_its_bound(mdp, alpha):
    loss = alpha / (1 - mdp.discount) * math.log(mdp.n_actions)
    assert performance_bound(mdp, Soft(alpha)) == pytest.approx(loss)
    assert_return_within(mdp, Soft(alpha), loss)


@given(mdp=mdps(), regularizer=entropies)
def test_performance_bound_holds_for_every_index(mdp, regularizer):
    assert_return_within(mdp, regularizer, performance_bound(mdp, regularizer))


def assert_return_within(mdp, regularizer, loss):
    """E_pi*[r] - loss <= E_pi[r] <= E_pi*[r], in every state and on average."""
    best = evaluate(mdp, solve(mdp, Hard(), 1e-9).policy)
    reached = evaluate(mdp, solve(mdp, regularizer, 1e-9).policy)
    assert best.expected_return - loss - 1e-8 <= reached.expected_return
    assert reached.expected_return <= best.expected_return + 1e-8
    assert np.all(best.value - loss - 1e-8 <= reached.value)
    assert np.all(reached.value <= best.value + 1e-8)


def test_sparse_bound_levels_off_and_soft_bound_grows_with_the_actions():
    bounds = []
    for n in (2, 10, 100, 1000):
        mdp = MDP(np.ones((1, n, 1)), np.zeros((1, n)), 0.9)
        bounds.append([performance_bound(mdp, r) for r in (Sparse(1.0), Soft(1.0))])
    levels, grows = np.array(bounds).T
    assert np.all(levels < 0.5 / (1 - 0.9))
    np.testing.assert_allclose(np.diff(grows[1:]), 10 * math.log(10))
    assert np.all(levels < grows)
