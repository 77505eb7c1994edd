"""Simulated episodes of a policy in an MDP: `simulate` returns their returns and trajectories."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.interrupts import interruptible
from tsallax.memory import require_memory
from tsallax.planning.bellman import check_problem, kernel_arrays
from tsallax.planning.finite_horizon import FiniteHorizonSolution
from tsallax.planning.forms import Floats, frozen
from tsallax.planning.kernels import episodes as kernel
from tsallax.planning.kernels import thread_blocks
from tsallax.planning.mdp import MDP
from tsallax.planning.solution import Solution
from tsallax.planning.step_policies import read_policies, read_stationary
from tsallax.progress import bar
from tsallax.regularizer import Hard

NEGLIGIBLE_WEIGHT = 1e-6
"""gamma^max_steps of the default of `max_steps`."""

BYTES_OF_AN_EPISODE = 2 * 4 * 8 + 6 * 8
"""Memory of its random numbers, while they are made, and of its numbers so far."""

STEPS_OF_A_CALL = 1 << 22
"""About the largest number of steps between two moments at which Ctrl-C is noticed."""


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """Episodes of a policy in an MDP; entry i of an array (n,) belongs to episode i.

    Attributes:
        returns: the sum of the rewards, shape (n,).
        discounted_returns: the sum of gamma^t r_t, shape (n,).
        lengths: the number of steps, shape (n,).
        truncated: whether the episode was cut off after `max_steps`, shape (n,).
        final_states: the state after the last step, -1 where the episode ended on a pair.
        max_steps: the largest number of steps of an episode.
        truncation_bias: a bound on how far the mean of `discounted_returns` is from the expected
            return because of truncation: gamma^max_steps max|r|/(1 - gamma), and gamma^T max|V_T|
            of a `FiniteHorizonSolution` that is cut off before its horizon T.
        offsets: the steps of episode i are offsets[i] to offsets[i+1] - 1 of the next three arrays;
            these four are None unless `record` was asked for.
        states: the state of every step.
        actions: the action of every step.
        rewards: the expected reward r(s, a) of every step.

    >>> from tsallax import MDP, simulate
    >>> chain = MDP([[0.0, 1.0]], [3.0], 0.9, pairs=[(0, 0)], terminal=[1])
    >>> simulate(chain, [[1.0], [0.0]], episodes=10, seed=0)
    Simulation(10 episodes of 1 steps, discounted return 3 +- 0, 0 truncated)
    """

    returns: Floats
    discounted_returns: Floats
    lengths: NDArray[np.int64]
    truncated: NDArray[np.bool_]
    final_states: NDArray[np.int64]
    max_steps: int
    truncation_bias: float
    offsets: NDArray[np.int64] | None
    states: NDArray[np.int32] | None
    actions: NDArray[np.int32] | None
    rewards: Floats | None

    @property
    def mean(self) -> float:
        """The mean of the discounted returns, an estimate of `evaluate(...).expected_return`."""
        return float(self.discounted_returns.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of `mean`; NaN for a single episode, of which it is not known."""
        n = len(self.returns)
        if n < 2:
            return math.nan
        return float(self.discounted_returns.std(ddof=1)) / math.sqrt(n)

    def episode(self, index: int) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
        """States, actions and rewards of one episode."""
        if (
            self.offsets is None
            or self.states is None
            or self.actions is None
            or self.rewards is None
        ):
            raise InvalidInput("the steps were not recorded", add=("record", True))
        i = checks.count("index", index, at_least=0, below=len(self.returns))
        steps = slice(self.offsets[i], self.offsets[i + 1])
        return self.states[steps], self.actions[steps], self.rewards[steps]

    def __repr__(self) -> str:
        return (
            f"Simulation({len(self.returns)} episodes of {self.lengths.mean():.6g} steps, "
            f"discounted return {self.mean:.6g} +- {self.standard_error:.2g}, "
            f"{np.count_nonzero(self.truncated)} truncated)"
        )


