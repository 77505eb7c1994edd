"""The GPU kernels, interpreted on the CPU, agree with the plain operators."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simplex_pallas_cases import CASES, errors, mapped_error
from tsallax import simplex, simplex_pallas

SLOW = (
    "a power of two of actions",
    "one action more than a power of two",
    "equal values",
    "longest row",
    "longest row, equal values",
    "nearly equal values",
    "one value above many",
)
"""Cases of which others are examples, too; each shape is a compilation."""


@pytest.mark.parametrize(
    ("name", "kernel"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case[0] in SLOW)) for case in CASES],
)
def test_kernels_agree_with_the_plain_operators(name, kernel):
    found = errors(name, kernel, interpret=True)
    assert max(found.values()) <= 1, found


def test_kernels_mapped_over_regularizers_and_coefficients_are_the_single_ones():
    assert mapped_error(interpret=True) == 0


def clear_operators() -> None:
    """Discard the programs of the operators only: those of other tests serve later ones."""
    for operator in (simplex.maximum, simplex.maximizer):
        operator.fun.clear_cache()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch):
    """JAX as on a machine whose default backend is a GPU."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    clear_operators()
    yield
    clear_operators()


@pytest.mark.parametrize(
    ("shape", "dtype", "q", "uses_kernel"),
    [
        ((3, 5), jnp.float32, 2.0, True),
        ((2, 3, 5), jnp.bfloat16, 1.5, True),
        ((3, 5), jnp.float32, 1.7, False),
        ((3, simplex_pallas.MAX_ROW_LENGTH + 1), jnp.float32, 2.0, False),
        ((0, 5), jnp.float32, 2.0, False),
    ],
)
def test_public_operators_use_the_kernels_on_a_gpu_where_they_can(
    shape, dtype, q, uses_kernel, gpu
):
    for operator in (simplex.entmax, simplex.tsallis_max):
        program = str(jax.make_jaxpr(lambda z, f=operator: f(z, q))(jnp.zeros(shape, dtype)))
        assert ("pallas_call" in program) == uses_kernel


def test_a_program_for_a_gpu_runs_on_a_cpu_without_the_kernel(request):
    z = np.float32(np.random.default_rng(0).normal(size=(3, 7)))
    expected = simplex.sparsemax(z)
    request.getfixturevalue("gpu")
    np.testing.assert_array_equal(simplex.sparsemax(z), expected)
