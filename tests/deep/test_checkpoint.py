"""A saved agent is the agent, the last good file survives, and no file makes code run."""

from __future__ import annotations

import contextlib
import copy
import errno
import io
import os
import pickle
import random
import signal
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box

from refusals import refused
from small_agents import (
    CORRIDOR,
    SMALL_DDPG,
    TINY,
    VECTOR,
    assert_same,
    cart_pole,
    cart_poles,
    corridor,
    differ,
    flags,
)
from tsallax import DDPG, DeepQ
from tsallax.deep import checkpoint
from tsallax.deep.deep_q import DENSE_OUTPUTS
from tsallax.deep.learners import load_agent as load
from tsallax.envs.jax.multigoal_env import multigoal
from tsallax.errors import InvalidInput


@pytest.fixture(scope="module")
def trained() -> DeepQ:
    """An agent in the middle of an episode, whose memory has wrapped."""
    return corridor().learn(steps=130)


@pytest.fixture(scope="module")
def saved(trained, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("saved") / "agent.npz"
    trained.save(file)
    return file


@pytest.fixture
def contents(saved) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the file holds, to be altered."""
    return checkpoint.read(saved)


def pendulum_ddpg() -> DDPG:
    """An agent with real actions."""
    return DDPG("InvertedPendulum-v5", **SMALL_DDPG)


def rewritten(path: Path, about: dict[str, Any], arrays: dict[str, Any]) -> Path:
    checkpoint.write(path, about, arrays)
    return path


def test_a_loaded_agent_is_the_agent(trained, saved, contents):
    again = DeepQ.load(saved)
    assert_same(again, trained)
    assert again.config == trained.config
    assert again.environment == trained.environment
    assert np.array_equal(again.actions, trained.actions)
    assert again.history.running.sum() != 0, "the case must be in the middle of an episode"
    assert set(contents[0]["provenance"]) == {"tsallax", "jax", "python", "device", "machine"}


def test_learning_goes_on_from_a_file_as_if_it_had_never_stopped(trained, saved, tmp_path):
    agent = DeepQ.load(saved, CORRIDOR)
    for steps in (132, 134, 200):
        agent.learn(steps=steps).save(tmp_path / "agent")
        agent = DeepQ.load(tmp_path / "agent", CORRIDOR)
    assert_same(agent, corridor().learn(steps=200))
    assert trained.steps == 130


def test_cart_pole_goes_on_from_an_episode_boundary_as_if_it_had_never_stopped(tmp_path):
    agent = cart_pole().learn(episodes=4)
    agent.save(tmp_path / "agent")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed = DeepQ.load(tmp_path / "agent").learn(episodes=8)
    assert_same(resumed, cart_pole().learn(episodes=8))
    assert np.isfinite(resumed.history["trace_support"]).all()


@pytest.mark.slow
def test_several_environments_go_on_from_where_all_begin_an_episode(tmp_path):
    """Each has begun as many episodes as it has, not as many as all of them."""

    def poles() -> DeepQ:
        short = {"max_episode_steps": 6}
        return DeepQ("CartPole-v1", n_envs=2, env_options=short, **VECTOR)

    agent = poles().learn(steps=24)
    assert agent.history.episodes == 4
    agent.save(tmp_path / "agent")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed = DeepQ.load(tmp_path / "agent").learn(steps=36)
    assert_same(resumed, poles().learn(steps=36))
    DeepQ.load(tmp_path / "agent").save(tmp_path / "again")
    about, arrays = checkpoint.read(tmp_path / "agent")
    again = checkpoint.read(tmp_path / "again")[1]
    assert arrays.keys() == again.keys()
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)
    changes: list[tuple[str, Any, str]] = [
        ("begun", [3], "begun"), ("begun", [0, 3], "begun"), ("begun", [3.0, 3.0], "begun"),
        ("pending", np.int32([2, 0]), "next action"), ("pending", np.int32([-1, 0]), "next action"),
        ("pending", np.int32([0]), "next action"), ("pending", np.float32([0, 0]), "next action"),
    ]  # fmt: skip
    for name, wrong, words in changes:
        checkpoint.write(tmp_path / "odd", about, {**arrays, name: np.array(wrong)})
        with pytest.raises(InvalidInput, match=f"damaged: its? .*{words}") as refusal:
            DeepQ.load(tmp_path / "odd")
        assert refusal.value.source == str(tmp_path / "odd")


def within_an_episode(path):
    """The steps of CartPole that is saved three steps into its third episode."""
    agent = cart_pole().learn(episodes=2)
    agent.learn(steps=agent.steps + 3).save(path)
    return agent.steps


def test_cart_pole_goes_on_within_an_episode_as_if_it_had_not_been_interrupted(tmp_path):
    steps = within_an_episode(tmp_path / "agent")
    DeepQ.load(tmp_path / "agent").save(tmp_path / "again")
    whole = cart_pole().learn(steps=steps + 40)
    for name in ("agent", "again"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert_same(DeepQ.load(tmp_path / name).learn(steps=steps + 40), whole)


class Unseeded(gymnasium.Wrapper):
    """An environment whose episodes cannot be repeated."""

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=None if seed is None else seed + 1, options=options)


def test_an_episode_that_cannot_be_repeated_is_lost_and_says_so(tmp_path):
    """The transition before it becomes the last of its episode: n-step returns stop there."""
    steps = within_an_episode(tmp_path / "agent")
    resumed = DeepQ.load(tmp_path / "agent", env=Unseeded(gymnasium.make("CartPole-v1")))
    before = flags(resumed)[:steps]
    assert before[-1] == 0
    with pytest.warns(UserWarning, match="the episode that was under way is lost"):
        resumed.learn(episodes=3)
    assert resumed.steps == steps + resumed.history["episode_length"][-1]
    assert flags(resumed)[:steps] == [*before[:-1], 2]


class FailingOnce(gymnasium.Wrapper):
    """An environment whose fifth step raises, the first time."""

    made = 0

    def step(self, action):
        self.made += 1
        if self.made == 5:
            raise RuntimeError("out of order")
        return self.env.step(action)


def test_an_error_while_an_episode_is_repeated_loses_nothing(tmp_path):
    agent = cart_pole().learn(episodes=2)
    while agent.history.lengths[0] < 7:
        agent.learn(steps=agent.steps + 1)
    agent.save(tmp_path / "agent")
    whole = cart_pole().learn(steps=agent.steps + 40)
    resumed = DeepQ.load(tmp_path / "agent", env=FailingOnce(gymnasium.make("CartPole-v1")))
    with pytest.raises(RuntimeError, match="out of order"):
        resumed.learn(steps=agent.steps + 40, save_to=tmp_path / "agent")
    again = DeepQ.load(tmp_path / "agent", env=gymnasium.make("CartPole-v1"))
    again.learn(steps=agent.steps + 40)
    for one in (resumed.learn(steps=agent.steps + 40), again):
        assert_same(one, whole)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("taken", np.int32(0)), ("taken", np.int32([[5]])), ("taken", np.int64([[0]])),
        ("taken", np.zeros((0, 1), "i4")),
        ("taken", np.int32([0])), ("observation", np.zeros((1, 3), np.float32)),
    ],
)  # fmt: skip
def test_impossible_unfinished_episodes_are_refused(tmp_path, name, wrong):
    within_an_episode(tmp_path / "agent")
    about, arrays = checkpoint.read(tmp_path / "agent")
    checkpoint.write(tmp_path / "odd", about, {**arrays, name: wrong})
    with refused("its unfinished episode has impossible actions"):
        DeepQ.load(tmp_path / "odd")


def test_an_environment_that_has_changed_since_is_refused(tmp_path, monkeypatch):
    cart_pole().learn(episodes=1).save(tmp_path / "agent")
    wide = gymnasium.wrappers.TransformObservation(
        gymnasium.make("CartPole-v1"), lambda x: np.append(x, x[:2]), Box(-9, 9, (6,))
    )
    monkeypatch.setattr("tsallax.envs.gymnasium.adapter.make", lambda *_, **__: wide)
    for use in (lambda a: a.evaluate(1), lambda a: a.learn(steps=1)):
        with pytest.raises(InvalidInput, match=r"observation_shape \(6,\), but .* for \(4,\)"):
            use(DeepQ.load(tmp_path / "agent"))


def test_a_vector_environment_goes_on_with_new_episodes_and_says_so(tmp_path):
    agent = cart_poles().learn(steps=30)
    agent.save(tmp_path / "agent")
    resumed = DeepQ.load(tmp_path / "agent", env=cart_poles().spec.source)
    assert_same(resumed, agent)
    with pytest.warns(UserWarning, match="is lost"):
        resumed.learn(steps=60)
    assert resumed.steps == 60


def test_draws_go_on_where_they_were(saved, tmp_path):
    agent, seen = DeepQ.load(saved), [0.5, 0.5]
    agent.predict(seen, deterministic=False)
    agent.save(tmp_path / "agent")
    again = DeepQ.load(tmp_path / "agent")
    for _ in range(5):
        ours, theirs = (a.predict(seen, deterministic=False) for a in (agent, again))
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("env", [CORRIDOR, multigoal(noise=1.0)], ids=["own", "parameters"])
def test_an_environment_without_an_id_has_to_be_given_again(env, tmp_path):
    """With parameters, its name is that of one with others."""
    agent = DeepQ(env, actions=3, **TINY)
    agent.save(tmp_path / "agent")
    again = DeepQ.load(tmp_path / "agent")
    assert np.array_equal(again.q([0.0, 0.0]), agent.q([0.0, 0.0]))
    with refused("such as load(path, your_function): give env, such as env=module:function"):
        again.learn(steps=10)
    assert DeepQ.load(tmp_path / "agent", env=env).spec.jax is env


def test_loading_makes_no_environment_and_learning_only_one_of_the_same_kind(tmp_path, monkeypatch):
    cart_pole().save(tmp_path / "agent")
    for env in ("Acrobot-v1", "Pendulum-v1"):
        with refused():
            DeepQ.load(tmp_path / "agent", env=env).learn(steps=5)
    monkeypatch.setattr(gymnasium, "make", lambda *a, **k: pytest.fail("made an environment"))
    DeepQ.load(tmp_path / "agent").predict(np.zeros(4))


def test_a_process_killed_while_it_writes_leaves_the_last_good_file(saved, tmp_path):
    """In the middle of its arrays."""
    file = tmp_path / "agent"
    file.write_bytes(saved.read_bytes())
    script = f"""
import os, signal, numpy as np
from tsallax.deep import checkpoint
about, arrays = checkpoint.read({str(file)!r})
write, count = np.lib.format.write_array, [0]
def killing(*arguments, **options):
    count[0] += 1
    if count[0] == 12:
        os.kill(os.getpid(), signal.SIGKILL)
    write(*arguments, **options)
np.lib.format.write_array = killing
checkpoint.write({str(file)!r}, about, arrays)
"""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", script], env=variables, timeout=60)
    assert run.returncode == -signal.SIGKILL
    assert file.read_bytes() == saved.read_bytes()


def test_a_write_that_fails_leaves_the_last_good_file(trained, saved, tmp_path, monkeypatch):
    """Other errors, and damaged files, are tested with those of MDPs, which are written alike."""
    file = tmp_path / "agent"
    file.write_bytes(saved.read_bytes())

    def fail(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left")

    monkeypatch.setattr(os, "replace", fail)
    with refused("cannot be written: No space left"):
        trained.save(file)
    assert file.read_bytes() == saved.read_bytes()
    assert list(tmp_path.iterdir()) == [file], "nothing half-written is left"


def test_what_is_no_agent_is_refused_in_one_line(trained, tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    for file, message in (
        ("agent", "no such file"), (".", "is a folder, give the name of a file"),
        ("other.npz", "not a file written by agent.save"),
    ):  # fmt: skip
        with refused(message):
            DeepQ.load(tmp_path / file)
    with refused("cannot be written: No such file or directory"):
        trained.save(tmp_path / "no" / "agent")


@pytest.mark.parametrize("damaged", [0, 1])
@pytest.mark.parametrize("update", [-1, 8])
def test_moments_that_no_update_has_written_are_refused(damaged, update):
    """Of any agent of a fleet, in a row of an output layer that is written by rows."""
    agent = corridor(actions=DENSE_OUTPUTS + 1)
    like = jax.tree.map(lambda x: np.stack([x, x]), agent._learner)
    arrays = checkpoint.flatten_learner(like, 0, many=True)
    arrays["learner.adam.count"][:] = 7
    arrays["learner.adam.written"][:, 3:] = 7
    checkpoint.restore_learner(like, None, arrays, 0, many=True)
    arrays["learner.adam.written"][damaged, 5] = update
    with refused("damaged: learner.adam.written has updates that were not made"):
        checkpoint.restore_learner(like, None, arrays, 0, many=True)


MISSING = object()
DAMAGE = [
    ("arrays", "learner.adam.count", np.int32(-1), "learner.adam.count is negative"),
    ("arrays", "learner.key", MISSING, "learner.key missing"),
    ("arrays", "history.running", MISSING, "history.running missing"),
    ("arrays", "history.running", np.zeros(5), "history.lengths has shape"),
    ("arrays", "history.episode_return", np.zeros((2, 2)), "history.episode_return"),
    ("arrays", "history.episode_return", np.zeros(99), "history.episode_"),
    ("arrays", "learner.replay.sums", np.zeros(7, np.float32), "float32 and shape (7,)"),
    ("arrays", "learner.replay.sums", np.zeros(10, int), "learner.replay.sums has type int64"),
    ("arrays", "feed.observation", np.zeros((1, 9), np.float32), "feed.observation has type"),
    ("arrays", "learner.online.output.weight", np.full((3, 16), np.nan, "f4"), "is not finite"),
    ("about", "kind", "sarsa", "sarsa"),
    ("about", "kind", MISSING, "kind"),
    ("about", "seed", MISSING, "seed"),
    ("about", "replay", MISSING, "replay"),
    ("about", "steps", "many", "its description is wrong"),
    ("about", "steps", -5, "cannot have made -5 steps"),
    ("about", "steps", 2**40, "cannot have made"),
    ("about", "steps", 1, "a history of more than"),
    ("about", "config", MISSING, "config"),
    ("about", "config", [1], "its description is wrong"),
    ("config", "warp", 9, "unknown option 'warp'"),
    ("config", "alpha", -1, "alpha must be a number of at least"),
    ("about", "world", MISSING, "world"),
    ("about", "world", "Corridor-v0", "its description is wrong"),
    ("world", "observations", 7, "its description is wrong"),
    ("world", "observations", MISSING, "observation_size"),
    ("seen", "kind", "graph", "unknown kind of space 'graph'"),
    ("seen", "shape", 7, "its description is wrong"),
    ("seen", "shape", [0], "size of a space must be an integer of at least 1"),
    ("seen", "shape", [10**15], "learner."),
    ("world", "actions", None, "its description is wrong"),
    ("actions", "levels", None, "DeepQ needs a finite number of actions"),
    ("actions", "levels", [4], "learner."),
    ("actions", "levels", [3, 3], "2 numbers of levels for 1 action dimension"),
    ("actions", "levels", [10**9], "actions: 1000000000 are more than"),
    ("actions", "factored", 2, "factored must be True or False"),
    ("world", "n_envs", 10**12, "history.running has shape"),
    ("world", "limit", 0, "limit must be"),
    ("config", "buffer_size", 10**9, "learner.replay."),
    ("config", "buffer_size", 10**30, "buffer_size must be an integer"),
    ("config", "net_arch", [10**9, 10**9], "learner."),
    ("config", "net_arch", [16] * 1000, "at most 100 layers"),
    ("config", "n_step", 10**9, "n_step must be"),
    ("config", "train_freq", 10**12, "train_freq must be"),
    ("arrays", "history.tally", np.array([-40.0, 0, 0, 0]), "history.tally counts -40.0 cycles"),
    ("arrays", "history.tally", np.full(4, np.nan), "history.tally counts nan cycles"),
    ("arrays", "history.lengths", np.array([-1]), "episodes in progress"),
    ("arrays", "history.episode_step", np.zeros(2), "history.episode_step has type float64"),
    ("about", "predictions", 2**40, "cannot have made"),
    ("world", "n_envs", 2, "history.running has shape"),
    ("action space", "low", [], "low and high: 0 and 1 dimensions"),
]


@pytest.mark.parametrize(("part", "key", "value", "message"), DAMAGE)
def test_contents_that_make_no_sense_are_refused_in_one_line(
    part, key, value, message, contents, tmp_path
):
    about, arrays = contents
    world = about["world"]
    parts = {"about": about, "arrays": arrays, "config": about["config"], "world": world}
    parts |= {"seen": world["observations"]["space"], "actions": world["actions"]}
    parts["action space"] = world["actions"]["space"]
    parts[part][key] = value
    if value is MISSING:
        del parts[part][key]
    checkpoint.write(tmp_path / "agent", about, arrays)
    with refused(message, source=tmp_path / "agent"):
        DeepQ.load(tmp_path / "agent", CORRIDOR if key.startswith("feed.") else None)


ODD = [
    0, 1, -1, 3, 2**31, 2**40, 10**18, 10**300, 0.5, -0.0, 1e308, float("nan"), float("inf"), True,
    None, "", "x", "1:2:3", [], [0], [-1], [10**12], [10**12] * 9, ["x"], [[1]], {}, {"a": 1},
]  # fmt: skip
"""Values of a description's fields, most of which make no sense."""


def fields_of(about: dict[str, Any]) -> list[tuple[str, ...]]:
    """The places in a description, one or two keys deep."""
    inner = [(a, b) for a in ("config", "world") for b in about[a]]
    return [(key,) for key in about if key != "provenance"] + inner


def assert_refused_or_loaded(path: Path, about: Any, arrays: Any, odd: Any) -> int:
    """Load a file with each odd value in its place; return how many were refused, in one line."""
    messages = []
    for place, value in odd:
        changed = copy.deepcopy(about)
        part = changed if len(place) == 1 else changed[place[0]]
        part[place[-1]] = value
        rewritten(path, changed, arrays)
        try:
            load(path)
        except InvalidInput as refusal:
            messages.append(str(refusal))
    assert all(text.startswith(str(path)) and "\n" not in text for text in messages)
    return len(messages)


def odd_arrays(arrays: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The arrays with one of another shape, of another type, or with odd numbers."""
    name = str(rng.choice(sorted(arrays)))
    array = np.array(arrays[name])
    change = rng.integers(5)
    if change == 0:
        array = array.astype(rng.choice(["f4", "f8", "i4", "i8", "u1", "?", "U3", "c8"]))
    elif change == 1:
        array = np.stack([array] * int(rng.integers(1, 4)))
    elif change == 2:
        array = array.reshape(-1)[: rng.integers(0, array.size + 1)]
    elif array.size and array.dtype.kind in "if":
        odd = [0, -1, 2**31 - 1] if array.dtype.kind == "i" else [0, -1, 1e38, np.nan, -np.inf]
        array.reshape(-1)[rng.integers(array.size)] = rng.choice(odd)
    return {**arrays, name: array}


def test_odd_fields_are_refused_in_one_line(contents, tmp_path):
    about, arrays = contents
    rng = random.Random(1)
    odd = [(place, rng.choice(ODD)) for place in fields_of(about)]
    assert assert_refused_or_loaded(tmp_path / "agent", about, arrays, odd) > 0.6 * len(odd)


@pytest.mark.slow
@pytest.mark.parametrize("replay", [True, False])
@pytest.mark.parametrize("make", [corridor, cart_pole, pendulum_ddpg])
def test_a_third_of_all_odd_fields_is_refused_in_one_line(make, replay, tmp_path):
    agent = make().learn(steps=30)
    agent.save(tmp_path / "good", replay=replay)
    about, arrays = checkpoint.read(tmp_path / "good")
    odd = [(place, x) for i, place in enumerate(fields_of(about)) for x in ODD[i % 3 :: 3]]
    assert assert_refused_or_loaded(tmp_path / "agent", about, arrays, odd) > 0.6 * len(odd)


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 600), marks=pytest.mark.slow)])
def test_odd_arrays_are_refused_in_one_line(seeds, contents, tmp_path):
    """What is loaded all the same acts, and learns or says that its loss is not finite."""
    about, arrays = contents
    messages, file = [], tmp_path / "agent"
    for seed in seeds:
        changed = odd_arrays(arrays, np.random.default_rng(seed))
        rewritten(file, about, changed)
        try:
            agent = DeepQ.load(file, CORRIDOR)
        except InvalidInput as refusal:
            messages.append(str(refusal))
        else:
            agent.predict([0.0, 0.0])
            with contextlib.suppress(FloatingPointError):
                agent.learn(steps=agent.steps + 30)
    assert len(messages) > 0.3 * len(seeds)
    assert "\n" not in "".join(messages)


def test_a_memory_that_the_file_does_not_hold_is_not_allocated(trained, tmp_path):
    """An agent without its replay acts whatever size that had."""
    trained.save(tmp_path / "small", replay=False)
    about, arrays = checkpoint.read(tmp_path / "small")
    about["config"].update(buffer_size=2**31 - 1, batch_size=2**31 - 1)
    agent = DeepQ.load(rewritten(tmp_path / "agent", about, arrays))
    assert agent._learner.replay.capacity == 1
    assert np.array_equal(agent.q([0.0, 0.0]), trained.q([0.0, 0.0]))


def test_descriptions_that_are_not_json_are_refused(contents, tmp_path):
    _, arrays = contents
    from tsallax.files import npz

    for text in ("{", "[1]", "null", "1" * 5000, "[" * 100_000):
        npz.write(tmp_path / "agent", checkpoint.AGENT, {"json": text, **arrays})
        with refused("description is not JSON"):
            DeepQ.load(tmp_path / "agent")


class Touch:
    """Unpickled, it writes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return (Path.touch, (self.marker,))


def with_member(source: Path, target: Path, member: str, content: bytes) -> Path:
    """The file with one array replaced, or one more, all checksums right."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            if info.filename != member:
                new.writestr(info.filename, old.read(info))
        new.writestr(member, content)
    return target


@pytest.fixture
def bomb(tmp_path) -> Touch:
    """An object that leaves a mark if it is unpickled."""
    marker = tmp_path / "marker"
    pickle.loads(pickle.dumps(Touch(marker)))
    marker.unlink()
    return Touch(marker)


@pytest.mark.parametrize("member", ["learner.key", "json", "extra"])
def test_a_malicious_pickle_is_refused_and_never_run(member, bomb, saved, tmp_path):
    array = np.empty(1, object)
    array[0] = bomb
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    file = with_member(saved, tmp_path / "agent", f"{member}.npy", stream.getvalue())
    for read in (DeepQ.load, load):
        with refused():
            read(file)
    assert not bomb.marker.exists()


def test_a_file_that_is_a_pickle_is_refused_and_never_run(bomb, saved, tmp_path):
    for name in ("agent", "agent.npz", "agent.pkl"):
        (tmp_path / name).write_bytes(pickle.dumps(bomb))
        with refused("not a readable agent file"):
            load(tmp_path / name)
    file = with_member(saved, tmp_path / "zip", "raw", pickle.dumps(bomb))
    with contextlib.suppress(InvalidInput):
        DeepQ.load(file)
    assert not bomb.marker.exists()


def test_a_file_cannot_name_a_module_to_import(contents, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "harmful_module.py").write_text("raise SystemExit('imported')")
    about, arrays = contents
    about["world"].update(name="harmful_module:MultiGoal-v0", jax=False, by_name=True)
    checkpoint.write(tmp_path / "agent", about, arrays)
    agent = DeepQ.load(tmp_path / "agent")
    agent.predict([0.0, 0.0])
    for use in (lambda: agent.learn(steps=1), lambda: agent.evaluate(1)):
        with refused("give env, such as env=harmful_module:"):
            use()
    assert "harmful_module" not in sys.modules


def test_an_agent_without_its_replay_is_small_and_acts_the_same(trained, tmp_path):
    trained.save(tmp_path / "small", replay=False)
    names = checkpoint.read(tmp_path / "small")[1]
    assert not any("replay" in name or "adam" in name or "target" in name for name in names)
    small = DeepQ.load(tmp_path / "small", CORRIDOR)
    seen = np.random.default_rng(0).normal(size=(50, 2))
    assert np.array_equal(small.policy(seen), trained.policy(seen))
    assert np.array_equal(small.predict(seen), trained.predict(seen))
    assert np.array_equal(small.evaluate(5).returns, trained.evaluate(5).returns)
    assert not differ(small, trained)
    small.save(tmp_path / "again")
    for agent in (small, DeepQ.load(tmp_path / "again", CORRIDOR)):
        with refused("without its replay: it can act, but not learn"):
            agent.learn(steps=1)
