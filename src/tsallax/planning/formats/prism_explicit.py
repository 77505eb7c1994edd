"""PRISM's explicit files: transitions `.tra`, and beside them labels, states and rewards.

    model.tra     states choices transitions; then: state choice target probability (action)
    model.lab     0="init" 2="terminal"; then: state: labels
    model.sta     (variables); then: state:(values)
    model.srew    states entries; then: state reward
    model.trew    states choices entries; then: state choice target reward

All but the first may be missing, except that one of the last two must be there. Storm's variants
are read, too: a first line `mdp`, labels between `#DECLARATION` and `#END`, rewards without a
header. The files have no place for a discount or for initial probabilities that differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tsallax.errors import InvalidInput
from tsallax.planning.formats import explicit_model as explicit
from tsallax.planning.formats import text_lines
from tsallax.planning.formats.action_labels import actions_of_labels
from tsallax.planning.formats.explicit_model import SINK, TERMINAL, ExplicitModel
from tsallax.planning.formats.text_lines import joined

LABELS = ("init", "deadlock", TERMINAL, SINK)
MAX_FIRST_LINE = 1 << 20
"""Longest first line of a file, in bytes."""

_DECLARED = re.compile(r'(\d{1,9})="([^"]*)"')
_STATE_LINE = re.compile(rb"\s*(\d{1,18}):\((.*)\)\s*$")
_LINES_AT_ONCE = 1 << 14


def write(path: str | PathLike[str], model: ExplicitModel) -> None:
    """Write a model as a `.tra` file and the files beside it."""
    assert model.initial is not None
    assert model.action is not None
    file = Path(path)
    if not explicit.is_uniform(model.initial):
        raise InvalidInput(
            "PRISM files hold a set of initial states, not probabilities that differ: "
            "save as .umb or .drn",
            source=path,
        )
    actions, states = model.action_names or (), model.state_names or ()
    unfit = [name for name in actions if not name or name.isdigit() or len(name.split()) != 1]
    unfit += [name for name in states if "\n" in name or "\r" in name]
    if unfit:
        raise InvalidInput(
            f"PRISM files cannot hold the name {unfit[0]!r}: save as .umb or .drn", source=path
        )
    text_lines.write_text(file.with_suffix(".lab"), _label_text(model))
    text_lines.write_text(file.with_suffix(".sta"), _state_text(model))
    text_lines.write_text(file.with_suffix(".srew"), [f"{model.n_states} 0\n"])
    rewards = np.repeat(model.rewards, np.diff(model.indptr))
    paid = np.flatnonzero(rewards)
    text_lines.write_text(file.with_suffix(".trew"), _branch_text(model, rewards, paid, None))
    every, labels = np.arange(len(model.target)), _labels_of(model)
    text_lines.write_text(file, _branch_text(model, model.probability, every, labels))


def _labels_of(model: ExplicitModel) -> list[str] | None:
    """The label of each choice; None where its position in the state says it all."""
    assert model.action is not None
    if model.action_names is not None:
        return [f" {model.action_names[a]}" for a in model.action.tolist()]
    state_of = np.repeat(np.arange(model.n_states), np.diff(model.pointer))
    loops = (model.terminal | model.sink)[state_of]
    plain = loops | (model.action == np.arange(model.n_choices) - model.pointer[state_of])
    return None if plain.all() else [f" {a}" for a in model.action.tolist()]


def _branch_text(
    model: ExplicitModel, values: Any, chosen: Any, labels: list[str] | None
) -> Iterator[str]:
    """A header and one line for each chosen branch."""
    yield f"{model.n_states} {model.n_choices} {len(chosen)}\n"
    choice_of = np.repeat(np.arange(model.n_choices), np.diff(model.indptr))
    state_of = np.repeat(np.arange(model.n_states), np.diff(model.pointer))
    for first in range(0, len(chosen), _LINES_AT_ONCE):
        at = chosen[first : first + _LINES_AT_ONCE]
        choice = choice_of[at]
        state = state_of[choice]
        columns = (state, choice - model.pointer[state], model.target[at], values[at], choice)
        yield "".join(
            f"{s} {c} {t} {v!r}{labels[row] if labels else ''}\n"
            for s, c, t, v, row in zip(*(column.tolist() for column in columns))
        )


def _label_text(model: ExplicitModel) -> Iterator[str]:
    assert model.initial is not None
    none = np.zeros(model.n_states, bool)
    masks = (model.initial > 0, none, model.terminal, model.sink)
    yield " ".join(f'{i}="{name}"' for i, name in enumerate(LABELS)) + "\n"
    for s in np.flatnonzero(np.any(masks, axis=0)).tolist():
        yield f"{s}: {' '.join(str(i) for i, mask in enumerate(masks) if mask[s])}\n"


def _state_text(model: ExplicitModel) -> Iterator[str]:
    names = model.state_names
    yield "(s)\n" if names is None else "(name)\n"
    for s in range(model.n_states):
        yield f"{s}:({s if names is None else names[s]})\n"


def read(path: str | PathLike[str], rewards: str | None = None) -> ExplicitModel:
    """Read a model; `rewards` is what PRISM puts between the name and `.srew` or `.trew`."""
    file = Path(path)
    model, prism = _read_transitions(file)
    masks = _read_beside(file.with_suffix(".lab"), _read_labels, model.n_states)
    names = _read_beside(file.with_suffix(".sta"), _read_names, model.n_states)
    suffix = rewards or ""
    if "/" in suffix or "\\" in suffix or "\0" in suffix:
        raise InvalidInput(f"rewards must be part of a file's name, not {suffix!r}")
    beside = [file.with_name(f"{file.stem}{suffix}{ending}") for ending in (".srew", ".trew")]
    of_states = _read_beside(beside[0], _read_state_rewards, model, prism)
    of_branches = _read_beside(beside[1], _read_branch_rewards, model, prism)
    if of_branches is None and (of_states is None or not of_states.any()):
        which = "and .trew are missing" if of_states is None else "is empty and .trew missing"
        raise InvalidInput(f"the model has no rewards: {beside[0].name} {which}")
    with np.errstate(all="ignore"):
        total = sum(part for part in (of_states, of_branches) if part is not None)
    none = np.zeros(model.n_states, bool)
    masks = masks or {}
    return ExplicitModel(
        model.pointer, model.indptr, model.target, model.probability, total,
        masks.get(TERMINAL, none), masks.get(SINK, none),
        explicit.uniform(masks.get("init", none)),
        model.action, model.action_names, names, None,
    )  # fmt: skip


def _read_beside(path: Path, reader: Any, *arguments: Any) -> Any:
    """What a file beside the transitions holds; None where it is missing."""
    if not path.is_file():
        return None
    try:
        with text_lines.open_text(path) as file:
            return reader(file, *arguments)
    except InvalidInput as error:
        raise error.of(path) from None


def _first_line(file: BinaryIO) -> tuple[list[str], int]:
    """The words of the first line that is not a comment, and its number."""
    number = 0
    while True:
        line = file.readline(MAX_FIRST_LINE)
        number += 1
        if not line.strip().startswith(b"#") or line.strip().startswith(b"#DECLARATION"):
            break
    if len(line) == MAX_FIRST_LINE:
        raise InvalidInput(f"line {number} is longer than {MAX_FIRST_LINE} bytes")
    return line.decode(errors="replace").split(), number


def _read_transitions(path: Path) -> tuple[ExplicitModel, bool]:
    """The model without rewards, labels and names, and whether it has a header as PRISM's."""
    with text_lines.open_text(path) as file:
        words, number = _first_line(file)
        stated = None
        if words and all(word.isascii() and word.isdigit() and len(word) < 19 for word in words):
            if len(words) not in (2, 3):
                raise InvalidInput(f"line {number}: not a header: states choices transitions")
            stated = [int(word) for word in words]
        elif [word.lower() for word in words] not in (["mdp"], ["dtmc"]):
            raise InvalidInput(f"line {number}: {' '.join(words)[:40]!r} is no MDP's header")
        chain = words[0].lower() == "dtmc" or len(words) == 2
        size = path.stat().st_size
        if stated is not None and max(stated) > size:
            raise InvalidInput(f"line {number}: {max(stated)} entries in {size} bytes")
        columns, labels = _read_columns(file, number + 1, chain)
    state, choice, target, probability, label_of = columns
    highest = int(max(state.max(initial=-1), target.max(initial=-1)))
    n_states = highest + 1 if stated is None else stated[0]
    if highest >= n_states or n_states > size:
        raise InvalidInput(f"names state {highest}, but there are {min(n_states, size)} states")
    if stated is not None and stated[-1] != len(state):
        raise InvalidInput(f"has {len(state)} transitions, but its header says {stated[-1]}")
    order: Any = slice(None)
    if ((state[1:] < state[:-1]) | ((state[1:] == state[:-1]) & (choice[1:] < choice[:-1]))).any():
        order = np.lexsort((choice, state))
    state, choice, target, probability = (c[order] for c in (state, choice, target, probability))
    new = np.append(True, (state[1:] != state[:-1]) | (choice[1:] != choice[:-1]))[: len(state)]
    starts = np.flatnonzero(new)
    pointer = np.searchsorted(state[starts], np.arange(n_states + 1))
    indptr = np.append(starts, len(state))
    if stated is not None and len(stated) == 3 and stated[1] != len(starts):
        raise InvalidInput(f"has {len(starts)} choices, but its header says {stated[1]}")
    action, names = actions_of_labels(label_of[order][starts], labels)
    nothing = np.zeros(n_states, bool)
    model = ExplicitModel(
        pointer, indptr, target, probability, np.zeros(len(starts)), nothing, nothing,
        None, action, names,
    )  # fmt: skip
    return model, stated is not None


