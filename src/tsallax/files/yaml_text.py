"""YAML 1.2 as plain data: numbers, strings, Booleans, null, lists and mappings.

ruamel.yaml reads `1e-4` as a number, `1:0:50` and `no` as strings, and refuses a key that is given
twice. Here also `none` is null, and dates are strings. Aliases are refused: a few lines of them can
stand for gigabytes.
"""

from __future__ import annotations

from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.representer import SafeRepresenter

from tsallax.errors import InvalidInput, one_line

STRING = "tag:yaml.org,2002:str"


class _Constructor(SafeConstructor):
    def construct_string(self, node: Any) -> str | None:
        quoted = node.style is not None
        return None if node.value in ("none", "None") and not quoted else str(node.value)


for _tag in ("str", "timestamp", "value"):
    _Constructor.add_constructor(f"tag:yaml.org,2002:{_tag}", _Constructor.construct_string)


class _Composer(Composer):
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.parser.check_event(AliasEvent):
            alias = self.parser.peek_event()
            problem = f"the alias *{alias.anchor} is not read: write its value out"
            raise ComposerError(None, None, problem, alias.start_mark)
        return super().compose_node(parent, index)


class _Representer(SafeRepresenter):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_string(self, text: str) -> Any:
        style = '"' if "\n" in text else None if _is_plain(text) else "'"
        return self.represent_scalar(STRING, text, style=style)


_Representer.add_representer(str, _Representer.represent_string)


def _is_plain(text: str) -> bool:
    try:
        return bool(parse(text) == text)
    except InvalidInput:
        return False


def read(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a file of names and values."""
    try:
        values = parse(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput("no such file", source=path) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", source=path) from None
    except InvalidInput as error:
        raise error.of(path) from None
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise InvalidInput("must have lines of the form NAME: VALUE", source=path)
    return values


def parse(text: str) -> Any:
    """Read YAML.

    >>> parse("{rate: 1e-4, alpha: 1:0:50, words: no, huber: none, hidden: [64, 64]}")
    {'rate': 0.0001, 'alpha': '1:0:50', 'words': 'no', 'huber': None, 'hidden': [64, 64]}
    """
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _Constructor
    yaml.Composer = _Composer
    try:
        return yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark is not None else ""
        raise InvalidInput(f"{line}not YAML: {error.problem or error.context}") from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput(f"not YAML: {one_line(error)}") from None


def scalar(value: Any) -> str:
    """Write plain data in one line that readers of YAML 1.1 and 1.2 understand alike.

    >>> scalar(1e-5), scalar("1:0:50"), scalar([64, 64]), scalar(None)
    ('1.0e-05', "'1:0:50'", '[64, 64]', 'null')
    """
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.version = (1, 1)
    yaml.default_flow_style = True
    yaml.width = 10**6
    yaml.allow_unicode = True
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    text = StringIO()
    yaml.dump(value, text)
    return text.getvalue().removeprefix("%YAML 1.1\n---").removesuffix("...\n").strip()
