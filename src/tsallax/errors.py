"""`InvalidInput`: input that cannot be used, with the culprit and the remedy as fields."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self

Spelling = Callable[[str, Any], str]
"""How a caller writes an argument: its name and an example of its value, or None without one."""


def python_argument(name: str, example: Any = None) -> str:
    """An argument as Python code has it.

    >>> python_argument("actions", 31), python_argument("actions")
    ('actions=31', 'actions')
    """
    return name if example is None else f"{name}={example}"


def one_line(error: BaseException) -> str:
    """The message of an error without line breaks.

    >>> one_line(ValueError("two\\n  lines"))
    'two lines'
    """
    return " ".join(str(error).split())


def place_in_user_code(error: BaseException) -> str:
    """File and line of the innermost call that is in no installed package, or "".

    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError as error:
    ...     place_in_user_code(error).endswith(", line 2)")
    True
    """
    libraries = (Path(sysconfig.get_path("stdlib")), Path(__file__).parent)
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        file = Path(frame.f_code.co_filename)
        installed = {"site-packages", "dist-packages"} & {*file.parts}
        installed_here = any(file.is_relative_to(folder) for folder in libraries)
        if not (installed or installed_here or file.name.startswith("<frozen")):
            return f" ({file.name}, line {line})"
    return ""


class InvalidInput(ValueError):
    """Input that cannot be used, refused before any work starts.

    Attributes:
        problem: what is wrong, in a few words.
        source: the file, environment or option at fault, put in front; None where there is none.
        add: name and example of the argument that is missing.
        omit: name of the argument that should be left out.

    >>> error = InvalidInput("has real actions", source="Reacher-v5", add=("actions", 31))
    >>> print(error)
    Reacher-v5: has real actions: give actions, such as actions=31
    >>> print(error.message(lambda name, example: f"--{name} {example or ''}".strip()))
    Reacher-v5: has real actions: give --actions, such as --actions 31
    """

    def __init__(
        self,
        problem: str,
        *,
        source: str | PathLike[str] | None = None,
        add: tuple[str, Any] | None = None,
        omit: str | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.source = None if source is None else str(source)
        self.add = add
        self.omit = omit

    def message(self, spelling: Spelling = python_argument) -> str:
        """One line: source, problem and remedy, with arguments as the caller spells them."""
        parts = [] if self.source is None else [self.source]
        parts.append(self.problem)
        if self.add is not None:
            name, example = self.add
            parts.append(f"give {spelling(name, None)}, such as {spelling(name, example)}")
        if self.omit is not None:
            parts.append(f"leave {spelling(self.omit, None)} out")
        return ": ".join(parts)

    def of(self, source: str | PathLike[str]) -> Self:
        """The same error with the file or environment at fault, unless it names it already."""
        if self.source is None and not self.problem.startswith(f"{source}: "):
            self.source = str(source)
        return self

    def __str__(self) -> str:
        return self.message()

    def __reduce__(self) -> Any:
        make = partial(type(self), source=self.source, add=self.add, omit=self.omit)
        return make, (self.problem,)
