"""Cases for the GPU kernels of `tsallax.simplex_pallas`, with `tsallax.regularizer` as reference.

The tests run them interpreted on the CPU. On a machine with a GPU this script runs them compiled:

    PYTHONPATH=src python tests/simplex_pallas_cases.py

It prints a line for each case and exits with 1 if any of them fails.
"""

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from tsallax import simplex_pallas
from tsallax.regularizer import by_name

EPS = float(np.finfo(np.float32).eps)


def _rows() -> dict[str, tuple[np.ndarray, float]]:
    """Matrices of action values, each with its alpha."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=shape)

    holes = np.where(rng.random((4, 37)) < 0.4, -np.inf, normal(4, 37))
    holes[:, 0] = 0.0
    ties = rng.integers(0, 3, (4, 37))
    invalid = normal(4, 37)
    invalid[0, 2], invalid[1, 5], invalid[2, :9], invalid[3] = np.nan, np.inf, np.nan, -np.inf
    longest = 2, simplex_pallas.MAX_ROW_LENGTH
    cases = {
        "one action": (normal(4, 1), 0.1),
        "a power of two of actions": (normal(4, 64), 0.3),
        "one action more than a power of two": (normal(4, 257), 1.0),
        "a long row to be filled up, equal values": (np.full((2, 12_007), -0.3), 0.7),
        "longest row": (normal(*longest), 1.0),
        "longest row, equal values": (np.full(longest, 3.7), 1.0),
        "nearly equal values": (1e-5 * normal(*longest), 1.0),
        "one value above many": (np.where(np.arange(longest[1]) == 7, 0.0, [[-0.5]] * 2), 1.0),
        "ties": (ties, 0.5),
        "small alpha": (normal(4, 37), 0.01),
        "huge alpha": (normal(4, 37), 1e30),
        "tiny alpha": (normal(4, 37), 1e-30),
        "tiny alpha and ties": (ties, 1e-30),
        "offset of a million": (1e6 + normal(4, 37), 0.5),
        "negative offset": (rng.integers(-3, 4, (4, 37)) - 1e7, 0.5),
        "wide range": (1e30 * normal(4, 37), 1.0),
        "-inf entries": (holes, 0.5),
        "NaN, inf and rows of -inf": (invalid, 1.0),
        "alpha of zero": (normal(4, 37), 0.0),
        "negative alpha": (normal(4, 37), -1.0),
    }
    return {name: (np.asarray(q, np.float32), alpha) for name, (q, alpha) in cases.items()}


ROWS = _rows()
CASES = [(name, regularizer) for name in ROWS for regularizer in simplex_pallas.NAMES]


@partial(jax.jit, static_argnums=3)
def _kernels(
    q: jax.Array, which: int, alpha: float, interpret: bool
) -> tuple[jax.Array, jax.Array]:
    arguments = q, jnp.asarray(which), jnp.asarray(alpha)
    policies = simplex_pallas.row_policies(*arguments, interpret=interpret)
    return policies, simplex_pallas.row_values(*arguments, interpret=interpret)


@jax.jit
def _references(q: jax.Array, alpha: float) -> list[tuple[jax.Array, jax.Array]]:
    hard, *others = simplex_pallas.NAMES
    regularizers = [by_name(hard), *(by_name(name, alpha) for name in others)]
    return [(regularizer.policy(q), regularizer.value(q)) for regularizer in regularizers]


def errors(name: str, regularizer: str, interpret: bool) -> dict[str, float]:
    """The errors of a case relative to their tolerances: the case passes if all are at most 1."""
    q, alpha = ROWS[name]
    which = np.int32(simplex_pallas.NAMES.index(regularizer))
    policy, value = (np.asarray(x, float) for x in _kernels(q, which, np.float32(alpha), interpret))
    expected, best = (np.asarray(x, float) for x in _references(q, alpha)[which])
    valid = np.isfinite(best)
    scale = np.abs(best) + (regularizer != "hard") * abs(alpha) + 1e-30
    p, true = policy[valid], expected[valid]
    return {
        "policy": _largest(np.abs(p - true) / (4e-6 * (true + 0.01))),
        "value": _largest((np.abs(value - best) / (8 * EPS * scale))[valid]),
        "row sums": _largest(np.abs(p.sum(-1) - 1) / 2e-6),
        "zeros": 2.0 * bool(((true == 0) & (p > 1e-6)).any()),
        "NaN": 2.0 * bool(np.isfinite(policy[~valid]).any() or np.isfinite(value[~valid]).any()),
    }


def mapped_error(interpret: bool) -> float:
    """The largest difference between kernels under `jax.vmap` and without."""
    q = jnp.asarray(ROWS["ties"][0])
    which, alphas = jnp.arange(3), jnp.asarray([0.1, 0.2, 0.3])
    mapped = jax.vmap(lambda w, a: _kernels(q, w, a, interpret))(which, alphas)
    single = [_kernels(q, w, a, interpret) for w, a in zip(which, alphas, strict=True)]
    pairs = zip(mapped, zip(*single, strict=True), strict=True)
    return max(float(jnp.abs(many - jnp.stack(each)).max()) for many, each in pairs)


def _largest(ratios: np.ndarray) -> float:
    return float(np.nan_to_num(ratios, nan=np.inf).max(initial=0.0))


def main() -> int:
    print(f"jax {jax.__version__} on {jax.devices()[0].device_kind}")
    if jax.default_backend() != "gpu":
        print("no GPU: the tests run the cases interpreted, with pytest")
        return 1
    failed = 0
    for name, regularizer in CASES:
        found = errors(name, regularizer, interpret=False)
        passed = max(found.values()) <= 1
        failed += not passed
        numbers = ", ".join(f"{key} {error:.2f}" for key, error in found.items())
        print(f"{'passed' if passed else 'FAILED'}  {name}, {regularizer}: {numbers}")
    mapped = mapped_error(interpret=False)
    failed += mapped != 0
    print(f"{'passed' if mapped == 0 else 'FAILED'}  mapped over regularisers: {mapped:.2g}")
    print(f"{failed} of {len(CASES) + 1} cases failed; errors are relative to their tolerances")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
