"""Arrays are read back as they were written; other files are refused with their name."""

from pathlib import Path

import numpy as np
import pytest

from refusals import refused
from tsallax.files import npz

FORMAT = npz.Format("test-format", 3, "test", "a test", {"x": ("f", 1)}, {"name": ("U", 0)})


def test_arrays_are_read_back_and_the_bytes_depend_on_them_alone(tmp_path: Path):
    arrays = {"x": np.arange(3.0), "name": "ü", "other": np.ones((2, 2), np.int8)}
    for file in ("a", "b"):
        npz.write(tmp_path / file, FORMAT, arrays)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    found = npz.read(tmp_path / "a", FORMAT)
    assert {*found} == {"x", "name"}
    np.testing.assert_array_equal(found["x"], arrays["x"])
    everything = npz.read_all(tmp_path / "a", FORMAT)
    assert {*everything} == {"x", "name", "other"}
    assert everything["other"].dtype == np.int8
    with np.load(tmp_path / "a", allow_pickle=False) as file:
        assert file["version"] == 3


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "incomplete: x missing"),
        ({"x": np.arange(3)}, "x has type int64"),
        ({"x": np.zeros((1, 1))}, "x has type float64 and 2 dimensions"),
        ({"x": np.zeros(1), "version": 4}, "version 4, but this tsallax reads version 3"),
        ({"x": np.zeros(1), "format": "other"}, "not a file written by a test"),
    ],
)
def test_other_contents_are_refused_with_the_name_of_the_file(tmp_path: Path, arrays, message):
    path = tmp_path / "a.npz"
    npz.write(path, FORMAT, arrays)
    with refused(message, source=path):
        npz.read(path, FORMAT)


def test_damage_pickles_and_unwritable_paths_are_refused(tmp_path: Path):
    path = tmp_path / "a.npz"
    npz.write(path, FORMAT, {"x": np.arange(30.0)})
    content = bytearray(path.read_bytes())
    content[content.index(np.float64(29.0).tobytes())] ^= 1
    path.write_bytes(content)
    with refused("does not match its checksum"):
        npz.read(path, FORMAT)
    with pytest.raises(ValueError, match="allow_pickle"):
        npz.write(path, FORMAT, {"x": np.array([object()])})
    assert path.read_bytes() == bytes(content)
    with refused("cannot be written"):
        npz.write(tmp_path / "missing" / "a.npz", FORMAT, {"x": np.zeros(1)})
    with refused("no such file"):
        npz.read(tmp_path / "missing.npz", FORMAT)
