"""What `reset` and `step` of an environment must return, checked at every call.

Refusals name the environment, the method and the remedy. What an environment itself raises is
passed on as it is.
"""

import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax.errors import InvalidInput

LARGEST = float(np.finfo(np.float32).max)
RESET = "define it as reset(self, *, seed=None, options=None)"
STEP = "return observation, reward, terminated, truncated, info"


def reset(name: str, env: Any, **arguments: Any) -> tuple[Any, Mapping[str, Any]]:
    """The observation and info with which an environment starts an episode."""
    try:
        result = env.reset(**arguments)
    except (TypeError, ValueError) as error:
        text = str(error)
        for argument in ("seed", "options"):
            if "unexpected keyword argument" in text and f"'{argument}'" in text:
                problem = f"reset does not take the argument {argument}: {RESET}"
                raise InvalidInput(problem, source=name) from None
        if "to unpack (expected 2" in text:
            raise _no_info(name) from None
        raise
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], Mapping):
        raise _no_info(name)
    return result


def _no_info(name: str) -> InvalidInput:
    problem = "reset does not return an observation and a dict: return observation, info"
    return InvalidInput(problem, source=name)


def step(name: str, env: Any, action: Any) -> tuple[Any, Any, Any, Any, Mapping[str, Any]]:
    """The five results of a step."""
    try:
        result = env.step(action)
    except ValueError as error:
        if "to unpack (expected 5" in str(error):
            problem = f"step does not return five values: {STEP}"
            raise InvalidInput(problem, source=name) from None
        raise
    if not isinstance(result, tuple) or len(result) != 5:
        n = len(result) if isinstance(result, tuple) else 1
        raise InvalidInput(f"step returned {n} values, not 5: {STEP}", source=name)
    if not isinstance(result[4], Mapping):
        kind = type(result[4]).__name__
        problem = f"step returned an info that is a {kind}, not a dict: {STEP}"
        raise InvalidInput(problem, source=name)
    return result


def reward(name: str, value: Any) -> float:
    """A reward as a number that single precision can hold, or one that is not finite.

    >>> reward("Env-v0", np.array([1.5]))
    1.5
    >>> reward("Env-v0", "1")
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: Env-v0: step returned the reward '1', which is not a number
    """
    number = value
    if type(value) is not float and not isinstance(value, numbers.Real):
        array = np.asarray(value)
        if array.size != 1 or array.dtype.kind not in "biuf":
            problem = f"step returned the reward {value!r:.60}, which is not a number"
            raise InvalidInput(problem, source=name)
        number = array.item()
    found = float(number)
    if LARGEST < abs(found) < math.inf:
        problem = f"step returned the reward {found:g}, beyond single precision"
        remedy = "scale it with gymnasium.wrappers.TransformReward"
        raise InvalidInput(f"{problem}: {remedy}", source=name)
    return found


def rewards(name: str, values: Any, n: int) -> NDArray[np.float64]:
    """The rewards of n environments."""
    array = np.asarray(values)
    if array.shape != (n,):
        problem = f"step returned rewards of shape {array.shape}, not {(n,)}"
        raise InvalidInput(problem, source=name)
    return np.array([reward(name, value) for value in array.tolist()], np.float64)


def flags(name: str, what: str, values: Any, n: int) -> NDArray[np.bool_]:
    """Whether the episodes of n environments are over."""
    if n == 1 and type(values) is tuple and type(values[0]) is bool:
        return np.array(values)
    array = np.asarray(values)
    if array.size != n or array.dtype.kind not in "biu":
        given = values[0] if isinstance(values, tuple) and len(values) == 1 else values
        problem = f"step returned {given!r:.60} for {what}, which is not True or False"
        raise InvalidInput(f"{problem}: {STEP}", source=name)
    return array.astype(np.bool_).reshape(n)
