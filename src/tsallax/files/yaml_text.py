"""YAML as plain data: what a person means by `1e-4`, `1:0:50` and `no` is what is read.

PyYAML follows YAML 1.1, where these are a word, a number to base 60 and False. Here numbers and
words are those of YAML 1.2, a key may stand only once, and no tag makes anything but plain data.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from os import PathLike
from pathlib import Path
from typing import Any

import yaml

from tsallax.errors import InvalidInput


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the scalars of YAML 1.2, and `none` for null."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if not isinstance(key, Hashable):
                raise InvalidInput(f"{key!r} cannot be a key")
            if keys.count(key) > 1:
                raise InvalidInput(f"{key} is given twice")
        return super().construct_mapping(node, deep=deep)


class _Dumper(yaml.SafeDumper):
    """Puts quotes around a word that either kind of reader would take for something else."""


for _kind, _pattern, _first in (
    ("null", r"~|null|Null|NULL|none|None|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9_]*)", list("-+0123456789")),
    (
        "float",
        r"[-+]?([0-9][0-9_]*\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
        list("-+.0123456789"),
    ),
):
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(
            f"tag:yaml.org,2002:{_kind}", re.compile(rf"^(?:{_pattern})$"), _first
        )


def read(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a file of names and values."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: cannot be read: {error}") from None
    try:
        values = parse(text)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise InvalidInput(f"{path}: must have lines of the form NAME: VALUE")
    return values


def parse(text: str) -> Any:
    """Read YAML.

    >>> parse("{rate: 1e-4, alpha: 1:0:50, words: no, huber: none, hidden: [64, 64]}")
    {'rate': 0.0001, 'alpha': '1:0:50', 'words': 'no', 'huber': None, 'hidden': [64, 64]}
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark is not None else ""
        raise InvalidInput(f"{line}not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput(f"not YAML: {error}") from None


def scalar(value: Any) -> str:
    """Write plain data in one line that any reader of YAML understands alike.

    >>> scalar(1e-5), scalar("1:0:50"), scalar([64, 64]), scalar(None)
    ('1.0e-05', "'1:0:50'", '[64, 64]', 'null')
    """
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        width=10**6,
        sort_keys=False,
        allow_unicode=True,
    )
    return text.removesuffix("...\n").strip()
