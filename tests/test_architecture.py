"""The import graph of the source: layers in one order, no cycles, one meaning for each name.

Imports inside functions and those for type checkers count like any other.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
LAYERS = (
    "errors", "memory", "checks", "wording", "interrupts", "time_limits", "provenance", "progress",
    "statistics", "plotting", "files", "web", "simplex_pallas", "simplex", "regularizer",
    "planning", "problems", "explorer", "envs", "tabular", "deep", "runs", "paper", "cli",
    "__init__", "__main__",
)  # fmt: skip
"""A module may import from its own layer and from those before it."""


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


@cache
def imports_of(name: str) -> set[str]:
    """The modules of tsallax that a module imports, wherever in its text."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            targets = [
                full if (full := f"{node.module}.{alias.name}") in MODULES else str(node.module)
                for alias in node.names
            ]
        else:
            continue
        found |= {t for t in targets if t == "tsallax" or t.startswith("tsallax.")}
    return {"tsallax.__init__" if t == "tsallax" else t for t in found} - {name}


def layer(name: str) -> int:
    return LAYERS.index(name.split(".")[1])


@pytest.mark.parametrize("name", MODULES)
def test_imports_name_modules_that_exist_and_point_downwards(name):
    for target in sorted(imports_of(name)):
        assert target in MODULES, f"{name} imports {target}, which is not there"
        assert layer(target) <= layer(name), f"{name} imports {target}, which is in a higher layer"


def test_no_module_imports_itself_in_a_circle():
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            pytest.fail(" imports ".join((*path[path.index(name) :], name)))
        if name not in done:
            for target in sorted(imports_of(name)):
                visit(target, (*path, name))
            done.add(name)

    for name in MODULES:
        visit(name, ())


def test_no_two_modules_have_the_same_name():
    stems: dict[str, str] = {}
    for name in MODULES:
        stem = name.rsplit(".", 1)[-1]
        if stem not in ("__init__", "__main__"):
            assert stem not in stems, f"{name} and {stems[stem]}"
            stems[stem] = name


def test_no_function_has_the_name_of_its_module():
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                assert node.name != name.rsplit(".", 1)[-1], f"{name}.{node.name}"


def test_every_module_has_a_test_file():
    tests = {path.stem for path in Path(__file__).parent.rglob("test_*.py")}
    packages = {name.rsplit(".", 1)[0] for name in MODULES}
    for name in MODULES:
        stem = name.rsplit(".", 1)[-1]
        if stem not in ("__init__", "__main__") and name not in packages:
            assert f"test_{stem}" in tests, f"{name} has no tests/**/test_{stem}.py"
