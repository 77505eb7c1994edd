"""The memory that is free, and the refusal of what does not fit into it."""

import os
from pathlib import Path
from typing import Any

from tsallax.errors import InvalidInput

MAX_SHARE = 0.9
"""The share of the free memory that may be asked for."""
CGROUP = Path("/sys/fs/cgroup")


def require_memory(
    size: int, what: str, remedy: str, device: Any = None, source: str | None = None
) -> None:
    """Refuse arrays of `size` bytes that do not fit on a JAX device; None stands for the host.

    >>> require_memory(10**15, "the values of 10 steps", "lower horizon")
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: not enough memory for the values of 10 steps, 1000000 GB with...
    """
    available = available_bytes(device)
    if available is not None and size > MAX_SHARE * available:
        problem = f"not enough memory for {what}, {as_text(size)} with {as_text(available)} free"
        raise InvalidInput(f"{problem}: {remedy}", source=source)


def available_bytes(device: Any = None) -> int | None:
    """The bytes of memory that are free on a JAX device or the host; None if it is unknown."""
    if device is not None and device.platform != "cpu":
        about = device.memory_stats() or {}
        known = "bytes_limit" in about and "bytes_in_use" in about
        return int(about["bytes_limit"]) - int(about["bytes_in_use"]) if known else None
    found = [size for size in (_system_memory(), _group_memory()) if size is not None]
    return min(found, default=None)


def as_text(size: int) -> str:
    """A number of bytes in gigabytes.

    >>> as_text(14_600_000_000)
    '14.6 GB'
    """
    return f"{size / 1e9:.3g} GB" if size < 1e14 else f"{size / 1e9:.0f} GB"


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
