"""The program `tsallax`, also as `python -m tsallax`."""

from __future__ import annotations

import sys
from typing import NoReturn

from tsallax.interrupts import signals_as_interrupts


def main() -> NoReturn:
    """Run the command line and exit."""
    with signals_as_interrupts():
        try:
            from tsallax.cli.app import run
        except KeyboardInterrupt:
            sys.stderr.write("tsallax: interrupted\n")
            sys.exit(130)
        sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
