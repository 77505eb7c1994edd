"""Paths of solutions over alpha against single solves."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from oracle import evaluate_policy, exact_mdp, exact_policy, optimal_value
from planning.functional_models import stock_mdp, stock_model
from planning_problems import BY_NAME
from tsallax import (
    InvalidInput,
    Soft,
    Sparse,
    Tsallis,
    evaluate,
    gap_certificate,
    problems,
    solve,
    solve_path,
)

PROBLEMS = {
    "garnet": problems.garnet(300, 5, 5, discount=0.99, seed=1),
    "maze": problems.maze(20, seed=2),
    "forest": problems.forest(),
    "ending": BY_NAME["survival"].mdp(),
}
FAMILIES = {
    "sparse": (Sparse, None),
    "soft": (Soft, None),
    "tsallis": (lambda alpha: Tsallis(alpha, 1.5), 1.5),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_path_is_what_single_solves_give(name, family):
    mdp, (make, q) = PROBLEMS[name], FAMILIES[family]
    alphas = [0.5, 0.01, 0.1, 0.013, 2.0]
    path = solve_path(mdp, alphas, family, 1e-6, q=q)
    for i, alpha in enumerate(alphas):
        solution = solve(mdp, make(alpha), 1e-9)
        apart = np.abs(path.values[i] - solution.value).max()
        assert apart <= path.errors[i] + solution.error
        assert path.errors[i] <= 1e-6
        gap = gap_certificate(mdp, solution)
        # more than the exact bonus, by no more than the two enclosures and GAP_PRECISION
        assert path.gaps[i] >= mdp.initial @ gap - 1e-6
        assert path.worst_gaps[i] <= gap.max() * (1 + 1e-3) + 1e-5
        plain = evaluate(mdp, solution)
        assert path.expected_returns[i] == pytest.approx(
            plain.expected_return, abs=1e-3 * (1 + gap.max())
        )
        assert path.regularized_returns[i] == pytest.approx(mdp.initial @ path.values[i])
        assert path.support_ratios[i] == pytest.approx(solution.support_ratio, abs=0.01)
    assert path.q == make(1.0).q
    assert repr(path).startswith(f"AlphaPath({family}, 5 alphas from 0.01 to 2: gap ")


@pytest.mark.parametrize("name", ["forest", "ending"])
def test_certified_gaps_bound_the_exact_loss(name):
    mdp = PROBLEMS[name]
    exact = exact_mdp(mdp)
    best = optimal_value(exact, 0, 2).lower
    alphas = np.geomspace(0.01, 30, 12)
    path = solve_path(mdp, alphas, tolerance=1e-4)
    for i, alpha in enumerate(alphas):
        # the path's own policy is that of its last certificate; any solution's loss is as large
        solution = solve(mdp, Sparse(float(alpha)), 1e-10)
        plain = evaluate_policy(exact, exact_policy(exact, solution.pair_policy)).value
        assert float(max(b - v for b, v in zip(best, plain))) <= path.worst_gaps[i]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: solve_path(m, []), "alphas must be a list of numbers"),
        (lambda m: solve_path(m, 0.5), "alphas must be a list of numbers"),
        (lambda m: solve_path(m, [0.5, -1.0]), "alpha must be positive"),
        (lambda m: solve_path(m, [0.5, np.nan]), "alpha must be positive"),
        (
            lambda m: solve_path(m, [0.5], "hard"),
            "unknown regularizer 'hard': choose from soft, sparse, tsallis",
        ),
        (lambda m: solve_path(m, [0.5], "tsallis"), "regularizer 'tsallis' needs q"),
        (lambda m: solve_path(m, [0.5], q=1.5), "regularizer 'sparse' takes no q"),
        (lambda m: solve_path(m, [0.5], tolerance=0), "tolerance must be a number above 0"),
        (lambda m: solve_path("m", [0.5]), "solve_path needs an MDP, not str"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(call, message):
    with pytest.raises(InvalidInput, match=message) as refusal:
        call(problems.forest())
    assert "\n" not in str(refusal.value)


def test_models_from_functions_have_the_paths_of_stored_ones():
    model, mdp, alphas = stock_model(), stock_mdp(), [0.5, 0.1, 0.6, 2.0]
    path, stored = solve_path(model, alphas, tolerance=1e-6), solve_path(mdp, alphas)
    assert np.abs(path.values - stored.values).max() <= 2e-6
    assert path.errors.max() <= 1e-6
    # stored gaps are the exact bonus and the enclosure, to within GAP_PRECISION
    slack = 2e-6 + 1e-4 * stored.worst_gaps.max()
    np.testing.assert_allclose(path.gaps, stored.gaps, atol=slack)
    np.testing.assert_allclose(path.worst_gaps, stored.worst_gaps, atol=slack)
    np.testing.assert_allclose(path.expected_returns, stored.expected_returns, atol=slack)
    used = mdp.n_pairs / model.n_pairs  # of the pairs, in the one case those that are allowed
    np.testing.assert_allclose(path.support_ratios, stored.support_ratios * used)


def test_a_path_is_drawn(tmp_path):
    path = solve_path(problems.forest(), [1.0, 0.1, 10.0])
    path.plot(tmp_path / "path.png")
    assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InvalidInput, match="there is no folder"):
        path.plot(tmp_path / "absent" / "path.png")
    with pytest.raises(InvalidInput, match=r"must end in one of .*\.pdf"):
        path.plot(tmp_path / "path.xyz")


def test_columns_are_one_row_for_each_alpha(monkeypatch):
    path = solve_path(problems.forest(), [1.0, 0.1, 10.0])
    columns = path.to_columns()
    assert list(columns) == [
        "alpha", "error", "support_ratio", "gap", "worst_gap", "regularized_return",
        "expected_return",
    ]  # fmt: skip
    for name, column in columns.items():
        assert column.tolist() == getattr(path, f"{name}s").tolist()
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))
    assert path.to_frame() == columns
