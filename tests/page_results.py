"""Results made up for the tests of the report's page, in the files that experiments leave."""

import json
import math

from tsallax.paper.result import write_csv

PANELS = ("9 actions", "121 actions", "961 actions", "2601 actions")
EXPLORE = ("sparse", "soft", "epsilon")
UPDATE = ("sparse", "soft", "hard")
ALPHA = ("1", "0.1", "0.01")
LABELS = [f"{e}+{u}-{a}" for e in EXPLORE for u in UPDATE for a in ALPHA]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><path d="M0 0H90"/></svg>'
ENVIRONMENT = {"tsallax": "0.1.0", "python": "3.12.1", "jax": "0.11.0", "cpu": "A CPU", "cores": 4}


def series(panel, label, points=120, **changes):
    """One line: a rise to a height that its label and panel decide."""
    rank = LABELS.index(label) if label in LABELS else 0
    x = [20 * (i + 1) for i in range(points)]
    y = [-4 - rank / 10 - 40 * math.exp(-i / 12) for i in range(points)]
    line = {
        "panel": panel, "label": label, "shown": label in LABELS[:4],
        "groups": dict(zip(("exploration", "update", "alpha"), label.replace("-", "+").split("+"))),
        "x": x, "y": y, "low": [value - 0.5 for value in y], "high": [value + 0.5 for value in y],
    }  # fmt: skip
    return line | changes


def curves(points=120):
    """A chart of 27 lines in four panels."""
    return {
        "name": "reacher-curves", "title": "training returns", "x_label": "episodes",
        "y_label": "return",
        "series": [series(panel, label, points) for panel in PANELS for label in LABELS],
    }  # fmt: skip


def returns():
    """A table of 27 rows; the returns fall, then rise, and some cells are empty or words."""
    rows = []
    for i, label in enumerate(LABELS):
        value = -4 - 0.1 * ((7 * i) % 27)
        number = f"{900 + 137 * ((5 * i) % 27):,} [800, 10,000]"
        episodes = ("not reached", "", number, number, number)[i % 5]
        text = f"{value:.1f} [{value - 0.2:.1f}, {value + 0.2:.1f}]".replace("-", "−")
        rows.append({"algorithm": label, "return": text, "episodes": episodes, "seeds": 3 + i % 3})
    return rows


def write(
    folder, name="reacher", *, rows=None, chart=None, table="returns and episodes", **changes
):
    """Write a result's files; return its record."""
    record = {
        "name": name,
        "title": f"Result {name}: what was found",
        "caption": ["What is shown.", "What was found."],
        "quick": False,
        "parameters": {"seeds": 3},
        "comparison": [{"what": "best return", "paper": "−5.3", "ours": "−4.1 [−4.2, −4.0]"}],
        "pictures": [{"name": f"{name}-map", "alt": "A map of everything", "width_inches": 7.0}],
        "tables": [{"name": f"{name}-returns", "title": table, "shown": "open"}],
        "charts": [f"{name}-curves"] if chart else [],
        "hardware": None,
        "seconds": 12.34,
        "date": "2026-11-15T10:00:00+00:00",
        "environment": ENVIRONMENT,
    } | changes
    folder.mkdir(exist_ok=True)
    (folder / f"{name}-map.svg").write_text(SVG, encoding="utf-8")
    (folder / f"{name}-map.png").write_bytes(b"")
    with (folder / f"{name}-returns.csv").open("w", encoding="utf-8", newline="") as file:
        write_csv(returns() if rows is None else rows, file)
    if chart:
        text = json.dumps(chart)
        (folder / f"{name}-curves.chart.json").write_text(text, encoding="utf-8")
    (folder / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    return record


EVIL = (
    "<img src=x onerror=window.harmed=1>",
    "</script><script>window.harmed=2</script>",
    '"><svg onload=window.harmed=3>',
    "' onmouseover='window.harmed=4",
    "<!--<script>window.harmed=5",
    "&lt;b&gt;_{<i>}",
    "__proto__",
)


def write_hostile(folder):
    """A result with hostile strings in every place that takes one."""
    every = " ".join(EVIL)
    lines = [
        series(f"panel {bad}", f"line {bad}", 5, groups={f"group {bad}": f"word {bad}"}, shown=True)
        for bad in EVIL
    ]
    titles = {"title": every, "x_label": f"x {every}", "y_label": f"y {every}"}
    return write(
        folder, chart=curves(5) | titles | {"series": lines},
        rows=[{"name": bad, f"column {every}": f"cell {bad}"} for bad in EVIL + EVIL],
        table=every, title=every, caption=list(EVIL), hardware=every, date=every,
        comparison=[{"what": bad, "paper": bad, "ours": bad} for bad in EVIL],
        pictures=[{"name": "reacher-map", "alt": every, "width_inches": 7.0}],
        environment={every: every, "cpu": every, "cores": every},
    )  # fmt: skip
