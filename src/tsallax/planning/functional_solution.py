"""`FunctionalSolution`: the optimal value and policy of a model from functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax.errors import InvalidInput
from tsallax.files import npz
from tsallax.planning.accelerator.jax_bellman import GreedyPolicy, JaxBellman
from tsallax.planning.devices import make_operator
from tsallax.planning.formats.exchange import refuse_for_solution
from tsallax.planning.forms import frozen, read_value
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.planning.solution import BaseSolution
from tsallax.planning.solution_files import NUMBERS, contradiction, read_regularizer

Floats = NDArray[np.float64]

MAX_TABLE = 10**8
"""Entries up to which a policy is laid out as a table."""

ARRAYS = ("value", "lower", "upper", "greedy_value")
FORMAT = npz.Format(
    name="tsallax-functional-solution",
    version=2,
    what="solution",
    writer="FunctionalSolution.save",
    required={
        **dict.fromkeys(ARRAYS, ("f", 1)),
        "actions": ("i", 1),
        "regularizer": ("U", 0),
        "precision": ("U", 0),
        **dict.fromkeys(("alpha", "q", "discount"), ("f", 0)),
        **NUMBERS,
    },
)


@dataclass(frozen=True, repr=False, eq=False)
class FunctionalSolution(BaseSolution):
    """The optimal value and policy of a model from functions, with what is proven of them.

    Attributes:
        greedy: the policy, computed where it is asked for.
        value, lower, upper, converged, iterations, sweeps, seconds, method, tolerance: as in
            `Solution`.
    """

    mdp: FunctionalMDP
    greedy: GreedyPolicy

    @property
    def support_ratio(self) -> float:
        """Share of all pairs (s, a) that the policy uses."""
        return self.greedy.support_ratio

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
        """Write the solution and the most probable actions as an `.npz` file.

        The file does not have the model, whose functions are code. `load` reads it with the model,
        and `numpy.load` without: value, lower, upper, actions.

        >>> import tempfile, pathlib
        >>> from tsallax import Hard, problems, solve
        >>> model = problems.inventory(capacity=4, lead_time=1, max_order=2, discount=0.9)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     solve(model, Hard()).save(pathlib.Path(folder, "stock.npz"))
        ...     FunctionalSolution.load(pathlib.Path(folder, "stock.npz"), model).actions[:3]
        array([2, 2, 2], dtype=int32)
        """
        refuse_for_solution(path)
        operator, policy = self.greedy.operator, self.greedy.policy
        npz.write(path, FORMAT, {
            **{name: getattr(self, name) for name in ("value", "lower", "upper", "actions")},
            "greedy_value": operator.on_host(policy.value),
            "regularizer": self.regularizer.name,
            "precision": operator.precision,
            "alpha": float(self.regularizer.alpha),
            "q": float(self.regularizer.q),
            "discount": self.mdp.discount,
            **{name: getattr(self, name) for name in NUMBERS},
            **{name: float(getattr(self, name)) for name in ("seconds", "tolerance")},
        })  # fmt: skip

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        mdp: FunctionalMDP,
        device: str = "auto",
        max_bytes: int | None = None,
    ) -> FunctionalSolution:
        """Read a solution that `save` wrote, of this model.

        One sweep of the model proves the enclosure again and gives the policy; a file that claims
        more, or that belongs to another model, is refused. `device` is that of `solve`, and
        `max_bytes` that of `MDP.load`.
        """
        if not isinstance(mdp, FunctionalMDP):
            kind = type(mdp).__name__
            raise InvalidInput(f"FunctionalSolution.load needs the model, not {kind}")
        try:
            return cls(**_read(path, mdp, device, max_bytes))
        except InvalidInput as error:
            raise error.of(path) from None


def _check_shapes(mdp: FunctionalMDP, shapes: npz.Shapes) -> None:
    """Refuse arrays that are not those of a model with as many states, by their shapes alone."""
    for name in (*ARRAYS, "actions"):
        if shapes[name] != (mdp.n_states,):
            raise InvalidInput(f"{name} has {shapes[name][0]} numbers for {mdp.n_states} states")


def _read(
    path: str | PathLike[str], mdp: FunctionalMDP, device: str, max_bytes: int | None
) -> dict[str, Any]:
    """The fields of a solution, checked by a sweep."""
    arrays = npz.read(path, replace(FORMAT, check_shapes=partial(_check_shapes, mdp)), max_bytes)
    found = {name: read_value(name, arrays[name], mdp.n_states) for name in ARRAYS}
    if float(arrays["discount"]) != mdp.discount:
        raise InvalidInput(f"of a model with discount {float(arrays['discount'])!r}")
    numbers = {name: arrays[name].item() for name in NUMBERS}
    value, lower, upper = (found[name] for name in ("value", "lower", "upper"))
    damage = contradiction(numbers, value, lower, upper)
    if damage is not None:
        raise InvalidInput(f"damaged: {damage}")
    regularizer = read_regularizer(arrays)
    operator = make_operator(mdp, regularizer, device, str(arrays["precision"]))
    assert isinstance(operator, JaxBellman)
    certificate = operator.certify(operator.start(found["greedy_value"]))
    slack = 4.0 * certificate.rounding
    for name, end, sign in (("lower", certificate.low, 1.0), ("upper", certificate.high, -1.0)):
        proven = operator.on_host(operator.shifted(certificate.updated, end))
        if not (sign * (found[name] - proven) <= slack).all():
            raise InvalidInput(f"{name} is not what a sweep of this model proves")
    if not (np.abs(value - (lower + 0.5 * (upper - lower))) <= slack).all():
        raise InvalidInput("damaged: a value is not the centre of its enclosure")
    return {
        "mdp": mdp,
        "regularizer": regularizer,
        **{name: frozen(found[name]) for name in ("value", "lower", "upper")},
        "greedy": operator.greedy(certificate),
        **numbers,
    }
