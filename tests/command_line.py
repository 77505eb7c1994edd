"""Runs of the command line for tests: inside this process, or as a program."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tsallax.cli import app

OLD_RUN = Path(__file__).parent / "data" / "old_run"
"""A run of twelve episodes that version 0.1 wrote, with the names its options had then."""
NEW_RUN = {"env": "MultiGoal-v0", "actions": 3, "net_arch": 8, "buffer_size": 256, "episodes": 5}
"""The options of a small run."""


class Output(NamedTuple):
    code: int
    out: str
    err: str


def call(capsys: pytest.CaptureFixture[str], *words: Any) -> Output:
    """Run a command inside this process."""
    capsys.readouterr()
    code = app.run([part for word in words for part in str(word).split()])
    return Output(code, *capsys.readouterr())


def start(*words: Any, **options: Any) -> subprocess.Popen[str]:
    """Start the program."""
    command = [sys.executable, "-m", "tsallax", *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **options)


def assert_error(output: Output, *words: str, code: int = 2) -> None:
    """One line on standard error with these words, nothing on standard output."""
    assert (output.code, output.out) == (code, "")
    assert output.err.startswith("tsallax: error: ")
    assert output.err.count("\n") == 1
    for word in words:
        assert word in output.err


def assert_interrupted(process: subprocess.Popen[str], number: int) -> str:
    """Send a signal; the program ends soon, with exit code 130 and a last line that says so.

    CPython ends by the signal itself where it interrupted `exec`, as in the import of dataclasses;
    a shell shows 130 for both.
    """
    assert process.poll() is None, process.communicate()
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode in (130, -signal.SIGINT), err
    assert out == ""
    notes = [line for line in err.splitlines() if not line.startswith("tsallax: note: ")]
    assert len(notes) == 1, err
    assert notes[0].startswith("tsallax: interrupted")
    return notes[0]


def rows_of(text: str) -> dict[str, str]:
    """The values of an aligned summary by their labels."""
    lines = [line.partition("  ") for line in text.splitlines() if "  " in line]
    return {label: value.strip() for label, _, value in lines}
