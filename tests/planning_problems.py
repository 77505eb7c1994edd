"""Small named planning problems, as plain data, for tests that run every solver over all of them.

A `Problem` is a list of rows (state, action, reward, successors) that the oracle reads directly;
`mdp(representation)` hands the same numbers to the library as a dense array, one CSR matrix, a
list of matrices or state-action pairs. `hard_value` is the textbook's or the closed form's V*.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from oracle import Enclosure, ExactMDP, Pair, exact_mdp, optimal_support, optimal_value
from tsallax.planning.mdp import MDP
from tsallax.regularizer import Hard, Regularizer, Soft, Sparse, Tsallis

REPRESENTATIONS = ("dense", "csr", "list", "pairs")


@dataclass(frozen=True)
class Row:
    """A state-action pair; `successors` and the probability of ending sum to one."""

    state: int
    action: int
    reward: float
    successors: dict[int, float]
    termination: float = 0.0


@dataclass(frozen=True)
class Problem:
    """A finite MDP as data, with the size of its coefficient alpha and what is known of V*."""

    name: str
    n_states: int
    rows: tuple[Row, ...]
    discount: float
    terminal: tuple[int, ...] = ()
    alpha: float = 0.5
    hard_value: tuple[float, ...] | None = None
    tolerance: float = 1e-6

    @property
    def n_actions(self) -> int:
        return 1 + max(row.action for row in self.rows)

    @property
    def rectangular(self) -> bool:
        """Whether every non-terminal state has every action."""
        return len(self.rows) == self.n_actions * (self.n_states - len(self.terminal))

    @property
    def representations(self) -> tuple[str, ...]:
        return REPRESENTATIONS if self.rectangular else ("pairs",)

    def exact(self) -> ExactMDP:
        """The rational MDP of these floats, without going through the library."""
        states: list[list[Pair]] = [[] for _ in range(self.n_states)]
        for row in sorted(self.rows, key=lambda r: (r.state, r.action)):
            successors = tuple((s, Fraction(p)) for s, p in sorted(row.successors.items()))
            states[row.state].append(Pair(row.action, Fraction(row.reward), successors))
        living = self.n_states - len(self.terminal)
        initial = [Fraction(0 if s in self.terminal else 1, living) for s in range(self.n_states)]
        return ExactMDP(
            tuple(tuple(row) for row in states), Fraction(self.discount), tuple(initial)
        )

    def mdp(self, representation: str = "pairs", **options: Any) -> MDP:
        """The library's MDP, built from one of the four representations."""
        n, k = self.n_states, self.n_actions
        if self.terminal:
            options["terminal"] = np.isin(np.arange(n), self.terminal)
        if representation == "pairs":
            options["pairs"] = [(row.state, row.action) for row in self.rows]
            places, n_rows = range(len(self.rows)), len(self.rows)
        else:
            places, n_rows = [k * row.state + row.action for row in self.rows], n * k
        transitions: Any = np.zeros((n_rows, n))
        rewards, endings = np.zeros(n_rows), np.zeros(n_rows)
        for i, row in zip(places, self.rows):
            rewards[i], endings[i] = row.reward, row.termination
            for s, p in row.successors.items():
                transitions[i, s] = p
        if endings.any():
            options["termination"] = endings
        if representation == "dense":
            transitions, rewards = transitions.reshape(n, k, n), rewards.reshape(n, k)
        elif representation == "list":
            transitions = [sp.csr_array(transitions[a::k]) for a in range(k)]
        else:
            transitions = sp.csr_array(transitions)
        return MDP(transitions, rewards, self.discount, **options)


@dataclass(frozen=True)
class Choice:
    """A regulariser of the shared list; its alpha scales with the problem's rewards."""

    name: str
    q: float
    make: Callable[[float], Regularizer] = field(compare=False)
    share: float = 1.0

    def alpha(self, problem: Problem) -> float:
        return self.share * problem.alpha

    def regularizer(self, problem: Problem) -> Regularizer:
        return self.make(self.alpha(problem))


CHOICES = (
    Choice("hard", 2.0, lambda alpha: Hard(), share=0.0),
    Choice("soft", 1.0, Soft),
    Choice("sparse", 2.0, Sparse),
    Choice("tsallis-1.5", 1.5, lambda alpha: Tsallis(alpha, q=1.5)),
    Choice("tsallis-3", 3.0, lambda alpha: Tsallis(alpha, q=3.0)),
    Choice("tsallis-50", 50.0, lambda alpha: Tsallis(alpha, q=50.0)),
    Choice("tsallis-0.5", 0.5, lambda alpha: Tsallis(alpha, q=0.5)),
)


