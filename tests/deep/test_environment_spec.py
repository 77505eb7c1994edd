"""Specifications of environments: sizes, observations and actions."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete

import tsallax
from refusals import refused
from small_agents import CORRIDOR, TINY, Episodic, cart_pole, member
from tsallax import DeepQ, Fleet
from tsallax.deep.environment_spec import EnvironmentSpec, make_spec
from tsallax.errors import InvalidInput

ONE_LINE = r"^[^\n]*$"


def spec_of(env: Any, actions: Any = None, **more: Any) -> EnvironmentSpec:
    return make_spec(env, **{"actions": actions, "n_envs": 1, "continuous": False, **more})


def test_an_id_is_the_jax_environment_where_there_is_one():
    spec = spec_of("MultiGoal-v0", 3)
    assert spec.jax is tsallax.envs.MultiGoal
    assert (spec.n_actions, spec.table.shape, spec.source) == (9, (9, 2), "MultiGoal-v0")
    assert spec_of("tsallax/MultiGoal-v0", 3, backend="gymnasium").jax is None
    assert spec_of(CORRIDOR, 3).source is CORRIDOR


class Configurable(Episodic):
    """An environment whose options have the names of arguments of ours."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options


def test_options_of_an_environment_may_have_any_name():
    gymnasium.register("Configurable-v0", Configurable)
    names = ("actions", "continuous", "env", "n_envs", "name", "options", "owned", "source", "n")
    options = {name: number for number, name in enumerate(names)}
    try:
        spec = spec_of("Configurable-v0", options=options)
        for made in (spec.host, spec.evaluation_environment()):
            assert made._members[0].unwrapped.options == options
    finally:
        del gymnasium.registry["Configurable-v0"]


SPACES = {
    "discrete observations": (Discrete(7), Discrete(3)),
    "a matrix of observations": (Box(-1, 1, (2, 3)), Discrete(3)),
    "actions from five": (Box(-1, 1, (2,)), Discrete(3, start=5)),
    "a matrix of actions": (Box(-1, 1, (2,)), Box(-1, 1, (1, 2))),
    "actions without dimensions": (Box(-1, 1, (2,)), Box(-1, 1, ())),
    "several actions": (Box(-1, 1, (2,)), MultiDiscrete([3, 2])),
    "images": (Box(0, 255, (9, 8, 3), np.uint8), Discrete(3)),
}


@pytest.mark.parametrize("case", SPACES)
def test_observations_are_encoded_and_actions_decoded_as_the_environment_has_them(case):
    env = Episodic(*SPACES[case])
    spec = spec_of(env, 3 if isinstance(env.action_space, Box) else None)
    one, _ = env.reset(seed=0)
    rows, single = spec.encode(one)
    assert single
    assert rows.shape == (1, *spec.observation.shape)
    assert rows.dtype == spec.observation.dtype
    assert spec.encode(np.stack([one, one]))[0].tolist() == [*rows.tolist()] * 2
    numbers = np.arange(spec.n_actions)
    for action in spec.action.decode(np.stack([numbers % 2] * 2, 1) if spec.factored else numbers):
        assert env.action_space.contains(action)


def test_observations_of_the_wrong_kind_are_refused():
    vector = spec_of(CORRIDOR, 3)
    for wrong in (0.0, [1.0], [1.0, 2.0, 3.0], np.zeros((4, 3)), []):
        with refused("observation of shape"):
            vector.encode(wrong)
    for wrong in ("abc", [[1.0], [1.0, 2.0]], None, [np.nan, 0.0], [np.inf, 0.0]):
        with pytest.raises(InvalidInput, match=ONE_LINE, check=lambda e: "observation" in str(e)):
            vector.encode(wrong)
    integer = spec_of(Episodic(Discrete(7, start=2)))
    for wrong in (1, 9, 2.5, [[2]]):
        with refused("observation"):
            integer.encode(wrong)


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        ({"actions": None}, {"source": "Corridor-v0", "add": ("actions", 31)}),
        ({"backend": "gymnasium"}, {"source": "Corridor-v0", "omit": "backend"}),
        (
            {"backend": "torch"},
            {"problem": "unknown backend 'torch': choose from auto, jax, gymnasium"},
        ),
        ({"options": {"a": 1}}, {"source": "env_options a"}),
        ({"env": "Reacher-v5", "options": {"a": 1}, "backend": "jax"}, {"omit": "backend"}),
        ({"env": "CartPole-v1", "backend": "jax"}, {"source": "CartPole-v1", "omit": "backend"}),
    ],
    ids=str,
)
def test_refusals_say_what_to_add_or_leave_out(arguments, fields):
    with pytest.raises(InvalidInput) as refusal:
        spec_of(**{"env": CORRIDOR, "actions": 3, **arguments})
    assert {name: getattr(refusal.value, name) for name in fields} == fields


