"""Seconds of a sweep over 1, 2 and 4 CPU processes of this machine, and what a sweep sends.

    python benchmarks/distributed.py             # 100,000 states
    python benchmarks/distributed.py 1000000

Each process has one CPU device. With more processes than cores only the overhead is measured.
"""

import argparse
import os
import socket
import subprocess
import sys
import time

ACTIONS, SUCCESSORS, SWEEPS, REPEATS = 4, 5, 20, 5


def work(states: int) -> None:
    """One process: the best time of a sweep with its certificate."""
    import jax

    from tsallax import Sparse, problems
    from tsallax.planning import distributed
    from tsallax.planning.devices import all_devices, make_operator

    distributed.initialize()
    mdp = problems.garnet(states, ACTIONS, SUCCESSORS, discount=0.99, seed=1)
    operator = make_operator(mdp, Sparse(0.1), mesh=all_devices())
    best = float("inf")
    for _ in range(REPEATS):
        iterate = operator.start(None)
        certificate = operator.certify(iterate)
        began = time.perf_counter()
        for _ in range(SWEEPS):
            certificate = operator.certify(iterate)
            iterate = iterate._replace(value=certificate.updated)
        best = min(best, (time.perf_counter() - began) / SWEEPS)
    n = jax.process_count()
    sent = states * 12 * (n - 1) / n  # Uv in float64, supports in int32
    if jax.process_index() == 0:
        print(
            f"{n} processes  {states:,} states  {1e3 * best:8.2f} ms a sweep  "
            f"{sent / 1e6:6.2f} MB received a sweep  change {certificate.change[1]:.9g}",
            flush=True,
        )
    distributed.shutdown()


def main(states: int) -> None:
    for n in (1, 2, 4):
        with socket.socket() as free:
            free.bind(("localhost", 0))
            address = f"localhost:{free.getsockname()[1]}"
        variables = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": str(n)}
        command = [sys.executable, __file__, str(states), "--work"]
        processes = [
            subprocess.Popen(command, env={**os.environ, **variables, "JAX_PROCESS_ID": str(i)},
                             stderr=subprocess.DEVNULL)
            for i in range(n)
        ]  # fmt: skip
        if any(process.wait() for process in processes):
            sys.exit(f"a run with {n} processes failed")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("states", type=int, nargs="?", default=100_000)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    (work if given.work else main)(given.states)
