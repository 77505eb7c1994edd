"""Step sizes of tabular Q-learning that satisfy the paper's condition.

Sparse Q-learning converges with probability one if every pair (s, a) is visited again and again
and its step sizes, eta(0), eta(1), ... over its own visits, satisfy

    sum eta(n) = infinity   and   sum eta(n)^2 < infinity.

All schedules here are eta(n) = 1 / (1 + scale n)^omega, for which the first holds just if
omega <= 1 (integral test: the sum grows as n^(1-omega), or log n at omega = 1) and the second just
if omega > 1/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax.errors import InvalidInput


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
        raise InvalidInput(f"{name} must be a number, not {value!r}")
    return float(value)


@dataclass(frozen=True)
class StepSize:
    """eta(n) = 1 / (1 + scale n)^omega after n visits of the pair.

    Args:
        omega: the exponent, 1/2 < omega <= 1.
        scale: how early the steps shrink; None: 1 - gamma.

    The first visit replaces what Q was before (eta(0) = 1). `StepSize()`, by name "rescaled", is
    1/(1 + (1-gamma) n): a constant step while n is below the horizon 1/(1-gamma), then 1/n in
    units of it; errors fall as fast as averaging allows. `StepSize(0.8, scale=1)`, by name
    "polynomial", is 1/(1 + n)^0.8. The textbook's 1/(1 + n), `StepSize(1, scale=1)`, satisfies
    the condition, too, but forgets the first Q only as n^-(1-gamma): hardly ever.

    >>> StepSize(omega=1, scale=0.1)([0, 10, 90])
    array([1. , 0.5, 0.1])
    >>> StepSize(omega=0.5)
    Traceback (most recent call last):
    ...
    tsallax.errors.InvalidInput: omega must lie in (1/2, 1], not 0.5: sum eta^2 would be infinite
    """

    omega: float = 1.0
    scale: float | None = None

    def __post_init__(self) -> None:
        omega = _number("omega", self.omega)
        if not 0.5 < omega <= 1.0:
            which = "sum eta would be finite" if omega > 1.0 else "sum eta^2 would be infinite"
            raise InvalidInput(f"omega must lie in (1/2, 1], not {omega:g}: {which}")
        object.__setattr__(self, "omega", omega)
        if self.scale is not None:
            scale = _number("scale", self.scale)
            if not 0.0 < scale < math.inf:
                raise InvalidInput(f"scale must be positive and finite, not {scale:g}")
            object.__setattr__(self, "scale", scale)

    def __call__(self, n: ArrayLike) -> NDArray[np.float64]:
        """eta(n), for one n or an array of them."""
        if self.scale is None:
            raise InvalidInput("the scale is 1 - gamma: fill it in with .rescaled(discount)")
        return (1.0 + self.scale * np.asarray(n, np.float64)) ** -self.omega

    def rescaled(self, discount: float) -> StepSize:
        """Fill in scale = 1 - gamma where no scale was given.

        >>> StepSize().rescaled(0.75)
        StepSize(omega=1.0, scale=0.25)
        """
        return self if self.scale is not None else replace(self, scale=1.0 - discount)


NAMED = {"rescaled": StepSize(), "polynomial": StepSize(0.8, scale=1.0)}


def read_step_size(given: Any) -> StepSize:
    """The schedule that was given or named; a constant step size is refused."""
    if isinstance(given, StepSize):
        return given
    if isinstance(given, str) and given in NAMED:
        return NAMED[given]
    if isinstance(given, int | float) and not isinstance(given, bool):
        raise InvalidInput(
            f"a constant step_size {given!r} has an infinite sum eta^2 and does not converge: "
            "use StepSize(omega, scale)"
        )
    names = ", ".join(repr(name) for name in NAMED)
    raise InvalidInput(f"step_size must be {names} or a StepSize(omega, scale), not {given!r}")
