"""Planning on one GPU, or on a CPU: sweeps next to the time of reading their arrays, and solves.

    python benchmarks/planning_gpu.py million      10^6 states x 20 actions x 10 successors
    python benchmarks/planning_gpu.py billion      10^9 transitions: 5 x 10^7 states x 4 x 5
    python benchmarks/planning_gpu.py perishables  two perishable products, 16^6 states
    python benchmarks/planning_gpu.py savings      20,000 assets x 4 incomes, 1.6 x 10^9 pairs
    python benchmarks/planning_gpu.py mdpax        an iteration of mdpax on the same perishables
    python benchmarks/planning_gpu.py million --small   sizes for a trial on a CPU

Several sections may be named.  `savings` is solved from 0, and from the solution of the same model
with a tenth of the assets, interpolated; `JAX_PLATFORMS=cpu` runs it on the CPU of a machine that
has a GPU.  The peak memory is that of the process on the host so far, libraries included.
  Solves are to 1e-4 with a discount of 0.99 (savings: 0.95), and
their times include moving the model to the device and compiling.  The solution is not compared with
another: the error is the one that is proven.  Progress is printed as it comes, a table at the end;
where the environment variable OUT names a folder, the rows are written there as JSON, too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array

import tsallax
from tsallax import MDP, Hard, Soft, Sparse, Tsallis, problems
from tsallax.planning.accelerator.stored_sweep import StoredSweep
from tsallax.planning.precision import double_precision

TOLERANCE = 1e-4
START = time.perf_counter()
Row = dict[str, Any]


def say(*words: Any) -> None:
    """Print with the seconds since the start."""
    print(f"[{time.perf_counter() - START:7.1f}]", *words, flush=True)


def random_mdp(states: int, actions: int, successors: int, seed: int = 0) -> MDP:
    """An MDP with ascending random successors, random probabilities and rewards from 0 to 1."""
    rng, pairs = np.random.default_rng(seed), states * actions
    step = states // successors
    columns = np.cumsum(
        rng.integers(1, step, (pairs, successors), dtype=np.int32), axis=1, dtype=np.int32
    )
    columns -= 1
    data = rng.random((pairs, successors))
    data /= data.sum(axis=1, keepdims=True)
    index = np.int32 if data.size < 2**31 else np.int64
    pointer = np.arange(0, data.size + 1, successors, dtype=index)
    rows = csr_array((data.ravel(), columns.ravel(), pointer), shape=(pairs, states))
    rows.has_sorted_indices = rows.has_canonical_format = True
    return MDP(rows, rng.random((states, actions)), 0.99)


def milliseconds(call: Callable[[], Any], rounds: int = 5, repeats: int = 10) -> float:
    """The median over rounds of the time of a call, which has been compiled before."""
    jax.block_until_ready(call())
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(repeats):
            result = call()
        jax.block_until_ready(result)
        times.append((time.perf_counter() - begin) / repeats * 1e3)
    return float(np.median(times))


def streaming_read(arrays: list[Any]) -> float:
    """The milliseconds of a sum over every array: what reading them takes at least."""
    total = jax.jit(lambda parts: [jnp.sum(part) for part in parts])
    return milliseconds(lambda: total(arrays))


def sweeps(mdp: MDP) -> list[Row]:
    """One Bellman sweep with its certificate, for each regulariser, in both precisions."""
    rows: list[Row] = []
    for dtype in (jnp.float64, jnp.float32):
        with double_precision(dtype is jnp.float64):
            model = arrays = None  # frees the arrays of the other precision
            model = StoredSweep(mdp, dtype)
            arrays = jax.tree.leaves(model._groups)
            read = streaming_read(arrays)
            size = sum(part.nbytes for part in arrays) / 1e9
            say(f"{dtype.__name__}: {size:.2f} GB are read in {read:.3f} ms")
            for regularizer in (Hard(), Sparse(0.05), Soft(0.05), Tsallis(0.05, 1.5)):
                v = model.place(np.zeros(mdp.n_states))
                v = model.sweep(regularizer, v, mdp.max_actions).updated
                taken = milliseconds(lambda: model.sweep(regularizer, v, mdp.max_actions))  # noqa: B023
                what = f"sweep, {dtype.__name__}, {regularizer}"
                rows.append({"what": what, "ms": taken, "read_ms": read, "ratio": taken / read})
                say(f"{what}: {taken:.3f} ms, {taken / read:.2f} times the read")
    return rows


def solve(model: Any, regularizer: Any, device: str, start: Any = None) -> Row:
    """One solve, with all that it takes; by policy iteration where start() gives a first guess."""
    begin, cpu = time.perf_counter(), time.process_time()
    what = f"solve on {device}, {regularizer}{', coarse first' if start else ''}"
    method = "policy_iteration" if start else "auto"
    try:
        solution = tsallax.solve(
            model, regularizer, TOLERANCE, method, device=device, progress=False,
            initial_value=None if start is None else start(),
        )  # fmt: skip
        failure = ""
    except tsallax.NotConverged as error:
        solution, failure = error.solution, "not converged"
    except Exception as error:
        if "RESOURCE_EXHAUSTED" not in str(error) and not isinstance(error, MemoryError):
            raise
        say(f"{device}, {regularizer}: out of memory")
        return {"what": what, "failure": "out of memory"}
    row = {
        "what": what,
        "seconds": time.perf_counter() - begin,
        "cpu_seconds": time.process_time() - cpu,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "load": os.getloadavg()[0],
    }
    say(f"{what}: {row['seconds']:.2f} s, {solution}")
    return {**row, "error": solution.error, "sweeps": solution.sweeps, "failure": failure}


def million(small: bool) -> list[Row]:
    mdp = random_mdp(20_000 if small else 1_000_000, 20, 10)
    say(mdp)
    rows = sweeps(mdp)
    for device in ("cpu", *accelerators() * 2):  # the second solve finds compiled programs
        rows += [solve(mdp, regularizer, device) for regularizer in (Hard(), Sparse(0.05))]
    return rows


def billion(small: bool) -> list[Row]:
    mdp = random_mdp(50_000 if small else 50_000_000, 4, 5)
    say(mdp)
    device = (accelerators() or ["cpu"])[0]
    return [solve(mdp, regularizer, device) for regularizer in (Sparse(0.05), Hard())]


def perishables(small: bool) -> list[Row]:
    model = problems.perishables(2 if small else 15)
    say(model)
    return [solve(model, regularizer, "auto") for regularizer in (Hard(), Sparse(0.5))]


def savings(small: bool) -> list[Row]:
    incomes, assets = (0.5, 0.8, 1.2, 1.5), 200 if small else 20_000
    say(problems.savings(assets, incomes))
    rows = []
    for regularizer in (Hard(), Sparse(0.01)):

        def start(regularizer: Any = regularizer) -> Any:
            coarse = problems.savings(assets // 10, incomes)
            found = tsallax.solve(coarse, regularizer, TOLERANCE, progress=False)
            by_income = found.value.reshape(-1, len(incomes)).T
            # the assets of both grids are at the squares of 0, ..., 1
            places = np.linspace(0.0, 1.0, assets // 10), np.linspace(0.0, 1.0, assets)
            return np.stack([np.interp(places[1], places[0], v) for v in by_income], -1).ravel()

        for guess in (None, start):
            model = problems.savings(assets, incomes)  # compiled anew
            rows.append(solve(model, regularizer, "auto", guess))
    return rows


def mdpax(small: bool) -> list[Row]:
    """Seconds of an iteration of mdpax's value iteration, which it needs about 1,400 of."""
    try:
        from mdpax.problems import HendrixTwoProductPerishable
        from mdpax.solvers import ValueIteration
    except ImportError as error:
        say(error)
        return [{"what": "mdpax, perishables", "failure": "not installed"}]
    order = 2 if small else 15
    model = HendrixTwoProductPerishable(
        max_useful_life=3, max_order_quantity_a=order, max_order_quantity_b=order
    )
    say(f"{model.n_states:,} states")
    solver = ValueIteration(problem=model, gamma=0.99, epsilon=TOLERANCE, verbose=0)
    say("built")
    jax.block_until_ready(solver._iteration_step())
    say("first iteration, which compiles")
    begin = time.perf_counter()
    jax.block_until_ready(solver._iteration_step())
    return [{"what": "mdpax, perishables, one iteration", "seconds": time.perf_counter() - begin}]


