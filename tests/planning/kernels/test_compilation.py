"""The cache of compiled kernels is keyed by their sources."""

import os
import shutil
import subprocess
import sys

import numba
import pytest

from tsallax.planning.kernels import compilation
from tsallax.planning.kernels.bellman_sweep import sweep
from tsallax.planning.kernels.compilation import SOURCES, njit, source_key
from tsallax.tabular.kernel import simulate


@pytest.mark.parametrize("name", ["row.py", "vectors.py", "bellman_sweep.py"])
def test_an_edit_of_any_kernel_changes_the_key(tmp_path, name):
    sources = tmp_path / "kernels"
    shutil.copytree(SOURCES, sources, ignore=shutil.ignore_patterns("__pycache__"))
    before = source_key(sources)
    assert before == source_key()
    with (sources / name).open("a") as file:
        file.write("# an edit\n")
    assert source_key(sources) != before


@pytest.mark.parametrize("kernel", [sweep, simulate], ids=["sweep", "simulate"])
def test_kernels_are_cached_under_the_key(kernel):
    assert source_key() in kernel.stats.cache_path


PROGRAM = "from kernels.outer import outer; print(outer(1.0))"


def test_old_code_is_not_run_after_an_edit_in_another_file(tmp_path):
    """`outer` is unchanged, and inlines `inner`, which is edited."""
    package = tmp_path / "kernels"
    package.mkdir()
    shutil.copy(compilation.__file__, package / "compilation.py")
    (package / "__init__.py").touch()
    decorated = "from kernels.compilation import njit\n{}\n@njit()\ndef {}(x):\n    return {}\n"
    (package / "outer.py").write_text(
        decorated.format("from kernels.inner import inner", "outer", "2.0 * inner(x)")
    )
    found = []
    for summand in ("1.0", "10.0"):
        (package / "inner.py").write_text(decorated.format("", "inner", f"x + {summand}"))
        environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
        command = [sys.executable, "-c", PROGRAM]
        output = subprocess.check_output(command, cwd=tmp_path, env=environment, text=True)
        found.append(output.strip())
    assert found == ["4.0", "22.0"]


def test_the_cache_is_in_the_users_folder_or_beside_the_sources_or_at_home(tmp_path, monkeypatch):
    locked, home = tmp_path / "locked", tmp_path / "home"
    locked.write_text("a file, not a folder")
    monkeypatch.setattr(compilation, "source_key", lambda: "key")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert compilation.cache_folder() == tmp_path / "kernels-key"
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(compilation, "SOURCES", tmp_path)
    assert compilation.cache_folder() == tmp_path / "__pycache__" / "kernels-key"
    monkeypatch.setattr(compilation, "SOURCES", locked)
    assert compilation.cache_folder() == home / ".cache" / "tsallax" / "kernels-key"
    assert compilation.cache_folder().is_dir()


def test_without_any_folder_kernels_are_compiled_without_a_cache(monkeypatch):
    monkeypatch.setattr(compilation, "_FOLDER", None)
    double = njit()(lambda x: 2 * x)
    assert double(3) == 6
    assert double.stats.cache_path is None
