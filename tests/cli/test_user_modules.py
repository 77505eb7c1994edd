"""The current folder is searched for the modules that a command names, and for no others."""

import sys

from tsallax.cli.user_modules import search_current_folder


def test_only_a_source_with_a_module_adds_the_current_folder_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = [*sys.path]
    search_current_folder(None)
    search_current_folder("CartPole-v1")
    assert sys.path == before
    for _ in range(2):
        search_current_folder("maze:Maze-v0")
        assert sys.path == [str(tmp_path), *before]
