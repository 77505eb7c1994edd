"""Arguments come back in plain Python types, or an error names them in one line."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from refusals import refused
from tsallax import checks


@pytest.mark.parametrize(
    ("check", "value", "expected"),
    [
        (lambda v: checks.number("x", v), 3, 3.0),
        (lambda v: checks.number("x", v), np.float32(0.5), 0.5),
        (lambda v: checks.number("x", v), Fraction(1, 4), 0.25),
        (lambda v: checks.number("x", v, at_least=0, at_most=1), 1, 1.0),
        (lambda v: checks.count("x", v), np.int32(7), 7),
        (lambda v: checks.count("x", v, at_least=0, below=3), 2, 2),
        (lambda v: checks.probability("x", v), 0, 0.0),
        (checks.discount, 0.99, 0.99),
        (lambda v: checks.flag("x", v), False, False),
        (lambda v: checks.one_of("x", v, ("a", "b")), "b", "b"),
        (checks.seed, 2**32 - 1, 2**32 - 1),
        (checks.entropic_index, 2, 2.0),
    ],
)
def test_usable_values_become_plain_python_values(check, value, expected):
    found = check(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("value", [True, "1", None, math.nan, math.inf, 10**400, [1.0], 1j])
def test_what_is_not_a_finite_number_is_refused(value):
    for check in (checks.number, checks.probability):
        with refused("x must be a number"):
            check("x", value)
    with refused("discount must be a number of at least 0 and below 1"):
        checks.discount(value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: checks.number("x", 0, above=0), "x must be a number above 0, got 0"),
        (lambda: checks.number("x", 2, at_least=0, below=2), "of at least 0 and below 2, got 2"),
        (lambda: checks.probability("x", 1.1), "x must be a number of at least 0 and up to 1"),
        (lambda: checks.count("x", 0), "x must be an integer of at least 1, got 0"),
        (lambda: checks.count("x", True), "x must be an integer"),
        (lambda: checks.count("x", 1.0), "x must be an integer"),
        (lambda: checks.count("x", 3, below=3), "and below 3, got 3"),
        (lambda: checks.flag("x", 1), "x must be True or False, got 1"),
        (lambda: checks.one_of("x", "c", ("a", "b")), "unknown x 'c': choose from a, b"),
        (lambda: checks.one_of("x", ["a"], ("a", "b")), "unknown x"),
        (lambda: checks.seed(2**32), "seed must be an integer from 0"),
        (lambda: checks.seed(-1), "seed must be an integer from 0"),
        (lambda: checks.generator(-1), "seed must be an integer of at least 0 or a numpy"),
        (lambda: checks.generator(True), "got True"),
        (lambda: checks.entropic_index(0), "q must be positive"),
        (lambda: checks.entropic_index("2"), "q must be a plain number"),
    ],
)
def test_other_values_are_named_in_one_line(call, message):
    with refused(message):
        call()


def test_a_generator_is_kept_and_a_seed_makes_one():
    rng = np.random.default_rng(3)
    assert checks.generator(rng) is rng
    assert checks.generator(3).random() == np.random.default_rng(3).random()


def test_a_file_to_read_is_there_and_no_folder(tmp_path: Path):
    with refused("is a folder, give the name of a file", source=tmp_path):
        checks.input_file(tmp_path)
    with refused("no such file", source=tmp_path / "a.npz"):
        checks.input_file(tmp_path / "a.npz")
    (tmp_path / "a.npz").write_text("")
    assert checks.input_file(str(tmp_path / "a.npz")) == tmp_path / "a.npz"


def test_files_need_a_folder_that_exists(tmp_path: Path):
    assert checks.output_file("--out", tmp_path / "a.npz") == tmp_path / "a.npz"
    with refused("there is no folder"):
        checks.output_file("--out", tmp_path / "missing" / "a.npz")
    for folder in (tmp_path, ""):
        with refused("is a folder, give the name of a file"):
            checks.output_file("--out", folder)


def test_a_file_to_write_has_its_ending_and_is_none_that_is_read(tmp_path: Path):
    for name in ("a.py", "a", "a.npz.csv"):
        with refused(f"--out {tmp_path / name}: the name must end in .npz"):
            checks.output_file("--out", tmp_path / name, ending=".npz")
    file = tmp_path / "a.npz"
    file.write_text("")
    assert checks.output_file("--out", file, None, tmp_path / "absent", ending=".npz") == file
    with refused("is the file that is read"):
        checks.output_file("--out", file, None, tmp_path / "." / "a.npz", ending=".npz")


def test_folders_are_made(tmp_path: Path):
    assert checks.output_folder(tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    with refused("file: is a file"):
        checks.output_folder(tmp_path / "file")


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("sol_alpha0.5", ""), ("run_0.95", ""), ("model.2024-01-05", ""), ("v1.2", ""),
        ("alpha1.5e-05", ""), ("plain", ""), ("folder.csv/plain", ""), ("v1.2.npz", ".npz"),
    ],
)  # fmt: skip
def test_a_number_after_a_dot_is_no_ending(name, ending):
    assert checks.file_ending(name, (".npz",)) == ending


@pytest.mark.parametrize("name", ["x.npz.bak", "x.NPZ", "x.csv"])
def test_an_unknown_ending_is_refused(name):
    with refused("unknown ending", "choose from .npz", source=name):
        checks.file_ending(name, (".npz",))
