"""Modules of the user, which a command may name as `module:name`."""

import os
import sys


def search_current_folder(source: str | None) -> None:
    """Let `module:name` name a module of the current folder, as it may in `python -m`.

    Only a source given on the command line may do so, never one that is read from a file.
    """
    folder = os.getcwd()
    if source is not None and ":" in source and folder not in sys.path:
        sys.path.insert(0, folder)
