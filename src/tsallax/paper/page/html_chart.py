"""A chart of the page: its lines as data for the script of the page, and their ends as a table."""

import json
import math
from html import escape
from typing import Any

from tsallax.errors import InvalidInput
from tsallax.paper.page.html_table import decimal, render_table
from tsallax.paper.result import Value
from tsallax.wording import plural


def render_chart(data: dict[str, Any], source: str) -> str:
    """The HTML of a chart: a place to draw it, its data, and a table of where the lines end."""
    try:
        name, title, x, y = (str(data[key]) for key in ("name", "title", "x_label", "y_label"))
        series = [_series(given) for given in data["series"]]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidInput(
            f"{source} is not a chart ({type(error).__name__}: {error}): run its experiment again"
        ) from None
    if not series:
        return ""
    title = title[:1].upper() + title[1:]
    panels = list(dict.fromkeys(line["panel"] for line in series))
    labels = list(dict.fromkeys(line["label"] for line in series))
    words = (
        f"A line chart of {y} against {x}: {plural(len(labels), 'line')} in "
        f"{plural(len(panels), 'panel')} "
        f"({', '.join(panels)}), each with its interval, or the range of fewer than six runs. "
        "The table below has their last values."
    )
    drawn = {"x": x, "y": y, "same_scale": data.get("same_scale") is not False, "series": series}
    text = json.dumps(drawn, ensure_ascii=False, allow_nan=False)
    ends = render_table(_ends(series, panels, labels), f"{title}: where the lines end")
    return (
        f'<h3>{escape(title)}</h3><div class="chart" role="group" aria-label="{escape(title)}">'
        f'<p class="unseen">{escape(words)}</p>'
        f"<noscript><p>The chart is drawn with JavaScript. "
        f"The table below has the ends of all lines, and {escape(name)}.chart.json every point."
        f"</p></noscript>"
        f'<script type="application/json">{text.replace("<", chr(92) + "u003c")}</script></div>'
        f"<details><summary>Data: where the lines end</summary>{ends}</details>"
    )


def _series(given: dict[str, Any]) -> dict[str, Any]:
    """One line as the script of the page expects it."""
    columns = {key: [_point(value) for value in given[key]] for key in ("x", "y", "low", "high")}
    if len({len(column) for column in columns.values()}) != 1 or None in columns["x"]:
        raise ValueError(f"the columns of {given['label']!r} do not fit together")
    return {
        "panel": str(given["panel"]),
        "label": str(given["label"]),
        "groups": [[str(key), str(value)] for key, value in given["groups"].items()],
        "shown": given.get("shown") is True,
        **columns,
    }


def _point(value: Any) -> float | None:
    """A number in five digits; None where there is none."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.5g}")
    return int(short) if short.is_integer() else short


def _ends(series: list[Any], panels: list[str], labels: list[str]) -> list[dict[str, Value]]:
    blank: dict[str, Value] = dict.fromkeys(panels, "")
    rows = {label: {"line": label, **blank} for label in labels}
    for line in series:
        last = [i for i, y in enumerate(line["y"]) if y is not None]
        if last:
            y, low, high = (line[key][last[-1]] for key in ("y", "low", "high"))
            interval = "" if None in (low, high) else f" [{decimal(low)}, {decimal(high)}]"
            rows[line["label"]][line["panel"]] = decimal(y) + interval
    return list(rows.values())
