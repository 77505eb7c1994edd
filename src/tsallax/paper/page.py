"""The report's page: one HTML file that needs no other, light or dark, on a phone or on paper."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from tsallax.paper.result import Cell, read_csv

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --line: #d8dee4;
  --paper: #ffffff; --card: #f6f8fa; --link: #0b5cad; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa4af; --line: #343b44;
  --paper: #0f1419; --card: #181e25; --link: #74b3f5; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
header, main, footer { max-width: 60rem; margin: 0 auto; padding: 0 1.1rem; }
header { padding-top: 2rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; line-height: 1.25; margin: 0 0 .8rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
section { padding: 1.8rem 0 1.2rem; border-top: 1px solid var(--line); margin-top: 1.6rem; }
nav ul { padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; list-style: none; }
a { color: var(--link); }
figure { margin: 0; }
figure img { display: block; width: 100%; height: auto; margin: 0 auto;
  background: #fff; border-radius: 6px; border: 1px solid var(--line); padding: .5rem; }
figcaption, .caption { margin-top: .8rem; }
figcaption p, .caption p { margin: .5rem 0; }
.files, .made, footer { color: var(--soft); font-size: .88rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; line-height: 1.4; min-width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .32rem .8rem .32rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; vertical-align: bottom; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
sub { line-height: 0; }
.wrong { color: var(--bad); font-weight: 700; }
.note { border-left: 4px solid var(--bad); padding: .2rem .8rem; background: var(--card); }
details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--link); }
footer { padding-bottom: 3rem; border-top: 1px solid var(--line); margin-top: 1.5rem; }
@media print { details { display: none; } section { break-inside: avoid; } }
"""


def page(folder: Path, names: Sequence[str]) -> str:
    """The HTML of all experiments of which the folder holds a record, in the order of `names`."""
    records = [_record(folder, name) for name in names if (folder / f"{name}.json").is_file()]
    links = "".join(f'<li><a href="#{r["name"]}">{escape(r["title"])}</a></li>' for r in records)
    sections = "\n".join(_section(folder, record) for record in records)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sparse Markov decision processes: figures and theorems, reproduced</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>Sparse Markov decision processes: figures and theorems, reproduced</h1>
<p>The planning experiments of <cite>Sparse Markov Decision Processes with Causal Sparse Tsallis
Entropy Regularization for Reinforcement Learning</cite> (Lee, Choi and Oh), computed again with
tsallax. Each section has the figure, what the paper says next to what we get, and the data.</p>
<nav aria-label="Experiments"><ul>{links}</ul></nav>
</header>
<main>
{sections}
</main>
<footer><p>Solutions are certified: every optimal value comes with a proven enclosure, and every gap
shown was checked against its bound when it was computed.</p></footer>
</body>
</html>
"""


def _record(folder: Path, name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return record


def _section(folder: Path, record: dict[str, Any]) -> str:
    words = "".join(f"<p>{escape(text)}</p>" for text in record["caption"])
    images = "".join(_image(folder, picture) for picture in record["pictures"])
    shown = (
        f"<figure>{images}<figcaption>{words}</figcaption></figure>"
        if images
        else f'<div class="caption">{words}</div>'
    )
    quick = (
        '<p class="note">A quick run: smaller grids and fewer cases than the full experiment, so '
        "the numbers differ from it.</p>"
    )
    parts = [
        f'<section id="{record["name"]}" aria-labelledby="{record["name"]}-title">',
        f'<h2 id="{record["name"]}-title">{escape(record["title"])}</h2>',
        quick if record["quick"] else "",
        shown,
        _comparison(record["comparison"]),
        *(_data(folder, table) for table in record["tables"]),
        _files(record),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _image(folder: Path, picture: dict[str, Any]) -> str:
    data = b64encode((folder / f"{picture['name']}.svg").read_bytes()).decode("ascii")
    width = 7.8 * float(picture["width_inches"])
    return (
        f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(picture["alt"])}" '
        f'style="max-width: {width:.1f}rem">'
    )


def _comparison(lines: list[dict[str, str]]) -> str:
    rows: list[dict[str, Cell]] = [
        {"quantity": line["what"], "the paper": line["paper"], "here": line["ours"]}
        for line in lines
    ]
    return "<h3>The paper and this run</h3>" + _table(rows) if rows else ""


def _data(folder: Path, table: dict[str, str]) -> str:
    if not table["shown"]:
        return ""
    with (folder / f"{table['name']}.csv").open(encoding="utf-8", newline="") as file:
        rows = read_csv(file)
    title = escape(table["title"][:1].upper() + table["title"][1:])
    if table["shown"] == "open":
        return f"<h3>{title}</h3>" + _table(rows)
    return f"<details><summary>Data: {escape(table['title'])}</summary>{_table(rows)}</details>"


def _table(rows: list[dict[str, Cell]]) -> str:
    numeric = {key: all(_is_number(row[key]) for row in rows) for key in rows[0]}

    def cell(key: str, value: Cell) -> str:
        if numeric[key]:
            return f'<td class="number">{_number(value)}</td>'
        kind = ' class="wrong"' if value == "NO" else ""
        return f"<td{kind}>{_subscripts(escape(str(value)))}</td>"

    head = "".join(
        f'<th scope="col"{" class=number" if numeric[key] else ""}>'
        f"{escape(key.replace('_', ' '))}</th>"
        for key in rows[0]
    )
    body = "\n".join(
        f"<tr>{''.join(cell(key, value) for key, value in row.items())}</tr>" for row in rows
    )
    return (
        f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _subscripts(text: str) -> str:
    """Set what follows an underscore, in braces or one word, as a subscript."""
    return re.sub(r"_(?:\{([^}]*)\}|(\w+))", lambda m: f"<sub>{m[1] or m[2]}</sub>", text)


def _is_number(value: Cell) -> bool:
    return isinstance(value, int | float) or value.replace(".", "", 1).isdecimal()


def _number(value: Cell) -> str:
    if isinstance(value, int):
        return f"{value:,}" if value >= 10_000 else str(value)
    return f"{value:.4g}".replace("-", "−") if isinstance(value, float) else str(value)


def _files(record: dict[str, Any]) -> str:
    files = [f"{p['name']}.{kind}" for p in record["pictures"] for kind in ("png", "svg")]
    files += [f"{table['name']}.csv" for table in record["tables"]]
    files.append(f"{record['name']}.json")
    links = ", ".join(f'<a href="{name}">{name}</a>' for name in files)
    made = record["environment"]
    return (
        f'<p class="files">Files: {links} (parameters).</p>'
        f'<p class="made">{record["seconds"]:.1f} s on {escape(made["cpu"])}, {made["cores"]} '
        f"cores; tsallax {made['tsallax']}, Python {made['python']}, NumPy {made['numpy']}, "
        f"Numba {made['numba']}, JAX {made['jax']}; {escape(record['date'])}.</p>"
    )
