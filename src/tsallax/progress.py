"""A progress bar with an ETA on standard error, for work that takes more than two seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WIDE = 130
"""Terminal width in columns from which all columns of the bar are shown in full."""
Report = Callable[..., None]
"""report(share, text=""): the completed share, 0 to 1, and a text to show beside the bar."""


@contextmanager
def bar(label: str, show: bool | None = None, after: float = 2.0) -> Iterator[Report]:
    """Yield report(share, text); by default shown on a terminal after `after` seconds."""
    if show is False or (show is None and not sys.stderr.isatty()):
        yield lambda share, text="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Remaining
    from rich.table import Column

    console = Console(stderr=True)
    wide = console.width >= WIDE
    columns = (
        TextColumn("{task.description}"),
        BarColumn(40 if wide else 4),
        TextColumn("{task.percentage:>3.0f}%"),
        *([TimeElapsedColumn(table_column=Column(no_wrap=True))] if wide else []),
        TextColumn("ETA"),
        Remaining(table_column=Column(no_wrap=True), compact=not wide),
        TextColumn("{task.fields[text]}"),
    )
    text_width = console.width - len(label) - (68 if wide else 21)
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task(label, total=1.0, text="")
    begin = time.monotonic()

    def report(share: float, text: str = "") -> None:
        if not progress.live.is_started and (show or time.monotonic() - begin > after):
            progress.start()
        shown = text if len(text) <= text_width else f"{text[: text_width - 1]}…"
        progress.update(task, completed=share, text=shown)

    try:
        yield report
    finally:
        if progress.live.is_started:
            progress.stop()
