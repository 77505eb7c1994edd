"""sparsemax and spmax against their peers, side by side: milliseconds per call in float32.

    python benchmarks/operators.py [--quick]

On a CPU every function runs in turn, again and again, so that all see the same machine; the median
counts. The peers are those of the `bench` extra; a missing one is named and its column left empty.
Torch runs with one thread and with all, and the better counts.
`vs best` is sparsemax over the fastest sparsemax of a peer, `vs softmax` over `jax.nn.softmax`.
On a CPU the targets are 1 for every shape, and 2.5 from 64 x 2601 on.

On a GPU a launch takes longer than a small operator. There the time is that of one of the calls in
a compiled program, for up to 20 matrices one after the other. `plain` is sparsemax without
its kernel. Ratios are to softmax, whose target is 1.6, and `floor` is the ratio of sparsemax to the
time in which the memory reads the values and writes the policies once (--bandwidth, in GB/s).
"""

import argparse
import importlib
import os
import time
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tsallax import simplex
from tsallax.simplex import entmax, sparsemax, spmax

CPU_SHAPES = [(64, 121), (64, 961), (64, 2601), (4096, 2601)]
GPU_SHAPES = [
    (5184, 121), (5184, 961), (5184, 2601), (65536, 1024), (1_000_000, 16), (8192, 32768),
]  # fmt: skip
KINDS = ("normal", "action values", "nearly uniform")


def logits(kind: str, shape: tuple[int, int]) -> np.ndarray:
    """Rows of a kind: standard normal, action values over alpha = 0.1, or nearly uniform."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal(size=shape, dtype=np.float32)
    if kind == "action values":
        z = (
            5 * rng.standard_normal(size=(shape[0], 1), dtype=np.float32) + np.float32(0.3) * z
        ) * 10
    elif kind == "nearly uniform":
        z = z / shape[1]
    return np.asarray(z, np.float32)


def optional(name: str) -> ModuleType | None:
    """The module, or None with a word on how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed: pip install '.[bench]' for its column")
        return None


def contestants(z: np.ndarray, peers: dict[str, ModuleType | None]) -> dict[str, Callable[[], Any]]:
    """A call without arguments for every function that can run here, on data already in place."""
    x = jax.device_put(z)

    def jitted(f: Callable[..., Any]) -> Callable[[], Any]:
        compiled = jax.jit(f)
        return lambda: jax.block_until_ready(compiled(x))

    calls = {
        "softmax": jitted(jax.nn.softmax),
        "sparsemax": jitted(sparsemax),
        "spmax": jitted(spmax),
    }
    torch, peer_entmax, optax = peers["torch"], peers["entmax"], peers["optax"]
    if torch and peer_entmax:
        t = torch.tensor(z)

        def peer(threads: int, **options: int) -> Callable[[], Any]:
            def call() -> None:
                torch.set_num_threads(threads)
                with torch.no_grad():
                    peer_entmax.sparsemax(t, dim=-1, **options)

            return call

        for threads in sorted({1, os.cpu_count() or 1}):
            calls[f"entmax sort/{threads}"] = peer(threads)
            calls[f"entmax top-32/{threads}"] = peer(threads, k=min(32, z.shape[1]))
    if optax:
        calls["optax"] = jitted(jax.vmap(optax.projections.projection_simplex))
    return calls


