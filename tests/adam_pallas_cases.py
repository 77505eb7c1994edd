"""Cases for the GPU kernel of `tsallax.deep.adam_pallas`, with double precision as reference.

The tests run them interpreted on the CPU. On a machine with a GPU this script runs them compiled:

    PYTHONPATH=src python tests/adam_pallas_cases.py
"""

import sys
from functools import partial

import jax
import numpy as np

from kernel_cases import judged, print_verdicts
from tsallax.deep import adam, adam_pallas

CASES = {
    "a network of the paper": (2, 131, 256),
    "rows that are no multiple of a block, and of an odd width": (3, 37, 20),
    "one column": (1, 300, 1),
    "rows wider than a block": (1, 3, adam_pallas.BLOCK + 5),
}
"""Agents, rows and columns of a table."""


def inputs(name: str) -> dict[str, np.ndarray]:
    """Tables of some agents with their moments, a third of the rows settled, one just about."""
    agents, rows, width = CASES[name]
    rng = np.random.default_rng(rows)
    age = np.where(
        rng.random((agents, rows, 1)) < 0.3, 10_000, rng.geometric(0.02, (agents, rows, 1))
    )
    age[:, 0], age[:, 1], age[:, 2] = 1, adam.SETTLED - 1, adam.SETTLED
    shape = agents, rows, width
    return {
        "table": rng.normal(size=shape).astype("f4"),
        "mean": (1e-2 * rng.normal(size=shape)).astype("f4"),
        "square": (1e-4 * rng.random(shape)).astype("f4"),
        "age": age.astype("i4"),
        "size": (1e-3 * rng.random(agents)).astype("f4"),
        "epsilon": np.full(agents, 1e-8, "f4"),
    }


@partial(jax.jit, static_argnums=0)
def _found(interpret: bool, given: dict[str, jax.Array]) -> jax.Array:
    kernel = partial(adam_pallas.move_rows, adam.moved, adam.SETTLED, interpret=interpret)
    return jax.vmap(lambda given: kernel(**given))(given)


def errors(name: str, interpret: bool) -> dict[str, float]:
    """The errors of a case relative to their tolerances: the case passes if all are at most 1."""
    given = inputs(name)
    found = np.asarray(_found(interpret, given), float)
    p, m, v, age = (given[key].astype(float) for key in ("table", "mean", "square", "age"))
    size, epsilon = (given[key].astype(float)[:, None, None] for key in ("size", "epsilon"))
    step = size * m * adam.BETA1**age / (np.sqrt(v * adam.BETA2**age) + epsilon)
    settled = np.broadcast_to(age >= adam.SETTLED, p.shape)
    largest = np.abs(found - (p - step))
    return {
        "steps": float(
            (largest / (3e-7 * np.abs(p) + 1e-5 * np.abs(step) + 1e-12))[~settled].max()
        ),
        "settled rows": 2.0 * bool((found != p)[settled].any()),
        "rows that move": 2.0 * bool((found == p)[np.broadcast_to(age < 20, p.shape)].all()),
    }


if __name__ == "__main__":
    sys.exit(print_verdicts(judged(name, errors(name, interpret=False)) for name in CASES))