def random_rows(
    seed: int,
    n_states: int,
    n_actions: int,
    reward: Callable[[np.random.Generator], float],
    *,
    branches: int = 3,
    ragged: bool = False,
    terminal: tuple[int, ...] = (),
    ending: float = 0.0,
) -> tuple[Row, ...]:
    """Garnet rows: `branches` random successors each, probabilities from broken sticks."""
    rng = np.random.default_rng(seed)
    rows = []
    for s in range(n_states):
        if s in terminal:
            continue
        count = int(rng.integers(1, n_actions + 1)) if ragged else n_actions
        for a in sorted(rng.choice(n_actions, size=count, replace=False)):
            stop = float(rng.choice([0.0, ending])) if ending else 0.0
            cuts = np.sort(rng.random(min(branches, n_states) - 1))
            sticks = np.diff(np.concatenate(([0.0], cuts, [1.0]))) * (1.0 - stop)
            where = rng.choice(n_states, size=len(sticks), replace=False)
            successors = {int(j): float(p) for j, p in zip(where, sticks) if p > 0}
            rows.append(Row(s, int(a), float(reward(rng)), successors, stop))
    return tuple(rows)


def random_policy(mdp: MDP, seed: int) -> Any:
    """A per-pair policy with some exact zeros and some certainties."""
    rng = np.random.default_rng(seed)
    policy = np.zeros(mdp.n_pairs)
    for s in range(mdp.n_states):
        pairs = slice(mdp.pointer[s], mdp.pointer[s + 1])
        n = mdp.pointer[s + 1] - mdp.pointer[s]
        if n:
            weights = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.7)
            weights[rng.integers(n)] += 0.1
            policy[pairs] = weights / weights.sum()
    return policy


def policy_transitions(mdp: MDP, pi: Any) -> Any:
    """T_pi(s'|s) as a dense matrix."""
    step = np.zeros((mdp.n_states, mdp.n_states))
    np.add.at(step, mdp.state_of, pi[:, None] * mdp.transitions.toarray())
    return step


def puterman_two_state(discount: float = 0.95) -> Problem:
    """Puterman's two-state example (Markov Decision Processes, section 3.1).

    In state 0 stay-or-drift earns 5, leaving earns 10; state 1 costs 1 for ever. So
    V(1) = -1/(1-g) and V(0) = max(10 + g V(1), (5 + g V(1)/2) / (1 - g/2)).
    """
    g = discount
    sink = -1 / (1 - g)
    rows = (
        Row(0, 0, 5.0, {0: 0.5, 1: 0.5}),
        Row(0, 1, 10.0, {1: 1.0}),
        Row(1, 0, -1.0, {1: 1.0}),
    )
    start = max(10 + g * sink, (5 + g * sink / 2) / (1 - g / 2))
    return Problem(f"puterman-{g}", 2, rows, g, hard_value=(start, sink))


def forest_three() -> Problem:
    """The three-age forest, fire 0.1, rewards 4 for the old stand waited on and 2 for it cut."""
    rows = []
    for s in range(3):
        older = min(s + 1, 2)
        rows.append(Row(s, 0, 4.0 if s == 2 else 0.0, {0: 0.1, older: 0.9}))
        rows.append(Row(s, 1, (0.0, 1.0, 2.0)[s], {0: 1.0}))
    return Problem("forest-3", 3, tuple(rows), 0.9, hard_value=(26.244, 29.484, 33.484))


def bandit(n: int, reward: float, discount: float) -> Problem:
    """One state, n equal actions: V* = (r + alpha Omega_max(n)) / (1 - gamma) for every Omega."""
    rows = tuple(Row(0, a, reward, {0: 1.0}) for a in range(n))
    return Problem(
        f"bandit-{n}", 1, rows, discount, hard_value=(reward / (1 - discount),), tolerance=1e-7
    )


def ladder(n: int, discount: float) -> Problem:
    """A deterministic chain with one action: +1 on the last step, then the end."""
    rows = tuple(Row(s, 0, 1.0 if s == n - 2 else 0.0, {s + 1: 1.0}) for s in range(n - 1))
    value = (*(discount ** (n - 2 - s) for s in range(n - 1)), 0.0)
    return Problem(f"ladder-{n}", n, rows, discount, (n - 1,), hard_value=value)


