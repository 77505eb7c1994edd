"""Four numbers side by side: vector arithmetic for compiled loops over short rows.

LLVM would vectorise such loops by itself only where they are long and their sums may be taken in
any order, and rows of 25 actions are neither.  Here the order is written down, and so it is the
same on every machine; a search for a threshold takes a fifth of the time.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic as numba_intrinsic
from numba.extending import models, register_model

intrinsic: Any = numba_intrinsic  # which leaves out the first argument, unknown to type checkers

WIDTH = np.uint64(4)
_N = int(WIDTH)
_VECTOR = ir.VectorType(ir.DoubleType(), _N)
_ZERO = ir.Constant(_VECTOR, [0.0] * _N)
_ONE = ir.Constant(_VECTOR, [1.0] * _N)
_INDEX = ir.IntType(32)


class _Lanes(types.Type):
    """Numba's type of four float64."""


_lanes = _Lanes("lanes")


@register_model(_Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _lanewise(code: Callable[..., Any], arguments: int) -> Any:
    """An operation that LLVM knows, of lanes with lanes."""
    signature = _lanes(*[_lanes] * arguments)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return code(builder, *values)

    if arguments == 1:
        return intrinsic(lambda typing, x: (signature, generate))
    return intrinsic(lambda typing, x, y: (signature, generate))


def _above(builder: Any, x: Any) -> Any:
    return builder.fcmp_ordered(">", x, _ZERO)


add = _lanewise(lambda b, x, y: b.fadd(x, y), 2)
sub = _lanewise(lambda b, x, y: b.fsub(x, y), 2)
mul = _lanewise(lambda b, x, y: b.fmul(x, y), 2)
positive = _lanewise(lambda b, x: b.select(_above(b, x), x, _ZERO), 1)  # [x]₊
above = _lanewise(lambda b, x: b.select(_above(b, x), _ONE, _ZERO), 1)  # 1 where x > 0, 0 elsewhere


@intrinsic
def spread(typing: Any, x: Any) -> Any:
    """The number x in every lane."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        one = builder.insert_element(undefined, values[0], ir.Constant(_INDEX, 0))
        return builder.shuffle_vector(one, undefined, _places([0] * _N))

    return _lanes(types.float64), generate


@intrinsic
def load(typing: Any, array: Any, i: Any) -> Any:
    """array[i : i + WIDTH], which must exist."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        loaded = builder.load(_address(context, builder, signature, values))
        loaded.align = 8
        return loaded

    return (_lanes(array, types.uint64), generate) if _is_vector(array) else None


@intrinsic
def store(typing: Any, array: Any, i: Any, x: Any) -> Any:
    """array[i : i + WIDTH] = x."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        stored = builder.store(values[2], _address(context, builder, signature, values))
        stored.align = 8
        return context.get_dummy_value()

    if not (_is_vector(array) and array.mutable):
        return None
    return types.void(array, types.uint64, _lanes), generate


@intrinsic
def total(typing: Any, x: Any) -> Any:
    """The sum of the lanes."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        a, b, c, d = (builder.extract_element(values[0], ir.Constant(_INDEX, i)) for i in range(_N))
        return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))

    return types.float64(_lanes), generate


@intrinsic
def _bits(typing: Any, x: Any) -> Any:
    """A bit for every lane, set where it is above 0."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        packed = builder.bitcast(_above(builder, values[0]), ir.IntType(_N))
        return builder.zext(packed, ir.IntType(64))

    return types.uint64(_lanes), generate


@intrinsic
def lowest(typing: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set, of a number that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@njit(cache=True, nogil=True, forceinline=True)
def bits_above(array: Any, begin: Any, end: Any) -> Any:
    """Which of array[begin:end], at most 64 numbers, are above 0: bit i for the i-th."""
    bits = np.uint64(0)
    i = begin
    while i + WIDTH <= end:
        bits |= _bits(load(array, i)) << (i - begin)
        i += WIDTH
    while i < end:
        bits |= np.uint64(array[i] > 0.0) << (i - begin)
        i += np.uint64(1)
    return bits


def _is_vector(array: Any) -> bool:
    """Whether the numbers lie side by side in memory."""
    kind = (getattr(array, name, None) for name in ("dtype", "ndim", "layout"))
    return tuple(kind) == (types.float64, 1, "C")


def _places(places: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_INDEX, len(places)), places)


def _address(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, values[0]).data
    return builder.bitcast(builder.gep(data, [values[1]]), _VECTOR.as_pointer())
