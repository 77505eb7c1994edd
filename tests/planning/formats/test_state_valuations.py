"""The values of variables are those of the examples in the specification of UMB."""

import pytest

from tsallax.errors import InvalidInput
from tsallax.planning.formats import state_valuations
from tsallax.planning.formats.state_valuations import valuation_names


def described(*variables) -> dict:
    return {"classes": [{"variables": list(variables)}]}


def variable(name: str, kind: str, size: int, **more) -> dict:
    return {"name": name, "type": {"type": kind, "size": size}, **more}


def test_the_second_example_of_the_specification():
    found = valuation_names(
        described(variable("sv0", "uint", 8, offset=-128), variable("sv1", "int", 16)),
        bytes([0b10111000, 0b11111111, 0b10111101]), 1,
    )  # fmt: skip
    assert found == ["sv0=56, sv1=-16897"]


def test_values_across_bytes_and_of_64_bits():
    content = ((0b101) | ((2**64 - 2) << 3) | (1 << 67)).to_bytes(9, "little")
    layout = (variable("a", "uint", 3), variable("b", "uint", 64), variable("c", "bool", 5))
    assert valuation_names(described(*layout), content, 1) == [
        "a=5, b=18446744073709551614, c=true"
    ]
    signed = (variable("a", "uint", 3), variable("b", "int", 64), {"padding": 5})
    assert valuation_names(described(*signed), content, 1) == ["a=5, b=-2"]


@pytest.mark.parametrize(
    "layout",
    [
        [variable("a", "double", 64)], [variable("a", "uint", 7, **{"is-optional": True})],
        [{"padding": 8}], [variable("a", "uint", 65), {"padding": 7}], [3],
        [variable("a", "uint", 0)], [{"padding": 10**9}], [variable("a", "uint", 8), "b"],
        [{"name": 3, "type": {"type": "uint", "size": 8}}], [variable("a", "uint", 8, offset="x")],
        [variable("a", "uint", 8, offset=10**4300)],
    ],
)  # fmt: skip
def test_other_layouts_give_no_names(layout):
    assert valuation_names(described(*layout), b"\1", 1) is None


def test_names_of_excessive_length_are_left_out(monkeypatch):
    layout = described(variable("a" * 100, "uint", 8))
    assert valuation_names(layout, b"\1\2", 2) == ["a" * 100 + "=1", "a" * 100 + "=2"]
    monkeypatch.setattr(state_valuations, "MAX_NAME_LENGTH", 200)
    assert valuation_names(layout, b"\1\2", 2) is None


def test_names_that_repeat_are_left_out_and_wrong_sizes_refused():
    layout = described(variable("a", "uint", 8))
    assert valuation_names(layout, b"\1\1", 2) is None
    with pytest.raises(InvalidInput, match="has 3 bytes for 2 states of 8 bits"):
        valuation_names(layout, b"\1\1\1", 2)
    assert valuation_names({}, b"", 1) is None
    assert valuation_names({"classes": []}, b"", 1) is None
