"""A progress bar with an ETA on standard error, for work that takes more than two seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

MIN_BAR, MAX_BAR = 20, 40
"""Columns of the bar; where it has fewer than the first, the label is left out."""
TEXT = 42
"""Columns of the text beside the bar."""
ELAPSED = 8
"""Columns of the time that has passed, shown where the bar has all its columns."""
OTHERS = 17
"""Columns of the percentage, the estimated time and the spaces between the parts."""
LINE_SECONDS = 60.0
"""The time from one line to the next, where there is no terminal."""
Report = Callable[..., None]
"""report(share, text=""): the completed share, 0 to 1, and a text to show beside the bar."""


@contextmanager
def bar(label: str, show: bool | None = None, after: float = 2.0) -> Iterator[Report]:
    """Yield report(share, text); by default shown on a terminal after `after` seconds.

    It is shown then also if nothing is reported at that time, as while JAX compiles. With `show`
    and no terminal, a line is written once a minute.
    """
    if show is False or (show is None and not sys.stderr.isatty()):
        yield lambda share, text="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Remaining
    from rich.table import Column

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield _lines(label)
        return
    available_width = console.width - TEXT - OTHERS - len(label) - 1
    labelled = available_width >= MIN_BAR
    available_width += 0 if labelled else len(label) + 1
    wide = available_width >= MAX_BAR + ELAPSED
    width = max(min(available_width, MAX_BAR), MIN_BAR // 2)
    columns = (
        *([TextColumn("{task.description}")] if labelled else []),
        BarColumn(width),
        TextColumn("{task.percentage:>3.0f}%"),
        *([TimeElapsedColumn(table_column=Column(no_wrap=True))] if wide else []),
        TextColumn("ETA"),
        Remaining(table_column=Column(no_wrap=True), compact=True),
        TextColumn("{task.fields[text]}"),
    )
    used = width + OTHERS + (len(label) + 1 if labelled else 0) + (ELAPSED if wide else 0)
    text_width = console.width - used
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task(label, total=1.0, text="")
    timer = Timer(after, progress.start)
    timer.daemon = True

    def report(share: float, text: str = "") -> None:
        shown = text if len(text) <= text_width else f"{text[: text_width - 1]}…"
        progress.update(task, completed=share, text=shown)

    if show:
        progress.start()
    else:
        timer.start()
    try:
        yield report
    finally:
        if not show:
            timer.cancel()
            timer.join()
        if progress.live.is_started:
            progress.stop()


def _lines(label: str) -> Report:
    """A report that writes a line to standard error once a minute."""
    written = time.monotonic()

    def report(share: float, text: str = "") -> None:
        nonlocal written
        if time.monotonic() - written > LINE_SECONDS:
            written = time.monotonic()
            sys.stderr.write(f"{label} {share:4.0%}  {text}\n")

    return report
