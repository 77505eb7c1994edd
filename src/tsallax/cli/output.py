"""What the commands print: errors and notes of one line."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tsallax.wording import plural

if TYPE_CHECKING:
    from tsallax.deep.agent import Agent


def print_line(kind: str, message: str) -> None:
    """Print a message on standard error, in one line; kind: `error`, `note` or `interrupted`."""
    sys.stderr.write(f"tsallax: {kind}: {' '.join(message.split())}\n")


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print each warning once, as a note, without the colours that Gymnasium adds."""
    printed = set[str]()

    def show(message: Any, category: Any, *_: Any, **__: Any) -> None:
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(message))
        if issubclass(category, UserWarning) and text not in printed:
            printed.add(text)
            print_line("note", text)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def training_length(agent: Agent) -> str:
    """How long an agent has been trained, such as `24 episodes, 1,200 steps`."""
    return f"{plural(agent.history.episodes, 'episode')}, {plural(agent.steps, 'step')}"
