"""KEY=VALUE pairs hold YAML values; errors spell arguments as the command does."""

import pytest

from tsallax.cli.app import commands
from tsallax.cli.arguments import key_values, spelling_of, typed_value
from tsallax.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4), ("True", True), ("None", None), ("", None), ("8x8", "8x8"),
        ("1:0.1:50", "1:0.1:50"), ("64,64", [64, 64]), ("[64, 64]", [64, 64]),
        ("SFFF,FHFG", ["SFFF", "FHFG"]), ("{a: 1, b: 2}", {"a": 1, "b": 2}), ("'a, b'", "a, b"),
    ],
)  # fmt: skip
def test_values_are_read_as_people_type_them(text, value):
    found = typed_value(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["ice"], "--env-option ice: must have the form KEY=VALUE"),
        (["a b=1"], "KEY=VALUE"),
        (["a=1", "a=2"], "a is given twice"),
        (["a=[1"], r"--env-option a=\[1: .*not YAML"),
    ],
)
def test_a_wrong_pair_is_named_with_its_option(pairs, message):
    with pytest.raises(InvalidInput, match=message):
        key_values("--env-option", pairs)


@pytest.mark.parametrize(
    ("command", "name", "example", "expected"),
    [
        ("train", "actions", 31, "--actions 31"),
        ("train", "backend", None, "--backend"),
        ("train", "eval_every", 5, "--eval-every 5"),
        ("train", "explore_q", 1.5, "--set explore_q=1.5"),
        ("train", "explore_q", None, "--set explore_q"),
        ("config", "alpha", 0.1, "--set alpha=0.1"),
        ("solve", "alpha", 0.1, "--alpha 0.1"),
        ("evaluate", "n_envs", 2, "n_envs=2"),
    ],
)
def test_an_argument_is_spelled_by_its_flag_or_by_set(command, name, example, expected):
    assert spelling_of(commands().commands[command])(name, example) == expected
