"""The choice of an operator."""

import jax
import pytest

from planning.functional_models import stock_model
from tsallax import Hard, InvalidInput, problems, solve
from tsallax.planning import devices
from tsallax.planning.accelerator.jax_bellman import JaxBellman
from tsallax.planning.bellman import Bellman
from tsallax.planning.devices import all_devices, make_operator


@pytest.mark.parametrize(
    ("mdp", "options", "kind"),
    [
        (problems.forest(), {}, Bellman),
        (problems.forest(), {"device": "cpu"}, Bellman),
        (problems.forest(), {"precision": "float32"}, JaxBellman),
        (problems.forest(), {"mesh": all_devices()}, JaxBellman),
        (stock_model(), {"device": "cpu"}, JaxBellman),
    ],
)
def test_the_operator_follows_from_problem_and_device(mdp, options, kind):
    assert isinstance(make_operator(mdp, Hard(), **options), kind)


def test_auto_takes_a_gpu_for_large_problems_only(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert not devices._on_gpu(problems.forest(), "auto", single=False)
    monkeypatch.setattr(devices, "GPU_TRANSITIONS", 1)
    assert devices._on_gpu(problems.forest(), "auto", single=False)
    assert not devices._on_gpu(problems.forest(), "cpu", single=False)


@pytest.mark.parametrize("options", [{"device": "tpu"}, {"precision": "float16"}, {"mesh": 4}])
def test_an_unknown_device_precision_or_mesh_is_refused(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        solve(problems.forest(), Hard(), **options)


@pytest.mark.parametrize(
    "options", [{"device": "gpu"}, {"precision": "float32"}, {"mesh": all_devices()}]
)
def test_discount_1_names_the_option_to_leave_out(options):
    name = next(iter(options))
    with pytest.raises(InvalidInput, match=f"discount 1 .* on the CPU alone: leave {name} out"):
        solve(problems.forest().with_discount(1.0), Hard(), **options)


@pytest.mark.skipif(jax.default_backend() == "gpu", reason="there is a GPU")
def test_a_missing_gpu_is_named():
    with pytest.raises(InvalidInput, match=r"no gpu here.*: leave device out"):
        solve(problems.forest(), Hard(), device="gpu")