SECTIONS = {
    "million": million,
    "billion": billion,
    "perishables": perishables,
    "savings": savings,
    "mdpax": mdpax,
}


def accelerators() -> list[str]:
    """["gpu"] where JAX has one."""
    return ["gpu"] if jax.default_backend() == "gpu" else []


def shown(row: Row) -> str:
    """One row of the table."""
    if "ms" in row:
        cells = f"{row['ms']:10.3f} ms   {row['ratio']:5.2f} times the read of {row['read_ms']:.3f}"
    elif "seconds" in row:
        cells = f"{row['seconds']:10.2f} s "
        if "error" in row:
            cells += f"   error <= {row['error']:.1e}, {row['sweeps']} sweeps {row['failure']}"
            cells += f"  {row['cpu_seconds']:.0f} s of CPU, {row['peak_gb']:.2f} GB, "
            cells += f"load {row['load']:.1f}"
    else:
        cells = f"{row['failure']:>13}"
    return f"{row['section']:<12}{row['what']:<46}{cells}".rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("section", choices=SECTIONS, nargs="+")
    parser.add_argument("--small", action="store_true", help="small sizes, for a trial")
    arguments = parser.parse_args()
    device = jax.devices()[0].device_kind
    say(f"jax {jax.__version__} on {device}, {os.cpu_count()} CPU cores")
    rows: list[Row] = []
    for name in arguments.section:
        rows += [{"section": name, **row} for row in SECTIONS[name](arguments.small)]
        if os.environ.get("OUT"):
            found = {"jax": jax.__version__, "device": device, "rows": rows}
            Path(os.environ["OUT"], "planning_gpu.json").write_text(json.dumps(found, indent=1))
    print(f"\njax {jax.__version__} on {device}, {os.cpu_count()} CPU cores")
    print("\n".join(shown(row) for row in rows))


if __name__ == "__main__":
    main()
