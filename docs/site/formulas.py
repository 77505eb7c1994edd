"""Formulas as MathML, which browsers typeset by themselves: no script and no fonts to load."""

import html
import re

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.S)
DISPLAY = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.S)


def on_page_content(content: str, **_: object) -> str:
    """Replace the LaTeX of arithmatex by MathML."""
    content = DISPLAY.sub(lambda m: _formula(m[1], "block"), content)
    return INLINE.sub(lambda m: _formula(m[1], "inline"), content)


def _formula(latex: str, display: str) -> str:
    """One formula, in a box of its own that scrolls where a phone is too narrow."""
    mathml = convert(html.unescape(latex).strip(), display=display)
    return f'<div class="formula">{mathml}</div>' if display == "block" else mathml
