"""The oldest versions that pyproject.toml allows, as constraints for pip: `>=` becomes `==`.

They are those of the dependencies and of the extras that users install. A requirement without a
lower bound is an error.
"""

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
EXTRAS = ("mujoco", "video", "tensorboard", "ray")
"""Extras for users, but for wandb and minatar, which have stand-ins in the tests."""


def oldest(requirements: list[str]) -> list[str]:
    """The constraints that pin each requirement to its lower bound.

    >>> oldest(["jax>=0.7.2", "ray>=2.40; python_version < '3.14'"])
    ['jax==0.7.2', "ray==2.40; python_version < '3.14'"]
    """
    unbounded = [line for line in requirements if not re.match(r"[\w.-]+>=[\d.]+(;.*)?$", line)]
    if unbounded:
        sys.exit(f"pyproject.toml has no plain lower bound for {', '.join(unbounded)}")
    return [line.replace(">=", "==", 1) for line in requirements]


if __name__ == "__main__":
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = [line for name in EXTRAS for line in project["optional-dependencies"][name]]
    print(*oldest([*project["dependencies"], *extras]), sep="\n")
