"""Step sizes of tabular Q-learning that satisfy the paper's condition.

Sparse Q-learning converges with probability one if every pair (s, a) is visited infinitely often
and its step sizes, eta(0), eta(1), ... over its own visits, satisfy

    sum eta(n) = infinity   and   sum eta(n)^2 < infinity.

All schedules here are eta(n) = 1 / (1 + scale n)^omega, for which the first holds if and
only if omega <= 1 (integral test: the sum grows as n^(1-omega), or log n at omega = 1) and the
second if and only if omega > 1/2.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import checks
from tsallax.errors import InvalidInput


@dataclass(frozen=True)
class StepSize:
    """eta(n) = 1 / (1 + scale n)^omega after n visits of the pair.

    Args:
        omega: the exponent, 1/2 < omega <= 1.
        scale: the inverse of the number of visits at which steps start to shrink; None: 1 - gamma.

    The first visit replaces the initial Q (eta(0) = 1). `StepSize()`, by name "rescaled", is
    1/(1 + (1-gamma) n): a constant step while n is below the horizon 1/(1-gamma), then 1/n in
    units of it; errors fall as fast as averaging allows. `StepSize(0.8, scale=1)`, by name
    "polynomial", is 1/(1 + n)^0.8. The textbook's 1/(1 + n), `StepSize(1, scale=1)`, satisfies
    the condition, too, but the weight of early targets only decays as n^-(1-gamma).

    >>> StepSize(omega=1, scale=0.1)([0, 10, 90])
    array([1. , 0.5, 0.1])
    >>> StepSize(omega=0.5)
    Traceback (most recent call last):
    ...
    tsallax.errors.InvalidInput: omega must be in (1/2, 1], got 0.5: sum eta^2 would be infinite
    """

    omega: float = 1.0
    scale: float | None = None

    def __post_init__(self) -> None:
        omega = checks.number("omega", self.omega)
        if not 0.5 < omega <= 1.0:
            which = "sum eta would be finite" if omega > 1.0 else "sum eta^2 would be infinite"
            raise InvalidInput(f"omega must be in (1/2, 1], got {omega:g}: {which}")
        object.__setattr__(self, "omega", omega)
        if self.scale is not None:
            object.__setattr__(self, "scale", checks.number("scale", self.scale, above=0))

    def __call__(self, n: ArrayLike) -> NDArray[np.float64]:
        """eta(n), for one n or an array of them."""
        if self.scale is None:
            raise InvalidInput("the scale is 1 - gamma: fill it in with .rescaled(discount)")
        return (1.0 + self.scale * np.asarray(n, np.float64)) ** -self.omega

    def rescaled(self, discount: float) -> Self:
        """Fill in scale = 1 - gamma where no scale was given.

        >>> StepSize().rescaled(0.75)
        StepSize(omega=1.0, scale=0.25)
        """
        return self if self.scale is not None else replace(self, scale=1.0 - discount)


SCHEDULES = {"rescaled": StepSize(), "polynomial": StepSize(0.8, scale=1.0)}


def read_step_size(given: Any) -> StepSize:
    """A schedule given itself or by name; a constant step size is an error."""
    if isinstance(given, StepSize):
        return given
    if isinstance(given, str) and given in SCHEDULES:
        return SCHEDULES[given]
    if checks.is_number(given):
        raise InvalidInput(
            f"a constant step_size {given!r} has an infinite sum eta^2 and does not converge: "
            "use StepSize(omega, scale)"
        )
    names = ", ".join(repr(name) for name in SCHEDULES)
    raise InvalidInput(f"step_size must be {names} or a StepSize(omega, scale), got {given!r}")
