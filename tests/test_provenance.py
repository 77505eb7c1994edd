"""Results carry the versions and the hardware that made them."""

import os
from importlib.metadata import version

import jax

from tsallax import provenance


def test_versions_are_those_of_the_installed_packages():
    planning, training = provenance.of_planning(), provenance.of_training()
    assert planning["tsallax"] == training["tsallax"] == provenance.__version__
    for name in ("numpy", "scipy", "numba", "jax"):
        assert planning[name] == version(name)
    assert planning["cores"] == os.cpu_count()
    assert planning["cpu"]


def test_training_names_its_device_in_text():
    training = provenance.of_training()
    assert training["device"].startswith(jax.default_backend())
    assert all(isinstance(value, str) for value in training.values())
