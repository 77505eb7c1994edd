"""UMB, the unified Markov binary format of Storm, PRISM and other model checkers.

A `.umb` file is a tar archive, plain or compressed with gzip, bzip2 or xz, of `index.json` and
little-endian arrays. Of an MDP these are read and written:

    state-to-choices, choice-to-branches        offsets, uint64
    branch-to-target, branch-to-probability     uint64; double, or rational with 64-bit parts
    state-is-initial                            one bit for each state
    actions/choices                             action of each choice, names of the actions
    annotations/rewards/<id>                    on states, choices and branches
    annotations/aps/<id>                        labels: `terminal` and `termination_sink`

What the format does not have is kept where other programs pass over it: the discount in
`file-data`, an initial distribution that is not uniform as an annotation in the group `tsallax`,
and the names of the states in the folder `tsallax`.

The format is specified at https://github.com/pmc-tools/umb.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax.errors import InvalidInput
from tsallax.planning.formats import explicit_model as explicit
from tsallax.planning.formats import tar_archive
from tsallax.planning.formats.explicit_model import SINK, TERMINAL, ExplicitModel
from tsallax.planning.formats.state_valuations import valuation_names
from tsallax.provenance import __version__

MAX_INDEX = 1 << 22
"""Largest `index.json`, in bytes."""
VERSIONS = (0, 1)
"""Versions of the format that are read; version 1 is written."""

GROUP = "tsallax"
"""Group of annotations, and folder of members, that other programs pass over."""
STATE_NAMES = f"{GROUP}/states"
MEMBERS = (
    "index.json", "state-to-choices.bin", "state-is-initial.bin", "choice-to-branches.bin",
    "branch-to-target.bin", "branch-to-probability.bin",
)  # fmt: skip
FOLDERS = ("actions/choices/", "annotations/", "valuations/states/", f"{GROUP}/")
DOUBLE = {"type": "double", "size": 64}
COUNTS = ("#players", "#states", "#initial-states", "#choices", "#choice-actions", "#branches")


def write(path: str | PathLike[str], model: ExplicitModel) -> None:
    """Write a model as an uncompressed `.umb` file."""
    assert model.initial is not None
    assert model.action is not None
    labels = {TERMINAL: model.terminal, SINK: model.sink}
    labels = {name: mask for name, mask in labels.items() if mask.any()}
    names = model.action_names
    annotations: dict[str, Any] = {
        "rewards": {"reward": {"alias": "reward", "applies-to": ["choices"], "type": DOUBLE}},
        "aps": {
            name: {"alias": name, "applies-to": ["states"], "type": {"type": "bool", "size": 1}}
            for name in labels
        },
        GROUP: {},
    }
    members: dict[str, Any] = {
        "state-to-choices.bin": model.pointer.astype("<u8"),
        "state-is-initial.bin": _bits(model.initial > 0),
        "choice-to-branches.bin": model.indptr.astype("<u8"),
        "branch-to-target.bin": model.target.astype("<u8"),
        "branch-to-probability.bin": model.probability.astype("<f8"),
        "actions/choices/values.bin": model.action.astype("<u4"),
        "annotations/rewards/reward/choices/values.bin": model.rewards.astype("<f8"),
    }
    if names is not None:
        members |= _strings("actions/choices", names)
    for name, mask in labels.items():
        members[f"annotations/aps/{name}/states/values.bin"] = _bits(mask)
    if not explicit.is_uniform(model.initial):
        annotations[GROUP]["initial"] = {"applies-to": ["states"], "type": DOUBLE}
        members[f"annotations/{GROUP}/initial/states/values.bin"] = model.initial.astype("<f8")
    if model.state_names is not None:
        members |= _strings(STATE_NAMES, model.state_names)
    index = {
        "format-version": VERSIONS[-1],
        "format-revision": 0,
        "file-data": {
            "tool": "tsallax",
            "tool-version": __version__,
            "parameters": {"discount": model.discount},
        },
        "transition-system": {
            "time": "discrete",
            "#players": 1,
            "#states": model.n_states,
            "#initial-states": int(np.count_nonzero(model.initial)),
            "#choices": model.n_choices,
            "#choice-actions": int(model.action.max()) + 1 if names is None else len(names),
            "#branches": len(model.target),
            "#branch-actions": 0,
            "#observations": 0,
            "branch-probability-type": DOUBLE,
        },
        "annotations": {group: kinds for group, kinds in annotations.items() if kinds},
    }
    text = json.dumps(index, indent=1).encode()
    tar_archive.write_members(path, {"index.json": text, **members})


def read(path: str | PathLike[str], rewards: str | None = None) -> ExplicitModel:
    """Read a model; `rewards` names its reward structure where there are several."""
    members = tar_archive.read_members(path, _is_used)
    index = _index(members)
    system = _object(index, "transition-system")
    count = {key: _count(system, key) for key in COUNTS}
    _refuse_other_models(system, count)
    archive = _Archive(members, count["#states"], count["#choices"], count["#branches"])

    target = archive.numbers("branch-to-target.bin", "<u8", archive.n_branches)
    probability = archive.values(
        "branch-to-probability.bin", _object(system, "branch-probability-type"), archive.n_branches
    )
    indptr = archive.offsets("choice-to-branches.bin", archive.n_choices, archive.n_branches)
    pointer = archive.offsets("state-to-choices.bin", archive.n_states, archive.n_choices)
    if target.size and int(target.max()) >= archive.n_states:
        outside = int(np.argmax(target >= archive.n_states))
        raise InvalidInput(
            f"branch-to-target.bin: branch {outside} leads to state {target[outside]}, "
            f"not 0 to {archive.n_states - 1}"
        )
    annotations = _object(index, "annotations", {})
    labels = _labels(archive, _object(annotations, "aps", {}))
    action, action_names = _choice_actions(archive, count["#choice-actions"])
    own = _object(annotations, GROUP, {})
    structures = _object(annotations, "rewards", {})
    return ExplicitModel(
        pointer,
        indptr,
        target.astype(np.int64),
        probability,
        _rewards(archive, structures, rewards, pointer, indptr, probability),
        labels[TERMINAL],
        labels[SINK],
        _initial(archive, count["#initial-states"], own),
        action,
        action_names,
        _state_names(archive, _object(index, "valuations", {})),
        _discount(index),
    )  # fmt: skip


@dataclass(frozen=True)
class _Archive:
    """The members of an archive as arrays, whose sizes must be those that the index states."""

    members: Mapping[str, bytes]
    n_states: int
    n_choices: int
    n_branches: int

    def content(self, name: str) -> bytes:
        """The bytes of a member."""
        if name not in self.members:
            raise InvalidInput(f"{name} is missing")
        return self.members[name]

    def numbers(self, name: str, dtype: str, count: int) -> NDArray[Any]:
        """A member with a known number of values."""
        content = self.content(name)
        size = np.dtype(dtype).itemsize
        if len(content) != count * size:
            raise InvalidInput(
                f"{name} has {len(content)} bytes, not {count * size} for {count} values"
            )
        return np.frombuffer(content, dtype)

    def values(self, name: str, kind: dict[str, Any], count: int) -> NDArray[np.float64]:
        """Real numbers of a type that the index declares."""
        word, size = kind.get("type"), kind.get("size")
        if word == "double" and size in (None, 64):
            return self.numbers(name, "<f8", count).astype(np.float64, copy=False)
        if word == "rational" and size in (None, 128):
            parts = self.numbers(name, "<i8", 2 * count).reshape(count, 2)
            result: NDArray[np.float64] = _quotients(parts[:, 0], parts[:, 1].astype("<u8"))
            return result
        raise InvalidInput(f"{name} has type {_shown(word)} of size {_shown(size)}, not double")

    def offsets(self, name: str, count: int, total: int) -> NDArray[np.int64]:
        """Offsets that divide a total; one for each where the member is left out."""
        if name not in self.members:
            if count != total:
                raise InvalidInput(f"{name} is missing")
            return np.arange(count + 1)
        given = self.numbers(name, "<u8", count + 1)
        if given[0] != 0 or given[-1] != total or (given[1:] < given[:-1]).any():
            raise InvalidInput(f"{name} does not rise from 0 to {total}")
        return given.astype(np.int64)

    def mask(self, name: str, count: int) -> NDArray[np.bool_]:
        """One bit for each of some entities."""
        content = self.content(name)
        if len(content) not in (-(-count // 8), -(-count // 64) * 8):
            raise InvalidInput(f"{name} has {len(content)} bytes for {count} bits")
        bits = np.unpackbits(np.frombuffer(content, np.uint8), bitorder="little")
        return bits[:count].astype(bool)

    def strings(self, place: str, count: int) -> list[str]:
        """The strings in a folder."""
        name = f"{place}/string-mapping.bin"
        content = self.content(f"{place}/strings.bin")
        if name not in self.members:
            raise InvalidInput(f"{name} is missing")
        ends = self.offsets(name, count, len(content)).tolist()
        try:
            return [content[a:b].decode() for a, b in itertools.pairwise(ends)]
        except UnicodeDecodeError:
            raise InvalidInput(f"{place}/strings.bin is not UTF-8") from None


def _is_used(name: str) -> bool:
    """Whether a member is read at all."""
    return name in MEMBERS or name.startswith(FOLDERS)


def _index(members: Mapping[str, bytes]) -> dict[str, Any]:
    """The content of `index.json`, as far as it is an object of a known version."""
    if "index.json" not in members:
        raise InvalidInput("not a UMB file: index.json is missing")
    if len(members["index.json"]) > MAX_INDEX:
        raise InvalidInput(f"index.json has more than {MAX_INDEX} bytes")
    try:
        index = json.loads(members["index.json"].decode())
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise InvalidInput(f"index.json: {' '.join(str(reason).split())}") from None
    if not isinstance(index, dict):
        raise InvalidInput("index.json is not a JSON object")
    if (given := _count(index, "format-version")) not in VERSIONS:
        raise InvalidInput(f"format-version {given} is not one of {VERSIONS}")
    return index


def _object(parent: dict[str, Any], key: str, default: Any = None) -> dict[str, Any]:
    """A JSON object inside another."""
    value = parent.get(key, default)
    if not isinstance(value, dict):
        problem = "is missing" if key not in parent else "is not an object"
        raise InvalidInput(f"index.json: {_shown(key)} {problem}")
    return value


def _count(parent: dict[str, Any], key: str) -> int:
    """A count in the index."""
    value = parent.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise InvalidInput(f"index.json: {key} must be an integer of at least 0")
    return value


def _shown(value: Any) -> str:
    """A value from a file for an error message, in one short line."""
    plain = value is None or isinstance(value, str | int | float)
    return repr(value)[:60] if plain else f"a {type(value).__name__}"


def _refuse_other_models(system: dict[str, Any], count: dict[str, int]) -> None:
    """Refuse what is not an MDP or a Markov chain in discrete time."""
    if system.get("time") != "discrete":
        raise InvalidInput(f"time is {_shown(system.get('time'))}: only discrete time is read")
    if count["#players"] > 1:
        raise InvalidInput(f"#players is {count['#players']}: games are not read")
    if system.get("#observations", 0) != 0:
        raise InvalidInput("#observations is not 0: partially observable models are not read")
    if "branch-probability-type" not in system:
        raise InvalidInput("branch-probability-type is missing: the model has no probabilities")
    if count["#states"] == 0:
        raise InvalidInput("#states is 0")


def _labels(archive: _Archive, aps: dict[str, Any]) -> dict[str, NDArray[np.bool_]]:
    """The states with the labels that have a meaning here."""
    result = {name: np.zeros(archive.n_states, bool) for name in (TERMINAL, SINK)}
    for key, description in aps.items():
        alias = description.get("alias", key) if isinstance(description, dict) else key
        if isinstance(alias, str) and alias in result:
            result[alias] = archive.mask(
                f"annotations/aps/{key}/states/values.bin", archive.n_states
            )
    return result


def _choice_actions(archive: _Archive, count: int) -> tuple[Any, list[str] | None]:
    """The action of each choice and the names of the actions; None where the file has none."""
    place = "actions/choices"
    if count == 0:
        return None, None
    if f"{place}/values.bin" not in archive.members:
        action = np.zeros(archive.n_choices, np.int64)
    else:
        action = archive.numbers(f"{place}/values.bin", "<u4", archive.n_choices).astype(np.int64)
    if action.size and int(action.max()) >= count:
        raise InvalidInput(f"{place}/values.bin names action {action.max()} of {count}")
    if f"{place}/string-mapping.bin" not in archive.members:
        return action, None
    names = archive.strings(place, count)
    numbers: dict[str, int] = {}
    same = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
    return same[action], [name or "unnamed" for name in numbers]


def _rewards(
    archive: _Archive,
    structures: dict[str, Any],
    chosen: str | None,
    pointer: NDArray[np.int64],
    indptr: NDArray[np.int64],
    probability: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Expected reward of each choice in one reward structure."""
    keys = {}
    for key in structures:
        alias = _object(structures, key).get("alias")
        keys[alias if isinstance(alias, str) else key] = key
    if not keys:
        raise InvalidInput("the model has no rewards: index.json lists none in annotations")
    if chosen is None and len(keys) > 1:
        raise InvalidInput(f"has {len(keys)} reward structures", add=("rewards", _shown(min(keys))))
    name = next(iter(keys)) if chosen is None else chosen
    key = keys.get(name, name)
    if key not in structures:
        known = ", ".join(_shown(k) for k in list(keys)[:8])
        raise InvalidInput(f"has no reward structure {name!r}, but {known}")
    description = structures[key]
    if "probability-type" in description:
        raise InvalidInput(f"the rewards {_shown(name)} have a probability-type: they are random")
    sizes = {
        "states": archive.n_states, "choices": archive.n_choices, "branches": archive.n_branches
    }  # fmt: skip
    result = np.zeros(archive.n_choices)
    kinds = description.get("applies-to")
    if not isinstance(kinds, list) or not kinds:
        raise InvalidInput(f"applies-to of the rewards {_shown(name)} is not a list")
    for kind in kinds:
        if not isinstance(kind, str) or kind not in sizes:
            raise InvalidInput(f"rewards on {_shown(kind)} are not read")
        values = archive.values(
            f"annotations/rewards/{key}/{kind}/values.bin",
            _object(description, "type"),
            sizes[kind],
        )
        with np.errstate(all="ignore"):
            if kind == "states":
                result += explicit.state_rewards(pointer, values)
            elif kind == "choices":
                result += values
            else:
                result += explicit.expected(indptr, probability, values)
    return result


