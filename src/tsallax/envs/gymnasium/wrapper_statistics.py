"""The running statistics of Gymnasium's `NormalizeObservation` and `NormalizeReward`.

An agent sees what these wrappers make of observations and rewards, so that their statistics belong
to its state: they are saved with it, and evaluations use those of training. The wrappers are found
anywhere in a chain of wrappers, in each of several environments, and around vector environments.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax.errors import InvalidInput

CLASSES = {"observation": "NormalizeObservation", "reward": "NormalizeReward"}
ATTRIBUTES = {"observation": "obs_rms", "reward": "return_rms"}
CARRIES = ("discounted_reward", "accumulated_reward")
"""Names of the discounted sum that `NormalizeReward` carries from step to step."""


@dataclass(frozen=True)
class Statistics:
    """Those of one wrapper; arrays have the copies of the environment as leading axis."""

    kind: str
    """What they are statistics of: observations or rewards."""
    mean: NDArray[np.float64]
    var: NDArray[np.float64]
    count: NDArray[np.float64]
    carry: NDArray[np.float64]
    """The discounted sum of rewards so far."""

    def pooled(self) -> "Statistics":
        """Those of all copies together, as of one."""
        weight = self.count / self.count.sum()
        mean = np.tensordot(weight, self.mean, 1)
        var = np.tensordot(weight, self.var + (self.mean - mean) ** 2, 1)
        return Statistics(self.kind, mean[None], var[None], self.count.sum()[None], self.carry[:1])


class NormalizingWrappers:
    """The normalising wrappers of single environments, or of a vector environment."""

    def __init__(self, environments: Sequence[Any]) -> None:
        from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

        outer, inner = environments[0], list(environments)
        self.groups: list[tuple[Any, ...]] = []
        """Each wrapper, from the outermost to the innermost, in all copies of the environment."""
        self.remote: Any = None
        """A vector environment whose single environments are in other processes."""
        if hasattr(outer, "num_envs"):
            self.groups += [(wrapper,) for wrapper in _chain(outer)]
            base = outer.unwrapped
            inner = list(base.envs) if isinstance(base, SyncVectorEnv) else []
            self.remote = base if isinstance(base, AsyncVectorEnv) else None
        self.groups += list(zip(*(_chain(one) for one in inner), strict=False))

    def read(self) -> list[Statistics]:
        """The statistics of all wrappers."""
        found = [_read(group) for group in self.groups]
        for kind, attribute in self._remote_attributes():
            moments = self.remote.get_attr(attribute)
            found.append(_statistics(kind, moments, np.zeros((len(moments), 0))))
        return found

    def write(self, statistics: Sequence[Statistics], name: str) -> None:
        """Set the statistics that `read` gave."""
        mine = self.read()
        if [_form(one) for one in mine] != [_form(one) for one in statistics]:
            has, of_agent = (
                ", ".join(CLASSES[x.kind] for x in each) or "none" for each in (mine, statistics)
            )
            problem = f"has the normalising wrappers {has}, but those of the agent are {of_agent}"
            raise InvalidInput(f"{problem}: wrap it in the same way", source=name)
        for group, one in zip(self.groups, statistics, strict=False):
            for i, wrapper in enumerate(group):
                _write(wrapper, one, i)
        remote = statistics[len(self.groups) :]
        for (_, attribute), one in zip(self._remote_attributes(), remote, strict=True):
            moments = self.remote.get_attr(attribute)
            for i, each in enumerate(moments):
                _set_moments(each, one, i)
            self.remote.set_attr(attribute, list(moments))

    def follow(self, statistics: Sequence[Statistics], name: str) -> None:
        """Take over the statistics of training, by kind and order, and keep them as they are."""
        for kind, wrapper in CLASSES.items():
            given = [one.pooled() for one in statistics if one.kind == kind]
            mine = [group for group in self.groups if normalized_by(group[0]) == kind]
            if kind == "observation" and len(given) != len(mine):
                counts = f"{len(mine)} {wrapper}, but the environment of training {len(given)}"
                raise InvalidInput(f"has {counts}: wrap it in the same way", source=name)
            for group, one in zip(mine, given, strict=False):
                group[0].update_running_mean = False
                if one.mean[0].shape != np.shape(_moments(group[0]).mean):
                    problem = f"its {wrapper} is not of the shape {one.mean[0].shape} of training"
                    raise InvalidInput(problem, source=name)
                _set_moments(_moments(group[0]), one, 0)

    @contextmanager
    def held(self) -> Iterator[None]:
        """A context without updates of the statistics, which are restored at its end."""
        statistics, wrappers = self.read(), [one for group in self.groups for one in group]
        updates = [wrapper.update_running_mean for wrapper in wrappers]
        try:
            for wrapper in wrappers:
                wrapper.update_running_mean = False
            yield
        finally:
            for wrapper, update in zip(wrappers, updates, strict=True):
                wrapper.update_running_mean = update
            self.write(statistics, "")

    def _remote_attributes(self) -> list[tuple[str, str]]:
        """The kinds of wrappers that single environments in other processes have."""
        if self.remote is None:
            return []
        return [
            (kind, attribute)
            for kind, attribute in ATTRIBUTES.items()
            if all(self.remote.call("has_wrapper_attr", attribute))
        ]


def _chain(env: Any) -> list[Any]:
    """The normalising wrappers of an environment, from the outermost to the innermost."""
    from gymnasium import Wrapper
    from gymnasium.vector import VectorWrapper

    found = []
    while isinstance(env, Wrapper | VectorWrapper):
        if normalized_by(env) is not None:
            found.append(env)
        env = env.env
    return found


def normalized_by(wrapper: Any) -> str | None:
    """What a wrapper normalises: observations, rewards or nothing, None."""
    from gymnasium import wrappers
    from gymnasium.wrappers import vector

    for kind, name in CLASSES.items():
        if isinstance(wrapper, (getattr(wrappers, name), getattr(vector, name))):
            return kind
    return None


def single_wrapper(wrapper: Any, env: Any) -> Any:
    """The wrapper of a single environment that does what one of a vector environment does."""
    from gymnasium.wrappers import NormalizeObservation, NormalizeReward

    if normalized_by(wrapper) == "observation":
        return NormalizeObservation(env, wrapper.epsilon)
    return NormalizeReward(env, wrapper.gamma, wrapper.epsilon)


def _moments(wrapper: Any) -> Any:
    return getattr(wrapper, ATTRIBUTES[str(normalized_by(wrapper))])


def _carry(wrapper: Any) -> tuple[str | None, NDArray[np.float64]]:
    """The name and a copy of what a wrapper carries from step to step."""
    for name in CARRIES:
        with suppress(AttributeError):
            return name, np.array(getattr(wrapper, name), np.float64).reshape(-1)
    return None, np.zeros(0)


def _read(group: Sequence[Any]) -> Statistics:
    carry = np.stack([_carry(wrapper)[1] for wrapper in group])
    return _statistics(str(normalized_by(group[0])), [_moments(one) for one in group], carry)


def _statistics(kind: str, moments: Sequence[Any], carry: NDArray[np.float64]) -> Statistics:
    """Statistics from Gymnasium's running moments of each copy of a wrapper."""
    mean, var, count = (
        np.array([getattr(one, name) for one in moments], np.float64)
        for name in ("mean", "var", "count")
    )
    return Statistics(kind, mean, var, count, carry)


