"""The provenance of a result: versions of tsallax and its dependencies, and the hardware."""

from __future__ import annotations

import os
import platform
import tomllib
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def _tsallax_version(folder: Path) -> str:
    """The version in pyproject.toml where `folder` is src/tsallax of a source tree.

    Elsewhere it is that of the installed package, or "unknown" for a copy without metadata.
    """
    try:
        text = (folder.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
        project = tomllib.loads(text)["project"]
        if folder.parent.name == "src" and project["name"] == "tsallax":
            return str(project["version"])
    except (OSError, ValueError, LookupError, TypeError):  # absent, or of another project
        pass
    try:
        return version("tsallax")
    except PackageNotFoundError:
        return "unknown"


__version__ = _tsallax_version(Path(__file__).parent)


def of_training() -> dict[str, str]:
    """Versions and device of a training run, as checkpoints hold them."""
    import jax

    device = jax.devices()[0]
    return {
        "tsallax": __version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "device": f"{device.platform}: {device.device_kind}",
        "machine": f"{platform.system()} {platform.machine()}",
    }


def of_row() -> dict[str, str]:
    """Versions, device and date of a training run, as rows of tables hold them."""
    return {**of_training(), "date": datetime.now(UTC).date().isoformat()}


def of_planning() -> dict[str, Any]:
    """Versions and processor of a planning result, as reports show them.

    >>> sorted(of_planning())
    ['cores', 'cpu', 'jax', 'numba', 'numpy', 'python', 'scipy', 'system', 'tsallax']
    """
    return {
        "tsallax": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba", "jax")},
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _processor(),
        "cores": os.cpu_count(),
    }


def _processor() -> str:
    """The model name of the processor, or its architecture where unknown."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