def _read_columns(file: BinaryIO, first: int, chain: bool) -> tuple[list[Any], list[bytes]]:
    """State, choice, target, value and label of every line, and the labels."""
    labels: dict[bytes, int] = {}
    parts: list[list[Any]] = [[], [], [], [], []]
    n_numbers = 3 if chain else 4
    for lines in text_lines.read_blocks(file, first):
        wrong = (lines.words != 0) & (lines.words != n_numbers) & (lines.words != n_numbers + 1)
        lines.refuse_any(wrong, f"not {n_numbers} numbers and a label")
        filled = np.flatnonzero(lines.words)
        integers = lines.integers(lines.place < n_numbers - 1, "a state or choice")
        whole = [*integers.reshape(-1, n_numbers - 1).T]
        if chain:
            whole.insert(1, np.zeros(len(filled), np.int64))
        chance = lines.floats(lines.place == n_numbers - 1, "a probability or a reward")
        label = np.full(len(lines.words), -1)
        named = lines.place == n_numbers
        if named.any():
            found = [labels.setdefault(w, len(labels)) for w in lines.texts(named)]
            label[lines.line[named]] = found
        for part, values in zip(parts, (*whole, chance, label[filled])):
            part.append(values)
    kinds = (np.int64, np.int64, np.int64, np.float64, np.int64)
    *columns, label_of = (joined(part, kind) for part, kind in zip(parts, kinds))
    missing = label_of == -1
    if missing.any():
        label_of[missing] = labels.setdefault(b"", len(labels))
    return [*columns, label_of], [*labels]


