"""The page of a report: one HTML file without others, for screens and paper, light and dark.

The content of result files is shown as text, never run: everything is escaped, names of files are
plain words, and the content security policy of the page allows its own script alone.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, TypeVar

from tsallax.errors import InvalidInput
from tsallax.paper.experiments import EXPERIMENTS, FIGURE, SUITE, SWEEP, Experiment
from tsallax.paper.page.dark_figure import follow_scheme
from tsallax.paper.page.html_chart import render_chart
from tsallax.paper.page.html_table import render_table
from tsallax.paper.result import Value, read_csv
from tsallax.web.document import asset, render_document

T = TypeVar("T")
TITLE = "Sparse Markov decision processes, reproduced"
BEYOND_TITLE = "Deep Q-learning, next to other libraries"
PAPER = """The experiments of <cite>Sparse Markov Decision Processes with Causal Sparse Tsallis
Entropy Regularization for Reinforcement Learning</cite> (Lee, Choi and Oh), computed again with
tsallax. Each section shows what was found next to what the paper says, the data, and how to run it
again."""
BEYOND = """Agents of tsallax in environments for which other libraries report returns. Each section
shows what was found, the data, and how to run it again."""
QUICK_NOTE = {
    FIGURE: "A quick run: smaller grids and fewer cases than the full experiment: the numbers "
    "differ.",
    SWEEP: "A quick run: less learning than in the full experiment: the numbers differ.",
    SUITE: "Some runs have fewer steps than the full table has.",
}
"""The note on results that are not those of the full experiment, by its kind."""
EXPLORER = "explorer.html"
"""The page of `tsallax explore` that a report links to, where its folder holds one."""
PROGRAMS = {"numpy": "NumPy", "scipy": "SciPy", "numba": "Numba", "jax": "JAX", "python": "Python"}


def render_page(folder: Path) -> str:
    """The HTML of all results of which the folder holds a record, in the order of the registry."""
    found = _results_in(folder)
    if not found:
        remedy = f"tsallax reproduce all --out {folder} makes some"
        raise InvalidInput(f"{folder} holds no results: {remedy}")
    of_paper = any(one.kind != SUITE for one in found)
    title = TITLE if of_paper else BEYOND_TITLE
    links = "".join(f'<li><a href="#{one.name}">{one.section}</a></li>' for one in found)
    if (folder / EXPLORER).is_file():
        links += f'<li><a href="{EXPLORER}">The explorer</a></li>'
    proof = (
        "Solutions of planning problems are certified: every optimal value comes with a proven "
        "enclosure, and every gap shown was checked against its bound when it was computed. "
    )
    body = f"""<a class="skip" href="#results">Skip to the results</a>
