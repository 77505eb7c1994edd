"""`TabularResult`: the action values, policy, visits and returns of tabular Q-learning."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax.regularizer import Regularizer
from tsallax.tabular.step_size import StepSize

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class TabularResult:
    """The Q-values learnt, the value and policy that follow from them, and how they were learnt.

    Tables are read-only and have the shape (S, A). Where a state lacks an action or its mask does
    not allow it, and at terminal states, q is -inf, the policy 0 and the value 0, as in `Solution`;
    an environment's state is terminal if episodes ended in it and none continued from it. A pair
    without visits keeps its initial Q.

    Attributes:
        source: a description of the MDP or environment.
        regularizer: the regulariser of the update.
        explore: the regulariser of the behaviour policy, `Hard()` for epsilon-greedy and uniform.
        epsilon: share of the actions that were drawn uniformly.
        discount: gamma.
        step_size: eta(n) over the visits n of a pair.
        seed: of the randomness.
        q: Q(s, a).
        value: max_p <p, Q(s, .)> + alpha Omega(p), shape (S,).
        policy: pi(a|s), the maximising p.
        visits: number of samples of each pair.
        returns: the sum of rewards of every finished episode, undiscounted, without entropy.
        lengths: the steps of every finished episode.
        seconds: wall time.
    """

    source: str
    regularizer: Regularizer
    explore: Regularizer
    epsilon: float
    discount: float
    step_size: StepSize
    seed: int
    q: Floats
    value: Floats
    policy: Floats
    visits: NDArray[np.int64]
    returns: Floats
    lengths: NDArray[np.int64]
    seconds: float

    @property
    def steps(self) -> int:
        """Number of samples, the sum of the visits."""
        return int(self.visits.sum())

    @property
    def episodes(self) -> int:
        """Number of finished episodes, terminated or truncated."""
        return len(self.returns)

    @property
    def tried(self) -> float:
        """Share of the pairs with at least one visit."""
        return float(np.mean(self.visits[self.q > -np.inf] > 0))

    def __repr__(self) -> str:
        last = self.returns[-100:]
        earned = f", last {len(last)} returned {last.mean():.6g}" if len(last) else ""
        return (
            f"TabularResult({self.regularizer} on {self.source}: {self.steps:,} steps, "
            f"{self.episodes:,} episodes{earned}, {self.tried:.1%} of the pairs visited, "
            f"value {self.value.min():.6g} to {self.value.max():.6g}, {self.seconds:.3g} s)"
        )


class Interrupted(KeyboardInterrupt):
    """Learning was interrupted; `result` is the result so far, a valid `initial` to continue."""

    def __init__(self, message: str, result: TabularResult) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.result)
