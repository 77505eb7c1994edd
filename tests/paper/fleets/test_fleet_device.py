"""Devices: that of this machine is used, and another refused before any work."""

import jax
import pytest

from refusals import refused
from tsallax.paper.fleets.fleet_device import default_device, use_device


@pytest.mark.skipif(jax.default_backend() == "gpu", reason="there is a GPU")
def test_a_device_that_this_machine_lacks_is_refused():
    use_device(None)
    use_device(default_device())
    with refused("no GPU"):
        use_device("gpu")


def test_unknown_devices_are_refused():
    with refused("unknown device 'tpu'"):
        use_device("tpu")