@interruptible()
def simulate(
    mdp: MDP,
    policy: ArrayLike | Solution | FiniteHorizonSolution | Callable[[int], ArrayLike],
    episodes: int,
    seed: int,
    *,
    max_steps: int | None = None,
    record: bool = False,
    progress: bool | None = None,
) -> Simulation:
    """Simulate episodes of a policy, from the initial distribution of the MDP.

    The result depends on the seed alone, not on the number of threads; episode i is the same
    whatever the number of episodes. Rewards are the expected r(s, a), which is all an MDP has.

    Args:
        mdp: the problem.
        policy: what `solve` returned, or a policy in any form that `evaluate` takes: a table
            (S, A), one probability for each pair, one action for each state, or a function of the
            step.
        episodes: their number.
        seed: of the random numbers.
        max_steps: the number of steps after which an episode is cut off; default: the horizon of a
            `FiniteHorizonSolution`, and else the smallest with gamma^max_steps <= 1e-6.
        record: whether to keep the states, actions and rewards of all steps.
        progress: show a progress bar; default: on a terminal, for more than two seconds.

    >>> from tsallax import Hard, problems, solve
    >>> forest = problems.forest()
    >>> simulation = simulate(forest, solve(forest, Hard()), episodes=1000, seed=1, record=True)
    >>> simulation
    Simulation(1000 episodes of 132 steps, discounted return 29.5298 +- 0.16, 1000 truncated)
    >>> states, actions, rewards = simulation.episode(0)
    >>> states[:5], rewards[:5]
    (array([2, 2, 2, 2, 2], dtype=int32), array([4., 4., 4., 4., 4.]))
    """
    check_problem("simulate", mdp, Hard())
    n = checks.count("episodes", episodes)
    seeds = np.random.SeedSequence(checks.seed(seed))
    checks.flag("record", record)
    limit = _read_max_steps(mdp, policy, max_steps)
    found, empty = _new_episodes(seeds, n), _record(np.zeros(0, np.int64), 0)
    final_value = None
    if isinstance(policy, FiniteHorizonSolution) and limit == policy.horizon:
        final_value = policy.final_value
    _run(mdp, policy, limit, found, empty, progress)
    steps: dict[str, Any] = dict.fromkeys(kernel.StepRecord._fields)
    if record:
        offsets = np.concatenate(([0], np.cumsum(found.length)))
        recorded = _record(offsets, int(offsets[-1]))
        _run(mdp, policy, limit, _new_episodes(seeds, n), recorded, progress)
        steps = {name: frozen(array) for name, array in recorded._asdict().items()}
    if final_value is not None:
        reached = np.where(found.running, final_value[np.maximum(found.state, 0)], 0.0)
        found.returns[:] += reached
        found.discounted[:] += found.weight * reached
    return Simulation(
        returns=frozen(found.returns),
        discounted_returns=frozen(found.discounted),
        lengths=frozen(found.length),
        truncated=frozen(np.zeros(n, bool) if final_value is not None else found.running),
        final_states=frozen(found.state),
        max_steps=limit,
        truncation_bias=0.0 if final_value is not None else _truncation_bias(mdp, policy, limit),
        **steps,
    )


def _read_max_steps(mdp: MDP, policy: Any, given: Any) -> int:
    finite = isinstance(policy, FiniteHorizonSolution)
    if given is not None:
        limit = checks.count("max_steps", given, below=2**62)
        return min(limit, policy.horizon) if finite else limit
    if finite:
        return int(policy.horizon)
    if mdp.discount == 1.0:
        raise InvalidInput("an episode without discount may be long", add=("max_steps", 1000))
    if mdp.discount == 0.0:
        return 1
    return math.ceil(math.log(NEGLIGIBLE_WEIGHT) / math.log(mdp.discount))


def _truncation_bias(mdp: MDP, policy: Any, limit: int) -> float:
    if mdp.discount == 1.0:
        return math.inf
    bias = float(mdp.discount**limit * mdp.max_reward / (1.0 - mdp.discount))
    if isinstance(policy, FiniteHorizonSolution):
        bias += mdp.discount**policy.horizon * float(np.abs(policy.final_value).max())
    return bias


def _new_episodes(seeds: np.random.SeedSequence, n: int) -> kernel.Episodes:
    require_memory(BYTES_OF_AN_EPISODE * n, f"{n:,} episodes", "simulate fewer at a time")
    return kernel.Episodes(
        random=np.asarray(seeds.generate_state(4 * n, np.uint64), np.uint64).reshape(n, 4),
        state=np.empty(n, np.int64),
        running=np.empty(n, bool),
        length=np.empty(n, np.int64),
        returns=np.empty(n),
        discounted=np.empty(n),
        weight=np.empty(n),
    )


def _record(offsets: NDArray[np.int64], steps: int) -> kernel.StepRecord:
    require_memory(16 * steps, f"{steps:,} recorded steps", "lower episodes or max_steps")
    return kernel.StepRecord(
        offsets, np.empty(steps, np.int32), np.empty(steps, np.int32), np.empty(steps)
    )


def _run(
    mdp: MDP,
    policy: Any,
    limit: int,
    found: kernel.Episodes,
    record: kernel.StepRecord,
    progress: bool | None,
) -> None:
    """Start all episodes and take up to `limit` steps in each."""
    arrays = kernel_arrays(mdp)
    blocks = min(thread_blocks(), len(found.state))
    starts = np.empty(mdp.n_states)
    kernel.cumulative(np.array([0, mdp.n_states]), np.array(mdp.initial), starts)
    kernel.start_episodes(arrays.pointer, starts, blocks, found)
    ends = np.zeros(0) if mdp.termination is None else np.array(mdp.termination)
    actions = np.array(mdp.action_of)
    most = max(1, STEPS_OF_A_CALL // len(found.state))
    done = 0
    with bar("simulating", progress) as report:
        for pi, steps in _policies(mdp, policy, limit, most):
            if not found.running.any():
                break
            kernel.advance_episodes(arrays, pi, ends, actions, steps, blocks, found, record)
            done += steps
            report(done / limit, f"step {done:,} of {limit:,}")


def _policies(mdp: MDP, policy: Any, limit: int, most: int) -> Iterator[tuple[Floats, int]]:
    """The cumulative sums of the policy, each with the number of steps to take with it."""
    sums = np.empty(mdp.n_pairs)
    if isinstance(policy, FiniteHorizonSolution) or callable(policy):
        of_step = read_policies(mdp, policy, limit)
        for t in range(limit):
            kernel.cumulative(mdp.pointer, np.array(of_step(t)), sums)
            yield sums, 1
        return
    kernel.cumulative(mdp.pointer, np.array(read_stationary(mdp, policy)), sums)
    for done in range(0, limit, most):
        yield sums, min(most, limit - done)
