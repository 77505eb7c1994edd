"""Doctests in docstrings as code blocks: in Markdown, lines with >>> would be quotations."""

import re
from typing import Any

from griffe import Extension, Object

DOCTEST = re.compile(r"(?:^ *>>> .*\n(?:^ *\S.*\n?)*\n?)+", re.M)


class Doctests(Extension):
    """Fence every doctest of a docstring."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = DOCTEST.sub(_fenced, obj.docstring.value + "\n").rstrip()


def _fenced(match: re.Match[str]) -> str:
    code = match[0].rstrip()
    indent = " " * (len(code) - len(code.lstrip()))
    return f"\n{indent}```pycon\n{code}\n{indent}```\n\n"
