"""Tabular Q-learning converges to the Q of `solve`, can be continued, and checks its arguments."""

from __future__ import annotations

import contextlib
import itertools
import math
import signal

import numpy as np
import pytest

from planning_problems import BY_NAME
from tabular_environments import SOME, Chain, Masked, bandit, endings, restricted
from tsallax import problems
from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP
from tsallax.planning.solver import solve
from tsallax.regularizer import Hard, Soft, Sparse, Tsallis
from tsallax.tabular.learning import q_learning
from tsallax.tabular.step_size import StepSize
from tsallax.tabular.tabular_result import Interrupted, TabularResult

REGULARIZERS = (Hard(), Soft(0.2), Sparse(0.2), Tsallis(0.2, q=1.5))


def lake() -> MDP:
    return MDP.from_gymnasium("FrozenLake-v1", 0.9)


def error(result: TabularResult, mdp: MDP) -> float:
    """max |Q - Q*| relative to max |Q*|; the two tables must lack the same pairs."""
    truth = solve(mdp, result.regularizer, tolerance=1e-9).q
    pairs = np.isfinite(truth)
    assert np.array_equal(pairs, np.isfinite(result.q))
    assert np.all(result.q[~pairs] == -np.inf)
    return float(np.abs(result.q[pairs] - truth[pairs]).max() / np.abs(truth[pairs]).max())


# The error that 500,000 samples stay below, from episodes under the default exploration and from
# single pairs: about twice the worst of six seeds.
CASES = {
    "forest": (problems.forest, 0.004, 0.005),
    "garnet": (lambda: problems.garnet(20, 4, 3, discount=0.9), 0.02, 0.004),
    "frozen lake": (lake, 0.2, 0.06),
    "termination": (BY_NAME["survival"].mdp, 0.02, 0.006),
    "ragged, terminal": (BY_NAME["terminal-ragged"].mdp, 0.12, 0.06),
    "ragged, terminal, ending": (BY_NAME["ending-and-terminal-negative"].mdp, 0.12, 0.03),
}


COVERING = set(zip(CASES, itertools.cycle(REGULARIZERS)))


@pytest.mark.parametrize("explore", [None, "pairs"])
@pytest.mark.parametrize(
    ("case", "regularizer"),
    [
        pytest.param(*pair, marks=() if pair in COVERING else pytest.mark.slow)
        for pair in itertools.product(CASES, REGULARIZERS)
    ],
    ids=str,
)
def test_it_converges_to_the_q_of_solve(case, regularizer, explore):
    make, *tolerances = CASES[case]
    result = q_learning(make(), regularizer, steps=500_000, explore=explore)
    assert error(result, make()) < tolerances[explore == "pairs"]
    if explore == "pairs":
        tried = result.visits[result.q > -np.inf]
        assert tried.min() > 0.9 * tried.mean()
        assert result.episodes == 0


def test_a_hundred_times_the_samples_leave_a_fifth_of_the_error():
    """Averaging takes errors to a tenth."""
    mdp = problems.garnet(5, 3, 2, discount=0.8, seed=1)

    def mean_error(steps):
        runs = [q_learning(mdp, Sparse(0.2), steps=steps, seed=seed) for seed in range(3)]
        return np.mean([error(run, mdp) for run in runs])

    assert mean_error(200_000) < 0.2 * mean_error(2_000)


@pytest.mark.parametrize(
    ("explore", "step_size"),
    [(Soft(0.5), "polynomial"), ("uniform", StepSize(0.6, scale=0.3)), ("epsilon", "rescaled")],
    ids=str,
)
def test_it_converges_under_every_exploration_and_schedule(explore, step_size):
    mdp = problems.garnet(5, 3, 2, discount=0.6, seed=1)
    result = q_learning(mdp, Sparse(0.2), explore=explore, step_size=step_size)
    assert error(result, mdp) < 0.01
    assert result.explore == (Hard() if isinstance(explore, str) else explore)


def test_an_environment_teaches_the_q_of_its_mdp():
    mdp = endings()
    result = q_learning(Chain(mdp, limit=20), Sparse(0.2), discount=0.8, steps=20_000)
    assert error(result, mdp) < 0.05


def test_a_masked_environment_teaches_the_q_of_the_mdp_with_the_allowed_pairs():
    mdp = endings()
    env = Masked(mdp, SOME, limit=20)
    result = q_learning(env, Sparse(0.2), discount=0.8, steps=20_000, explore="uniform")
    assert error(result, restricted(mdp, SOME)) < 0.1


def test_frozen_lake_is_learnt_from_its_gymnasium_id():
    """Holes and the goal are found to be terminal: the table lacks what `solve`'s lacks."""
    result = q_learning("FrozenLake-v1", Sparse(0.2), discount=0.9, steps=60_000)
    assert error(result, lake()) < 0.3
    assert result.source == "FrozenLake-v1"
    assert set(result.returns) == {0.0, 1.0}
    assert result.lengths.max() <= 100
    ends = np.isneginf(result.q).all(1)
    assert np.flatnonzero(ends).tolist() == [5, 7, 11, 12, 15], "the holes and the goal"
    more = q_learning("FrozenLake-v1", Sparse(0.2), discount=0.9, steps=3, initial=result, seed=1)
    assert np.array_equal(np.isneginf(more.q).all(1), ends), "states found to end stay terminal"
    assert not more.value[ends].any()


both_sources = pytest.mark.parametrize("source", [problems.forest(), "FrozenLake-v1"], ids=str)


