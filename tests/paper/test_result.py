"""Data of results: cells keep their kind in a file, bounds are checked."""

import io

import pytest

from tsallax.paper.result import BoundViolated, chosen, read_csv, require_within, tidy, write_csv


def test_cells_keep_their_kind_in_a_file():
    rows = [
        {"claim": 'a "b", c', "cases": 3, "margin": -1 / 3},
        {"claim": "ω", "cases": 0, "margin": 1e-300},
    ]
    file = io.StringIO()
    write_csv(rows, file)
    file.seek(0)
    assert read_csv(file) == rows
    assert tidy(1234.56789) == 1234.568


def test_margin_is_the_distance_from_the_bound_and_a_violation_raises():
    assert require_within("x", 0.25, 1.0, 0.0) == 0.75
    assert require_within("x", 1.0 + 1e-9, 1.0, 1e-8) == pytest.approx(0, abs=1e-8)
    for value in (2.0, float("nan")):
        with pytest.raises(BoundViolated, match="x is"):
            require_within("x", value, 1.0, 1e-8)


def test_parameters_are_the_arguments_given_and_the_defaults_of_the_others():
    assert chosen(lambda a, b=2, *, c=3: None, a=1, c=7) == {"a": 1, "b": 2, "c": 7}
