"""A command in a process of its own, watched by the one that was started.

Where a process of a distributed solve is lost, JAX may abort the others from a thread of its own,
with a stack trace. The process that a launcher starts therefore only starts another, which
computes, passes on what that prints, and turns an abort into one line.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from tsallax.cli.output import print_line

VARIABLE = "TSALLAX_WORKER"
"""Set in the process that computes: a file descriptor, closed when the watching process ends."""
OWN = "tsallax: "
"""Beginnings of the lines that a command itself prints on standard error."""
LOST = ("distributed service", "coordination", "gloo", "nccl")
"""Words, in lower case, of JAX's last lines where another process is out of reach."""
PATIENCE_SECONDS = 10
"""The time that an interrupted command has to remove its temporary files."""


def is_worker() -> bool:
    """Whether this process is one that `watch` started."""
    return VARIABLE in os.environ


def watch(arguments: list[str]) -> int:
    """Run `tsallax` with these arguments in another process, and return its exit code.

    Of its standard error only its own lines are passed on, unless it fails in an unknown way.
    """
    alive, held = os.pipe()
    worker = subprocess.Popen(
        [sys.executable, "-m", "tsallax", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        pass_fds=[alive],
        env={**os.environ, VARIABLE: str(alive)},
    )
    os.close(alive)
    printed = False
    others: list[str] = []
    assert worker.stderr is not None
    try:
        for line in worker.stderr:
            if line.startswith(OWN):
                sys.stderr.write(line)
                printed = True
            else:
                others.append(line)
        code = worker.wait()
    except KeyboardInterrupt:
        worker.terminate()
        try:
            worker.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            worker.kill()
        raise
    finally:
        os.close(held)
    if code == 0 or (printed and code > 0):
        return code
    if any(map(_is_of_connection, others)):
        print_line("error", _reason(others))
    elif code < 0:
        print_line("error", f"the process that computes was ended by signal {-code}")
    else:
        sys.stderr.writelines(others)
    return 1


def _is_of_connection(line: str) -> bool:
    return any(word in line.lower() for word in LOST)


def _reason(lines: list[str]) -> str:
    """One line from what JAX prints before it aborts, where other processes are out of reach."""
    text = " ".join("".join(lines).partition("*** Check failure")[0].split())
    status = text.rpartition("absl::Status: ")[2]
    if "RegisterTask" in status:
        return "not all processes of this solve were started in time"
    if status == text:
        status = next(filter(_is_of_connection, lines))
    return f"another process of this solve ended: {status}"


def prepare_worker() -> None:
    """End with the watching process, and keep what libraries print off standard output."""
    parent = int(os.environ[VARIABLE])

    def end_with_parent() -> None:
        os.read(parent, 1)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    sys.stdout.flush()
    sys.stdout = os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding)
    os.dup2(2, 1)  # gloo prints there


def leave(code: int) -> None:
    """End at once: after an error JAX would wait for the other processes, and then abort."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