def medians(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Median milliseconds over interleaved rounds; of `name/threads`, the best."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(60):
        for name, call in calls.items():
            if sum(times[name]) > seconds and len(times[name]) >= 3:
                continue
            call()
            for _ in range(3):
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    best: dict[str, float] = {}
    for name, t in times.items():
        column = name.split("/")[0]
        best[column] = min(best.get(column, np.inf), 1e3 * float(np.median(t)))
    return best


def plain_sparsemax(z: jax.Array) -> jax.Array:
    """sparsemax by XLA alone, as everywhere but on a GPU."""
    policy: jax.Array = simplex.plain_maximizer(2.0, z, 1.0)
    return policy


def gpu_operators(optax: ModuleType | None) -> dict[str, Callable[[jax.Array], jax.Array]]:
    """The functions of the columns of the table for a GPU."""
    operators = {
        "softmax": partial(jax.nn.softmax, axis=-1),
        "sparsemax": sparsemax,
        "spmax": spmax,
        "entmax 1.5": lambda z: entmax(z, 1.5),
        "plain": plain_sparsemax,
    }
    if optax:
        operators["optax"] = jax.vmap(optax.projections.projection_simplex)
    return operators


def program(f: Callable[[jax.Array], jax.Array]) -> Callable[[list[jax.Array]], list[jax.Array]]:
    """f of each of several arrays, one after the other, as one compiled program."""
    once = jax.jit(f)

    def run(arrays: list[jax.Array]) -> list[jax.Array]:
        results = [once(arrays[0])]
        for z in arrays[1:]:
            z, results[-1] = lax.optimization_barrier((z, results[-1]))
            results.append(once(z))
        return results

    return jax.jit(run)


def device_times(
    programs: dict[str, Callable[[list[jax.Array]], list[jax.Array]]],
    z: np.ndarray,
    rounds: int = 15,
) -> dict[str, float]:
    """Median milliseconds of one call in a program, over interleaved rounds of five programs."""
    x = jax.device_put(z)
    arrays = [jnp.roll(x, i, 0) for i in range(20 if z.size < 10**8 else 4)]
    times: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        for name, run in programs.items():
            given = arrays[:2] if name in ("plain", "optax") else arrays  # slow to compile
            start = time.perf_counter()
            for _ in range(5):
                results = run(given)
            jax.block_until_ready(results)
            if number:  # the first round compiles
                times[name].append((time.perf_counter() - start) / (5 * len(given)))
    return {name: 1e3 * float(np.median(t)) for name, t in times.items()}


def check_sums(z: np.ndarray) -> None:
    """Rows of policies sum to one."""
    for policies in (sparsemax(z), entmax(z, 1.5)):
        total = np.asarray(jnp.sum(policies, -1))
        assert np.abs(total - 1).max() < 1e-5, "rows must sum to one"


def print_cpu_table(shapes: list[tuple[int, int]]) -> None:
    peers = {name: optional(name) for name in ("torch", "entmax", "optax")}
    columns = ["softmax", "sparsemax", "spmax", "entmax sort", "entmax top-32", "optax"]
    header = f"{'shape':>13}  {'rows':<14}" + "".join(f"{name:>14}" for name in columns)
    print(header + f"{'vs best':>9}{'vs softmax':>11}{'spmax':>7}")
    for shape in shapes:
        for kind in KINDS:
            z = logits(kind, shape)
            check_sums(z)
            t = medians(contestants(z, peers), seconds=1.0)
            best = min((t[name] for name in columns[3:] if name in t), default=float("nan"))
            cells = "".join(f"{t[c]:14.3f}" if c in t else f"{'-':>14}" for c in columns)
            ratios = t["sparsemax"] / best, t["sparsemax"] / t["softmax"], t["spmax"] / t["softmax"]
            print(
                f"{shape[0]:>6} x {shape[1]:<4}  {kind:<14}{cells}"
                f"{ratios[0]:9.2f}{ratios[1]:11.2f}{ratios[2]:7.2f}",
                flush=True,
            )


def print_gpu_table(shapes: list[tuple[int, int]], bandwidth: float) -> None:
    operators = gpu_operators(optional("optax"))
    kernels = ("sparsemax", "spmax", "entmax 1.5")
    header = f"{'shape':>15}  {'rows':<14}" + "".join(f"{name:>12}" for name in operators)
    print(header + " |" + "".join(f"{name:>11}" for name in kernels) + f"{'floor':>7}")
    for shape in shapes:
        size = shape[0] * shape[1]
        columns = [name for name in operators if size < 10**8 or name != "optax"]  # sorts too long
        programs = {name: program(operators[name]) for name in columns}
        for kind in KINDS:
            z = logits(kind, shape)
            check_sums(z)
            t = device_times(programs, z)
            cells = "".join(f"{t[c]:12.4f}" if c in t else f"{'-':>12}" for c in operators)
            ratios = "".join(f"{t[name] / t['softmax']:11.2f}" for name in kernels)
            floor = 2 * z.nbytes / (1e6 * bandwidth)
            print(
                f"{shape[0]:>7} x {shape[1]:<5}  {kind:<14}{cells} |{ratios}"
                f"{t['sparsemax'] / floor:7.2f}",
                flush=True,
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the largest shapes")
    parser.add_argument("--bandwidth", type=float, default=4800.0, help="of a GPU (GB/s), H200")
    arguments = parser.parse_args()
    device = jax.devices()[0]
    print(f"jax {jax.__version__} on {device.device_kind}; milliseconds per call, float32")
    if device.platform == "cpu":
        print_cpu_table(CPU_SHAPES[:-1] if arguments.quick else CPU_SHAPES)
    else:
        shapes = GPU_SHAPES[:-1] if arguments.quick else GPU_SHAPES
        print_gpu_table(shapes, arguments.bandwidth)


if __name__ == "__main__":
    main()
