"""A step of Adam for those rows of a table that still move, as one kernel on a GPU (Pallas).

XLA's kernel reads three numbers for each entry of the table, whether it moves or not. Here the rows
that are settled are neither read nor written.
"""

from collections.abc import Callable
from typing import Any

from jax import Array, ShapeDtypeStruct, lax
from jax import numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

BLOCK = 4096
"""Entries of the table in a program, at most."""
WARPS = 4


def move_rows(
    move: Callable[..., Array],
    settled: int,
    table: Array,
    mean: Array,
    square: Array,
    age: Array,
    size: Array,
    epsilon: Array,
    *,
    interpret: bool = False,
) -> Array:
    """move(table, mean, square, age, size, epsilon) in the rows whose age is below `settled`.

    `age` is (rows, 1); `size` and `epsilon` are numbers.
    """
    rows, width = table.shape
    lanes = pl.next_power_of_2(width)
    block = max(1, min(BLOCK // lanes, pl.next_power_of_2(rows)))

    def program(*refs: Any) -> None:
        size_ref, epsilon_ref, age_ref, table_ref, mean_ref, square_ref, out_ref = refs
        row = pl.program_id(0) * block + lax.iota(jnp.int32, block)
        age = triton.load(age_ref.at[:], mask=row < rows, other=settled)
        column = lax.broadcasted_iota(jnp.int32, (block, lanes), 1)
        mask = (age < settled)[:, None] & (column < width)
        parts = [
            triton.load(ref.at[:, :], mask=mask, other=0.0)
            for ref in (table_ref, mean_ref, square_ref)
        ]
        moved = move(*parts, age[:, None], size_ref[0], epsilon_ref[0])
        triton.store(out_ref.at[:, :], moved, mask=mask)

    whole_rows = pl.BlockSpec((block, lanes), lambda i: (i, 0))
    one = pl.BlockSpec((1,), lambda i: (0,))
    ages = pl.BlockSpec((block,), lambda i: (i,))
    moved: Array = pl.pallas_call(
        program,
        out_shape=ShapeDtypeStruct(table.shape, table.dtype),
        grid=(pl.cdiv(rows, block),),
        in_specs=[one, one, ages, whole_rows, whole_rows, whole_rows],
        out_specs=whole_rows,
        input_output_aliases={3: 0},
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=1),
    )(size.reshape(1), epsilon.reshape(1), age[:, 0], table, mean, square)
    return moved
