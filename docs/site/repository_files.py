"""Documents and sources outside of docs/ as pages of the manual, and the links to them.

A link to a source, `../src/tsallax/simplex.py#sparsemax`, leads to the definition of that name, on
a page with the whole file. A link to a folder of data becomes plain text.
"""

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
DOCUMENTS = {
    "benchmarks/README.md": "benchmarks.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "README.md": "index.md",
}
"""Documents of the repository, and the pages that they are in the manual."""
COPIED = {path: page for path, page in DOCUMENTS.items() if page != "index.md"}
PATH_OF = {page: path for path, page in COPIED.items()}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def line_of(source: str, name: str) -> int | None:
    """The line on which a module, class or function body defines a dotted name, or None."""
    body: list[ast.stmt] = ast.parse(source).body
    line = None
    for part in name.split("."):
        found = next((node for node in body if part in _defined(node)), None)
        if found is None:
            return None
        line, body = found.lineno, getattr(found, "body", [])
    return line


def _defined(node: ast.stmt) -> list[str]:
    """The names that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def on_files(files: Files, config: Any) -> Files:
    """Add the documents, and a page for each source that a document links to."""
    for path, page in COPIED.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    sources = set()
    for file in list(files):
        if file.is_documentation_page():
            for _, _, target in LINK.findall(file.content_string):
                path = _repository_path(file.src_uri, target.partition("#")[0])
                if path.endswith((".py", ".yaml")) and (ROOT / path).is_file():
                    sources.add(path)
    for path in sorted(sources):
        files.append(_source_page(config, path))
    return files


def _source_page(config: Any, path: str) -> File:
    """The page of a source, with numbered lines, outside of the navigation and the search."""
    language = "python" if path.endswith(".py") else "yaml"
    source = (ROOT / path).read_text(encoding="utf-8")
    fence = f'````{language} {{linenums="1"}}\n{source}````\n'
    text = f"---\nsearch: {{exclude: true}}\n---\n# {path}\n\n{fence}"
    return File.generated(config, f"source/{path}.md", content=text)


def _repository_path(page: str, target: str) -> str:
    """The path, from the root of the repository, of a link's target."""
    start = posixpath.dirname(PATH_OF.get(page, f"docs/{page}"))
    return posixpath.normpath(posixpath.join(start, target))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links to files of the repository into links to their pages."""
    here = posixpath.dirname(page.file.src_uri)

    def replaced(match: re.Match[str]) -> str:
        image, text, target = match.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in path or target.startswith("mailto:"):
            return match[0]
        found = _repository_path(page.file.src_uri, path)
        if found.startswith("docs/"):
            to = found.removeprefix("docs/")
            if to.endswith(".ipynb"):
                to = to.removesuffix(".ipynb") + ".md"
        elif found in DOCUMENTS:
            to = DOCUMENTS[found]
        elif found.endswith((".py", ".yaml")) and (ROOT / found).is_file():
            to = f"source/{found}.md"
            source = (ROOT / found).read_text(encoding="utf-8")
            anchor = anchor and f"__codelineno-0-{line_of(source, anchor)}"
        else:
            return f"{text} (`{found}`)"
        link = posixpath.relpath(to, here or ".") + (f"#{anchor}" if anchor else "")
        return f"{image}[{text}]({link})"

    pieces = re.split(r"(^```.*?^```$|^````.*?^````$)", markdown, flags=re.M | re.S)
    return "".join(p if p.startswith("```") else LINK.sub(replaced, p) for p in pieces)
