"""Four float64 side by side: vector arithmetic, exp and log for compiled loops over short rows.

LLVM does not vectorise a sum without `fastmath`, which leaves its order open, nor calls of libm's
exp.  Here the order is fixed and the exponential is our own, so that results are the same on every
machine.  Plain loops instead make a whole sweep, one core of an AMD EPYC, slower by a factor of

    actions                      10    25   100
    sparse (threshold, policy)  1.0   1.2   1.25
    soft (exp)                  1.2   1.3   1.4

The cost is this module, which uses Numba's documented extension API (`intrinsic`, data models).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic as numba_intrinsic
from numba.extending import models, register_model

from tsallax.planning.kernels.compilation import njit

intrinsic: Any = numba_intrinsic  # which leaves out the first argument, unknown to type checkers

WIDTH = np.uint64(4)
_N = int(WIDTH)
_VECTOR = ir.VectorType(ir.DoubleType(), _N)
_ZERO = ir.Constant(_VECTOR, [0.0] * _N)
_ONE = ir.Constant(_VECTOR, [1.0] * _N)
_INDEX = ir.IntType(32)
_EXP_MIN = ir.Constant(_VECTOR, [-708.0] * _N)  # exp of less is next to a subnormal number
_INTEGERS = ir.VectorType(ir.IntType(64), _N)
_BITS_OF_ONE, _BITS_OF_ROOT, _BITS_OF_LARGE = (
    int(np.float64(x).view(np.int64)) for x in (1.0, math.sqrt(0.5), 2.0**52)
)
_SHIFT = 1.5 * 2.0**52  # numbers of this size are integers
_LN2 = (0.693145751953125, 1.42860682030941723212e-6)  # the first times a small integer is exact
_PER_LN2 = 1.0 / math.log(2.0)
_EXP = tuple(1.0 / math.factorial(k) for k in range(14))
_LOG = tuple(2.0 / (2 * k + 3) for k in range(12))


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


def _positive(builder: Any, x: Any) -> Any:
    return builder.fcmp_ordered(">", x, _ZERO)


def _two_to(builder: Any, shifted: Any) -> Any:
    """2^n, given n + _SHIFT: the sum's last bits are n, which become an exponent."""
    bits = builder.shl(builder.bitcast(shifted, _INTEGERS), _integers(52))
    return builder.bitcast(builder.add(bits, _integers(_BITS_OF_ONE)), _VECTOR)


def _exponent(builder: Any, x: Any) -> Any:
    """n, as a number, of x = 2^n m with m from 1/sqrt(2) to sqrt(2)."""
    bits = builder.sub(builder.bitcast(x, _INTEGERS), _integers(_BITS_OF_ROOT))
    biased = builder.lshr(builder.add(bits, _integers(1024 << 52)), _integers(52))
    large = builder.bitcast(builder.or_(biased, _integers(_BITS_OF_LARGE)), _VECTOR)
    return builder.fsub(large, ir.Constant(_VECTOR, [2.0**52 + 1024.0] * _N))


def _mantissa(builder: Any, x: Any) -> Any:
    """m of x = 2^n m."""
    bits = builder.bitcast(x, _INTEGERS)
    power = builder.and_(builder.sub(bits, _integers(_BITS_OF_ROOT)), _integers(0xFFF << 52))
    return builder.bitcast(builder.sub(bits, power), _VECTOR)


def _integers(number: int) -> Any:
    return ir.Constant(_INTEGERS, [number] * _N)


add = _lanewise(lambda b, x, y: b.fadd(x, y), 2)
sub = _lanewise(lambda b, x, y: b.fsub(x, y), 2)
mul = _lanewise(lambda b, x, y: b.fmul(x, y), 2)
div = _lanewise(lambda b, x, y: b.fdiv(x, y), 2)
maximum = _lanewise(lambda b, x, y: b.select(b.fcmp_ordered("<", x, y), y, x), 2)
positive_part = _lanewise(lambda b, x: b.select(_positive(b, x), x, _ZERO), 1)  # [x]₊
is_positive = _lanewise(lambda b, x: b.select(_positive(b, x), _ONE, _ZERO), 1)  # 1 where x > 0
where_positive = _lanewise(lambda b, x, y: b.select(_positive(b, x), y, _ZERO), 2)  # y where x > 0
zero_below = _lanewise(lambda b, x, y: b.select(b.fcmp_ordered("<", x, _EXP_MIN), _ZERO, y), 2)
two_to = _lanewise(_two_to, 1)
exponent = _lanewise(_exponent, 1)
mantissa = _lanewise(_mantissa, 1)


