"""`FunctionalSolution`: the optimal value and policy of a model from functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax.errors import InvalidInput
from tsallax.files import npz
from tsallax.planning.accelerator.jax_bellman import GreedyPolicy
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.regularizer import Regularizer

Floats = NDArray[np.float64]

MAX_TABLE = 10**8
"""Entries up to which a policy is laid out as a table."""

ARRAYS = {"value": ("f", 1), "lower": ("f", 1), "upper": ("f", 1), "actions": ("i", 1)}
FORMAT = npz.Format(
    name="tsallax-functional-solution",
    version=1,
    what="solution",
    writer="FunctionalSolution.save",
    required={
        **ARRAYS,
        "regularizer": ("U", 0),
        **dict.fromkeys(("alpha", "q", "discount", "tolerance"), ("f", 0)),
    },
)


@dataclass(frozen=True, repr=False, eq=False)
class FunctionalSolution:
    """The optimal value and policy of a model from functions, with what is proven of them.

    Attributes:
        value: V(s), shape (S,): the centre of the enclosure.
        lower: a bound below V*(s) and below the value of the returned policy.
        upper: a bound above V*(s).
        greedy: the policy, computed where it is asked for.
        support_ratio: share of all pairs (s, a) that the policy uses.
        converged, iterations, sweeps, seconds, method, tolerance: as in `Solution`.
    """

    mdp: FunctionalMDP
    regularizer: Regularizer
    value: Floats
    lower: Floats
    upper: Floats
    greedy: GreedyPolicy
    support_ratio: float
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
        """d'V: what the start is worth, entropy included."""
        return float(self.mdp.initial @ self.value)

    def policy_at(self, states: ArrayLike) -> Floats:
        """pi(a|s) of some states, given by their indices (n,), as a table (n, A)."""
        index = np.asarray(states)
        if index.ndim != 1 or index.dtype.kind not in "iu":
            raise InvalidInput("states must be a list of indices of states")
        if len(index) and not (index.min() >= 0 and index.max() < self.mdp.n_states):
            raise InvalidInput(f"states have indices 0 to {self.mdp.n_states - 1}")
        return self.greedy.rows(index)

    @cached_property
    def actions(self) -> NDArray[np.int32]:
        """The most probable action of every state, (S,), as the index of the action."""
        return self.greedy.most_probable()

    @cached_property
    def policy(self) -> Floats:
        """The policy as a table (S, A), where that fits; it is worth at least `lower`."""
        if self.mdp.n_pairs > MAX_TABLE:
            raise InvalidInput(
                f"a table of {self.mdp.n_pairs:,} probabilities is too large: use policy_at(states)"
            )
        return self.policy_at(np.arange(self.mdp.n_states))

    def save(self, path: str | PathLike[str]) -> None:
        """Write value, lower, upper and the most probable actions as an `.npz` file, to be read by
        `numpy.load`.

        The file has the numbers of the solution, too, but not the model, whose functions are code.

        >>> import tempfile, pathlib
        >>> from tsallax import Hard, problems, solve
        >>> model = problems.inventory(capacity=4, lead_time=1, max_order=2, discount=0.9)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     solve(model, Hard()).save(pathlib.Path(folder, "stock.npz"))
        ...     np.load(pathlib.Path(folder, "stock.npz"))["actions"][:3]
        array([2, 2, 2], dtype=int32)
        """
        npz.write(path, FORMAT, {
            **{name: getattr(self, name) for name in ARRAYS},
            "regularizer": self.regularizer.name,
            "alpha": float(self.regularizer.alpha),
            "q": float(self.regularizer.q),
            "discount": self.mdp.discount,
            "tolerance": float(self.tolerance),
        })  # fmt: skip

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        return (
            f"FunctionalSolution({self.regularizer}, {state}: error <= {self.error:.2g}, "
            f"{self.method}, {self.iterations} iterations, {self.sweeps} sweeps, "
            f"{self.seconds:.3g} s, value {self.value.min():.6g} to {self.value.max():.6g}, "
            f"support {self.support_ratio:.1%})"
        )


def make_functional_solution(fields: dict[str, Any], greedy: GreedyPolicy) -> FunctionalSolution:
    """The solution from the fields of `Solution` that both have."""
    return FunctionalSolution(greedy=greedy, support_ratio=greedy.support_ratio, **fields)
