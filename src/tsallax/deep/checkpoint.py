"""Files of agents and fleets: plain arrays and JSON in one `.npz`, written atomically.

Reading checks every checksum, never unpickles and never imports anything that a file names.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tsallax.deep import old_files, replay
from tsallax.deep.adam import Adam
from tsallax.deep.algorithm import Algorithm, acting_learner
from tsallax.errors import InvalidInput, one_line
from tsallax.files import npz
from tsallax.files.npz import Format

AGENT = Format("tsallax agent", 1, "agent", "agent.save", {"json": ("U", 0)}, max_ratio=250)
LEARNER = "learner."
"""The prefix of the arrays of a learner."""

T = TypeVar("T")


def write(path: str | PathLike[str], about: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write a description, as JSON, and named arrays.

    Integers and images are compressed: real numbers would hardly become smaller.
    """
    text = json.dumps({**about, "arrays": sorted(arrays)})
    integers = [name for name, x in arrays.items() if x.dtype.kind in "iu" and x.size > 1000]
    npz.write(path, AGENT, {"json": text, **arrays}, compressed=integers)


def read(
    path: str | PathLike[str], max_bytes: int | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the description and the arrays of a file."""
    arrays = npz.read_all(path, AGENT, max_bytes)
    text = arrays.pop("json", None)
    try:
        about = json.loads(str(text)) if text is not None and text.dtype.kind == "U" else None
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict):
        raise InvalidInput("damaged: its description is not JSON", source=path)
    if about.pop("arrays", None) != sorted(arrays):
        raise InvalidInput("damaged: it does not hold the arrays that it should", source=path)
    return about, arrays


@contextmanager
def errors_of(path: str | PathLike[str]) -> Iterator[None]:
    """Name the file in the refusal of its contents, of whatever kind the error is.

    Descriptions are checked, but a crafted one may still reach code that raises any error. What
    runs code of the user is under `refusals_of` instead.
    """
    try:
        with refusals_of(path):
            yield
    except InvalidInput:
        raise
    except KeyError as error:
        raise InvalidInput(f"damaged: its description lacks {error}", source=path) from None
    except Exception as error:
        reason = one_line(error) or type(error).__name__
        raise InvalidInput(f"damaged: its description is wrong: {reason}", source=path) from None


@contextmanager
def refusals_of(path: str | PathLike[str]) -> Iterator[None]:
    """Name the file in what is refused; other errors, as those of environments, pass."""
    try:
        yield
    except InvalidInput as error:
        if error.source in (None, str(path)):
            raise error.of(path) from None
        problem = f"{error.source}: {error.problem}"
        raise InvalidInput(problem, source=path, add=error.add, omit=error.omit) from None


def flatten(prefix: str, tree: Any) -> dict[str, NDArray[Any]]:
    """The leaves of a pytree by the names of their fields: `online.hidden.0.weight`."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {prefix + _name(path): np.asarray(leaf) for path, leaf in leaves}


def restore(prefix: str, like: T, arrays: dict[str, Any]) -> T:
    """A pytree of the same shapes as `like`, from named arrays."""

    def leaf(location: Any, expected: Any) -> Any:
        name = prefix + _name(location)
        if name not in arrays:
            raise InvalidInput(f"incomplete: {name} missing")
        found = arrays[name]
        if found.shape != expected.shape or found.dtype != expected.dtype:
            raise InvalidInput(
                f"{name} has type {found.dtype} and shape {found.shape}, "
                f"not {expected.dtype} and {expected.shape}"
            )
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise InvalidInput(f"damaged: {name} has a number that is not finite")
        return jnp.array(found)

    restored: T = jax.tree_util.tree_map_with_path(leaf, like)
    return restored


def flatten_learner(learner: Any, steps: int, many: bool = False) -> dict[str, NDArray[Any]]:
    """The arrays of a learner, without hyperparameters and the rows of its memory after `steps`.

    `many` learners have the agents as the first axis of all arrays.
    """
    arrays = flatten(LEARNER, learner._replace(hyperparameters=None))
    for name in _rings(arrays):
        rows = arrays[name]
        arrays[name] = rows[:, :steps] if many else rows[:steps]
    return arrays


def restore_learner(
    like: Any, hyperparameters: Any, arrays: dict[str, Any], steps: int, many: bool = False
) -> Any:
    """A learner of the same shapes as `like`, with these hyperparameters, from `flatten_learner`.

    Its replay memory is filled up with empty rows.
    """
    arrays, axis = dict(old_files.with_written_rows(like, arrays)), int(many)
    capacity = like.replay.rows.shape[axis]
    restore(f"{LEARNER}replay.priority", like.replay.priority, arrays)  # before rows are allocated
    for name in _rings(arrays):
        rows = arrays[name]
        if rows.ndim > axis and rows.shape[axis] == min(steps, capacity) < capacity:
            empty = (*rows.shape[:axis], capacity - rows.shape[axis], *rows.shape[axis + 1 :])
            arrays[name] = np.concatenate([rows, np.zeros(empty, rows.dtype)], axis)
    restored = restore(LEARNER, like._replace(hyperparameters=None), arrays)
    _check_updates(restored)
    return restored._replace(hyperparameters=hyperparameters)


def _check_updates(learner: Any) -> None:
    """Refuse a negative number of updates, and moments that no update so far has written."""
    leaves = jax.tree_util.tree_leaves_with_path(learner, is_leaf=lambda x: isinstance(x, Adam))
    for path, adam in leaves:
        if not isinstance(adam, Adam):
            continue
        name, count = LEARNER + _name(path), np.asarray(adam.count)
        if np.any(count < 0):
            raise InvalidInput(f"damaged: {name}.count is negative")
        if adam.written is None:
            continue
        written = np.asarray(adam.written)
        if np.any((written < 0) | (written > count[..., None])):
            raise InvalidInput(f"damaged: {name}.written has updates that were not made")


def read_learner(
    arrays: dict[str, NDArray[Any]],
    steps: int,
    algorithm: Algorithm,
    key: jax.Array,
    hyperparameters: Any,
) -> Any:
    """The learner in the arrays of a file, written after `steps` steps."""
    like = jax.eval_shape(algorithm.init, key, hyperparameters)
    arrays = old_files.with_integer_observations(like, arrays)
    return restore_learner(like, hyperparameters, arrays, steps)


def read_acting_learner(
    arrays: dict[str, NDArray[Any]], algorithm: Algorithm, key: jax.Array, hyperparameters: Any
) -> Any:
    """A learner with the acting state in the arrays of a file."""
    like = jax.eval_shape(lambda: algorithm.acting_state(algorithm.init(key, hyperparameters)))
    state = restore(LEARNER, like, arrays)
    return acting_learner(state, algorithm, key, hyperparameters)


def _rings(arrays: dict[str, Any]) -> list[str]:
    """The arrays that have a row for each transition of the replay memory."""
    names = (f"{LEARNER}replay.{name}" for name in replay.RINGS)
    return [name for name in names if name in arrays]


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
