"""Several processes of one solve on this machine, for tests."""

import os
import socket
import subprocess
from typing import Any

from command_line import Output, start


def launch(n: int, *words: Any) -> list[subprocess.Popen[str]]:
    """Start `tsallax` n times, as a launcher would."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    common = {"JAX_COORDINATOR_ADDRESS": f"localhost:{port}", "JAX_NUM_PROCESSES": str(n)}
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | common
    return [
        start(*words, "--distributed", env={**environment, "JAX_PROCESS_ID": str(i)})
        for i in range(n)
    ]


def finish(processes: list[subprocess.Popen[str]], seconds: float = 100) -> list[Output]:
    """What the processes print, and their exit codes."""
    try:
        texts = [process.communicate(timeout=seconds) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [Output(process.returncode, *text) for process, text in zip(processes, texts)]
