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
            from tsallax.cli.worker_process import is_worker, leave

            code = run(sys.argv[1:])
            if code and is_worker():
                leave(code)
        except KeyboardInterrupt:
            sys.stderr.write("tsallax: interrupted\n")
            code = 130
        sys.exit(code)


if __name__ == "__main__":
    main()
