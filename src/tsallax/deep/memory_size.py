"""The memory that a learner needs, known before it is allocated."""

import warnings
from typing import Any

import jax
import numpy as np

from tsallax import memory

WARNING_BYTES = 2**30
"""The size from which a learner causes a warning."""


def require_memory(name: str, learner: Any, buffer_size: int, agents: int = 1) -> None:
    """Refuse learners, one given by its shapes, that do not fit; warn of large ones.

    >>> require_memory("Env-v0", jax.ShapeDtypeStruct((10**14,), np.float32), 10**6)
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: Env-v0: not enough memory for the networks and a replay of...
    """
    size = agents * size_of(learner)
    what = f"the networks and a replay of {buffer_size} transitions"
    what += f" of each of {agents} agents" if agents > 1 else ""
    remedy = "lower buffer_size or net_arch" + ", or train fewer agents" * (agents > 1)
    memory.require_memory(size, what, remedy, jax.devices()[0], name)
    if size >= WARNING_BYTES:
        warnings.warn(f"{name}: {what} take {memory.as_text(size)}", stacklevel=2)


def size_of(tree: Any) -> int:
    """The number of bytes of the arrays of a pytree, or of their shapes.

    >>> size_of({"a": np.zeros(3, np.float32), "b": np.zeros((2, 2), np.uint8)})
    16
    """
    leaves = jax.tree.leaves(tree)
    return sum(int(np.prod(x.shape, dtype=object)) * np.dtype(x.dtype).itemsize for x in leaves)
