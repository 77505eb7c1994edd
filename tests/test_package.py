"""The package as a whole: quick to import, documented, typed, and its documents run."""

import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tsallax
from document_code import blocks, check_output, commands
from tsallax import envs, problems, simplex
from tsallax.cli import app
from tsallax.files import yaml_text

ROOT = Path(__file__).parents[1]
HEAVY = {
    "numpy", "scipy", "scipy.stats", "jax", "numba", "gymnasium", "mujoco", "matplotlib", "ray",
    "torch", "pandas",
}  # fmt: skip

EXPLAINED = {
    "AlphaPath": "solve_path", "ChosenAlpha": "choose_alpha",
    "Diverged": "Fleet", "Evaluation": "evaluate", "FunctionalEvaluation": "evaluate",
    "FunctionalMDP": "MDP", "FunctionalSolution": "solve", "InvalidInput": "MDP", "Member": "Fleet",
    "Interrupted": "q_learning", "NotConverged": "solve", "Regularizer": "Sparse",
    "Solution": "solve", "SolveInterrupted": "solve", "TabularResult": "q_learning",
}  # fmt: skip
"""Public names without an example of their own, and the name whose documentation uses them."""


def test_importing_loads_nothing_heavy_and_planning_hardly_anything():
    """Importing the package takes no longer than Python itself: not even NumPy is loaded."""
    program = "import tsallax, sys; print(*sys.modules); "
    program += "from tsallax import MDP, Sparse, problems, simplex; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    at_once, planning = (HEAVY & {*line.split()} for line in output.splitlines())
    assert not at_once
    assert planning <= {"numpy", "scipy", "jax"}, "no environment and no plotting library"


def test_every_name_in_all_can_be_imported_and_no_other_is_listed():
    assert len(set(tsallax.__all__)) == len(tsallax.__all__)
    assert [name for name in tsallax.__all__ if not hasattr(tsallax, name)] == []
    assert {*dir(tsallax)} == {*tsallax.__all__}
    with pytest.raises(AttributeError, match="no attribute 'sparse_max'"):
        tsallax.sparse_max  # noqa: B018


@pytest.mark.parametrize("name", sorted({*tsallax.__all__} - {"__version__"}))
def test_every_public_name_is_documented_with_an_example(name):
    value = getattr(tsallax, name)
    text = inspect.getdoc(value) or ""
    assert len(text.splitlines()[0]) > 10
    if inspect.ismodule(value):
        return
    if name in EXPLAINED:
        assert name not in {*EXPLAINED.values()}
        assert ">>> " in (inspect.getdoc(getattr(tsallax, EXPLAINED[name])) or "")
    else:
        assert ">>> " in text


@pytest.mark.parametrize("module", [envs, problems, simplex])
def test_every_function_of_a_public_module_has_an_example(module):
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) or inspect.isfunction(value):
            assert ">>> " in (inspect.getdoc(value) or ""), name


def test_the_package_is_typed_and_its_version_is_that_of_all_files():
    """One version and one date in pyproject.toml, CHANGELOG.md, CITATION.cff and README.md."""
    assert (Path(tsallax.__file__).parent / "py.typed").is_file()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert tsallax.__version__ == version
    citation = yaml_text.read(ROOT / "CITATION.cff")
    assert citation["version"] == version
    released = f"## {version} ({citation['date-released']})"
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert released in changes.splitlines()
    assert f"tsallax-{version}-py3-none-any.whl" in (ROOT / "README.md").read_text(encoding="utf-8")


SLOW_DOCUMENTS = ["docs/large_models.md", "docs/learning.md", "docs/masks.md", "docs/resuming.md"]
"""Documents whose agents and functional models take long to compile."""
DOCUMENTS = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]


def code(document: str, language: str) -> list[str]:
    """The blocks of a document in one language."""
    return blocks((ROOT / document).read_text(encoding="utf-8"), language)


@pytest.mark.filterwarnings("error::DeprecationWarning")
@pytest.mark.parametrize(
    "document",
    [
        pytest.param(d, marks=[pytest.mark.slow] * (d in SLOW_DOCUMENTS))
        for d in DOCUMENTS
        if code(d, "python")
    ],
)
def test_the_python_of_a_document_prints_what_it_says(document, tmp_path, monkeypatch, capsys):
    """All blocks of a document are one program; `# ...` after print tells its output."""
    monkeypatch.chdir(tmp_path)
    program = "\n".join(code(document, "python"))
    exec(compile(program, document, "exec"), {})
    check_output(program, capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_of_a_document_are_read_without_error(document, capsys):
    """Their options are known."""
    for words in commands((ROOT / document).read_text(encoding="utf-8")):
        assert app.run([words[0], "--help"]) == 0
        known = capsys.readouterr().out
        assert all(word in known for word in words if word.startswith("--"))
