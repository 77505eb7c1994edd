"""`Solution`: the optimal value and policy of a regularised MDP, with what is proven of them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax.errors import InvalidInput
from tsallax.planning import solution_files
from tsallax.planning.bellman import Bellman
from tsallax.planning.forms import Floats
from tsallax.planning.mdp import MDP
from tsallax.regularizer import Regularizer


@dataclass(frozen=True, repr=False, eq=False)
class BaseSolution:
    """What solutions of stored MDPs and of models from functions have in common; see `Solution`."""

    mdp: Any
    regularizer: Regularizer
    value: Floats
    lower: Floats
    upper: Floats
    converged: bool
    iterations: int
    sweeps: int
    seconds: float
    method: str
    tolerance: float

    @property
    def error(self) -> float:
        """The largest distance of `value` to V* that the enclosure leaves open."""
        return float(np.max(self.upper - self.lower)) / 2

    @property
    def regularized_return(self) -> float:
        """d'V: what the start is worth, entropy included; `evaluate` has the return alone."""
        return float(self.mdp.initial @ self.value)

    @property
    @abstractmethod
    def support_ratio(self) -> float:
        """Share of the pairs that the policy uses."""

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        return (
            f"{type(self).__name__}({self.regularizer}, {state}: error <= {self.error:.2g}, "
            f"{self.method}, {self.iterations} iterations, {self.sweeps} sweeps, "
            f"{self.seconds:.3g} s, value {self.value.min():.6g} to {self.value.max():.6g}, "
            f"support {self.support_ratio:.1%})"
        )


@dataclass(frozen=True, repr=False, eq=False)
class Solution(BaseSolution):
    """The optimal value and policy of a regularised MDP, with what is proven of them.

    Attributes:
        value: V(s), shape (S,): the centre of the enclosure.
        lower: a bound below V*(s) and below the value of the returned policy.
        upper: a bound above V*(s).
        pair_policy: pi(a|s) of every pair; `policy` lays it out as a table.
        converged: whether `error` is at most the tolerance asked for.
        iterations: certificates made.
        sweeps: applications of the Bellman operator to all states (not those of a fixed policy).
        seconds: wall time.
        method: the method asked for.
        tolerance: the error asked for; with a relative tolerance, what that amounts to.
    """

    mdp: MDP
    pair_policy: Floats

    @cached_property
    def pair_q(self) -> Floats:
        """Q(s, a) = r + gamma E V of every pair; `q` lays it out as a table."""
        return Bellman(self.mdp, self.regularizer).action_values(self.value)

    @cached_property
    def q(self) -> Floats:
        """Action values as a table (S, A), -inf where the state lacks the action."""
        return self.mdp.table(self.pair_q, fill=-math.inf)

    @cached_property
    def policy(self) -> Floats:
        """The policy as a table (S, A), zero at terminal states; it is worth at least `lower`."""
        return self.mdp.table(self.pair_policy)

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        """Where the policy is positive, as a table (S, A)."""
        return self.policy > 0.0

    @property
    def support_ratio(self) -> float:
        """Share of the pairs that the policy uses."""
        return float(np.count_nonzero(self.pair_policy)) / self.mdp.n_pairs

    @cached_property
    def pair_certified_support(self) -> NDArray[np.int8]:
        """What is proven of every pair; `certified_support` lays it out as a table."""
        operator = Bellman(self.mdp, self.regularizer)
        return operator.certified_support(self.lower, self.upper)

    @cached_property
    def certified_support(self) -> NDArray[np.int8]:
        """What is proven of the optimal policy's support, as a table (S, A): +1 in, -1 out, 0 open.

        A hard policy's support are the optimal actions; a soft policy (q <= 1) uses every action.
        """
        return self.mdp.table(self.pair_certified_support)

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """One row for each pair: state, action, value, q and probability, as arrays by name.

        States and actions have their names where the MDP has them, their indices otherwise;
        `value` is that of the state. Terminal states have no pair.

        >>> from tsallax import Hard, problems, solve
        >>> columns = solve(problems.forest(), Hard()).to_columns()
        >>> columns["action"][:3], columns["probability"][:3]
        (array(['wait', 'cut', 'wait'], dtype=object), array([1., 0., 1.]))
        """
        return {
            **pair_columns(self.mdp),
            "value": self.value[self.mdp.state_of],
            "q": self.pair_q,
            "probability": self.pair_policy,
        }

    def to_frame(self) -> Any:
        """The table of `to_columns` as a `pandas.DataFrame`; pandas has to be installed.

        >>> frame = solution.to_frame()  # doctest: +SKIP
        >>> frame[frame.probability > 0]  # doctest: +SKIP
        """
        return make_frame(self.to_columns)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the solution and its MDP as an `.npz` file without pickles, whole or not at all.

        >>> import tempfile, pathlib
        >>> from tsallax import Hard, problems, solve
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     solve(problems.forest(), Hard()).save(pathlib.Path(folder, "forest.npz"))
        ...     Solution.load(pathlib.Path(folder, "forest.npz")).policy[:, 0]
        array([1., 1., 1.])
        """
        solution_files.write(path, {f.name: getattr(self, f.name) for f in fields(self)})

    @classmethod
    def load(cls, path: str | PathLike[str], max_bytes: int | None = None) -> Solution:
        """Read a solution that `save` wrote, with its MDP.

        One sweep proves again that the enclosure is one and that the policy is worth at least its
        lower end; a file that claims more is refused. `max_bytes` is that of `MDP.load`.

        >>> Solution.load("absent.npz")
        Traceback (most recent call last):
        ...
        tsallax.errors.InvalidInput: absent.npz: no such file
        """
        return cls(**solution_files.read(path, max_bytes))


def pair_columns(mdp: MDP) -> dict[str, NDArray[Any]]:
    """State and action of every pair, by their names where the MDP has them."""
    kinds = {
        "state": (mdp.state_of, mdp.state_names),
        "action": (mdp.action_of, mdp.action_names),
    }
    return {
        kind: index if names is None else np.array(names, object)[index]
        for kind, (index, names) in kinds.items()
    }


def make_frame(to_columns: Callable[[], dict[str, NDArray[Any]]]) -> Any:
    """What `to_columns` returns as a `pandas.DataFrame`, where pandas is installed."""
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError:
        problem = "needs pandas: pip install pandas, or use to_columns(), which does not"
        raise InvalidInput(problem, source="to_frame") from None
    return pandas.DataFrame(to_columns())


class _WithSolution(BaseException):
    """An exception with the solution so far, which pickles keep."""

    def __init__(self, message: str, solution: Any) -> None:
        super().__init__(message)
        self.solution = solution

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.solution)


class NotConverged(_WithSolution, RuntimeError):
    """The tolerance was not reached; `solution` has what was, its enclosure still valid.

    Where the values overflow, the enclosure is infinite.  With a horizon, `solution` is a
    `FiniteHorizonSolution`, of a model from functions a `FunctionalSolution`.
    """


class SolveInterrupted(_WithSolution, KeyboardInterrupt):
    """A solve was interrupted by Ctrl-C; `solution` has what was reached, its enclosure valid."""
