"""Finite horizons by backward induction, and `FiniteHorizonSolution`, with a policy for every step.

    V_T = final_value,   V_t = U V_{t+1},   t = T - 1, ..., 0

The computed v_t is within e_t of V_t in every state, where rho_t bounds the rounding of one sweep
and B is gamma times the largest sum of a row:

    e_T = 0,   e_t = B e_{t+1} + rho_t.

The policy that is greedy in v_{t+1} at every step t is worth v_t to within e_t, too.  Values are
stored for all steps, (T + 1) S numbers; policies are not, and one sweep computes one again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.memory import require_memory
from tsallax.planning import finite_horizon_files
from tsallax.planning.bellman import Bellman
from tsallax.planning.forms import Floats, frozen, named, read_value
from tsallax.planning.kernels.sparse_linear import max_abs
from tsallax.planning.mdp import MDP
from tsallax.planning.solution import make_frame, pair_columns
from tsallax.progress import bar
from tsallax.regularizer import Regularizer
from tsallax.wording import plural

COLUMN_BYTES = 48
"""Memory of `to_columns` for each step and pair."""


@dataclass(frozen=True, repr=False, eq=False)
class FiniteHorizonSolution:
    """The optimal values and policies of a regularised MDP that ends after `horizon` steps.

    Attributes:
        horizon: T, the number of steps.
        values: V_t(s), shape (T + 1, S): the value of state s with T - t steps to go; the last row
            is the final value.
        errors: a bound on |values[t] - V_t| in every state, shape (T + 1,). The policies are worth
            at least values[t] - errors[t].
        seconds: wall time.
        tolerance: the tolerance asked for.

    >>> from tsallax import Hard, problems, solve
    >>> solution = solve(problems.forest(), Hard(), horizon=2)
    >>> solution.values
    array([[0.81, 3.24, 7.24],
           [0.  , 1.  , 4.  ],
           [0.  , 0.  , 0.  ]])
    """

    mdp: MDP
    regularizer: Regularizer
    horizon: int
    values: Floats
    errors: Floats
    seconds: float
    tolerance: float

    @property
    def value(self) -> Floats:
        """V_0(s), shape (S,)."""
        first: Floats = self.values[0]
        return first

    @property
    def lower(self) -> Floats:
        """A bound below V_0(s) and below the value of the policies."""
        return self.lower_at(0)

    @property
    def upper(self) -> Floats:
        """A bound above V_0(s)."""
        return self.upper_at(0)

    @property
    def error(self) -> float:
        """A bound on |value - V_0| in every state: rounding alone."""
        return float(self.errors[0])

    @property
    def converged(self) -> bool:
        """Whether `error` is at most the tolerance asked for."""
        return self.error <= self.tolerance

    @property
    def final_value(self) -> Floats:
        """V_T(s), shape (S,)."""
        last: Floats = self.values[-1]
        return last

    @property
    def regularized_return(self) -> float:
        """d'V_0: what the start is worth, entropy included."""
        return float(self.mdp.initial @ self.value)

    def lower_at(self, step: int) -> Floats:
        """A bound below V_t(s) and below the value of the policies from step t."""
        return self._moved(step, -1.0)

    def upper_at(self, step: int) -> Floats:
        """A bound above V_t(s)."""
        return self._moved(step, 1.0)

    def pair_policy_at(self, step: int) -> Floats:
        """pi_t(a|s) of every pair, for the step t from 0 to T - 1; computed by one sweep."""
        t = checks.count("step", step, at_least=0, below=self.horizon)
        _, policy, *_ = self._operator.sweep(self._operator.start(np.array(self.values[t + 1])))
        return policy.weights

    def pair_q_at(self, step: int) -> Floats:
        """Q_t(s, a) = r + gamma E V_{t+1} of every pair; `q_at` lays it out as a table."""
        t = checks.count("step", step, at_least=0, below=self.horizon)
        return self._operator.action_values(np.array(self.values[t + 1]))

    def policy_at(self, step: int) -> Floats:
        """pi_t(a|s) as a table (S, A), zero at terminal states; computed by one sweep.

        >>> from tsallax import Hard, problems, solve
        >>> forest = solve(problems.forest(), Hard(), horizon=10)
        >>> forest.policy_at(0)[1], forest.policy_at(9)[1]  # wait at first, cut at last
        (array([1., 0.]), array([0., 1.]))
        """
        return self.mdp.table(self.pair_policy_at(step))

    def q_at(self, step: int) -> Floats:
        """Q_t(s, a) = r + gamma E V_{t+1} as a table (S, A), -inf where an action is missing."""
        return self.mdp.table(self.pair_q_at(step), fill=-math.inf)

    def pair_certified_support_at(self, step: int) -> NDArray[np.int8]:
        """What is proven of every pair at step t; `certified_support_at` lays it out as a table."""
        t = checks.count("step", step, at_least=0, below=self.horizon)
        return self._operator.certified_support(self.lower_at(t + 1), self.upper_at(t + 1))

    def certified_support_at(self, step: int) -> NDArray[np.int8]:
        """What is proven of the support of the optimal policy of step t, as in `Solution`."""
        return self.mdp.table(self.pair_certified_support_at(step))

    def to_columns(self, steps: Iterable[int] | None = None) -> dict[str, NDArray[Any]]:
        """One row for each step and pair: step, state, action, value, q and probability, by name.

        Of all steps, or of those given, such as `steps=range(10)`: the columns take up to 48 bytes
        for each row, and are refused where they do not fit into memory. Otherwise as those of
        `Solution`.

        >>> from tsallax import Hard, problems, solve
        >>> columns = solve(problems.forest(), Hard(), horizon=10).to_columns(steps=[0, 9])
        >>> columns["step"][5:8], columns["action"][5:8], columns["probability"][5:8]
        (array([0, 9, 9]), array(['cut', 'wait', 'cut'], dtype=object), array([0., 1., 0.]))
        """
        below, mdp = self.horizon, self.mdp
        if steps is not None and not isinstance(steps, Iterable):
            raise InvalidInput(f"steps must be a list, such as steps=[0], not {steps!r}")
        chosen = [
            checks.count("a step", step, at_least=0, below=below)
            for step in (range(below) if steps is None else steps)
        ]
        n, pairs = len(chosen), mdp.n_pairs
        what = f"the columns of {plural(n, 'step')} and {plural(pairs, 'pair')}"
        require_memory(COLUMN_BYTES * n * pairs, what, "give fewer steps, such as steps=range(10)")
        value, q, probability = (np.empty((n, pairs)) for _ in range(3))
        for row, step in enumerate(chosen):
            value[row] = self.values[step][mdp.state_of]
            q[row], probability[row] = self.pair_q_at(step), self.pair_policy_at(step)
        return {
            "step": np.repeat(np.array(chosen, np.int64), pairs),
            **{name: np.tile(column, n) for name, column in pair_columns(mdp).items()},
            "value": value.reshape(-1),
            "q": q.reshape(-1),
            "probability": probability.reshape(-1),
        }

    def to_frame(self, steps: Iterable[int] | None = None) -> Any:
        """The table of `to_columns` as a `pandas.DataFrame`; pandas has to be installed.

        >>> frame = solution.to_frame(steps=range(10))  # doctest: +SKIP
        >>> frame[frame.probability > 0]  # doctest: +SKIP
        """
        return make_frame(partial(self.to_columns, steps))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the solution and its MDP as an `.npz` file without pickles, whole or not at all.

        >>> import tempfile, pathlib
        >>> from tsallax import Hard, problems, solve
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     solve(problems.forest(), Hard(), horizon=3).save(pathlib.Path(folder, "f.npz"))
        ...     FiniteHorizonSolution.load(pathlib.Path(folder, "f.npz")).horizon
        3
        """
        finite_horizon_files.write(path, {f.name: getattr(self, f.name) for f in fields(self)})

    @classmethod
    def load(cls, path: str | PathLike[str], max_bytes: int | None = None) -> FiniteHorizonSolution:
        """Read a solution that `save` wrote, with its MDP. `max_bytes` is that of `MDP.load`.

        The values are proven again by a sweep for every step, which takes as long as `solve` did.

        >>> FiniteHorizonSolution.load("absent.npz")
        Traceback (most recent call last):
        ...
        tsallax.errors.InvalidInput: absent.npz: no such file
        """
        return cls(**finite_horizon_files.read(path, max_bytes))

    def __repr__(self) -> str:
        return (
            f"FiniteHorizonSolution({self.regularizer}, {self.horizon} steps: error <= "
            f"{self.error:.2g}, {self.seconds:.3g} s, value {self.value.min():.6g} to "
            f"{self.value.max():.6g})"
        )

    @cached_property
    def _operator(self) -> Bellman:
        return Bellman(self.mdp, self.regularizer, finite_horizon=True)

    def _moved(self, step: int, sign: float) -> Floats:
        t = checks.count("step", step, at_least=0, below=self.horizon + 1)
        values, error = self.values[t], float(self.errors[t])
        if error == 0.0:
            return np.array(values)
        moved = np.nextafter(values + sign * error, sign * math.inf)
        return np.where(self.mdp.terminal, 0.0, moved)


def induct_backward(
    mdp: MDP,
    regularizer: Regularizer,
    horizon: int,
    final_value: ArrayLike | None,
    tolerance: float,
    progress: bool | None,
) -> FiniteHorizonSolution:
    """V_t of all steps, by `horizon` sweeps from the final value."""
    started = time.perf_counter()
    steps = checks.count("horizon", horizon)
    operator = Bellman(mdp, regularizer, finite_horizon=True)
    values = _table_of_values(steps, mdp.n_states)
    values[steps] = read_final_value(mdp, final_value)
    errors = np.zeros(steps + 1)
    iterate = operator.start(values[steps])
    size = float(max_abs(values[steps]))
    with bar("solving", progress) as report:
        for t in range(steps - 1, -1, -1):
            updated, policy, *_ = operator.sweep(iterate)
            values[t] = updated
            before, size = size, float(max_abs(updated))
            if not size < math.inf:
                raise InvalidInput(
                    f"the values of step {t} overflow float64: scale the rewards or alpha down"
                )
            errors[t] = operator.sweep_error(max(before, size), errors[t + 1])
            iterate = iterate._replace(value=values[t], hint=policy.thresholds)
            report((steps - t) / steps)
    return FiniteHorizonSolution(
        mdp=mdp,
        regularizer=regularizer,
        horizon=steps,
        values=frozen(values),
        errors=frozen(errors),
        seconds=time.perf_counter() - started,
        tolerance=tolerance,
    )


def read_final_value(mdp: MDP, value: Any) -> Floats:
    """V_T from the caller: a number for every state, 0 where none is given and at terminals."""
    if value is None:
        return np.zeros(mdp.n_states)
    v = read_value("final_value", value, mdp.n_states, mdp.state_names)
    wrong = np.flatnonzero(mdp.terminal & (v != 0.0))
    if len(wrong):
        place = named("state", int(wrong[0]), mdp.state_names)
        raise InvalidInput(f"final_value of {place} is {v[wrong[0]]}: a terminal state is worth 0")
    return v


def _table_of_values(steps: int, states: int) -> Floats:
    what = f"the values of {steps:,} steps and {states:,} states"
    remedy = "solve in parts, with final_value= the value of the later part"
    require_memory(8 * (steps + 1) * states, what, remedy)
    return np.empty((steps + 1, states))
