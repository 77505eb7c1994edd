"""Options that change between two steps of an agent, and the record of these changes."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from tsallax.deep.algorithm import Algorithm
from tsallax.deep.environment_spec import EnvironmentSpec
from tsallax.deep.options import from_mapping, to_mapping
from tsallax.errors import InvalidInput

AT_START = (
    "factored",
    "initial_value",
    "layer_norm",
    "masked",
    "n_envs",
    "normalize_observations",
    "output_scale",
)
"""Options that only matter when an agent is made, or make another function of its weights."""

Build = Callable[[EnvironmentSpec, Sequence[Any]], tuple[Algorithm, list[Any]]]


class Change(NamedTuple):
    """An option with a new value from a step on; values are plain data, as in a file."""

    step: int
    option: str
    before: Any
    after: Any


def changes_between(step: int, old: Any, new: Any) -> list[Change]:
    """The options in which two configurations differ, as changes at a step.

    >>> from tsallax import DeepQConfig
    >>> changes_between(500, DeepQConfig(), DeepQConfig(alpha=0.5))
    [Change(step=500, option='alpha', before=0.1, after=0.5)]
    """
    before, after = to_mapping(old), to_mapping(new)
    return [
        Change(step, name, before[name], after[name])
        for name in after
        if before[name] != after[name]
    ]


def require_same_shapes(build: Build, spec: EnvironmentSpec, old: Any, new: Any) -> None:
    """Refuse changes of options on which the arrays of a learner depend."""
    expected = _shapes(build, spec, old)
    changed = [change.option for change in changes_between(0, old, new)]
    fixed = [name for name in changed if name in AT_START]
    if not fixed and _shapes(build, spec, new) != expected:
        fixed = [name for name in changed if _reshapes(name, build, spec, old, new)] or changed
    if fixed:
        named = [f"{name} from or to auto" if name == "alpha" else name for name in fixed]
        problem = f"{', '.join(named)} cannot change in an agent that is made: make another agent"
        raise InvalidInput(problem, source=spec.name)


def _reshapes(name: str, build: Build, spec: EnvironmentSpec, old: Any, new: Any) -> bool:
    """Whether the change of one option alone changes the shapes; False where it is invalid."""
    values = {**to_mapping(old), name: to_mapping(new)[name]}
    try:
        alone = from_mapping(type(old), values)
        return bool(_shapes(build, spec, alone) != _shapes(build, spec, old))
    except InvalidInput:
        return False


def _shapes(build: Build, spec: EnvironmentSpec, config: Any) -> Any:
    """The structure, shapes and types of a learner with these options."""
    algorithm, (hyperparameters,) = build(spec, [config])
    like = jax.eval_shape(algorithm.init, jax.random.PRNGKey(0), hyperparameters)
    leaves, structure = jax.tree.flatten(like)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]


def from_plain(rows: Any, steps: int) -> list[Change]:
    """The changes in a file of an agent that has made `steps` steps."""
    changes = [Change(*row) for row in rows]
    last = 0
    for change in changes:
        if not (isinstance(change.step, int) and last <= change.step <= steps):
            raise InvalidInput(f"damaged: it cannot have changed an option at step {change.step!r}")
        last = change.step
    return changes
