"""The notebooks of docs/tutorials as pages: executed when the manual is built, with pictures."""

import posixpath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

PAGES: dict[str, tuple[str, dict[str, bytes]]] = {}
"""The text and pictures of each notebook that was executed."""


def on_files(files: Files, config: Any) -> Files:
    """Add a page and its pictures for each notebook; the notebook itself can be downloaded."""
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            text, pictures = _executed(Path(file.abs_src_path))
            name = posixpath.basename(file.src_uri)
            note = f"\n\nThis page is a notebook: [{name}]({name}){{download}}.\n"
            head, _, body = text.lstrip().partition("\n")
            page = file.src_uri.removesuffix(".ipynb") + ".md"
            files.append(File.generated(config, page, content=head + note + body))
            for picture, data in pictures.items():
                path = posixpath.join(posixpath.dirname(page), picture)
                files.append(File.generated(config, path, content=data))
    return files


def _executed(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook with its outputs as Markdown, and its pictures; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:  # for files that it writes
        where = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()
    resources = {"unique_key": path.stem, "output_files_dir": "pictures"}
    text, resources = MarkdownExporter().from_notebook_node(notebook, resources)
    return text, resources["outputs"]
