"""`FunctionalSolution`: the optimal value and policy of a model from functions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.files import npz
from tsallax.memory import require_memory
from tsallax.planning.accelerator.jax_bellman import GreedyPolicy, JaxBellman
from tsallax.planning.devices import make_operator
from tsallax.planning.forms import Floats, frozen, read_value
from tsallax.planning.function_space import Space
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.planning.kernels.support_certificates import certify_support
from tsallax.planning.solution import BaseSolution, make_frame
from tsallax.planning.solution_files import NUMBERS, contradiction, read_regularizer
from tsallax.wording import plural

MAX_TABLE = 10**8
"""Entries up to which a policy is laid out as a table."""

TABLE_PART = 2**22
"""Entries of a table that are computed at a time, where only a part of them is kept."""
COLUMN_BYTES = 48
"""Memory of `to_columns` for each pair, while the columns are put together."""

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
        """Share of all pairs (s, a), whether allowed or not, that the policy uses."""
        return self.greedy.support_ratio

    def policy_at(self, states: ArrayLike) -> Floats:
        """pi(a|s) of some states, given by their indices (n,), as a table (n, A)."""
        return self.greedy.rows(self._rows_of(states, 8, "policy"))

    def q_at(self, states: ArrayLike) -> Floats:
        """Q(s, a) = r + gamma E V of some states as a table (n, A), -inf without the action.

        >>> from tsallax import Hard, problems, solve
        >>> model = problems.inventory(capacity=4, lead_time=1, max_order=2, discount=0.9)
        >>> solution = solve(model, Hard(), 1e-9)
        >>> bool(abs(solution.q_at([3]).max() - solution.value[3]) <= 2 * solution.error)
        True
        """
        index = self._rows_of(states, 8, "action values")
        return self.greedy.operator.action_values(self.value)(index)

    def certified_support_at(self, states: ArrayLike) -> NDArray[np.int8]:
        """What is proven of the optimal policy in some states, as a table (n, A): +1, -1 or 0.

        As in `Solution.certified_support`, 0 also where the state lacks the action.
        """
        index = self._rows_of(states, 1, "certified support")
        verdict = np.zeros((len(index), self.mdp.n_actions), np.int8)
        operator, regularizer = self.greedy.operator, self.regularizer
        alpha, q = float(regularizer.alpha), float(regularizer.q)
        if alpha > 0.0 and q <= 1.0:  # a soft policy uses every action
            value = operator.action_values(self.value)
            for part in self._parts(len(index)):
                verdict[part][value(index[part]) > -math.inf] = 1
            return verdict
        if not math.isfinite(self.error):
            return verdict
        low, high = (operator.action_values(end) for end in (self.lower, self.upper))
        slack = operator.action_value_rounding(self.lower, self.upper)
        for part in self._parts(len(index)):
            worst = low(index[part])
            present = worst > -math.inf
            counts = np.concatenate([[0], np.cumsum(np.count_nonzero(present, axis=1))])
            found = np.zeros(counts[-1], np.int8)
            certify_support(
                counts.astype(np.uint32), alpha or None, q if q != 2.0 else None,
                self.mdp.n_actions, worst[present] - slack, high(index[part])[present] + slack,
                found,
            )  # fmt: skip
            verdict[part][present] = found
        return verdict

    @cached_property
    def certified_support(self) -> NDArray[np.int8]:
        """`certified_support_at` of all states, as a table (S, A), where that fits."""
        self._refuse_table("certificates", "certified_support_at(states)")
        return self.certified_support_at(np.arange(self.mdp.n_states))

    @cached_property
    def actions(self) -> NDArray[np.int32]:
        """The most probable action of every state, (S,), as the index of the action."""
        return self.greedy.most_probable()

    @cached_property
    def policy(self) -> Floats:
        """The policy as a table (S, A), where that fits; it is worth at least `lower`."""
        self._refuse_table("probabilities", "policy_at(states)")
        return self.policy_at(np.arange(self.mdp.n_states))

    def to_columns(
        self, states: ArrayLike | None = None, names: bool = False
    ) -> dict[str, NDArray[Any]]:
        """One row for each pair: state, action, value, q and probability, as arrays by name.

        Of all states, or of those whose indices are given, such as `states=range(1000)`: the
        columns take 40 bytes for each pair, and are refused where they do not fit into memory.
        States and actions are indices; with `names` they are named by their coordinates, such as
        "(3, 0)". Only actions that a state has are listed; terminal states have none.

        >>> from tsallax import Hard, problems, solve
        >>> model = problems.inventory(capacity=4, lead_time=1, max_order=2, discount=0.9)
        >>> columns = solve(model, Hard()).to_columns(states=[3], names=True)
        >>> columns["state"][0], columns["action"], columns["probability"]
        ('(1, 0)', array(['0', '1', '2'], dtype=object), array([0., 0., 1.]))
        """
        mdp = self.mdp
        if states is None:
            states = np.arange(mdp.n_states)
        index = self._rows_of(states, COLUMN_BYTES, "columns")
        action_values = self.greedy.operator.action_values(self.value)
        parts: list[tuple[NDArray[Any], ...]] = []
        for part in self._parts(len(index)):
            q = action_values(index[part])
            row, action = np.nonzero(q > -math.inf)
            probability = self.greedy.rows(index[part])[row, action]
            parts.append((index[part][row], action.astype(np.int32), q[row, action], probability))
        empty = (index[:0], np.zeros(0, np.int32), np.zeros(0), np.zeros(0))
        state, action, q, probability = (
            np.concatenate(column) for column in zip(*(parts or [empty]), strict=True)
        )
        del parts
        value = self.value[state]
        if names:
            state, action = _named(mdp.states, state), _named(mdp.actions, action)
        return {
            "state": state, "action": action, "value": value, "q": q, "probability": probability
        }  # fmt: skip

    def to_frame(self, states: ArrayLike | None = None, names: bool = False) -> Any:
        """The table of `to_columns` as a `pandas.DataFrame`; pandas has to be installed.

        >>> frame = solution.to_frame(range(1000), names=True)  # doctest: +SKIP
        >>> frame[frame.probability > 0]  # doctest: +SKIP
        """
        return make_frame(partial(self.to_columns, states, names))

    def _rows_of(self, states: ArrayLike, size: int, what: str) -> NDArray[np.int64]:
        """Indices of states, checked, whose rows fit into memory: `size` bytes for each action."""
        index = np.asarray(states)
        if index.shape == (0,):
            index = index.astype(np.int64)
        if index.ndim != 1 or index.dtype.kind not in "iu":
            raise InvalidInput("states must be a list of indices of states")
        if len(index) and not (index.min() >= 0 and index.max() < self.mdp.n_states):
            raise InvalidInput(f"states have indices 0 to {self.mdp.n_states - 1}")
        pairs = len(index) * self.mdp.n_actions
        remedy = "give fewer states, such as states=range(1000)"
        require_memory(size * pairs, f"the {what} of {plural(pairs, 'pair')}", remedy)
        return index.astype(np.int64, copy=False)

    def _parts(self, n: int) -> Iterator[slice]:
        """Parts of n rows of a table, each of which takes little memory."""
        block = max(TABLE_PART // self.mdp.n_actions, 1)
        return (slice(first, first + block) for first in range(0, n, block))

    def _refuse_table(self, what: str, instead: str) -> None:
        """Refuse a table (S, A) of too many entries."""
        if self.mdp.n_pairs > MAX_TABLE:
            raise InvalidInput(
                f"a table of {self.mdp.n_pairs:,} {what} is too large: use {instead}"
            )

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
        checks.file_ending(path, (".npz",))
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


def _named(space: Space, index: NDArray[Any]) -> NDArray[Any]:
    """The coordinates of elements as text, each made once."""
    known, place = np.unique(index, return_inverse=True)
    names: NDArray[Any] = np.array([space.describe(int(i)) for i in known], object)[place]
    return names


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
