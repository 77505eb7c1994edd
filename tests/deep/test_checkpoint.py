"""A saved agent is the agent, the last good file survives, and no file makes code run."""

from __future__ import annotations

import contextlib
import errno
import io
import json
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
import numpy as np
import pytest
from gymnasium.spaces import Box

from small_agents import CORRIDOR, TINY, assert_same, cart_pole, differ, point_mass
from tsallax import DeepQ
from tsallax.deep import checkpoint
from tsallax.deep.load import load_agent as load
from tsallax.envs.jax.multigoal_env import multigoal
from tsallax.errors import InvalidInput

ONE_LINE = r"^[^\n]*$"


@pytest.fixture(scope="module")
def trained() -> DeepQ:
    """An agent in the middle of an episode, whose memory has wrapped."""
    return point_mass().learn(steps=130)


@pytest.fixture(scope="module")
def saved(trained, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("saved") / "agent.npz"
    trained.save(file)
    return file


@pytest.fixture
def contents(saved) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the file holds, to be altered."""
    return checkpoint.read(saved)


def rewritten(path: Path, about: dict[str, Any], arrays: dict[str, Any]) -> Path:
    checkpoint.write(path, about, arrays)
    return path


def test_a_loaded_agent_is_the_agent(trained, saved):
    again = DeepQ.load(saved)
    assert_same(again, trained)
    assert again.config == trained.config
    assert again.environment == trained.environment
    assert np.array_equal(again.actions, trained.actions)
    assert again.history.running.sum() != 0, "the case must be in the middle of an episode"
    assert repr(again) == repr(trained)
    assert_same(load(saved), trained)


def test_learning_goes_on_from_a_file_as_if_it_had_never_stopped(trained, saved):
    resumed = DeepQ.load(saved).learn(steps=70)
    whole = point_mass().learn(steps=200)
    assert_same(resumed, whole)
    assert trained.steps == 130


def test_a_file_can_be_written_and_read_again_at_every_step(tmp_path):
    agent, whole = point_mass(), point_mass().learn(steps=12)
    for _ in range(6):
        agent.learn(steps=2)
        agent.save(tmp_path / "agent")
        agent = DeepQ.load(tmp_path / "agent")
    assert_same(agent, whole)


def test_cart_pole_goes_on_from_an_episode_boundary_as_if_it_had_never_stopped(tmp_path):
    agent = cart_pole().learn(episodes=4)
    agent.save(tmp_path / "agent")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed = DeepQ.load(tmp_path / "agent").learn(episodes=4)
    assert_same(resumed, cart_pole().learn(episodes=8))
    assert np.isfinite(resumed.history["trace_support"]).all()


def test_several_environments_go_on_from_where_all_begin_an_episode(tmp_path):
    """Each has begun as many episodes as it has, not as many as all of them."""

    def pendulums() -> DeepQ:
        short = {"max_episode_steps": 20}
        return DeepQ("Pendulum-v1", actions=3, n_envs=2, env_options=short, **TINY)

    agent = pendulums().learn(steps=80)
    assert agent.history.episodes == 4
    agent.save(tmp_path / "agent")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed = DeepQ.load(tmp_path / "agent").learn(steps=40)
    assert_same(resumed, pendulums().learn(steps=120))
    about, arrays = checkpoint.read(tmp_path / "agent")
    for wrong in ([3], [0, 3]):
        changed = rewritten(tmp_path / "odd", about, {**arrays, "begun": np.array(wrong)})
        with pytest.raises(InvalidInput, match="damaged: it cannot have begun"):
            DeepQ.load(changed)


def test_what_was_loaded_and_saved_again_is_what_it_was(tmp_path):
    agent = DeepQ("CartPole-v1", n_envs=2, seed=3, **TINY).learn(episodes=7)
    agent.save(tmp_path / "once")
    DeepQ.load(tmp_path / "once").save(tmp_path / "twice")
    once, twice = (checkpoint.read(tmp_path / name)[1] for name in ("once", "twice"))
    assert once.keys() == twice.keys()
    assert all(np.array_equal(once[name], twice[name]) for name in once)


def test_a_next_action_that_cannot_be_is_refused(tmp_path):
    cart_pole().learn(episodes=2).save(tmp_path / "agent")
    about, arrays = checkpoint.read(tmp_path / "agent")
    for wrong in (np.int32([2]), np.int32([-1]), np.int32([0, 0]), np.float32([0])):
        changed = rewritten(tmp_path / "odd", about, {**arrays, "pending": wrong})
        with pytest.raises(InvalidInput, match="damaged: its next action cannot be"):
            DeepQ.load(changed)
    changed = rewritten(tmp_path / "odd", about, {**arrays, "begun": np.array([3.0])})
    with pytest.raises(InvalidInput, match="damaged: it cannot have begun"):
        DeepQ.load(changed)


def test_cart_pole_in_the_middle_of_an_episode_starts_a_new_one_and_says_so(tmp_path):
    agent = cart_pole().learn(episodes=2)
    agent.learn(steps=3)
    agent.save(tmp_path / "agent")
    resumed = DeepQ.load(tmp_path / "agent")
    with pytest.warns(UserWarning, match="the episode that was under way is lost"):
        resumed.learn(episodes=1)
    length = resumed.history["episode_length"][-1]
    assert resumed.steps == agent.steps + length


def test_steps_across_a_resume_are_not_added_up(tmp_path):
    """The transition before it is the last of its episode, and n-step returns stop there."""
    agent = DeepQ("CartPole-v1", n_step=3, **TINY).learn(episodes=1)
    agent.learn(steps=3).save(tmp_path / "agent")
    resumed = DeepQ.load(tmp_path / "agent")
    before = resumed._learner.replay.flags[: agent.steps].tolist()
    assert before[-1] == 0
    with pytest.warns(UserWarning, match="is lost"):
        resumed.learn(steps=2)
    after = resumed._learner.replay.flags[: agent.steps].tolist()
    assert after == [*before[:-1], 2]


def test_an_environment_that_has_changed_since_is_refused(tmp_path, monkeypatch):
    agent = cart_pole().learn(episodes=1)
    agent.save(tmp_path / "agent")
    wide = gymnasium.wrappers.TransformObservation(
        gymnasium.make("CartPole-v1"), lambda x: np.append(x, x[:2]), Box(-9, 9, (6,))
    )
    monkeypatch.setattr("tsallax.envs.gymnasium.adapter.make", lambda *_, **__: wide)
    for use in (lambda a: a.evaluate(1), lambda a: a.learn(steps=1)):
        with pytest.raises(InvalidInput, match=r"observation_shape \(6,\), but .* for \(4,\)"):
            use(DeepQ.load(tmp_path / "agent"))


def test_a_vector_environment_goes_on_with_new_episodes_and_says_so(tmp_path):
    def poles() -> Any:
        return gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync")

    agent = DeepQ(poles(), **TINY).learn(steps=30)
    agent.save(tmp_path / "agent")
    resumed = DeepQ.load(tmp_path / "agent", env=poles())
    assert_same(resumed, agent)
    with pytest.warns(UserWarning, match="is lost"):
        resumed.learn(steps=30)
    assert resumed.steps == 60


def test_draws_go_on_where_they_were(trained, tmp_path):
    agent = point_mass().learn(steps=2)
    seen = [0.5, 0.5]
    agent.predict(seen, deterministic=False)
    agent.save(tmp_path / "agent")
    again = DeepQ.load(tmp_path / "agent")
    for _ in range(5):
        ours, theirs = (a.predict(seen, deterministic=False) for a in (agent, again))
        assert np.array_equal(ours, theirs)


def test_an_environment_of_ones_own_goes_on_where_it_was(tmp_path):
    agent = DeepQ(CORRIDOR, actions=3, **TINY).learn(steps=20)
    agent.save(tmp_path / "agent")
    again = DeepQ.load(tmp_path / "agent", env=CORRIDOR)
    assert_same(again.learn(steps=10), agent.learn(steps=10))


def test_an_environment_of_ones_own_has_to_be_given_again(tmp_path):
    agent = DeepQ(CORRIDOR, actions=3, **TINY)
    agent.save(tmp_path / "agent")
    again = DeepQ.load(tmp_path / "agent")
    assert np.array_equal(again.q([0.0, 0.0]), agent.q([0.0, 0.0]))
    with pytest.raises(InvalidInput, match="give it as the argument env of load"):
        again.learn(steps=10)


def test_an_environment_with_parameters_does_not_come_back_without_them(tmp_path):
    """Its name is that of one with others."""
    loud = multigoal(noise=1.0)
    agent = DeepQ(loud, actions=3, **TINY).learn(steps=5)
    agent.save(tmp_path / "agent")
    again = DeepQ.load(tmp_path / "agent", env=loud)
    assert_same(again.learn(steps=5), agent.learn(steps=5))
    with pytest.raises(InvalidInput, match="env"):
        DeepQ.load(tmp_path / "agent").learn(steps=5)


def test_loading_makes_no_environment(tmp_path, monkeypatch):
    cart_pole().save(tmp_path / "agent")
    monkeypatch.setattr(gymnasium, "make", lambda *a, **k: pytest.fail("made an environment"))
    DeepQ.load(tmp_path / "agent").predict(np.zeros(4))


@pytest.mark.parametrize("env", ["Acrobot-v1", "Pendulum-v1"])
def test_another_environment_must_have_the_same_observations_and_actions(env, tmp_path):
    cart_pole().save(tmp_path / "agent")
    with pytest.raises(InvalidInput, match=ONE_LINE):
        DeepQ.load(tmp_path / "agent", env=env).learn(steps=5)


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
    if count[0] == int(os.environ["FATAL"]):
        os.kill(os.getpid(), signal.SIGKILL)
    write(*arguments, **options)
np.lib.format.write_array = killing
checkpoint.write({str(file)!r}, about, arrays)
"""
    for fatal in (12,):
        variables = {**os.environ, "FATAL": str(fatal), "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run([sys.executable, "-c", script], env=variables, timeout=60)
        assert run.returncode == -signal.SIGKILL
        assert file.read_bytes() == saved.read_bytes()
    checkpoint.read(file)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_last_good_file(call, trained, saved, tmp_path, monkeypatch):
    file = tmp_path / "agent"
    file.write_bytes(saved.read_bytes())

    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(InvalidInput, match="cannot be written: No space left on device"):
        trained.save(file)
    assert file.read_bytes() == saved.read_bytes()
    assert list(tmp_path.iterdir()) == [file], "nothing half-written is left"


def test_an_interrupted_write_leaves_the_last_good_file(trained, saved, tmp_path, monkeypatch):
    file = tmp_path / "agent"
    file.write_bytes(saved.read_bytes())
    write, count = np.lib.format.write_array, [0]

    def interrupting(*arguments: Any, **options: Any) -> None:
        count[0] += 1
        if count[0] == 7:
            raise KeyboardInterrupt
        write(*arguments, **options)

    monkeypatch.setattr(np.lib.format, "write_array", interrupting)
    with pytest.raises(KeyboardInterrupt):
        trained.save(file)
    assert file.read_bytes() == saved.read_bytes()
    assert list(tmp_path.iterdir()) == [file]


def test_the_file_depends_on_the_agent_alone(trained, tmp_path):
    for name in ("a", "b"):
        trained.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_truncated_file_is_refused_in_one_line(saved, tmp_path):
    whole = saved.read_bytes()
    file = tmp_path / "agent"
    for length in (
        0,
        1,
        10,
        100,
        len(whole) // 3,
        len(whole) // 2,
        len(whole) - 30,
        len(whole) - 1,
    ):
        file.write_bytes(whole[:length])
        with pytest.raises(InvalidInput, match=ONE_LINE) as refusal:
            DeepQ.load(file)
        assert str(refusal.value).startswith(str(file))


def test_altered_bytes_are_refused_or_change_nothing(saved, contents, tmp_path):
    """Between the arrays a file has dates and attributes that mean nothing."""
    whole = saved.read_bytes()
    about, arrays = contents
    file = tmp_path / "agent"
    rng = random.Random(0)
    lines = []
    for _ in range(60):
        altered = bytearray(whole)
        altered[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        file.write_bytes(altered)
        try:
            found, again = checkpoint.read(file)
        except InvalidInput as refusal:
            lines.append(str(refusal))
            continue
        assert found == about
        assert set(again) == set(arrays)
        assert all(np.array_equal(again[name], arrays[name]) for name in arrays)
    assert len(lines) > 40
    assert "\n" not in "".join(lines)


def test_altered_numbers_are_always_refused(saved, tmp_path):
    whole = saved.read_bytes()
    with zipfile.ZipFile(saved) as archive:
        infos = archive.infolist()
        contents = {info.filename: archive.read(info) for info in infos}
    file = tmp_path / "agent"
    for info in infos:
        data = contents[info.filename]
        place = whole.index(data, info.header_offset) + len(data) - 1
        altered = bytearray(whole)
        altered[place] ^= 1
        file.write_bytes(altered)
        with pytest.raises(InvalidInput, match=ONE_LINE):
            checkpoint.read(file)


def test_what_is_no_agent_is_refused_in_one_line(saved, tmp_path):
    file = tmp_path / "agent"
    with pytest.raises(InvalidInput, match="no such file"):
        DeepQ.load(file)
    with pytest.raises(InvalidInput, match="no such file"):
        DeepQ.load(tmp_path)
    file.write_bytes(b"\x80\x04 not a zip")
    with pytest.raises(InvalidInput, match="not a readable agent file"):
        DeepQ.load(file)
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(InvalidInput, match=r"not a file written by agent\.save"):
        DeepQ.load(tmp_path / "other.npz")


def test_a_folder_that_is_not_there_is_refused(trained, tmp_path):
    with pytest.raises(InvalidInput, match="cannot be written: No such file or directory"):
        trained.save(tmp_path / "no" / "agent")


DAMAGE = {
    "an array is missing": (lambda a, x: x.pop("learner.key"), "learner.key missing"),
    "the history is missing": (lambda a, x: x.pop("history.running"), "history.running missing"),
    "an array has another shape": (
        lambda a, x: x.update({"learner.replay.sums": np.zeros(7, np.float32)}),
        "learner.replay.sums has type float32 and shape (7,)",
    ),
    "an array has another type": (
        lambda a, x: x.update({"learner.replay.sums": np.zeros(10, int)}),
        "learner.replay.sums has type int64",
    ),
    "the state of the environment is damaged": (
        lambda a, x: x.update({"feed.observation": np.zeros((1, 9), np.float32)}),
        "feed.observation has type",
    ),
    "a column of the history has another shape": (
        lambda a, x: x.update({"history.episode_return": np.zeros((2, 2))}),
        "history.episode_return",
    ),
    "columns of the history differ in length": (
        lambda a, x: x.update({"history.episode_return": np.zeros(99)}),
        "history.episode_",
    ),
    "the running returns are of other environments": (
        lambda a, x: x.update(
            {"history.running": np.zeros(5), "history.lengths": np.zeros(5, int)}
        ),
        "history.running",
    ),
    "another algorithm": (lambda a, x: a.update(kind="sarsa"), "sarsa"),
    "no kind": (lambda a, x: a.pop("kind"), "kind"),
    "no configuration": (lambda a, x: a.pop("config"), "config"),
    "a configuration that is a list": (lambda a, x: a.update(config=[1]), "agent"),
    "an option of the future": (lambda a, x: a["config"].update(warp=9), "unknown option 'warp'"),
    "an option out of range": (
        lambda a, x: a["config"].update(alpha=-1),
        "alpha must be a number of at least",
    ),
    "no seed": (lambda a, x: a.pop("seed"), "seed"),
    "steps that are no number": (lambda a, x: a.update(steps="many"), "agent"),
    "fewer than no steps": (lambda a, x: a.update(steps=-5), "cannot have made -5 steps"),
    "more steps than there are": (lambda a, x: a.update(steps=2**40), "cannot have made"),
    "fewer steps than its history": (lambda a, x: a.update(steps=1), "a history of more than"),
    "a shape that is none": (
        lambda a, x: a["world"].update(observation_shape=7),
        "its description is wrong",
    ),
    "a weight that is no number": (
        lambda a, x: x["learner.online.output.weight"].fill(np.nan),
        "learner.online.output.weight has a number that is not finite",
    ),
    "no word on the replay": (lambda a, x: a.pop("replay"), "replay"),
    "no world": (lambda a, x: a.pop("world"), "world"),
    "a world without a size": (lambda a, x: a["world"].pop("observation_size"), "observation_size"),
    "a world that is a word": (lambda a, x: a.update(world="MultiGoal-v0"), "agent"),
    "a world of no actions": (lambda a, x: a["world"].update(n_actions=None), "agent"),
    "a world of other actions": (lambda a, x: a["world"].update(n_actions=4), "agent"),
    "levels without bounds": (lambda a, x: a["world"].update(low=None), "agent"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_contents_that_make_no_sense_are_refused_in_one_line(case, contents, tmp_path):
    about, arrays = contents
    damage, message = DAMAGE[case]
    damage(about, arrays)
    file = rewritten(tmp_path / "agent", about, arrays)
    with pytest.raises(InvalidInput, match=ONE_LINE) as refusal:
        DeepQ.load(file)
    assert message in str(refusal.value)
    assert str(refusal.value).startswith(str(file)), "it says which file"


def test_an_agent_of_a_kind_that_is_none_is_refused(contents, tmp_path):
    about, arrays = contents
    file = rewritten(tmp_path / "agent", {**about, "kind": []}, arrays)
    for read in (DeepQ.load, load):
        with pytest.raises(InvalidInput, match=r"holds a \[\] agent"):
            read(file)


def test_descriptions_that_are_not_json_are_refused(contents, tmp_path):
    _, arrays = contents
    from tsallax.files import npz

    for text in ("{", "[1]", "null", "1" * 5000, "[" * 100_000):
        npz.write(tmp_path / "agent", checkpoint.AGENT, {"json": text, **arrays})
        with pytest.raises(InvalidInput, match="description is not JSON"):
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


def test_the_marker_of_the_malicious_pickle_works(tmp_path):
    marker = tmp_path / "marker"
    pickle.loads(pickle.dumps(Touch(marker)))
    assert marker.exists()


@pytest.mark.parametrize(
    "member",
    [
        "learner.key.npy",
        "json.npy",
        "format.npy",
        "version.npy",
        "extra.npy",
        "history.running.npy",
    ],
)
def test_a_malicious_pickle_is_refused_and_never_run(member, saved, tmp_path):
    marker = tmp_path / "marker"
    array = np.empty(1, object)
    array[0] = Touch(marker)
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    file = with_member(saved, tmp_path / "agent", member, stream.getvalue())
    for read in (DeepQ.load, load):
        with pytest.raises(InvalidInput, match=ONE_LINE):
            read(file)
    assert not marker.exists()


@pytest.mark.parametrize("name", ["agent", "agent.npz", "agent.pkl"])
def test_a_file_that_is_a_pickle_is_refused_and_never_run(name, saved, tmp_path):
    marker = tmp_path / "marker"
    (tmp_path / name).write_bytes(pickle.dumps(Touch(marker)))
    with pytest.raises(InvalidInput, match="not a readable agent file"):
        load(tmp_path / name)
    file = with_member(saved, tmp_path / "zip", "raw", pickle.dumps(Touch(marker)))
    with contextlib.suppress(InvalidInput):
        DeepQ.load(file)
    assert not marker.exists()


def test_a_file_cannot_name_a_module_to_import(contents, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "harmful_module.py").write_text("raise SystemExit('imported')")
    about, arrays = contents
    about["world"].update(name="harmful_module:MultiGoal-v0", jax=False)
    file = rewritten(tmp_path / "agent", about, arrays)
    agent = DeepQ.load(file)
    agent.predict([0.0, 0.0])
    for use in (lambda: agent.learn(steps=1), lambda: agent.evaluate(1)):
        with pytest.raises(InvalidInput, match="give it as the argument env of load"):
            use()
    assert "harmful_module" not in sys.modules


def test_an_agent_without_its_replay_is_small_and_acts_the_same(tmp_path):
    large = point_mass(buffer_size=100_000)
    large.save(tmp_path / "whole")
    large.save(tmp_path / "small", replay=False)
    assert (tmp_path / "small").stat().st_size < 20_000
    assert (tmp_path / "whole").stat().st_size > 2_000_000
    agent = point_mass().learn(steps=30)
    agent.save(tmp_path / "small", replay=False)
    small = DeepQ.load(tmp_path / "small")
    seen = np.random.default_rng(0).normal(size=(50, 2))
    assert np.array_equal(small.q(seen), agent.q(seen))
    assert np.array_equal(small.policy(seen), agent.policy(seen))
    assert np.array_equal(small.predict(seen), agent.predict(seen))
    assert np.array_equal(small.evaluate(5).returns, agent.evaluate(5).returns)
    assert not differ(small, agent)
    with pytest.raises(InvalidInput, match="saved without its replay: it can act, but not learn"):
        small.learn(steps=1)


def test_an_agent_without_its_replay_does_not_get_it_back_by_being_saved(trained, tmp_path):
    trained.save(tmp_path / "small", replay=False)
    DeepQ.load(tmp_path / "small").save(tmp_path / "again")
    again = DeepQ.load(tmp_path / "again")
    with pytest.raises(InvalidInput, match="saved without its replay"):
        again.learn(steps=1)


def test_a_file_tells_what_made_it(contents):
    about, _ = contents
    assert set(about["provenance"]) == {"tsallax", "jax", "python", "device", "machine"}
    json.dumps(about)
