"""YAML is read as people mean it, and what is written is read back by every reader."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusals import refused
from tsallax.files import yaml_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4), ("1:30:00", "1:30:00"), ("1:0:50", "1:0:50"), ("no", "no"), ("on", "on"),
        ("true", True), ("none", None), ("None", None), ("null", None), ("~", None), ("", None),
        ("'none'", "none"), ("007", 7), ("1_000", 1000), ("-3", -3), (".5", 0.5), ("5.", 5.0),
        ("1e5", 1e5), ("2020-01-01", "2020-01-01"), ("-.inf", -np.inf), ("e5", "e5"), ("=", "="),
        ("[8, 8]", [8, 8]), ("{a: {b: no}}", {"a": {"b": "no"}}),
    ],
)  # fmt: skip
def test_scalars_are_those_of_yaml_1_2(text: str, value: Any):
    found = yaml_text.parse(text)
    assert found == value
    assert type(found) is type(value)


words = st.sampled_from(
    ["", "no", "none", "null", "~", "1e-4", "1:0:50", "0o17", "-.5", "0x10", "2020-01-01", "=",
     "<<", "a: b", "#", " a ", "- a", "*a", "'a'", '"', "a\nb", "Reacher-v5", "ü", "y", "...", "[1"]
)  # fmt: skip
numbers = st.integers() | st.floats(allow_nan=False) | st.sampled_from([1e-10, 1e22])
leaves = st.none() | st.booleans() | numbers | words | st.text(max_size=5)
plain = st.recursive(
    leaves, lambda x: st.lists(x, max_size=3) | st.dictionaries(words, x, max_size=3), max_leaves=5
)


def same(one: Any, other: Any) -> bool:
    """Equality that tells 1 from 1.0 and from True, and respects the order of keys."""
    return repr(one) == repr(other)


@settings(max_examples=15)
@given(value=plain)
def test_data_written_in_one_line_are_read_back(value):
    text = yaml_text.scalar(value)
    assert "\n" not in text
    assert same(yaml_text.parse(f"key: {text}  # a remark"), {"key": value})


@pytest.mark.parametrize(
    "value", [1e-4, 1e-10, 1e22, "1:0:50", "no", "1e-4", "null", "", None, True, 3, [8, 8]]
)
def test_data_are_written_for_readers_of_yaml_1_1_too(value: Any):
    from ruamel.yaml import YAML

    older = YAML(typ="safe", pure=True)
    older.version = (1, 1)
    assert same(older.load(f"key: {yaml_text.scalar(value)}"), {"key": value})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alpha: 0.1\nalpha: 0.2\n", 'line 2: ... duplicate key "alpha"'),
        ("alpha: [0.1\n", "line 2: not YAML"),
        ("- alpha\n", "NAME: VALUE"),
        ("1: 2\n", "NAME: VALUE"),
        ("env: !!python/object/apply:os.getcwd []\n", "could not determine a constructor"),
        ("a: &x [1]\nb: {c: *x}\n", "line 2: not YAML: the alias *x"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "line 3: not YAML: the alias *x"),
        ("a: &x [*x]\n", "line 1: not YAML: the alias *x"),
        ("a: !!int x\n", "not YAML"),
        ("\x00", "not YAML"),
        ("[" * 300, "not YAML"),
        (b"\xff", "cannot be read"),
        (None, "no such file"),
    ],
)
def test_an_unusable_file_is_named_in_one_line(tmp_path: Path, text: Any, message: str):
    path = tmp_path / "a.yaml"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with refused(*message.split("... "), source=path):
        yaml_text.read(path)


def test_a_file_holds_names_and_values(tmp_path: Path):
    (tmp_path / "a.yaml").write_text("a: 1  # one\nb: [no]\n")
    assert yaml_text.read(tmp_path / "a.yaml") == {"a": 1, "b": ["no"]}
    assert yaml_text.scalar({"env": "Reacher-v5"}) == "{env: Reacher-v5}"  # no needless quotes
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert yaml_text.read(tmp_path / "empty.yaml") == {}


def test_what_stands_twice_is_written_twice():
    again = [1, 2]
    assert yaml_text.scalar({"a": again, "b": again}) == "{a: [1, 2], b: [1, 2]}"
