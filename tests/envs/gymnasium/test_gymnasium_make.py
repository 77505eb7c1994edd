"""Environments that cannot be made are refused in one line with the remedy."""

import subprocess
import sys
from typing import Any

import pytest

from refusals import refused
from tsallax.envs import GymnasiumAdapter
from tsallax.envs.gymnasium.gymnasium_make import check_id


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        ("CartPoole-v1", {}, "CartPoole-v1: there is no such environment: did you mean CartPole-v"),
        ("ALE/Pong-v5", {}, "ALE/Pong-v5: needs the Arcade Learning Environment: pip install ale"),
        ("CartPole-v1", {"wheels": 4}, "unexpected keyword argument 'wheels'"),
    ],
    ids=str,
)
def test_environments_that_cannot_be_made_are_refused_in_one_line(
    env: Any, options: Any, message: str
) -> None:
    with refused(message):
        GymnasiumAdapter(env, options=options)


@pytest.mark.parametrize("name", ["CartPole-v1", "CartPole", "tsallax/Reacher-v5", "absent:A-v0"])
def test_an_id_is_looked_up_with_or_without_its_version(name: str) -> None:
    check_id(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CartPol-v1", "CartPol-v1: there is no such environment: did you mean CartPole-v1?"),
        ("CartPol", "CartPol: there is no such environment: did you mean CartPole-v1?"),
        ("CartPole-v7", "CartPole-v7: "),
        ("runs/nope", "runs/nope: "),
        ("/runs/nope", "/runs/nope: "),
    ],
)
def test_an_id_that_no_environment_has_is_refused_without_making_one(
    name: str, message: str
) -> None:
    with refused(message):
        check_id(name)


@pytest.mark.slow
def test_what_is_not_installed_is_named() -> None:
    program = """
import sys
from tsallax import envs
assert envs.jax_environment("Reacher-v5") is envs.Reacher
assert not {"gymnasium", "mujoco", "matplotlib"} & {*sys.modules}
for missing in ("mujoco", "gymnasium"):
    sys.modules[missing] = None
    try:
        envs.GymnasiumAdapter("Reacher-v5", actions=3)
    except ValueError as error:
        print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    first, second = run.stdout.splitlines()
    assert first.startswith("Reacher-v5: needs MuJoCo: pip install mujoco imageio, or use tsal")
    assert second == "Reacher-v5: needs Gymnasium: pip install gymnasium"