<header>
<h1>{title}</h1>
<p>{PAPER if of_paper else BEYOND}</p>
</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main id="results" tabindex="-1">
{"".join(_of_record(folder, one.name, partial(_section, folder)) for one in found)}
</main>
<footer><p>{proof if any(one.kind == FIGURE for one in found) else ""}The command
<code>tsallax report DIR</code> makes this page from the files in a folder.</p></footer>"""
    return render_document(title, body, scripts=[asset("tsallax.paper.page", "chart.js")])


def _results_in(folder: Path) -> list[Experiment]:
    """The experiments of which the folder holds a record."""
    return [one for one in EXPERIMENTS.values() if (folder / f"{one.name}.json").is_file()]


def _of_record(folder: Path, name: str, function: Callable[[dict[str, Any]], T]) -> T:
    """Apply a function to the record of a result; a file that is no record is refused."""
    path = folder / f"{name}.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["name"] != name:
            raise InvalidInput(f"{path} is the record of {record['name']!r}: rename it")
        return function(record)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{path} is not a record of a result ({type(error).__name__}: {error}): "
            "run its experiment again"
        ) from None


def _section(folder: Path, record: dict[str, Any]) -> str:
    name = record["name"]
    words = "".join(f"<p>{escape(str(text))}</p>" for text in record["caption"])
    images = "".join(_image(folder, picture) for picture in record["pictures"])
    shown = f"<figure>{images}<figcaption>{words}</figcaption></figure>"
    note = QUICK_NOTE[EXPERIMENTS[name].kind]
    parts = [
        f'<section id="{name}" aria-labelledby="{name}-title">',
        f'<h2 id="{name}-title">{escape(str(record["title"]))}</h2>',
        f'<p class="note">{note}</p>' if record["quick"] else "",
        shown if images else f'<div class="caption">{words}</div>',
        *(_chart(folder, str(item)) for item in record.get("charts", ())),
        _comparison(record["comparison"]),
        *(_data(folder, item) for item in record["tables"]),
        _run_again(record),
        "</section>\n",
    ]
    return "\n".join(part for part in parts if part)


def _file(folder: Path, name: str, suffix: str) -> Path:
    """A file of a result; a name of a file outside the folder is refused."""
    path = folder / f"{name}.{suffix}"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise InvalidInput(f"{folder}: {name!r} cannot be the name of a file of a result")
    if not path.is_file():
        raise InvalidInput(f"{path} is missing: run its experiment again")
    return path


def _image(folder: Path, picture: dict[str, Any]) -> str:
    path = _file(folder, str(picture["name"]), "svg")
    svg = follow_scheme(path.read_bytes().decode("utf-8", errors="surrogateescape"))
    data = b64encode(svg.encode("utf-8", errors="surrogateescape")).decode("ascii")
    return (
        f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(str(picture["alt"]))}" '
        f'width="{125 * float(picture["width_inches"]):.0f}">'
    )


def _chart(folder: Path, name: str) -> str:
    path = _file(folder, name, "chart.json")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not a chart: run its experiment again") from None
    return render_chart(about, str(path))


def _comparison(lines: list[dict[str, str]]) -> str:
    rows: list[dict[str, Value]] = [
        {"quantity": line["what"], "the paper": line["paper"], "here": line["ours"]}
        for line in lines
    ]
    title = "The paper and this run"
    return f"<h3>{title}</h3>{render_table(rows, title, words=True)}" if rows else ""


def _data(folder: Path, item: dict[str, str]) -> str:
    path = _file(folder, str(item["name"]), "csv")
    if not item["shown"]:
        return ""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = read_csv(file)
    except (TypeError, ValueError):
        raise InvalidInput(f"{path} is not a table: run its experiment again") from None
    title = str(item["title"])
    title = title[:1].upper() + title[1:]
    if item["shown"] == "open":
        return f"<h3>{escape(title)}</h3>{render_table(rows, title)}"
    summary = f"<summary>Data: {escape(item['title'])}</summary>"
    return f"<details>{summary}{render_table(rows, title)}</details>"


def _names(record: dict[str, Any]) -> list[tuple[str, str]]:
    """The names and kinds of the files of a result, its record last."""
    names = [(p["name"], kind) for p in record["pictures"] for kind in ("png", "svg")]
    names += [(name, "chart.json") for name in record.get("charts", ())]
    names += [(item["name"], "csv") for item in record["tables"]]
    return [(str(name), kind) for name, kind in (*names, (record["name"], "json"))]


def files_of(folder: Path) -> list[Path]:
    """The files of all results in a folder, those of each result before its record."""
    names = [experiment.name for experiment in _results_in(folder)]
    return [_file(folder, *file) for name in names for file in _of_record(folder, name, _names)]


def _run_again(record: dict[str, Any]) -> str:
    """The command, what it ran on, and the files it left."""
    made = {str(key): str(value) for key, value in record["environment"].items()}
    cores = f", {made.pop('cores')} cores" if "cores" in made else ""
    here = f"{made.pop('cpu', 'an unknown processor')}{cores}"
    versions = ", ".join(f"{PROGRAMS.get(key, key)} {value}" for key, value in made.items())
    names = [f"{name}.{kind}" for name, kind in _names(record)]
    links = ", ".join(f'<a href="{escape(n)}">{escape(n)}</a>' for n in names)
    usual = f"tsallax reproduce {record['name']}{' --quick' if record['quick'] else ''}"
    command = escape("\n".join(record["parameters"].get("commands", [usual])))
    date = re.sub(r"^([\d-]+)T([\d:]+)\+00:00$", r"\1 \2 UTC", str(record["date"]))
    lines = {
        "Runs": escape(_runs(record)),
        "Tables" if record.get("hardware") else "Took": (
            f"{_duration(float(record['seconds']))} on {escape(here)}, finished {escape(date)}"
        ),
        "Versions": escape(versions),
        "Files": f"{links} (the last has all parameters)",
    }
    listed = "".join(f"<dt>{key}</dt><dd>{value}</dd>" for key, value in lines.items() if value)
    return (
        f'<h3>Run it again</h3><pre tabindex="0"><code>{command}</code></pre>'
        f'<dl class="made">{listed}</dl>'
    )


def _runs(record: dict[str, Any]) -> str:
    """The hardware and versions of the runs behind the tables, where they are known."""
    if not record.get("hardware"):
        return ""
    known = record["parameters"].get("versions", {})
    versions = [f"{PROGRAMS.get(key, key)} {' and '.join(map(str, known[key]))}" for key in known]
    return "; ".join([f"on {record['hardware']}", *([", ".join(versions)] if versions else [])])


def _duration(seconds: float) -> str:
    """A time in seconds, minutes or hours.

    >>> _duration(3.14), _duration(900), _duration(9000)
    ('3.1 s', '15 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
