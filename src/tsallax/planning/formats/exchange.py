"""Files of MDPs by the ending of their names: `.umb`, `.drn`, `.tra`, and `.npz` or none."""

from __future__ import annotations

import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.files import npz
from tsallax.planning import mdp_files
from tsallax.planning.formats import drn, prism_explicit, umb
from tsallax.planning.formats.explicit_model import is_text, mdp_arguments, model_of

FORMATS = {".umb": umb, ".drn": drn, ".tra": prism_explicit}
"""The modules of formats by the endings of their files.

Each has `read(path, rewards) -> ExplicitModel`, where `rewards` names one of several reward models
of the file, and `write(path, model)`; both raise `InvalidInput`.
"""
ENDINGS = (".npz", *FORMATS)
"""The endings of the files of MDPs; a name without one is that of an `.npz` file."""


def read_arguments(
    path: str | PathLike[str],
    discount: float | None = None,
    rewards: str | None = None,
    max_bytes: int | None = None,
) -> dict[str, Any]:
    """Read the arguments of `MDP` from a file; `discount` replaces that of the file.

    `max_bytes` is for `.npz` files, which may have any name; the other formats have limits of their
    own.
    """
    form = FORMATS.get(Path(path).suffix)
    if form is not None:
        return mdp_arguments(form.read(path, rewards), discount)
    if not zipfile.is_zipfile(checks.input_file(path)):
        checks.file_ending(path, ENDINGS)
    if rewards is not None:
        raise InvalidInput("holds only one reward for each pair", omit="rewards")
    arguments = mdp_files.arguments(npz.read(path, mdp_files.FORMAT, max_bytes))
    return arguments if discount is None else {**arguments, "discount": discount}


def write_mdp(path: str | PathLike[str], mdp: Any) -> None:
    """Write an MDP in the format that the ending of the file's name stands for."""
    form = FORMATS.get(checks.file_ending(path, ENDINGS))
    if form is None:
        npz.write(path, mdp_files.FORMAT, mdp_files.arrays_of(mdp))
        return
    for name in (*(mdp.state_names or ()), *(mdp.action_names or ())):
        if not is_text(name):
            raise InvalidInput(f"the name {name!r} is not Unicode text", source=path)
    form.write(path, model_of(mdp))
