"""The help of every command on the reference's page of the command line."""

import re
import subprocess
import sys
from typing import Any

COMMAND = re.compile(r"^<!-- help: (.*) -->$", re.M)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each `<!-- help: tsallax COMMAND -->` by what `tsallax COMMAND --help` prints."""
    return COMMAND.sub(lambda match: _help(match[1].split()), markdown)


def _help(command: list[str]) -> str:
    arguments = [sys.executable, "-m", *command, "--help"]
    printed = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    return f"```text\n{printed.strip()}\n```"