@both_sources
def test_the_seed_decides_everything(source):
    def run(seed):
        return q_learning(source, Sparse(0.5), discount=0.9, steps=3_000, seed=seed)

    first, again, other = run(1), run(1), run(2)
    for name in ("q", "value", "policy", "visits", "returns", "lengths"):
        assert np.array_equal(getattr(first, name), getattr(again, name)), name
    assert not np.array_equal(first.q, other.q)


def test_sparse_exploration_alone_starves_a_pair_and_the_default_does_not():
    mdp = bandit([1.0, 0.0])
    alone = q_learning(mdp, Sparse(0.1), epsilon=0.0, steps=10_000)
    default = q_learning(mdp, Sparse(0.1), steps=10_000)
    assert alone.visits[0, 1] <= 1
    assert default.visits[0, 1] > 400


def test_a_result_can_be_continued():
    ladder = BY_NAME["ladder-5"].mdp(initial=0)
    whole = q_learning(ladder, Sparse(0.1), steps=800)
    half = q_learning(ladder, Sparse(0.1), steps=400)
    rest = q_learning(ladder, Sparse(0.1), steps=400, initial=half)
    assert np.array_equal(rest.q, whole.q)
    assert np.array_equal(rest.visits, whole.visits)
    assert np.array_equal(rest.returns, whole.returns)
    assert (half.steps, rest.steps) == (400, 800)
    once = q_learning("FrozenLake-v1", Soft(0.1), discount=0.9, steps=500)
    twice = q_learning("FrozenLake-v1", Soft(0.1), discount=0.9, steps=500, initial=once)
    assert twice.steps == 1_000
    assert np.all(np.isfinite(twice.value))


@both_sources
def test_progress_goes_from_zero_to_one(source, monkeypatch):
    shares = []
    monkeypatch.setattr(
        "tsallax.tabular.learning.bar", lambda *_: contextlib.nullcontext(shares.append)
    )
    q_learning(source, Hard(), discount=0.9, steps=1_000)
    assert len(shares) > 1
    assert all(0 < a < b for a, b in itertools.pairwise(shares))
    assert shares[-1] == 1.0


@both_sources
def test_ctrl_c_raises_the_result_so_far(source, monkeypatch):
    """In the middle of the work that follows the first report of progress."""

    def interrupt(*_):
        raise KeyboardInterrupt

    def reported(share):
        if not started:
            started.append(share)
            signal.setitimer(signal.ITIMER_REAL, 0.02)

    started = []
    monkeypatch.setattr("tsallax.tabular.learning.bar", lambda *_: contextlib.nullcontext(reported))
    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt, match="interrupted after") as caught:
            q_learning(source, Sparse(0.5), discount=0.9, steps=10**10)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert isinstance(caught.value, Interrupted)
    result = caught.value.result
    assert 0 < result.steps < 10**10
    again = q_learning(source, Sparse(0.5), discount=0.9, steps=100, initial=result)
    assert again.steps == result.steps + 100


def nothing_to_learn() -> MDP:
    return MDP([[0.0, 1.0]], [0.0], 0.9, pairs=[(0, 0)], terminal=[1], initial=1)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (None, {"step_size": 0.1}, "constant step_size 0.1"),
        (None, {"step_size": "constant"}, "step_size must be 'rescaled', 'polynomial'"),
        (None, {"regularizer": "sparse"}, "regularizer must be a regularizer such as Sparse"),
        (None, {"regularizer": Sparse(np.array([0.1, 0.2]))}, "one alpha"),
        (None, {"explore": "boltzmann"}, "explore must be a regularizer such as Soft"),
        (None, {"epsilon": 1.5}, "epsilon must be a number"),
        (None, {"steps": 0}, "steps must be an integer of at least 1"),
        (None, {"seed": -1}, "seed must be an integer of at least 0"),
        (None, {"limit": 2.5}, "limit must be an integer of at least 1"),
        (None, {"discount": 1.0}, "discount must be a number"),
        (None, {"initial": [1.0, 2.0]}, r"initial must be a number, a table \(3, 2\)"),
        (None, {"initial": "zero"}, "initial must be a number"),
        (None, {"initial": math.inf}, "initial must be finite"),
        (nothing_to_learn(), {}, "every initial state of the MDP is terminal"),
        ([1, 2], {"discount": 0.9}, "needs an MDP, a Gymnasium environment or its id, not list"),
        ("FrozenLake-v1", {}, "needs a discount"),
        (
            problems.inventory(capacity=4, lead_time=1, max_order=2), {},
            r"q_learning needs an MDP, not FunctionalMDP: use model.to_mdp\(\)",
        ),
        ("FrozenLake-v1", {"discount": 0.9, "explore": "pairs"}, "explore='pairs' needs an MDP"),
        ("FrozenLak-v1", {"discount": 0.9}, "FrozenLak-v1: .*did you mean FrozenLake-v1"),
        ("tabular_environments:lake", {"discount": 0.9}, "tabular_environments has no function"),
        ("Blackjack-v1", {"discount": 0.9}, "Blackjack-v1: .*Discrete observations, not Tuple"),
        ("CartPole-v1", {"discount": 0.9}, "CartPole-v1: .*not Box: use DeepQ"),
    ],
)  # fmt: skip
def test_impossible_requests_are_refused_in_one_line(source, options, message):
    options = {"regularizer": Sparse(0.1), **options}
    with pytest.raises(InvalidInput, match=message) as caught:
        q_learning(problems.forest() if source is None else source, **options)
    assert "\n" not in str(caught.value)
