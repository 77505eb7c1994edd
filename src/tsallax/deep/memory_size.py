"""The memory that a learner needs, known before it is allocated."""

import os
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tsallax.errors import InvalidInput

WARNING_BYTES = 2**30
"""The size from which a learner causes a warning."""
MAX_SHARE = 0.9
"""The share of the free memory that a learner may take."""
CGROUP = Path("/sys/fs/cgroup")


def require_memory(name: str, learner: Any, buffer_size: int, agents: int = 1) -> None:
    """Refuse learners, one given by its shapes, that do not fit; warn of large ones.

    >>> require_memory("Env-v0", jax.ShapeDtypeStruct((10**14,), np.float32), 10**6)
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: Env-v0: not enough memory for the networks and a replay of...
    """
    size = agents * size_of(learner)
    what = f"the networks and a replay of {buffer_size} transitions"
    what += f" of each of {agents} agents" if agents > 1 else ""
    available = available_bytes()
    if available is not None and size > MAX_SHARE * available:
        problem = f"not enough memory for {what}, {_text(size)} with {_text(available)} free"
        remedy = "lower buffer_size or net_arch" + ", or train fewer agents" * (agents > 1)
        raise InvalidInput(f"{problem}: {remedy}", source=name)
    if size >= WARNING_BYTES:
        warnings.warn(f"{name}: {what} take {_text(size)}", stacklevel=2)


def size_of(tree: Any) -> int:
    """The number of bytes of the arrays of a pytree, or of their shapes.

    >>> size_of({"a": np.zeros(3, np.float32), "b": np.zeros((2, 2), np.uint8)})
    16
    """
    leaves = jax.tree.leaves(tree)
    return sum(int(np.prod(x.shape, dtype=object)) * np.dtype(x.dtype).itemsize for x in leaves)


def available_bytes() -> int | None:
    """The bytes of memory that are free on the device of the learners; None if it is unknown."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        about = device.memory_stats() or {}
        known = "bytes_limit" in about and "bytes_in_use" in about
        return int(about["bytes_limit"]) - int(about["bytes_in_use"]) if known else None
    found = [size for size in (_system_memory(), _group_memory()) if size is not None]
    return min(found, default=None)


def _system_memory() -> int | None:
    """The free memory of the machine, caches included."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _group_memory() -> int | None:
    """What is left of the limit of a Linux container."""
    try:
        limit, used = (
            int((CGROUP / f"memory.{word}").read_text(encoding="ascii"))
            for word in ("max", "current")
        )
        held = (CGROUP / "memory.stat").read_text(encoding="ascii").splitlines()
        reclaimable = sum(int(line.split()[1]) for line in held if line.startswith("inactive_file"))
    except (OSError, ValueError, IndexError):
        return None
    return limit - used + reclaimable


def _text(size: int) -> str:
    """A number of bytes in gigabytes.

    >>> _text(14_600_000_000)
    '14.6 GB'
    """
    return f"{size / 1e9:.3g} GB" if size < 1e14 else f"{size / 1e9:.0f} GB"
