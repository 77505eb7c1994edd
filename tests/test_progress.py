"""The progress bar shows when it will be over, however narrow the terminal is."""

import io
import re
import sys
import time

import pytest
from rich.console import Console

from tsallax.progress import bar

STATUS = "1024 steps/s  return 980.1  support 0.33"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Standard error as a terminal of 80 columns or as many as are asked for."""

    def of(columns: int) -> Terminal:
        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm")
        return screen

    return of


@pytest.mark.parametrize("columns", [70, 80, 100, 160])
def test_the_eta_is_never_cut(columns, terminal):
    screen = terminal(columns)
    assert Console(stderr=True).width == columns
    with bar("InvertedPendulum-v5", show=True) as report:
        for i in range(1, 10):
            report(i / 10, STATUS)
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in screen.getvalue().split("\r")]
    shown = [line for line in lines if "90%" in line]
    assert shown
    assert all(re.search(r"ETA (0:)?\d\d:\d\d", line) for line in shown), shown
    assert all("1024 steps/s" in line for line in shown)
    assert all(STATUS in line for line in shown if columns >= 80)
    bars = [len(re.findall("[━╸╺]", line)) for line in shown]
    assert min(bars) >= (20 if columns >= 80 else 10), "wide enough to read"
    assert all(len(line.rstrip()) <= columns for line in shown)


def test_the_text_is_shown_after_a_while_also_before_the_next_report(terminal):
    screen = terminal(80)
    with bar("CartPole-v1", after=0.05) as report:
        report(0.0, "compiling")
        end = time.monotonic() + 10
        while "compiling" not in screen.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    assert "compiling" in screen.getvalue()


def test_what_is_over_soon_shows_nothing(terminal):
    screen = terminal(80)
    with bar("CartPole-v1", after=60.0) as report:
        report(0.5, STATUS)
    assert screen.getvalue() == ""


def test_nothing_is_shown_where_there_is_no_terminal(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with bar("quiet") as report:
        report(0.5, STATUS)
    assert screen.getvalue() == ""


def test_a_line_a_minute_is_written_where_it_is_asked_for_without_a_terminal(monkeypatch):
    screen, clock = io.StringIO(), [0.0]
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("tsallax.progress.time.monotonic", lambda: clock[0])
    with bar("CartPole-v1", show=True) as report:
        for second in range(0, 150, 10):
            clock[0] = float(second)
            report(second / 200, STATUS)
    assert screen.getvalue() == f"CartPole-v1  35%  {STATUS}\nCartPole-v1  70%  {STATUS}\n"
