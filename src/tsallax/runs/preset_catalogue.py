"""Presets: options that suit an environment, one YAML file each in the folder `presets`.

A file is named after the id of its environment, with a folder for a namespace, and has

    steps: the length of training
    options: those of the agent, as in `tsallax config`, with `actions` where it needs them
    algorithm: whose options they are; default: deep_q
    also: other ids of the same environment
    result: what was reached: mean, interval, seeds, steps, and the command that shows it
    purpose: what it is for, where that is not one environment

`general` is for environments that have none of their own. It is used where it is asked for.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.files import yaml_text

FOLDER = Path(__file__).parent / "presets"
NONE = "none"
"""The name that asks for the defaults instead of a preset."""


@dataclass(frozen=True)
class PresetResult:
    """The mean greedy return over seeds that a preset reached, with its 95% interval.

    Around the mean of fewer than six seeds, the interval is their range.
    """

    mean: float
    interval: tuple[float, float]
    seeds: int
    steps: int
    command: str


@dataclass(frozen=True)
class Preset:
    """Options for an environment, a length of training, and what they reached, if it is known."""

    name: str
    steps: int
    options: Mapping[str, Any]
    algorithm: str = "deep_q"
    also: tuple[str, ...] = ()
    result: PresetResult | None = None
    purpose: str = ""


def preset(name: str) -> dict[str, Any]:
    """The preset options of an environment, by its id, or of "general", as arguments of `DeepQ`.

    >>> import tsallax
    >>> options = tsallax.preset("CartPole-v1")
    >>> options["net_arch"]
    [256, 256]
    >>> agent = tsallax.DeepQ("CartPole-v1", **options)
    """
    return copy.deepcopy(dict(preset_named(name).options))


def preset_named(name: str) -> Preset:
    """The preset of this name; an unknown one is refused with the names there are."""
    found = preset_of(name)
    if found is None:
        names = ", ".join(known.name for known in all_presets())
        raise InvalidInput(f"unknown preset {name!r}: choose from {names}")
    return found


def preset_of(env: str) -> Preset | None:
    """The preset of an environment, by its id; None where there is none."""
    return next((known for known in all_presets() if env in (known.name, *known.also)), None)


@cache
def all_presets() -> tuple[Preset, ...]:
    """All presets, by name."""
    return tuple(read_preset(path) for path in sorted(FOLDER.rglob("*.yaml")))


def read_preset(path: Path) -> Preset:
    """The preset in a file."""
    values = yaml_text.read(path)
    try:
        return _from_values(_name(path), values)
    except (TypeError, KeyError, ValueError) as error:
        raise InvalidInput(f"not a preset: {error}", source=path) from None


def _name(path: Path) -> str:
    inside = path.relative_to(FOLDER) if path.is_relative_to(FOLDER) else Path(path.name)
    return inside.with_suffix("").as_posix()


def _from_values(name: str, values: dict[str, Any]) -> Preset:
    result = values.pop("result", None)
    if result is not None:
        low, high = result.pop("interval")
        result = PresetResult(interval=(low, high), **result)
    also = tuple(values.pop("also", ()))
    checks.count("steps", values["steps"])
    return Preset(name=name, also=also, result=result, **values)
