"""Names of states from the values of variables, which UMB files pack bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax.errors import InvalidInput
from tsallax.planning.formats.explicit_model import MAX_NAME_LENGTH

MAX_BITS = 1 << 16
"""Largest size of the variables of one state, in bits."""


def valuation_names(description: dict[str, Any], content: bytes, n_states: int) -> list[str] | None:
    """Names such as `x=1, b=true`; None where they repeat, are too long or of other types.

    >>> variables = [{"name": "x", "type": {"type": "uint", "size": 2}},
    ...              {"name": "b", "type": {"type": "bool"}}, {"padding": 5}]
    >>> valuation_names({"classes": [{"variables": variables}]}, bytes([0b001, 0b110]), 2)
    ['x=1, b=false', 'x=2, b=true']
    """
    classes = description.get("classes")
    if not isinstance(classes, list) or len(classes) != 1 or not isinstance(classes[0], dict):
        return None
    variables = classes[0].get("variables")
    layout = _layout(variables) if isinstance(variables, list) else None
    if not layout:
        return None
    width = sum(size for _, _, size, _ in layout)
    if width % 8 or len(content) != n_states * (width // 8):
        raise InvalidInput(
            f"valuations/states/valuations.bin has {len(content)} bytes for {n_states} states "
            f"of {width} bits"
        )
    if n_states * sum(len(name) + 24 for name, _, _, _ in layout) > MAX_NAME_LENGTH:
        return None
    rows = np.frombuffer(content, np.uint8).reshape(n_states, width // 8)
    columns, start = [], 0
    for name, kind, size, offset in layout:
        if kind is not None:
            values = _values(rows, start, size, kind)
            texts = (str(v + offset) for v in values.tolist())
            if kind == "bool":
                texts = ("true" if v else "false" for v in values.tolist())
            columns.append([f"{name}={text}" for text in texts])
        start += size
    names = [", ".join(parts) for parts in zip(*columns)]
    return names if len(set(names)) == n_states else None


def _layout(variables: list[Any]) -> list[tuple[str, str | None, int, int]] | None:
    """Name, type, size in bits and offset of each variable; a padding has no type."""
    result: list[tuple[str, str | None, int, int]] = []
    total = 0
    for variable in variables:
        if not isinstance(variable, dict):
            return None
        name, kind, size, offset = "", None, variable.get("padding"), variable.get("offset", 0)
        if size is None:
            described = variable.get("type")
            name, kind = variable.get("name", ""), None
            if not isinstance(described, dict) or variable.get("is-optional", False) is not False:
                return None
            kind = described.get("type")
            size = described.get("size", 1 if kind == "bool" else 64)
            if kind not in ("bool", "int", "uint"):
                return None
        if not (isinstance(name, str) and isinstance(offset, int) and isinstance(size, int)):
            return None
        if abs(offset) > 2**63:
            return None
        total += size
        if not 1 <= size <= MAX_BITS or total > MAX_BITS or (kind and size > 64):
            return None
        result.append((name, kind, size, offset))
    return result if any(kind for _, kind, _, _ in result) else None


def _values(rows: NDArray[np.uint8], start: int, size: int, kind: str) -> NDArray[Any]:
    """The integers that some bits of each row hold."""
    holding = rows[:, start // 8 : (start + size - 1) // 8 + 1]
    bits = np.unpackbits(holding, axis=1, bitorder="little")[:, start % 8 : start % 8 + size]
    packed = np.packbits(bits, axis=1, bitorder="little")
    value = np.pad(packed, ((0, 0), (0, 8 - packed.shape[1]))).view("<u8")[:, 0]
    sign = np.uint64(1 << (size - 1))
    return ((value ^ sign) - sign).view(np.int64) if kind == "int" else value
