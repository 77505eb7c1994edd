"""Run the paper's experiments and write them down: figures, data, parameters and one page.

Every experiment leaves `name`.png, `name`.svg, `name`.csv and `name`.json in the folder; the page
`index.html` shows all that the folder holds, also from earlier runs.  A file appears complete or
not at all: it is written under another name and renamed.
"""

import dataclasses
import json
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tsallax import checks, provenance
from tsallax.errors import InvalidInput
from tsallax.files.atomic import atomic_path, write_text
from tsallax.paper.experiments import EXPERIMENTS, FIGURE, SUITE, SWEEP, names_of
from tsallax.paper.page.html_page import files_of, render_page
from tsallax.paper.result import Result, write_csv
from tsallax.paper.suites.suite_rows import SUITE_ROWS, SuiteRow
from tsallax.paper.sweep.sweep_rows import SWEEP_ROWS, SweepRow
from tsallax.paper.sweep.sweep_tasks import TASKS
from tsallax.progress import bar


def reproduce(
    names: Sequence[str] = names_of(FIGURE),
    out: str | os.PathLike[str] = "report",
    *,
    progress: bool | None = None,
    quick: bool = False,
) -> Path:
    """Compute figures and theorems of the paper again, and return the path of the page.

    Args:
        names: of "figure1", "figure2a", "figure2b" and "theorems"; default: all.
        out: the folder to write to; what it holds from earlier runs is kept and shown.
        progress: show progress bars; default: on a terminal.
        quick: smaller grids and fewer cases, to try things out in seconds; the page says so.

    Raises:
        BoundViolated: where a measured gap is above its theorem's bound.
        InvalidInput: where a name is unknown or the folder cannot be one.

    >>> reproduce(["figure2b"], "report", quick=True)  # doctest: +SKIP
    PosixPath('report/index.html')
    """
    known = names_of(FIGURE)
    for name in names:
        checks.one_of("experiment", name, known)
    if not names:
        raise InvalidInput(f"name at least one experiment: {', '.join(known)}")
    folder = checks.output_folder(out)
    for name in dict.fromkeys(names):
        begin = time.perf_counter()
        with bar(name, progress) as report:
            result = EXPERIMENTS[name].compute(report, quick=quick)
        write_result(result, folder, seconds=time.perf_counter() - begin)
    return write_page(folder)


def write_report(
    folders: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str] | None = None
) -> Path:
    """Make one page of all results in some folders, and return its path.

    Args:
        folders: of `reproduce` or of rows; rows of several are put together, and of figures with
            one name those of the first folder count.
        out: the folder to write to; default: the first.
    """
    sources = [Path(folder) for folder in folders]
    for source in sources:
        if not source.is_dir():
            what = "is a file: give its folder" if source.exists() else "no such folder"
            raise InvalidInput(what, source=source)
    rows: list[SweepRow | SuiteRow] = [*SWEEP_ROWS.read(*sources), *SUITE_ROWS.read(*sources)]
    if not rows and not any(files_of(source) for source in sources):
        names = " and ".join(map(str, sources))
        remedy = f"tsallax reproduce all --out {sources[0]} makes some"
        raise InvalidInput(f"{names}: no results: {remedy}")
    target = checks.output_folder(sources[0] if out is None else out)
    taken: set[str] = set()
    for source in sources:
        in_place = source.resolve() == target.resolve()
        for file in files_of(source):
            if not in_place and file.name not in taken:
                content = file.read_bytes()
                with atomic_path(target / file.name) as temporary:
                    temporary.write_bytes(content)
            taken.add(file.name)
    write_tables(rows, target)
    return write_page(target)


def write_tables(rows: Sequence[SweepRow | SuiteRow], folder: Path) -> None:
    """Write the results of every sweep and suite that has rows."""
    for name in names_of(SWEEP, SUITE):
        mine = [row for row in rows if row.table == name]
        if mine:
            begin = time.perf_counter()
            result = _summarized(name, mine)
            write_result(result, folder, seconds=time.perf_counter() - begin)


def _summarized(name: str, rows: Sequence[Any]) -> Result:
    """The result of the rows of a sweep or suite; Matplotlib is not imported without rows."""
    if EXPERIMENTS[name].kind == SWEEP:
        from tsallax.paper.tables.task_result import summarize_runs

        return summarize_runs(TASKS[name], rows)
    from tsallax.paper.suites.suite_result import summarize_suite

    return summarize_suite(name, rows)


def write_result(result: Result, folder: Path, *, seconds: float) -> None:
    """Write an experiment's figures, data and parameters; the parameters last."""
    from tsallax.plotting import paper_style

    for picture in result.pictures:
        with paper_style():
            for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
                with atomic_path(folder / f"{picture.name}.{kind}") as temporary:
                    picture.figure.savefig(temporary, format=kind, metadata=metadata)
    for table in result.tables:
        with (
            atomic_path(folder / f"{table.name}.csv") as temporary,
            temporary.open("w", encoding="utf-8", newline="") as file,
        ):
            write_csv(table.rows, file)
    for chart in result.charts:
        text = json.dumps(dataclasses.asdict(chart), ensure_ascii=False, allow_nan=False)
        write_text(folder / f"{chart.name}.chart.json", f"{text}\n")
    record = {
        "name": result.name,
        "title": result.title,
        "caption": list(result.caption),
        "quick": result.quick,
        "parameters": dict(result.parameters),
        "comparison": [vars(line) for line in result.comparison],
        "pictures": [
            {"name": p.name, "alt": p.alt, "width_inches": float(p.figure.get_figwidth())}
            for p in result.pictures
        ],
        "tables": [{"name": t.name, "title": t.title, "shown": t.shown} for t in result.tables],
        "charts": [chart.name for chart in result.charts],
        "hardware": result.hardware,
        "seconds": round(seconds, 2),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": provenance.of_planning(),
    }
    text = json.dumps(record, indent=1, ensure_ascii=False)
    write_text(folder / f"{result.name}.json", f"{text}\n")


def write_page(folder: Path) -> Path:
    """Write index.html from all results that the folder holds, and return its path."""
    page = folder / "index.html"
    write_text(page, render_page(folder))
    return page