def _write(wrapper: Any, statistics: Statistics, i: int) -> None:
    _set_moments(_moments(wrapper), statistics, i)
    name, _ = _carry(wrapper)
    if name is not None:
        like = np.asarray(getattr(wrapper, name))
        in_place = hasattr(wrapper, "_prev_dones")  # since Gymnasium 1.3; float64 before
        kind = like.dtype if in_place else np.float64
        setattr(wrapper, name, statistics.carry[i].reshape(like.shape).astype(kind))


def _set_moments(moments: Any, statistics: Statistics, i: int) -> None:
    kind = np.asarray(moments.mean).dtype
    moments.mean = statistics.mean[i].astype(kind)
    moments.var = statistics.var[i].astype(kind)
    moments.count = float(statistics.count[i])


def _form(one: Statistics) -> tuple[Any, ...]:
    return one.kind, one.mean.shape, one.carry.shape


def to_arrays(statistics: Sequence[Statistics]) -> dict[str, NDArray[np.float64]]:
    """Named arrays, for a file: `wrapper.0.observation.mean`."""
    names = [f.name for f in fields(Statistics) if f.name != "kind"]
    return {
        f"wrapper.{k}.{one.kind}.{name}": getattr(one, name)
        for k, one in enumerate(statistics)
        for name in names
    }


def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> list[Statistics]:
    """The statistics in the named arrays of a file."""
    parts = [name.split(".") for name in arrays if name.startswith("wrapper.")]
    wrappers = sorted({(int(number), kind) for _, number, kind, _ in parts})
    if [number for number, _ in wrappers] != list(range(len(wrappers))):
        raise InvalidInput("damaged: the statistics of its wrappers are not complete")
    found = []
    for number, kind in wrappers:
        prefix = f"wrapper.{number}.{kind}."
        values = {n: arrays[prefix + n] for n in ("mean", "var", "count", "carry")}
        one = Statistics(kind, **values)
        n, real = len(one.count), all(x.dtype == np.float64 for x in values.values())
        same = one.mean.shape == one.var.shape and {len(x) for x in values.values()} == {n}
        if kind not in CLASSES or not real or not same or one.count.ndim != 1 or n == 0:
            raise InvalidInput(f"damaged: {prefix}* are not the statistics of a wrapper")
        if not all(np.isfinite(x).all() for x in values.values()) or (one.count <= 0).any():
            raise InvalidInput(f"damaged: {prefix}* have numbers that are not finite")
        found.append(one)
    return found
