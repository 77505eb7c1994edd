"""Outputs of a network belong to one dimension of an action each."""

import itertools

import jax
import numpy as np
import pytest

from tsallax.deep.action_layout import ActionLayout

layouts = pytest.mark.parametrize(
    "layout",
    [
        ActionLayout((5,)),
        ActionLayout((3, 2)),
        ActionLayout((3, 2, 4), True),
        ActionLayout((2, 2), True),
        ActionLayout((4,), True),
    ],
    ids=str,
)


@layouts
def test_split_and_join_are_inverse_and_fill_up_with_minus_infinity(layout):
    outputs = np.arange(2 * layout.n_outputs, dtype=np.float32).reshape(2, -1)
    rows = np.asarray(jax.jit(layout.split)(outputs))
    assert rows.shape == (2, len(layout.sizes), max(layout.sizes))
    assert np.array_equal(jax.jit(layout.join)(rows), outputs)
    assert (rows > -np.inf).sum() == outputs.size
    for d, size in enumerate(layout.sizes):
        assert np.isneginf(rows[:, d, size:]).all()


@layouts
def test_the_outputs_of_an_action_are_those_of_its_choices(layout):
    """For each combination of choices, by going through the rows."""
    names = np.asarray(jax.jit(layout.split)(np.arange(layout.n_outputs, dtype=np.float32)))
    numbers, output_index = jax.jit(layout.numbers), jax.jit(layout.output_index)
    for choice in itertools.product(*(range(int(n)) for n in layout.sizes)):
        action = numbers(np.asarray(choice)[None])
        assert action.shape == (1, *layout.shape)
        expected = [int(names[d, k]) for d, k in enumerate(choice)]
        assert output_index(action)[0].tolist() == expected
