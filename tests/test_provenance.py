"""Results carry the versions and the hardware that made them."""

import os
from importlib.metadata import version

import jax

from tsallax import provenance


def test_versions_are_those_of_the_installed_packages_and_training_names_its_device():
    planning, training = provenance.of_planning(), provenance.of_training()
    assert planning["tsallax"] == training["tsallax"] == provenance.__version__
    for name in ("numpy", "scipy", "numba", "jax"):
        assert planning[name] == version(name)
    assert planning["cores"] == os.cpu_count()
    assert planning["cpu"]
    assert training["device"].startswith(jax.default_backend())
    assert all(isinstance(value, str) for value in training.values())
