"""The files of a fleet in training, by which it is resumed after a crash or on another machine.

The folder of a sweep or suite holds `rows/NAME.jsonl`, the finished runs, and for each fleet
`fleets/NAME.npz`, its last checkpoint, and `fleets/NAME.json`, its state: runs, options and how far
it is. Every run without a row is still to be trained.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tsallax.deep.fleet import Fleet
from tsallax.deep.fleet_members import Member
from tsallax.errors import InvalidInput
from tsallax.files.atomic import remove_leftovers, write_text
from tsallax.files.locks import locked

T = TypeVar("T")


class FleetFiles(NamedTuple):
    """The files of a fleet, which has a name of its own in the folder."""

    name: str
    rows: Path
    checkpoint: Path
    state: Path


def files_of_fleet(folder: str, name: str, suffix: str) -> FleetFiles:
    """The files of a fleet; `suffix` is that of its rows."""
    rows, fleets = Path(folder) / "rows", Path(folder) / "fleets"
    return FleetFiles(
        name, rows / f"{name}{suffix}", fleets / f"{name}.npz", fleets / f"{name}.json"
    )


def locked_fleet(files: FleetFiles) -> AbstractContextManager[None]:
    """Make the folders of a fleet, and refuse to train one that another process is training."""
    for path in (files.rows, files.state):
        path.parent.mkdir(parents=True, exist_ok=True)
    files.rows.touch()
    problem = f"another process trains {files.name}: let it finish, or stop it"
    return locked(files.rows, problem, files.rows.parent.parent)


def load_fleet(
    files: FleetFiles, env: str, members: Sequence[Member], actions: int | None,
    workers: int | None, backend: str,
) -> Fleet:  # fmt: skip
    """The fleet of these members, as its checkpoint has it or new."""
    for file in (files.checkpoint, files.state):
        remove_leftovers(file)
    if not files.checkpoint.is_file():
        return Fleet(env, members, actions=actions, backend=backend, workers=workers)
    try:
        fleet = Fleet.load(files.checkpoint, workers=workers)
    except InvalidInput as error:
        raise InvalidInput(f"{error}: remove it to train its runs from the start") from None
    if (fleet.members, fleet.actions) != (tuple(members), actions):
        raise InvalidInput("a fleet with other options: remove it", source=files.checkpoint)
    return fleet


def write_state(files: FleetFiles, data: Mapping[str, Any]) -> None:
    """Write the state of a fleet."""
    write_text(files.state, json.dumps(data))


def read_state(path: Path, parse: Callable[[dict[str, Any]], T]) -> T:
    """What `parse` makes of the state in a file; refused where the file or its content is damaged.

    `parse` may raise a ValueError, KeyError, TypeError or AttributeError.
    """
    try:
        return parse(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        checkpoint = path.with_suffix(".npz").name
        raise InvalidInput(
            f"damaged: remove it and {checkpoint} to train its runs again", source=path
        ) from None


def begun_fleets(folder: str | Path, prefix: str, parse: Callable[[dict[str, Any]], T]) -> list[T]:
    """What `parse` makes of the states of fleets that have a checkpoint."""
    paths = sorted((Path(folder) / "fleets").glob(f"{prefix}-*.json"))
    return [read_state(path, parse) for path in paths if path.with_suffix(".npz").is_file()]


def require_equal(
    source: str | Path, found: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    """Refuse to mix runs of two protocols: options that differ from the expected ones."""
    for name, value in expected.items():
        if found.get(name) != value:
            problem = f"holds runs with {name} {found.get(name)}, not {value}: use another --out"
            raise InvalidInput(problem, source=source)
