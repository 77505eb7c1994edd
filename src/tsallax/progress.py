"""A progress bar with an ETA on standard error, for work that takes more than two seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WIDE = 130
"""Columns of a terminal from which there is room for all; with fewer the ETA must not suffer."""
Report = Callable[..., None]
"""report(share, text=""): the share that is done, 0 to 1, and what else to show."""


@contextmanager
def bar(label: str, show: bool | None = None, after: float = 2.0) -> Iterator[Report]:
    """Yield report(share, text); `show` None: on a terminal, once `after` seconds have passed."""
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
    room = console.width - len(label) - (68 if wide else 21)  # what the other columns leave
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task(label, total=1.0, text="")
    begin = time.monotonic()

    def report(share: float, text: str = "") -> None:
        if not progress.live.is_started and (show or time.monotonic() - begin > after):
            progress.start()
        progress.update(
            task, completed=share, text=text if len(text) <= room else f"{text[: room - 1]}…"
        )

    try:
        yield report
    finally:
        if progress.live.is_started:
            progress.stop()
