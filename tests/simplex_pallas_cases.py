"""Cases for the GPU kernels of `tsallax.simplex_pallas`, with the plain operators as reference.

The tests run them interpreted on the CPU. On a machine with a GPU this script runs them compiled,
and compares `tsallax.simplex` on the GPU, where it uses the kernels, with itself on the CPU:

    PYTHONPATH=src python tests/simplex_pallas_cases.py

It prints a line for each case and exits with 1 if any of them fails.
"""

import sys
from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from kernel_cases import Verdict, judged, print_verdicts
from tsallax import simplex, simplex_pallas
from tsallax.regularizer import Hard, Regularizer, Soft, Sparse, Tsallis

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
    longest, prime = (2, simplex_pallas.MAX_ROW_LENGTH), (2, 12_007)
    cases = {
        "one action": (normal(4, 1), 0.1),
        "a power of two of actions": (normal(4, 64), 0.3),
        "one action more than a power of two": (normal(4, 257), 1.0),
        "longest row": (normal(*longest), 1.0),
        "longest row, equal values": (np.full(longest, 3.7), 1.0),
        "equal values": (np.full(prime, -0.3), 0.7),
        "nearly equal values": (1e-5 * normal(*prime), 1.0),
        "one value above many": (
            np.where(np.arange(prime[1]) == 7, 0.0, np.full(prime, -0.5)),
            1.0,
        ),
        "rows that are no multiple of a block": (normal(37, 3), 1.0),
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
ENTROPIC = {f"q = {q:g}": q for q in simplex_pallas.INDICES}
"""Names of the kernels of `simplex`, and their indices."""
CASES = [(name, kernel) for name in ROWS for kernel in (*simplex_pallas.NAMES, *ENTROPIC)]


@partial(jax.jit, static_argnums=(0, 4))
def _kernels(
    q: float | None, z: jax.Array, which: int, alpha: float, interpret: bool
) -> tuple[jax.Array, jax.Array]:
    """Policies and values of the regulariser NAMES[which] or, if given, of index q."""
    alpha = jnp.asarray(alpha)
    if q is None:
        arguments = z, jnp.asarray(which), alpha
        policies = simplex_pallas.row_policies(*arguments, interpret=interpret)
        return policies, simplex_pallas.row_values(*arguments, interpret=interpret)
    alpha = jnp.where(alpha > 0, alpha, jnp.nan)  # as `regularizer` does
    policies = simplex_pallas.entropic_policies(q, z, alpha, interpret=interpret)
    return policies, simplex_pallas.entropic_values(q, z, alpha, interpret=interpret)


@partial(jax.jit, static_argnums=0)
def _reference(kernel: str, z: jax.Array, alpha: float) -> tuple[jax.Array, jax.Array]:
    regularizers: dict[str, Regularizer] = {
        "hard": Hard(),
        "soft": Soft(alpha),
        "sparse": Sparse(alpha),
        **{name: Tsallis(alpha, q) for name, q in ENTROPIC.items()},
    }
    regularizer = regularizers[kernel]
    return regularizer.policy(z), regularizer.value(z)


def _padded(z: np.ndarray) -> np.ndarray:
    """Short rows, and few, with actions that are left out and rows of zeros, at one shape.

    The plain operators are then compiled once for most cases.
    """
    if max(z.shape) > 37:
        return z
    padded = np.zeros((37, 37), np.float32)
    padded[: len(z)] = -np.inf
    padded[: len(z), : z.shape[1]] = z
    return padded


def errors(name: str, kernel: str, interpret: bool) -> dict[str, float]:
    """The errors of a case relative to their tolerances: the case passes if all are at most 1."""
    z, alpha = ROWS[name]
    which = 0 if kernel in ENTROPIC else simplex_pallas.NAMES.index(kernel)
    found = _kernels(ENTROPIC.get(kernel), z, np.int32(which), np.float32(alpha), interpret)
    policy, value = (np.asarray(x, float) for x in found)
    with jax.default_device(jax.devices("cpu")[0]):  # where no kernel is used
        results = _reference(kernel, _padded(z), alpha)
        expected, best = (np.asarray(x, float)[: len(z)] for x in results)
    expected = expected[:, : z.shape[1]]
    valid = np.isfinite(best)
    scale = np.abs(best) + (kernel != "hard") * abs(alpha) + 1e-30
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
    z = jnp.asarray(ROWS["ties"][0])
    which, alphas = jnp.arange(3), jnp.asarray([0.1, 0.2, 0.3])
    largest = 0.0
    for q in (None, *ENTROPIC.values()):
        mapped = jax.vmap(lambda w, a, q=q: _kernels(q, z, w, a, interpret))(which, alphas)
        single = [_kernels(q, z, w, a, interpret) for w, a in zip(which, alphas, strict=True)]
        pairs = zip(mapped, zip(*single, strict=True), strict=True)
        differences = [float(jnp.abs(many - jnp.stack(each)).max()) for many, each in pairs]
        largest = max(largest, *differences)
    return largest


def public_errors() -> dict[str, float]:
    """The largest differences between public operators on the GPU and on the CPU, by case."""
    rng = np.random.default_rng(1)
    z = np.float32(rng.normal(size=(6, 50, 5)))
    mask = rng.random(z.shape) < 0.6
    mask[:, 0] = True
    direction = np.float32(rng.normal(size=z.shape))
    operators = {
        "sparsemax": simplex.sparsemax,
        "spmax": simplex.spmax,
        "entmax 1.5": lambda z, **options: simplex.entmax(z, 1.5, **options),
        "tsallis_max 1.5": lambda z, **options: simplex.tsallis_max(z, 1.5, **options),
    }

    def cases(f):
        yield "axis and mask", lambda z: f(z, axis=1, where=mask)
        yield "one row", lambda z: f(z[0, :, 0])
        yield "vmap of rows", lambda z: jax.vmap(jax.vmap(f))(z)
        yield "jvp", lambda z: jax.jvp(lambda z: f(z, axis=1), (z,), (direction,))[1]
        yield "gradient", jax.grad(lambda z: (f(z, axis=1, where=mask) ** 2).sum())
        yield "bfloat16", lambda z: f(z.astype(jnp.bfloat16), axis=1).astype(jnp.float32)
        yield "long rows", lambda z: f(jnp.tile(z.reshape(-1), 30)[None])

    found = {}
    for name, operator in operators.items():
        for case, call in cases(operator):
            results = []
            for device in (jax.devices("cpu")[0], jax.devices()[0]):
                with jax.default_device(device):
                    results.append(np.asarray(jax.jit(call)(jax.device_put(z, device)), float))
            found[f"{name}, {case}"] = float(np.abs(results[0] - results[1]).max())
    return found


def _largest(ratios: np.ndarray) -> float:
    return float(np.nan_to_num(ratios, nan=np.inf).max(initial=0.0))


def verdicts() -> Iterator[Verdict]:
    """All cases, compiled."""
    for name, kernel in CASES:
        yield judged(f"{name}, {kernel}", errors(name, kernel, interpret=False))
    mapped = mapped_error(interpret=False)
    yield mapped == 0, f"mapped over coefficients: {mapped:.2g}"
    for name, error in public_errors().items():
        yield error <= (0.01 if "bfloat16" in name else 4e-6), f"{name}: {error:.2g}"


if __name__ == "__main__":
    sys.exit(print_verdicts(verdicts()))