@intrinsic
def broadcast(typing: Any, x: Any) -> Any:
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
def lane_sum(typing: Any, x: Any) -> Any:
    """The sum of the lanes."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        a, b, c, d = (builder.extract_element(values[0], ir.Constant(_INDEX, i)) for i in range(_N))
        return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))

    return types.float64(_lanes), generate


@intrinsic
def _bits(typing: Any, x: Any) -> Any:
    """A bit for every lane, set where it is above 0."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        packed = builder.bitcast(_positive(builder, values[0]), ir.IntType(_N))
        return builder.zext(packed, ir.IntType(64))

    return types.uint64(_lanes), generate


@intrinsic
def trailing_zeros(typing: Any, bits: Any) -> Any:
    """The position of the lowest set bit of a number that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@njit(forceinline=True)
def positive_bits(array: Any, begin: Any, end: Any) -> Any:
    """A bit mask of array[begin:end], at most 64 numbers: bit i is set where the i-th is > 0."""
    bits = np.uint64(0)
    i = begin
    while i + WIDTH <= end:
        bits |= _bits(load(array, i)) << (i - begin)
        i += WIDTH
    while i < end:
        bits |= np.uint64(array[i] > 0.0) << (i - begin)
        i += np.uint64(1)
    return bits


@njit(forceinline=True)
def exp(x: Any) -> Any:
    """exp(x) for x <= 0, and 0 below -708: 2^n exp(r), |r| <= log(2)/2, by its series."""
    shifted = add(mul(x, broadcast(_PER_LN2)), broadcast(_SHIFT))
    n = sub(shifted, broadcast(_SHIFT))
    r = sub(sub(x, mul(n, broadcast(_LN2[0]))), mul(n, broadcast(_LN2[1])))
    square = mul(r, r)
    odd, even = broadcast(_EXP[13]), broadcast(_EXP[12])
    for i in range(11, 2, -2):  # two sums at a time
        odd = add(mul(odd, square), broadcast(_EXP[i]))
        even = add(mul(even, square), broadcast(_EXP[i - 1]))
    y = add(broadcast(1.0), add(r, mul(square, add(even, mul(odd, r)))))
    return zero_below(x, mul(y, two_to(shifted)))


@njit(forceinline=True)
def log(x: Any) -> Any:
    """log(x) for normal x > 0: n log(2) + log(m), by the series in s = (m - 1)/(m + 1)."""
    n = exponent(x)
    f = sub(mantissa(x), broadcast(1.0))
    s = div(f, add(f, broadcast(2.0)))
    z = mul(s, s)
    square = mul(z, z)
    odd, even = broadcast(_LOG[11]), broadcast(_LOG[10])
    for i in range(9, 0, -2):
        odd = add(mul(odd, square), broadcast(_LOG[i]))
        even = add(mul(even, square), broadcast(_LOG[i - 1]))
    half = mul(broadcast(0.5), mul(f, f))
    rest = mul(s, add(half, mul(z, add(even, mul(odd, z)))))  # log(m) = f - half + rest
    small = sub(half, add(rest, mul(n, broadcast(_LN2[1]))))
    return sub(mul(n, broadcast(_LN2[0])), sub(small, f))


@njit()
def padded_length(n: Any) -> Any:
    """n rounded up to a multiple of WIDTH: the numbers that a loop over lanes touches."""
    return (np.uint64(n) + WIDTH - np.uint64(1)) // WIDTH * WIDTH


def _is_vector(array: Any) -> bool:
    """Whether the numbers lie side by side in memory."""
    kind = (getattr(array, name, None) for name in ("dtype", "ndim", "layout"))
    return tuple(kind) == (types.float64, 1, "C")


def _places(places: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_INDEX, len(places)), places)


def _address(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, values[0]).data
    return builder.bitcast(builder.gep(data, [values[1]]), _VECTOR.as_pointer())
