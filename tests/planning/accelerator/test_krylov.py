"""Linear systems in JAX."""

import jax.numpy as jnp
import numpy as np

from tsallax.planning.accelerator.krylov import bicgstab
from tsallax.planning.precision import double_precision


def test_bicgstab_solves_a_nonsymmetric_system():
    rng = np.random.default_rng(0)
    a = np.eye(50) - 0.9 * rng.dirichlet(np.full(50, 0.2), 50)
    b = rng.normal(size=50)
    with double_precision():
        x, residual = bicgstab(lambda x: jnp.asarray(a) @ x, jnp.asarray(b), 1e-10)
    assert residual <= 1e-10
    np.testing.assert_allclose(x, np.linalg.solve(a, b), atol=1e-8)