def _read_state_rewards(file: BinaryIO, model: ExplicitModel, prism: bool) -> Any:
    """The reward of its state for each choice."""
    result = np.zeros(model.n_states)
    number = _first_line(file)[1] if prism else 0
    for lines in text_lines.read_blocks(file, number + 1):
        wrong = (lines.words != 0) & (lines.words != 2)
        lines.refuse_any(wrong, "not a state and its reward")
        state = lines.integers(lines.place == 0, "a state")
        lines.require(state < model.n_states, lines.place == 0, f"no state of {model.n_states}")
        result[state] = lines.floats(lines.place == 1, "a reward")
    return explicit.state_rewards(model.pointer, result)


def _read_branch_rewards(file: BinaryIO, model: ExplicitModel, prism: bool) -> Any:
    """Expected reward of each choice from the rewards of its transitions."""
    start = file.tell()
    words, number = _first_line(file)
    header = prism or (bool(words) and not words[0].isdigit())
    if not header:
        file.seek(start)
        number = 0
    chain = prism and len(words) == 2
    (state, choice, target, value, _), _ = _read_columns(file, number + 1, chain)
    if not len(state):
        return np.zeros(model.n_choices)
    highest = int(max(state.max(), target.max()))
    if highest >= model.n_states:
        raise InvalidInput(f"names state {highest} of {model.n_states}")
    row = model.pointer[state] + choice
    absent = np.flatnonzero(choice >= np.diff(model.pointer)[state])
    if len(absent):
        at = int(absent[0])
        raise InvalidInput(f"state {state[at]} has no choice {choice[at]}")
    if model.n_choices * model.n_states >= 2**63:
        raise InvalidInput("has too many states and choices")
    given = row * model.n_states + target
    order = np.argsort(given, kind="stable")
    given, value = given[order], value[order]
    if (given[1:] == given[:-1]).any():
        raise InvalidInput("holds the reward of a transition twice")
    choice_of = np.repeat(np.arange(model.n_choices), np.diff(model.indptr))
    branches = choice_of * model.n_states + model.target
    place = np.minimum(np.searchsorted(given, branches), len(given) - 1)
    paid = given[place] == branches
    used = np.zeros(len(given), bool)
    used[place[paid]] = True
    if not used.all():
        raise InvalidInput("holds the reward of a transition that does not exist")
    rewards = np.where(paid, value[place], 0.0)
    return explicit.expected(model.indptr, model.probability, rewards)


