"""sparsemax and spmax against their peers, side by side: milliseconds per call in float32.

    python benchmarks/operators.py [--quick]

Every function runs in turn, again and again, so that all see the same machine; the median counts.
The peers are those of the `bench` extra; a missing one is named and its column left empty. Torch
runs with one thread and with all, and the better counts.
`vs best` is sparsemax over the fastest sparsemax of a peer, `vs softmax` over `jax.nn.softmax`.
On a CPU the targets are 1 for every shape, and 2.5 from 64 x 2601 on.
"""

import argparse
import importlib
import os
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tsallax.simplex import sparsemax, spmax

CPU_SHAPES = [(64, 121), (64, 961), (64, 2601), (4096, 2601)]
GPU_SHAPES = [(5184, 121), (5184, 2601), (65536, 1024), (8192, 32768)]


def logits(kind: str, shape: tuple[int, int]) -> np.ndarray:
    """Rows of a kind: standard normal, action values over alpha = 0.1, or nearly uniform."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=shape)
    if kind == "action values":
        z = (5 * rng.normal(size=(shape[0], 1)) + 0.3 * z) / 0.1
    elif kind == "nearly uniform":
        z = z / shape[1]
    return np.asarray(z, np.float32)


def optional(name: str) -> ModuleType | None:
    """The module, or None with a word on how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed: pip install 'tsallax[bench]' for its column")
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
    torch, entmax, optax = peers["torch"], peers["entmax"], peers["optax"]
    if torch and entmax:
        cuda = jax.default_backend() == "gpu" and torch.cuda.is_available()
        t = torch.tensor(z, device="cuda" if cuda else "cpu")

        def peer(threads: int, **options: int) -> Callable[[], Any]:
            def call() -> None:
                torch.set_num_threads(threads)
                with torch.no_grad():
                    entmax.sparsemax(t, dim=-1, **options)
                if cuda:
                    torch.cuda.synchronize()

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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the largest shapes")
    quick = parser.parse_args().quick
    peers = {name: optional(name) for name in ("torch", "entmax", "optax")}
    columns = ["softmax", "sparsemax", "spmax", "entmax sort", "entmax top-32", "optax"]
    shapes = CPU_SHAPES if jax.default_backend() == "cpu" else GPU_SHAPES
    print(
        f"jax {jax.__version__} on {jax.devices()[0].device_kind}; milliseconds per call, float32"
    )
    header = f"{'shape':>13}  {'rows':<14}" + "".join(f"{name:>14}" for name in columns)
    print(header + f"{'vs best':>9}{'vs softmax':>11}{'spmax':>7}")
    for shape in shapes[:-1] if quick else shapes:
        for kind in ("normal", "action values", "nearly uniform"):
            z = logits(kind, shape)
            total = np.asarray(jnp.sum(sparsemax(z), -1))
            assert np.abs(total - 1).max() < 1e-5, "rows must sum to one"
            t = medians(contestants(z, peers), seconds=1.0)
            best = min((t[name] for name in columns[3:] if name in t), default=float("nan"))
            cells = "".join(f"{t[c]:14.3f}" if c in t else f"{'-':>14}" for c in columns)
            ratios = t["sparsemax"] / best, t["sparsemax"] / t["softmax"], t["spmax"] / t["softmax"]
            print(
                f"{shape[0]:>6} x {shape[1]:<4}  {kind:<14}{cells}"
                f"{ratios[0]:9.2f}{ratios[1]:11.2f}{ratios[2]:7.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
