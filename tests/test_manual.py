"""The manual without building it: links, references to code and tests, public names, notebooks."""

import ast
import json
import re
import runpy
from pathlib import Path

import pytest

import tsallax
from tsallax import envs, problems, simplex
from tsallax.files import yaml_text

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    ROOT / "benchmarks" / "README.md",
    *sorted(DOCS.rglob("*.md")),
]
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))


def names(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


def prose(path: Path) -> str:
    """A document without its blocks of code; of a notebook, its text."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return re.sub(r"^( *)```.*?^\1```", "", text, flags=re.M | re.S)


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.M)
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain}


def defined(path: Path) -> set[str]:
    """The functions, classes and methods of a source, and the names it assigns to."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
            inner = node.body if isinstance(node, ast.ClassDef) else []
            found |= {f"{node.name}.{n.name}" for n in inner if isinstance(n, ast.FunctionDef)}
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize("path", [*DOCUMENTS, *NOTEBOOKS], ids=names([*DOCUMENTS, *NOTEBOOKS]))
def test_links_lead_to_a_file_and_a_heading_or_a_definition_in_it(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        file, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = path.parent / file if file else path
        assert target.exists(), link
        if anchor:
            known = defined(target) if target.suffix == ".py" else anchors(target)
            assert anchor in known, link


def test_the_reference_has_every_public_name():
    text = "\n".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    shown = set(re.findall(r"^::: (tsallax\.[\w.]+)$", text, re.M))
    members = re.search(r"::: tsallax\.simplex\n.*?members: \[(.*?)\]", text, re.S)
    shown |= {f"tsallax.simplex.{name}" for name in members[1].split(", ")}
    modules = {"envs": envs, "problems": problems, "simplex": simplex}
    public = {f"tsallax.{name}" for name in {*tsallax.__all__} - {"__version__"} - {*modules}}
    public |= {f"tsallax.{m}.{name}" for m, module in modules.items() for name in module.__all__}
    assert public == shown - {"tsallax.simplex"}


def test_every_page_is_in_the_navigation():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r'"([\w/]+\.md)"', json.dumps(yaml_text.parse(settings)["nav"])))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    pages |= {path.relative_to(DOCS).with_suffix(".md").as_posix() for path in NOTEBOOKS}
    assert pages <= listed
    assert listed - pages == {"benchmarks.md", "changes.md", "contributing.md", "security.md"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=names(NOTEBOOKS))
def test_a_notebook_is_stored_without_outputs(path):
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=names(NOTEBOOKS))
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (tmp_path / "notebook.py").write_text("\n".join(code), encoding="utf-8")
    runpy.run_path("notebook.py", run_name="__main__")
    assert plt.get_fignums()
    plt.close("all")
