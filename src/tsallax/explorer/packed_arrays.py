"""Arrays of integers and floats as compressed text, for the script of a page.

Every array is stored by planes of bytes, all first bytes before all second ones, since the high
bytes of small numbers are alike; all arrays are compressed together (zlib) and written in base64.
"""

import zlib
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPES = {"uint8": "u1", "uint16": "<u2", "int32": "<i4", "float32": "<f4"}


def pack(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Names, types and lengths of the arrays, and the text that holds them.

    >>> packed = pack({"counts": np.array([1, 2], np.uint16)})
    >>> packed["arrays"], len(packed["data"]) < 30
    ([['counts', 'uint16', 2]], True)
    """
    listed, planes = [], []
    for name, array in arrays.items():
        kind = array.dtype.name
        flat = np.ascontiguousarray(array, TYPES[kind]).reshape(-1)
        listed.append([name, kind, len(flat)])
        planes.append(flat.view(np.uint8).reshape(-1, flat.itemsize).T.tobytes())
    return {
        "arrays": listed,
        "data": b64encode(zlib.compress(b"".join(planes), 9)).decode("ascii"),
    }
