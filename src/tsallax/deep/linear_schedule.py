"""Numbers that change linearly over the steps of training, such as alpha, epsilon and beta."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from tsallax.errors import InvalidInput


class Linear(NamedTuple):
    """From `start` to `end` over the first `steps` steps, then constant.

    >>> float(at(Linear(1.0, 0.0, 100), 25))
    0.75
    """

    start: Any
    end: Any
    steps: Any


def at(schedule: Linear, step: ArrayLike) -> Array:
    """The number at a step."""
    share = jnp.clip(jnp.asarray(step) / jnp.maximum(schedule.steps, 1), 0.0, 1.0)
    return jnp.asarray((1 - share) * schedule.start + share * schedule.end)


def linear(value: Any, name: str) -> Linear:
    """A schedule from a number, or from (start, end, steps), or from the words start:end:steps.

    >>> linear(0.1, "alpha")
    Linear(start=0.1, end=0.1, steps=0)
    >>> linear("1:0.1:5000", "alpha")
    Linear(start=1.0, end=0.1, steps=5000)
    """
    parts = value.split(":") if isinstance(value, str) else value
    parts = parts if isinstance(parts, (tuple, list)) else [parts]
    try:
        numbers = [] if any(isinstance(x, bool) for x in parts) else [float(x) for x in parts]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) == 1:
        numbers = [numbers[0], numbers[0], 0.0]
    if len(numbers) != 3 or not all(map(math.isfinite, numbers)) or numbers[2] < 0:
        raise InvalidInput(f"{name} must be a number or start:end:steps, got {value!r}")
    start, end, steps = numbers
    return Linear(start, end, 0 if start == end else int(steps))


def text(schedule: Linear) -> float | str:
    """A number where it is constant, start:end:steps otherwise; `linear` reads it without loss.

    >>> text(Linear(1.0, 1 / 3, 5000))
    '1:0.3333333333333333:5000'
    """
    if schedule.start == schedule.end:
        return float(schedule.start)
    start, end = (repr(float(x)).removesuffix(".0") for x in schedule[:2])
    return f"{start}:{end}:{schedule.steps}"