def _initial(archive: _Archive, count: int, own: dict[str, Any]) -> NDArray[np.float64] | None:
    """The initial distribution: as it is written, or uniform over the initial states."""
    if "initial" in own:
        name = f"annotations/{GROUP}/initial/states/values.bin"
        return archive.numbers(name, "<f8", archive.n_states).astype(np.float64, copy=False)
    if count == 0 and "state-is-initial.bin" not in archive.members:
        return None
    mask = archive.mask("state-is-initial.bin", archive.n_states)
    if np.count_nonzero(mask) != count:
        raise InvalidInput(
            f"state-is-initial.bin has {np.count_nonzero(mask)} states, but #initial-states "
            f"is {count}"
        )
    return explicit.uniform(mask)


def _state_names(archive: _Archive, valuations: dict[str, Any]) -> list[str] | None:
    """The names of the states: as they are written, or from the values of variables."""
    if f"{STATE_NAMES}/strings.bin" in archive.members:
        return archive.strings(STATE_NAMES, archive.n_states)
    content = archive.members.get("valuations/states/valuations.bin")
    if content is None or "states" not in valuations:
        return None
    return valuation_names(_object(valuations, "states"), content, archive.n_states)


def _discount(index: dict[str, Any]) -> float | None:
    """The discount that tsallax keeps among the parameters of the file."""
    file = index.get("file-data")
    if not isinstance(file, dict) or file.get("tool") != "tsallax":
        return None
    parameters = file.get("parameters")
    if not isinstance(parameters, dict) or "discount" not in parameters:
        return None
    return explicit.file_discount(parameters["discount"])


def _quotients(numerator: NDArray[np.int64], denominator: NDArray[np.uint64]) -> Any:
    """Fractions rounded to float64 once; NaN for a division by zero."""
    exact = (np.abs(numerator) <= 2**53) & (numerator > -(2**63)) & (denominator <= 2**53)
    with np.errstate(all="ignore"):
        result = np.where(denominator > 0, numerator / denominator, np.nan)
    rest = np.flatnonzero(~exact)
    pairs = zip(numerator[rest].tolist(), denominator[rest].tolist())
    result[rest] = [explicit.rational(*pair) for pair in pairs]
    return result


def _bits(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """One bit for each entity, filled up to 64."""
    whole = np.zeros(-(-len(mask) // 64) * 64, bool)
    whole[: len(mask)] = mask
    return np.packbits(whole, bitorder="little")


def _strings(place: str, strings: Any) -> dict[str, Any]:
    """The two members that hold a list of strings."""
    parts = [string.encode() for string in strings]
    ends = np.append(0, np.cumsum([len(part) for part in parts])).astype("<u8")
    return {f"{place}/string-mapping.bin": ends, f"{place}/strings.bin": b"".join(parts)}
