"""Numbers that change linearly over the steps of training, such as alpha, epsilon and beta."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from tsallax import checks
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
    """The value at a step."""
    share = jnp.clip(jnp.asarray(step) / jnp.maximum(schedule.steps, 1), 0.0, 1.0)
    return jnp.asarray((1 - share) * schedule.start + share * schedule.end)


def linear(name: str, value: Any, **limits: float) -> Linear:
    """A schedule from a number, from (start, end, steps), or from the text start:end:steps.

    Both ends must be within the limits, which are those of `checks.number`.

    >>> linear("alpha", 0.1)
    Linear(start=0.1, end=0.1, steps=0)
    >>> linear("alpha", "1:0.1:5000")
    Linear(start=1.0, end=0.1, steps=5000)
    """
    parts = value.split(":") if isinstance(value, str) else value
    parts = parts if isinstance(parts, (tuple, list)) else [parts]
    try:
        numbers = [checks.number(name, float(x) if isinstance(x, str) else x) for x in parts]
        start, end, steps = numbers if len(numbers) == 3 else (*numbers, *numbers, 0.0)
        checks.number("steps", steps, at_least=0)
    except ValueError:
        raise InvalidInput(f"{name} must be a number or start:end:steps, got {value!r}") from None
    start, end = (checks.number(name, x, **limits) for x in (start, end))
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
