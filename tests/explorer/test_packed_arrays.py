"""Packed arrays are unpacked as they were, here by a reader of its own."""

import zlib
from base64 import b64decode

import numpy as np
import pytest

from tsallax.explorer.packed_arrays import TYPES, pack


@pytest.mark.parametrize("kind", TYPES)
def test_arrays_come_back_bit_for_bit(kind):
    rng = np.random.default_rng(0)
    given = {"a": rng.integers(0, 200, (3, 5)).astype(kind), "b": np.array([7], kind)}
    packed = pack(given)
    plain = zlib.decompress(b64decode(packed["data"]))
    for name, type_, length in packed["arrays"]:
        size = np.dtype(type_).itemsize
        planes = np.frombuffer(plain[: size * length], np.uint8).reshape(size, length)
        plain = plain[size * length :]
        found = np.ascontiguousarray(planes.T).view(type_).ravel()
        np.testing.assert_array_equal(found, given[name].ravel())
    assert plain == b""
