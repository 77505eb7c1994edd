"""Rows of bytes are read on the device; the steps themselves: test_loop_gymnasium_fleet."""

import jax.numpy as jnp
import numpy as np

from tsallax.deep.fleet_step import unpack
from tsallax.envs.gymnasium.environment_workers import row_type


def test_rows_are_unpacked_on_the_device():
    kind = row_type(np.zeros((1, 2, 3), np.uint8), np.zeros((1, 5), np.bool_))
    rows = np.zeros(4, kind)
    rng = np.random.default_rng(0)
    for name in kind.names:
        values = rng.integers(0, 2 if kind[name].base == np.bool_ else 200, rows[name].shape)
        rows[name] = values
    packed = rows.view(np.uint8).reshape(4, 1, -1)
    for name in kind.names:
        found = unpack(kind, name, jnp.asarray(packed))
        assert found.dtype == rows[name].dtype
        np.testing.assert_array_equal(found[:, 0], rows[name], err_msg=name)
