"""A table of the page: readable as it is; the page's script lets it sort and filter."""

import re
from html import escape

from tsallax.paper.result import Value

NUMBER = re.compile(r"([−+-]?\d[\d,]*(?:\.\d+)?(?:e[−+-]?\d+)?%?)(\s*(?:\[.*\]|±.*|\(.*\)))?")
"""A number as text, with an interval or a remark where it has one."""
LONG = 40
"""Rows above which a table scrolls in a box of limited height."""


def render_table(rows: list[dict[str, Value]], title: str, words: bool = False) -> str:
    """The HTML of rows with the same columns, in a box that scrolls and has an accessible title.

    With `words`, all columns are set as words, also those of numbers.
    """
    if not rows:
        return "<p>No rows.</p>"
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    numeric = {key: not words and _is_numeric(values) for key, values in columns.items()}
    kind = {key: ' class="number"' if numeric[key] else "" for key in columns}
    names = next(iter(columns))
    if not numeric[names] and max(len(str(value)) for value in columns[names]) < 30:
        kind[names] = ' class="short"'

    def cell(key: str, value: Value) -> str:
        style = ' class="wrong"' if value == "NO" else kind[key]
        text = _number(value) if numeric[key] else _subscripts(escape(str(value)))
        if key != names:
            return f"<td{style}>{text}</td>"
        return f'<th scope="row"{style}>{text.replace("+", "+<wbr>")}</th>'

    head = "".join(
        f'<th scope="col"{kind[key]}>{escape(key.replace("_", " "))}</th>' for key in rows[0]
    )
    body = "\n".join(f"<tr>{''.join(cell(*item) for item in row.items())}</tr>" for row in rows)
    long = " long" if len(rows) > LONG else ""
    return (
        f'<div class="wide{long}" role="region" tabindex="0" aria-label="{escape(title)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def decimal(value: float) -> str:
    """A number in four digits, with a real minus.

    >>> decimal(-4.12345), decimal(12345.6)
    ('−4.123', '12,350')
    """
    text = f"{value:.4g}"
    if "e+" in text and abs(value) < 1e9:
        text = f"{float(text):,.0f}"
    return text.replace("-", "−")


def _is_numeric(values: list[Value]) -> bool:
    """Whether a column is of numbers: most cells are, the others empty or short words."""
    words = [v for v in values if isinstance(v, str) and not NUMBER.fullmatch(v)]
    short = all(len(word) < 16 and not re.search(r"\d", word) for word in words)
    return short and 2 * len([word for word in words if word]) < len(values)


def _number(value: Value) -> str:
    if isinstance(value, int):
        return (f"{value:,}" if abs(value) >= 10_000 else str(value)).replace("-", "−")
    if isinstance(value, float):
        return decimal(value)
    match = NUMBER.fullmatch(value)
    if match is None or not match[2]:
        return escape(value)
    return f"{escape(match[1])}<small>{escape(match[2])}</small>"


def _subscripts(text: str) -> str:
    """Set what follows an underscore, in braces or one word, as a subscript."""
    return re.sub(r"_(?:\{([^}]*)\}|(\w+))", lambda m: f"<sub>{m[1] or m[2]}</sub>", text)