def _read_labels(file: BinaryIO, n_states: int) -> dict[str, Any]:
    """The states with each label that has a meaning here."""
    words, number = _first_line(file)
    if words[:1] == ["#DECLARATION"]:
        new = declared = words
        while "#END" not in new:
            line = file.readline(MAX_FIRST_LINE)
            number += 1
            if not line:
                raise InvalidInput("#END is missing")
            new = line.decode(errors="replace").split()
            declared += new
        meaning = {name.encode(): name for name in LABELS if name in declared}
    else:
        text = " ".join(words)
        pairs = _DECLARED.findall(text)
        if not pairs or _DECLARED.sub("", text).strip():
            raise InvalidInput(f"line {number}: not a list of labels")
        meaning = {index.encode(): name for index, name in pairs if name in LABELS}
    result = {name: np.zeros(n_states, bool) for name in LABELS}
    for lines in text_lines.read_blocks(file, number + 1):
        lines = text_lines.split_lines(lines.data, lines.number, b":")
        state = np.zeros(len(lines.words), np.int64)
        leading = lines.place == 0
        given = lines.integers(leading, "a state")
        lines.require(given < n_states, leading, f"no state of {n_states}")
        state[lines.line[leading]] = given
        for word, s in zip(lines.texts(~leading), state[lines.line[~leading]].tolist()):
            if word in meaning:
                result[meaning[word]][s] = True
    return result


def _read_names(file: BinaryIO, n_states: int) -> list[str] | None:
    """The name of each state from the values of its variables; None where they are its number."""
    words, number = _first_line(file)
    text = " ".join(words)
    if not (text.startswith("(") and text.endswith(")")):
        raise InvalidInput(f"line {number}: not a list of variables")
    variables = text[1:-1].split(",")
    names: list[str | None] = [None] * n_states
    length = 0
    for line in iter(lambda: file.readline(MAX_FIRST_LINE), b""):
        number += 1
        if not line.strip():
            continue
        match = _STATE_LINE.match(line)
        if match is None or int(match[1]) >= n_states:
            raise InvalidInput(f"line {number}: not one of {n_states} states and its values")
        try:
            values = match[2].decode()
        except UnicodeDecodeError:
            raise InvalidInput(f"line {number} is not UTF-8") from None
        name = values
        if variables not in (["name"], ["s"]):
            parts = values.split(",")
            if len(parts) != len(variables):
                raise InvalidInput(f"line {number}: {len(parts)} values of {len(variables)}")
            length += len(text) + len(values)
            if length > explicit.MAX_NAME_LENGTH:
                return None
            name = ", ".join(f"{variable}={part}" for variable, part in zip(variables, parts))
        names[int(match[1])] = name
    if None in names or (variables == ["s"] and names == [str(s) for s in range(n_states)]):
        return None
    return [str(name) for name in names]
