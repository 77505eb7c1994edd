"""The program: commands and their help, exit codes, errors of one line, interrupts."""

import os
import re
import subprocess
import sys
from typing import Any

import pytest

import tsallax
from command_line import assert_error, call
from tsallax.cli import app

COMMANDS = tuple(app.commands().commands)


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let `tsallax config` raise an exception."""

    def key_values(*_: Any) -> None:
        raise error

    monkeypatch.setattr("tsallax.cli.config_command.key_values", key_values)


def test_version_is_that_of_the_package(capsys):
    assert call(capsys, "--version") == (0, f"tsallax {tsallax.__version__}\n", "")


@pytest.mark.parametrize("words", ["", "--help", "-h"])
def test_help_lists_every_command(capsys, words):
    code, out, err = call(capsys, words)
    assert (code, err) == (0, "")
    assert all(f"\n  {command} " in out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_examples_with_options_that_exist(capsys, command):
    code, out, _ = call(capsys, command, "--help")
    assert code == 0
    examples = re.findall(rf"^    tsallax {command}.*(?:\n        .*)*", out, re.M)
    assert len(examples) >= 2
    known = out.split("Options:")[1]
    for example in examples:
        assert all(word in known for word in example.split() if word.startswith("--"))


def test_help_imports_no_numerical_library():
    program = (
        "import sys; from tsallax.cli import app; code = app.run(['train', '--help']);"
        "heavy = {'jax', 'numpy', 'scipy', 'numba', 'gymnasium', 'matplotlib', 'ruamel.yaml'};"
        "heavy &= {*sys.modules}; sys.exit(str(heavy) if heavy else code)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dance", ["dance", "tsallax --help"]),
        ("--dance", ["--dance", "tsallax --help"]),
        ("solve", ["SOURCE", "tsallax solve --help"]),
        ("solve a.npz --speed 9", ["--speed", "tsallax solve --help"]),
        ("solve a.npz b.npz --alpha 1", ["extra argument", "tsallax solve --help"]),
        ("solve a.npz --alpha", ["--alpha", "--help"]),
        ("solve a.npz --alpha x", ["--alpha", "tsallax solve --help"]),
    ],
)
def test_wrong_use_is_one_line_that_names_the_help(capsys, line, words):
    assert_error(call(capsys, line), *words)


def test_an_interrupt_is_one_line_with_its_details_and_exit_code_130(capsys, monkeypatch):
    fail_with(monkeypatch, KeyboardInterrupt("3 episodes, all saved"))
    assert call(capsys, "config") == (130, "", "tsallax: interrupted: 3 episodes, all saved\n")
    error = ImportError("initialization failed")
    error.__cause__ = KeyboardInterrupt()
    fail_with(monkeypatch, error)
    code, out, err = call(capsys, "config")
    assert (code, out, err.count("\n")) == (130, "", 1)
    assert err.startswith("tsallax: interrupted: ")


def test_too_little_memory_is_one_line(capsys, monkeypatch):
    fail_with(monkeypatch, MemoryError())
    assert_error(call(capsys, "config"), "memory")


def test_a_defect_is_not_hidden(monkeypatch):
    fail_with(monkeypatch, ZeroDivisionError("a defect"))
    with pytest.raises(ZeroDivisionError):
        app.run(["config"])


def test_output_into_a_closed_pipe_ends_quietly():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "tsallax", "solve", "--help"]
    with os.fdopen(writer, "w") as pipe:
        result = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert (result.returncode, result.stderr) == (1, "")