def symmetric_ring(n: int) -> Problem:
    """A ring where left and right are exact mirror images: two optimal actions in every state."""
    rows = []
    for s in range(n):
        for a, step in enumerate((-1, 1, 0)):
            rows.append(Row(s, a, -0.25 if step == 0 else 0.5, {(s + step) % n: 1.0}))
    return Problem(f"ring-{n}", n, tuple(rows), 0.75, hard_value=(2.0,) * n)


def survival() -> Problem:
    """One state, "continue" ends with probability 1/4 and "stop" always does, both at a cost.

    Hard: stopping costs 2, continuing -1/(1 - 0.9 * 0.75) = -3.077, so V* = -2.
    """
    rows = (Row(0, 0, -1.0, {0: 0.75}, 0.25), Row(0, 1, -2.0, {}, 1.0))
    return Problem("survival", 1, rows, 0.9, hard_value=(-2.0,))


def half_life() -> Problem:
    """One state, one action, ending with probability 1/2: V* = 1 / (1 - gamma / 2)."""
    rows = (Row(0, 0, 1.0, {0: 0.5}, 0.5),)
    return Problem("half-life", 1, rows, 0.99, hard_value=(1 / (1 - 0.495),))


def normal(scale: float) -> Callable[[np.random.Generator], float]:
    return lambda rng: scale * float(rng.normal())


gauss = normal(1.0)


def costs(rng: np.random.Generator) -> float:
    return -float(rng.random())


PROBLEMS: tuple[Problem, ...] = (
    puterman_two_state(0.95),
    puterman_two_state(0.5),
    forest_three(),
    bandit(1, -2.0, 0.9),
    bandit(5, 1.5, 0.9),
    ladder(5, 0.9),
    symmetric_ring(4),
    survival(),
    half_life(),
    Problem("garnet", 7, random_rows(0, 7, 4, gauss), 0.9),
    Problem("garnet-ragged", 8, random_rows(1, 8, 4, gauss, ragged=True), 0.95),
    Problem("all-negative", 6, random_rows(2, 6, 3, lambda g: -1 - g.random()), 0.95),
    Problem("all-positive", 6, random_rows(3, 6, 3, lambda g: 5 + g.random()), 0.95),
    Problem("huge-rewards", 6, random_rows(4, 6, 3, normal(1e6)), 0.95, alpha=3e5, tolerance=1e-2),
    Problem("small-alpha", 5, random_rows(5, 5, 3, normal(1e6)), 0.9, alpha=1e-3, tolerance=1e-2),
    Problem("tiny", 5, random_rows(6, 5, 3, normal(1e-8)), 0.9, alpha=1e-8, tolerance=1e-13),
    Problem("terminal", 7, random_rows(7, 7, 3, gauss, terminal=(2, 5)), 0.95, (2, 5)),
    Problem(
        "terminal-ragged", 7, random_rows(8, 7, 3, costs, terminal=(6,), ragged=True), 0.99, (6,)
    ),
    Problem("ending", 6, random_rows(9, 6, 3, gauss, ending=0.25), 0.98),
    Problem(
        "ending-and-terminal-negative",
        6,
        random_rows(10, 6, 3, costs, ending=0.5, terminal=(0,), ragged=True),
        0.98,
        (0,),
    ),
    Problem("one-action", 6, random_rows(11, 6, 1, gauss), 0.9),
    Problem("discount-0", 5, random_rows(12, 5, 4, gauss), 0.0),
    Problem("discount-0.999", 6, random_rows(13, 6, 3, gauss), 0.999, tolerance=1e-5),
    Problem("many-actions", 3, random_rows(14, 3, 12, lambda g: g.random()), 0.9),
)

BY_NAME = {problem.name: problem for problem in PROBLEMS}
CHOICE = {choice.name: choice for choice in CHOICES}


@cache
def stored(name: str) -> ExactMDP:
    """The rational MDP of what the library stored for the named problem."""
    return exact_mdp(BY_NAME[name].mdp("pairs"))


@cache
def truth(name: str, choice: str) -> Enclosure:
    """The oracle's enclosure of V* for a named problem and a named regulariser."""
    return optimal_value(stored(name), CHOICE[choice].alpha(BY_NAME[name]), CHOICE[choice].q)


@cache
def true_support(name: str, choice: str) -> tuple[int, ...]:
    """Per pair of a named problem: +1 in the optimal policy's support, -1 out, 0 too close."""
    alpha, q = CHOICE[choice].alpha(BY_NAME[name]), CHOICE[choice].q
    verdicts = optimal_support(stored(name), truth(name, choice), alpha, q)
    return tuple(verdict for row in verdicts for verdict in row)
