"""Results carry the versions and the hardware that made them."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import jax
import pytest

from tsallax import provenance


def test_versions_are_those_of_the_installed_packages_and_training_names_its_device():
    planning, training = provenance.of_planning(), provenance.of_training()
    assert planning["tsallax"] == training["tsallax"] == provenance.__version__
    for name in ("numpy", "scipy", "numba", "jax"):
        assert planning[name] == version(name)
    assert planning["cores"] == os.cpu_count()
    assert planning["cpu"]
    assert training["device"].startswith(jax.default_backend())
    assert all(isinstance(value, str) for value in training.values())


@pytest.mark.parametrize(
    ("place", "project", "found"),
    [
        ("src/tsallax", '[project]\nname = "tsallax"\nversion = "7.5"\n', "7.5"),
        ("src/tsallax", '[project]\nname = "another"\nversion = "7.5"\n', None),
        ("src/tsallax", "project = 1\n", None),
        ("src/tsallax", "no TOML", None),
        ("src/tsallax", None, None),
        ("lib/tsallax", '[project]\nname = "tsallax"\nversion = "7.5"\n', None),
    ],
)
def test_the_version_is_that_of_the_source_tree_or_else_of_the_installed_package(
    place, project, found, tmp_path
):
    folder = tmp_path / place
    if project is not None:
        (tmp_path / "pyproject.toml").write_text(project)
    assert provenance._tsallax_version(folder) == (found or version("tsallax"))


def test_a_copy_without_metadata_can_be_imported(tmp_path):
    """Such as one that a program brings along."""
    (tmp_path / "tsallax").mkdir()
    source = Path(provenance.__file__)
    for name in ("__init__.py", "provenance.py"):
        shutil.copy(source.with_name(name), tmp_path / "tsallax")
    program = "import tsallax; print(tsallax.__version__)"
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = ['.']; {program}"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert run.stdout == "unknown\n"