@pytest.mark.parametrize("env", ["CartPoole-v1", "nowhere:Env-v0", 7, None])
def test_unknown_environments_are_refused_in_one_line(env):
    with refused(str(env).split(":")[0]):
        spec_of(env)


def test_what_cannot_be_saved_or_combined_is_refused():
    with refused("env_options must be plain data"):
        spec_of("CartPole-v1", options={"sutton_barto_reward": np.bool_(False)})
    with pytest.raises(InvalidInput, check=lambda e: e.omit == "actions"):
        spec_of("CartPole-v1", 3)
    with pytest.raises(InvalidInput, check=lambda e: e.omit == "n_envs"):
        DeepQ(gymnasium.make("CartPole-v1"), **{**TINY, "n_envs": 4})
    with refused("only environments with an id can be drawn"):
        spec_of(CORRIDOR, 3).rendered_environment()


def test_an_environment_to_evaluate_in_must_be_of_the_same_kind():
    spec = spec_of("CartPole-v1")
    with pytest.raises(InvalidInput, match=r"observation_shape \(2,\), but .* for \(4,\)"):
        spec.evaluation_environment(Episodic(Box(-1, 1, (2,))))
    with refused("Acrobot-v1: has observation_shape"):
        spec.evaluation_environment("Acrobot-v1")
    with refused("holds 2 environments: give a single one"):
        spec.evaluation_environment(gymnasium.make_vec("CartPole-v1", 2))
    agent = cart_pole()
    with refused("Acrobot-v1: has observation_shape"):
        agent.learn(steps=10, eval_every=5, eval_env="Acrobot-v1")
    assert agent.steps == 0


def test_what_a_function_makes_is_evaluated_in_copied_and_loaded(tmp_path: Any):
    agent = DeepQ(Episodic, n_envs=2, **TINY).learn(steps=20, eval_every=10, eval_episodes=1)
    assert agent.environment == "Episodic"
    found = agent.evaluate(2)
    agent.save(tmp_path / "agent.npz")
    again = DeepQ.load(tmp_path / "agent.npz", Episodic)
    assert again.evaluate(2).returns.tolist() == found.returns.tolist()
    assert again.learn(steps=40).steps == 40
    with refused("load it with one"):
        DeepQ.load(tmp_path / "agent.npz").evaluate(2)


class Odd(Episodic):
    """An environment with an error in its code, and other spaces if asked for."""

    def __init__(self, size: int = 4) -> None:
        super().__init__(gymnasium.spaces.Box(-1, 1, (size,)))

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return {}["size"]


@pytest.mark.parametrize("kind", ["agent", "fleet"])
def test_an_error_of_an_environment_that_is_given_again_is_passed_on(kind: str, tmp_path: Any):
    file = tmp_path / "file.npz"
    made = DeepQ(Episodic, **TINY) if kind == "agent" else Fleet(Episodic, [member()], workers=0)
    made.save(file)
    with pytest.raises(KeyError, match="size") as raised:
        type(made).load(file, Odd)
    assert raised.traceback[-1].path.name == "test_environment_spec.py"


def test_other_spaces_are_refused_before_an_environment_is_tried_out(tmp_path: Any):
    DeepQ(Episodic, **TINY).save(tmp_path / "agent.npz")
    with refused("agent.npz: Odd: has observation_shape (5,), but the agent was made for (4,)"):
        DeepQ.load(tmp_path / "agent.npz", lambda: Odd(5))


def test_a_stack_of_images_that_is_flattened_is_warned_of(recwarn: Any):
    frames = lambda *shape: Episodic(Box(0, 255, shape, np.uint8))  # noqa: E731
    for shape in ((4, 8, 8), (8, 8, 4), (4, 3, 2, 8)):
        spec_of(frames(*shape))
    assert not recwarn.list
    with pytest.warns(
        UserWarning, match=r"shape \(4, 8, 8, 1\) are flattened: .*as channels"
    ) as found:
        DeepQ(frames(4, 8, 8, 1), **TINY)
    assert found[0].filename == __file__


def test_an_environment_whose_seed_has_no_effect_is_warned_of(recwarn: Any):
    class Careless(Episodic):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            observation, info = super().reset(seed=seed)
            return observation + np.random.default_rng().random(observation.shape, np.float32), info

    for env in (
        Episodic,
        "CartPole-v1",
        lambda: gymnasium.wrappers.NormalizeObservation(Episodic()),
    ):
        spec_of(env)
    assert not recwarn.list
    with pytest.warns(
        UserWarning, match=r"Careless: reset\(seed=0\) twice gives different"
    ) as found:
        DeepQ(Careless, **TINY)
    assert found[0].filename == __file__
