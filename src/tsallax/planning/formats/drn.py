"""DRN, Storm's explicit text format: states, their actions, and lines `target : probability`.

Comments hold what the format does not have, so that Storm passes over it: the discount and the
names of the actions before the model, the name of a state and its initial probability below it.

    // discount: 0.9                        @type: MDP
    // action_names: ["run", "repair"]      ...
    state 0 init                            state with its labels, or [rewards] and labels
    //"works"                               its name
    \taction run [1.0]                      a choice and its rewards
    \t\t0 : 0.9                             a branch
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, BinaryIO

import numpy as np

from tsallax.errors import InvalidInput
from tsallax.planning.formats import explicit_model as explicit
from tsallax.planning.formats import text_lines
from tsallax.planning.formats.action_labels import actions_of_labels
from tsallax.planning.formats.explicit_model import SINK, TERMINAL, ExplicitModel
from tsallax.planning.formats.text_lines import Lines, joined
from tsallax.provenance import __version__

UNLABELLED = b"__NOLABEL__"
"""The label that Storm writes for a choice without one."""
PLAIN_NAME = re.compile(r"[^\W\d][^\s\[\],\"/]*")
"""Names of actions that can stand in an action line as they are."""
MAX_HEADER_LINES = 10_000
MAX_HEADER = 1 << 24
"""Largest header, in bytes."""

_STATE = re.compile(rb"\s*+state\s++(\d{1,18})\s*+(?:\[([^\]]*+)\]\s*+)?([^\[\]]*+)$")
_LABEL = re.compile(rb'"([^"]+)"|([^\s"]+)')
_VALUE_TYPES = ("double", "rational")


def write(path: str | PathLike[str], model: ExplicitModel) -> None:
    """Write a model as a `.drn` file."""
    text_lines.write_text(path, _text(model))


def _text(model: ExplicitModel) -> Iterator[str]:
    """The lines of a file, state by state."""
    assert model.initial is not None
    assert model.action is not None
    names, states = model.action_names, model.state_names
    yield f"// Exported by tsallax {__version__}\n// discount: {model.discount!r}\n"
    if names is not None:
        yield f"// action_names: {json.dumps(list(names))}\n"
        if not all(PLAIN_NAME.fullmatch(name) and name != UNLABELLED.decode() for name in names):
            names = None
    yield "@type: MDP\n@parameters\n\n@reward_models\nreward\n"
    yield f"@nr_states\n{model.n_states}\n@nr_choices\n{model.n_choices}\n@model\n"
    uniform = explicit.is_uniform(model.initial)
    for s, (first, last) in enumerate(zip(model.pointer[:-1].tolist(), model.pointer[1:].tolist())):
        labels = " init" * bool(model.initial[s])
        labels += f" {TERMINAL}" * bool(model.terminal[s]) + f" {SINK}" * bool(model.sink[s])
        lines = [f"state {s}{labels}"]
        if states is not None:
            lines.append(f"//{json.dumps(states[s])}")
        if not uniform and model.initial[s]:
            lines.append(f"//initial {float(model.initial[s])!r}")
        ends = model.indptr[first : last + 1].tolist()
        rewards, actions = model.rewards[first:last].tolist(), model.action[first:last].tolist()
        targets = model.target[ends[0] : ends[-1]].tolist()
        chances = model.probability[ends[0] : ends[-1]].tolist()
        for reward, action, a, b in zip(rewards, actions, ends[:-1], ends[1:]):
            label = action if names is None else names[action]
            lines.append(f"\taction {label} [{reward!r}]")
            branches = slice(a - ends[0], b - ends[0])
            lines += [f"\t\t{t} : {p!r}" for t, p in zip(targets[branches], chances[branches])]
        yield "\n".join(lines) + "\n"


def read(path: str | PathLike[str], rewards: str | None = None) -> ExplicitModel:
    """Read a model; `rewards` names its reward structure where there are several."""
    with text_lines.open_text(path) as file:
        header = _read_header(file)
        column = _reward_column(header, rewards)
        body = _Body(header, column)
        for lines in text_lines.read_blocks(file, header.lines + 1):
            body.add(lines)
    return body.model()


@dataclass
class _Header:
    """What stands before `@model`."""

    lines: int = 0
    size: int = 0
    kind: str | None = None
    n_states: int | None = None
    n_choices: int | None = None
    rewards: list[str] = field(default_factory=list)
    discount: Any = None
    action_names: list[str] | None = None


def _read_header(file: BinaryIO) -> _Header:
    header = _Header()

    def next_line() -> str:
        line = file.readline(MAX_HEADER)
        header.lines += 1
        header.size += len(line)
        if not line or header.size > MAX_HEADER or header.lines > MAX_HEADER_LINES:
            raise InvalidInput(f"not a DRN file: no @model in its first {header.lines - 1} lines")
        try:
            return line.decode().strip()
        except UnicodeDecodeError:
            raise InvalidInput(f"line {header.lines} is not UTF-8") from None

    def count() -> int:
        word = next_line()
        if not (word.isascii() and word.isdigit() and len(word) < 19):
            raise InvalidInput(f"line {header.lines} is not a count")
        return int(word)

    while (line := next_line()) != "@model":
        key, _, value = line.partition(":")
        if line.startswith("//"):
            _read_comment(header, key[2:].strip(), value.strip())
        elif key == "@type":
            header.kind = value.strip()
        elif key == "@value_type":
            if value.strip() not in _VALUE_TYPES:
                raise InvalidInput(f"@value_type is {value.strip()[:40]!r}, not double")
        elif line == "@parameters":
            if next_line():
                raise InvalidInput("@parameters is not empty: parametric models are not read")
        elif line == "@reward_models":
            header.rewards = next_line().split()
        elif line == "@nr_states":
            header.n_states = count()
        elif line == "@nr_choices":
            header.n_choices = count()
        elif line:
            raise InvalidInput(f"line {header.lines}: {line[:40]!r} is not read")
    if header.kind is None or header.kind.lower() not in ("mdp", "dtmc"):
        raise InvalidInput(f"@type is {(header.kind or 'missing')[:40]!r}: only MDP is read")
    if header.n_states is None:
        raise InvalidInput("@nr_states is missing")
    return header


def _read_comment(header: _Header, key: str, value: str) -> None:
    """Take what tsallax keeps in comments."""
    if key not in ("discount", "action_names"):
        return
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        raise InvalidInput(f"line {header.lines}: {key} is damaged") from None
    if key == "discount":
        header.discount = explicit.file_discount(content)
    elif isinstance(content, list) and all(map(explicit.is_text, content)):
        header.action_names = content
    else:
        raise InvalidInput(f"line {header.lines}: {key} is damaged")


def _reward_column(header: _Header, chosen: str | None) -> int:
    """The position of a reward structure in the brackets of states and actions."""
    names = header.rewards
    if not names:
        raise InvalidInput("the model has no rewards: @reward_models is empty")
    if chosen is None and len(names) > 1:
        raise InvalidInput(
            f"has {len(names)} reward structures", add=("rewards", repr(names[0])[:60])
        )
    if chosen is not None and chosen not in names:
        raise InvalidInput(f"has no reward structure {chosen!r}, but {', '.join(names)[:200]}")
    return 0 if chosen is None else names.index(chosen)


class _Body:
    """The states, choices and branches read so far."""

    def __init__(self, header: _Header, column: int) -> None:
        self.header, self.column = header, column
        self.n_states = self.n_choices = 0
        self.choices_of: list[Any] = []
        self.branches_of: list[Any] = []
        self.targets: list[Any] = []
        self.chances: list[Any] = []
        self.choice_rewards: list[Any] = []
        self.labels: dict[bytes, int] = {}
        self.label_of: list[Any] = []
        self.state_rewards: dict[int, float] = {}
        self.label_states: dict[str, list[int]] = {"init": [], TERMINAL: [], SINK: []}
        self.initial: dict[int, float] = {}
        self.names: dict[int, str] = {}
        self.last_is_state = True

    def add(self, lines: Lines) -> None:
        """Add a block of lines."""
        kind = np.zeros(len(lines.number), np.uint8)
        leading = lines.place == 0
        kind[lines.line[leading]] = lines.data[lines.start[leading]]
        state, action, comment = kind == ord("s"), kind == ord("a"), kind == ord("/")
        branch = (kind >= ord("0")) & (kind <= ord("9"))
        other = (kind != 0) & ~(state | action | comment | branch)
        lines.refuse_any(other, "neither state, action nor branch")
        structure = state | action
        states = np.cumsum(state) + self.n_states
        choices = np.cumsum(action) + self.n_choices
        self._check_order(lines, structure, action, branch)
        self._add_states(lines, state)
        self._add_actions(lines, action, states[action] - 1)
        self._add_branches(lines, branch, choices[branch] - 1)
        self._add_comments(lines, comment, states[comment] - 1)
        if len(kind):
            self.n_states, self.n_choices = int(states[-1]), int(choices[-1])

    def _check_order(self, lines: Lines, structure: Any, action: Any, branch: Any) -> None:
        """Branches follow an action and actions follow a state."""
        at = np.flatnonzero(structure)
        if len(at) and self.n_states == 0 and action[at[0]]:
            lines.refuse(int(at[0]), "an action without a state")
        last = np.maximum.accumulate(np.where(structure, np.arange(len(action)), -1))
        inside = np.where(last >= 0, action[last], not self.last_is_state)
        lines.refuse_any(branch & ~inside, "a branch without an action")
        if len(at):
            self.last_is_state = not action[at[-1]]

    def _add_states(self, lines: Lines, chosen: Any) -> None:
        for index, (line, text) in enumerate(lines.whole_lines(chosen), self.n_states):
            match = _STATE.match(text)
            if match is None:
                lines.refuse(line, "not a state with rewards and labels")
            if int(match[1]) != index:
                lines.refuse(line, f"state {int(match[1])} where state {index} is due")
            if match[2] is not None:
                self._add_state_reward(lines, line, index, match[2])
            for quoted, plain in _LABEL.findall(match[3]) if match[3] else ():
                label = (quoted or plain).decode(errors="replace")
                if label in self.label_states:
                    self.label_states[label].append(index)

    def _add_state_reward(self, lines: Lines, line: int, state: int, text: bytes) -> None:
        words = text.split(b",")
        if len(words) != len(self.header.rewards):
            lines.refuse(line, f"{len(words)} rewards instead of {len(self.header.rewards)}")
        value = text_lines.real_number(words[self.column].strip())
        if value is None:
            lines.refuse(line, "a reward is not a number")
        if value:
            self.state_rewards[state] = value

    def _add_actions(self, lines: Lines, chosen: Any, state: Any) -> None:
        if not chosen.any():
            return
        part = text_lines.chosen_lines(lines, chosen, b"[],")
        count = len(self.header.rewards)
        keyword = part.place == 0
        wrong = (part.words != 2) & (part.words != 2 + count)
        spelled = [word == b"action" for word in part.texts(keyword)]
        wrong[part.line[keyword]] |= ~np.array(spelled)
        part.refuse_any(wrong, f"not an action with {count} rewards")
        reward = np.zeros(len(part.number))
        place = part.place == 2 + self.column
        reward[part.line[place]] = part.floats(place, "a reward")
        labels = self.labels
        self.label_of.append(np.array(
            [labels.setdefault(word, len(labels)) for word in part.texts(part.place == 1)], np.int64
        ))  # fmt: skip
        self.choice_rewards.append(reward)
        self.choices_of.append(state)

    def _add_branches(self, lines: Lines, chosen: Any, choice: Any) -> None:
        if not chosen.any():
            return
        part = text_lines.chosen_lines(lines, chosen, b":")
        colons = np.searchsorted(part.begin, np.flatnonzero(part.data == ord(":")), "right") - 1
        wrong = (part.words != 2) | (np.bincount(colons, minlength=len(part.number)) != 1)
        part.refuse_any(wrong, "not of the form target : probability")
        target = part.integers(part.place == 0, "a target")
        n_states = self.header.n_states
        assert n_states is not None
        part.require(target < n_states, part.place == 0, f"a target is not below {n_states}")
        self.targets.append(target)
        self.chances.append(part.floats(part.place == 1, "a probability"))
        self.branches_of.append(choice)

    def _add_comments(self, lines: Lines, chosen: Any, state: Any) -> None:
        for (line, content), s in zip(lines.whole_lines(chosen), state.tolist()):
            text = content.strip()[2:].decode(errors="replace")
            if s < 0:
                continue
            if text.startswith("initial "):
                value = text_lines.real_number(text[8:].encode())
                if value is None:
                    lines.refuse(line, "an initial probability is not a number")
                self.initial[s] = value
            elif text.startswith('"'):
                try:
                    name = json.loads(text)
                except ValueError:
                    name = None
                if not explicit.is_text(name):
                    lines.refuse(line, "the name of a state is damaged")
                self.names[s] = name
            elif text.startswith("["):
                self.names[s] = " ".join(text.split())

    def model(self) -> ExplicitModel:
        """The whole model."""
        header, n_states, n_choices = self.header, self.n_states, self.n_choices
        if n_states != header.n_states:
            raise InvalidInput(f"has {n_states} states, but @nr_states is {header.n_states}")
        if header.n_choices not in (None, n_choices):
            raise InvalidInput(f"has {n_choices} choices, but @nr_choices is {header.n_choices}")
        pointer = np.append(0, np.cumsum(np.bincount(joined(self.choices_of), minlength=n_states)))
        indptr = np.append(0, np.cumsum(np.bincount(joined(self.branches_of), minlength=n_choices)))
        rewards = joined(self.choice_rewards, float)
        by_state = np.zeros(n_states)
        by_state[list(self.state_rewards)] = list(self.state_rewards.values())
        with np.errstate(all="ignore"):
            rewards = rewards + explicit.state_rewards(pointer, by_state)
        masks = {name: np.zeros(n_states, bool) for name in self.label_states}
        for name, states in self.label_states.items():
            masks[name][states] = True
        initial = explicit.uniform(masks["init"])
        if self.initial:
            initial = np.zeros(n_states)
            initial[list(self.initial)] = list(self.initial.values())
        action, action_names = actions_of_labels(
            joined(self.label_of), [*self.labels], UNLABELLED, header.action_names
        )
        names = [self.names[s] for s in range(n_states)] if len(self.names) == n_states else None
        if names is not None and names[0].startswith("[") and len(set(names)) < n_states:
            names = None
        return ExplicitModel(
            pointer, indptr, joined(self.targets), joined(self.chances, float), rewards,
            masks[TERMINAL], masks[SINK], initial, action, action_names, names, header.discount,
        )  # fmt: skip
