"""However `learn` is called, an agent's future depends on its state alone."""

from __future__ import annotations

import inspect
import signal
from contextlib import contextmanager
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

from refusals import refused
from small_agents import (
    CORRIDOR,
    SMALL_DDPG,
    TINY,
    Episodic,
    assert_same,
    cart_pole,
    cart_poles,
    columns,
    corridor,
    differ,
    flags,
    trained,
)
from tsallax import DDPG, DeepQ, Episodes
from tsallax.deep.learners import load_agent

MAKERS = {"jax": corridor, "gymnasium": cart_pole, "vector": cart_poles}
everywhere = pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=[pytest.mark.slow] * (name == "vector"))
        for name, make in MAKERS.items()
    ],
)
one_loop = pytest.mark.parametrize(
    "make",
    [corridor, pytest.param(cart_pole, marks=pytest.mark.slow)],
    ids=["jax", "gymnasium"],
)
"""The other one is slow: what is tested is the same in both, and compiled for each."""
both_loops = pytest.mark.parametrize("make", [corridor, cart_pole], ids=["jax", "gymnasium"])


@everywhere
def test_learning_in_several_calls_is_learning_in_one(make):
    agent = make()
    for steps in (6, 18, 66, 72, 120):
        agent.learn(steps=steps)
    assert_same(agent, trained(make))
    assert len(agent.history["trace_loss"]) == 120 // 25
    assert agent.history["trace_loss"].min() > 0


def test_the_bar_says_compiling_until_the_first_segments_are_over(monkeypatch):
    texts: list[str] = []

    @contextmanager
    def bar(label, show):
        yield lambda share, text="": texts.append(text.split()[-1])

    monkeypatch.setattr("tsallax.deep.agent.bar", bar)
    agent = corridor(learning_starts=12)
    agent.learn(steps=24)
    assert texts[0] == "compiling"
    assert texts.count("compiling") == 2, "for the steps before learning and those of learning"
    del texts[:]
    agent.learn(steps=36)
    assert texts
    assert "compiling" not in texts


@both_loops
def test_the_speed_of_the_machine_changes_nothing(make, monkeypatch):
    """Segments last about half a second; here they have a cycle each."""
    monkeypatch.setattr("tsallax.deep.agent.SEGMENT_SECONDS", 1e-9)
    assert_same(make().learn(steps=120), trained(make))


@both_loops
def test_the_seed_fixes_everything(make):
    other = make(seed=1).learn(steps=120)
    assert_same(make().learn(steps=120), trained(make))
    assert differ(other, trained(make))
    for ours, theirs in zip(columns(other)[:3], columns(trained(make))):
        assert not np.array_equal(ours, theirs)


@one_loop
def test_evaluation_leaves_no_trace_in_the_training(make):
    agent = make()
    evaluations = 0
    while agent.steps < 120:
        agent.learn(steps=agent.steps + 40, eval_every=20, eval_episodes=5)
        agent.evaluate(5, deterministic=False)
        evaluations += 2
    for name in list(agent.history.columns):
        if name.startswith("evaluation_"):
            assert len(agent.history[name]) == evaluations
            agent.history.columns[name] = []
    assert_same(agent, trained(make))


def test_evaluations_are_noted_with_what_they_found():
    agent = corridor().learn(episodes=10, eval_every=4, eval_episodes=5)
    assert list(agent.history["evaluation_episode"]) == [4, 8]
    agent.learn(steps=agent.steps + 23, eval_every=10, eval_episodes=5)
    steps = agent.history["evaluation_step"][2:]
    assert len(steps) in (2, 3)
    assert all(step % 10 == 0 for step in steps)
    agent = corridor()
    result = agent.learn(steps=50, eval_every=50, eval_episodes=5).evaluate(5)
    assert agent.history["evaluation_return"] == pytest.approx([result.mean])
    assert agent.history["evaluation_std"] == pytest.approx([result.returns.std()])
    assert agent.history["evaluation_length"] == pytest.approx([result.lengths.mean()])


def test_evaluations_with_a_seed_are_repeatable_and_others_have_their_own_episodes():
    agent = trained(corridor)
    first = agent.evaluate(5, deterministic=False, seed=3)
    assert np.array_equal(first.returns, agent.evaluate(5, deterministic=False, seed=3).returns)
    other = agent.evaluate(5, deterministic=False, seed=4)
    assert not np.array_equal(first.returns, other.returns)


@both_loops
def test_ctrl_c_leaves_an_agent_that_goes_on_as_if_nothing_had_happened(make, saved, tmp_path):
    handler = signal.getsignal(signal.SIGINT)
    agent = make()
    pressed = []

    def press(agent: DeepQ) -> None:
        if agent.steps >= 40 and not pressed:
            pressed.append(agent.steps)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        agent.learn(
            steps=120,
            callback=press,
            callback_every=20,
            save_to=tmp_path / "agent",
            save_every=20,
        )
    assert signal.getsignal(signal.SIGINT) is handler
    assert pressed == [agent.steps] == [40]
    assert [steps for steps, _ in saved] == [20, 40, 40], "in between and at the end"
    assert_same(load_agent(tmp_path / "agent", CORRIDOR if make is corridor else None), agent)
    agent.learn(steps=120)
    assert_same(agent, trained(make))


class Walled(Episodic):
    """Episodes end after five steps; while `locked`, those without a learner never do."""

    locked = False
    steps = 0

    def step(self, action):
        observation, reward, *_ = super().step(action)
        if self.locked:
            Walled.steps += 1
            if Walled.steps in (30, 60):
                signal.raise_signal(signal.SIGINT)
        return observation, reward, False, self.t >= 5 and not self.locked, {}


@pytest.mark.parametrize("presses", [1, 2])
def test_an_evaluation_that_is_interrupted_is_made_when_the_training_goes_on(
    presses, tmp_path, monkeypatch
):
    goals: dict[str, Any] = {"steps": 60, "eval_every": 20, "eval_episodes": 2}
    seen: list[int] = []
    watch: dict[str, Any] = {"callback": lambda a: seen.append(a.steps), "callback_every": 10}
    whole = DeepQ(Walled, **TINY).learn(**goals, **watch)
    other = Walled()
    other.locked, Walled.steps = True, 0
    if presses == 2:  # the first one is not looked at
        monkeypatch.setattr("tsallax.deep.agent.deferred", not_deferred)
    file = tmp_path / "agent"
    agent = DeepQ(Walled, **TINY).learn(**{**goals, "steps": 30}, save_to=file)
    with pytest.raises(KeyboardInterrupt):
        agent.learn(**goals, save_to=file, eval_env=other)
    assert agent.steps == agent.saved_at == 40
    assert agent.evaluation_missing
    resumed = DeepQ.load(file, Walled)
    assert resumed.evaluation_missing
    for one in (agent, resumed):
        seen.clear()
        assert_same(one.learn(**goals, **watch), whole)
        assert not one.evaluation_missing
        assert seen == [40, 50, 60], "the callback of the interrupted segment included"


def test_a_missing_evaluation_is_made_also_after_the_last_step(tmp_path, recwarn):
    goals: dict[str, Any] = {"steps": 20, "eval_every": 20, "eval_episodes": 2}
    other = Walled()
    other.locked, Walled.steps = True, 0
    agent = DeepQ(Walled, **TINY)
    with pytest.raises(KeyboardInterrupt):
        agent.learn(**goals, eval_env=other)
    assert len(agent.history["evaluation_return"]) == 0
    agent.learn(**goals)
    assert agent.steps == 20
    assert len(agent.history["evaluation_return"]) == 1
    assert not recwarn.list


@contextmanager
def not_deferred():
    """Ctrl-C is raised at once, as a second one is."""
    yield lambda: False


def test_a_callback_that_returns_false_ends_the_training():
    agent = corridor().learn(steps=10_000_000, callback=lambda agent: agent.history.episodes < 30)
    assert agent.history.episodes >= 30
    assert agent.steps == 1000
    stopped = cart_pole().learn(
        steps=10_000, callback=lambda agent: np.bool_(False), callback_every=70
    )
    assert stopped.steps == 70


@everywhere
def test_callbacks_come_every_so_many_steps_whatever_the_clock(make, monkeypatch):
    called: list[list[int]] = []
    for seconds in (0.5, 1e-9):
        monkeypatch.setattr("tsallax.deep.agent.SEGMENT_SECONDS", seconds)
        called.append([])
        make().learn(
            steps=120, callback=lambda agent: called[-1].append(agent.steps), callback_every=50
        )
    cycle = 6 if make is cart_poles else 1
    assert called[0] == called[1] == [-(-50 // cycle) * cycle, -(-100 // cycle) * cycle]


@both_loops
def test_episodes_are_counted_exactly(make):
    agent = make().learn(episodes=3)
    assert agent.history.episodes == 3
    assert agent.steps == agent.history["episode_length"].sum() == agent.history["episode_step"][-1]
    agent.learn(episodes=5)
    assert agent.history.episodes == 5
    assert agent.history.lengths.sum() == 0
    before = agent.steps
    agent.learn(episodes=10_000, steps=before + 7)
    assert agent.steps == before + 7, "whichever comes first"


def test_an_environment_that_fails_leaves_a_usable_agent(tmp_path):
    class Failing(Episodic):
        def step(self, action):
            if len(self.taken) == 38:
                self.taken.append(None)
                raise RuntimeError("out of order")
            return super().step(action)

    agent = DeepQ(Failing(), **TINY)
    with pytest.raises(RuntimeError, match="out of order") as failure:
        agent.learn(steps=100, save_to=tmp_path / "saved")
    assert failure.value.__notes__ == [f"the agent of 38 steps was saved to {tmp_path / 'saved'}"]
    assert DeepQ.load(tmp_path / "saved").steps == agent.steps == 38
    with pytest.warns(UserWarning, match="is lost"):
        agent.learn(steps=41)


def test_steps_of_a_cycle_that_fails_have_no_part_in_the_next_episode():
    """It fails in the 17th step, the second of a cycle and of an episode: 15 are recorded."""

    class Failing(Episodic):
        def step(self, action):
            if len(self.taken) == 16:
                raise RuntimeError("out of order")
            return super().step(action)

    agent = DeepQ(Failing(), train_freq=3, normalize_rewards=True, **TINY)
    with pytest.raises(RuntimeError, match="out of order"):
        agent.learn(steps=30)
    assert (agent.steps, agent.history.lengths.tolist()) == (15, [0])
    assert np.asarray(agent._learner.rewards.sums) == [0.0]


def test_evaluating_in_the_environment_of_training_starts_a_new_episode_there():
    env = Episodic()
    agent = DeepQ(env, **TINY).learn(steps=8)
    agent.evaluate(2, env=env)
    with pytest.warns(UserWarning, match="is lost"):
        agent.learn(steps=18)
    assert agent.history["episode_length"].tolist() == [5, 5, 5], "3 steps of one were lost"
    assert [i for i, flag in enumerate(flags(agent)) if flag] == [4, 7, 12, 17]
    for same in (env, gymnasium.wrappers.TimeLimit(env, 3)):
        with refused("Episodic is the environment of training"):
            agent.learn(steps=20, eval_every=10, eval_env=same)


def test_an_evaluation_that_is_refused_leaves_the_episode_alone():
    agent, other = corridor().learn(steps=8), corridor().learn(steps=8)
    with refused("neither an id nor a Gymnasium environment"):
        agent.evaluate(1, env=CORRIDOR)
    assert_same(agent.learn(steps=16), other.learn(steps=16))


def test_environments_made_to_evaluate_in_are_closed(monkeypatch):
    from gymnasium.envs.classic_control.cartpole import CartPoleEnv

    made: list[Any] = []
    closed: list[Any] = []
    begin = CartPoleEnv.__init__

    def init(self, *arguments, **options):
        made.append(self)
        begin(self, *arguments, **options)

    monkeypatch.setattr(CartPoleEnv, "__init__", init)
    monkeypatch.setattr(CartPoleEnv, "close", lambda self: closed.append(self))
    given, other = gymnasium.make("CartPole-v1"), gymnasium.make("CartPole-v1")
    agent = DeepQ(given, **TINY)
    agent.learn(steps=20, eval_every=10, eval_episodes=1)
    agent.evaluate(1, env="CartPole-v1")
    agent.evaluate(1, env=other)
    assert len(made) > 3
    assert closed == made[2:], "all but the two that were given"


def test_numbers_of_numpy_are_numbers():
    agent = DeepQ("CartPole-v1", seed=np.int64(3), **TINY).learn(steps=np.int32(5))
    assert (agent.seed, agent.steps) == (3, 5)
    assert len(agent.evaluate(np.int64(2), seed=np.uint32(1)).returns) == 2


@pytest.fixture
def saved(monkeypatch) -> list[tuple[int, int]]:
    """The steps at which agents are saved, with the length of the episode so far."""
    found: list[tuple[int, int]] = []
    save = DeepQ.save

    def noting(self: DeepQ, path: Any, replay: bool = True) -> None:
        found.append((self.steps, int(self.history.lengths.sum())))
        save(self, path, replay)

    monkeypatch.setattr(DeepQ, "save", noting)
    return found


@both_loops
def test_files_are_written_as_often_as_asked(make, saved, tmp_path):
    make().learn(steps=90, save_to=tmp_path / "agent", save_every=40)
    assert [steps for steps, _ in saved] == [40, 80, 90]


def test_a_training_goes_on_from_a_file_within_an_episode_as_if_it_had_not_stopped(tmp_path):
    """The file is the one that a killed process leaves."""
    file, options = tmp_path / "agent", {"save_every": 30, "save_to": tmp_path / "agent"}

    def killed(agent: DeepQ) -> None:
        if agent.steps == 70:
            file.rename(tmp_path / "left")

    agent = cart_pole()
    agent.learn(steps=120, callback=killed, callback_every=70, **options)
    left = DeepQ.load(tmp_path / "left")
    assert left.steps == 60
    assert left.history.lengths.any()
    assert_same(left.learn(steps=120), agent)
    assert_same(agent, trained(cart_pole))


class Endless(gymnasium.Wrapper):
    """Episodes of eleven steps, or without an end."""

    def __init__(self, length: float = np.inf) -> None:
        super().__init__(gymnasium.wrappers.NormalizeReward(Episodic()))
        self.length = length

    def step(self, action):
        return *super().step(action)[:3], self.unwrapped.t >= self.length, {}


def test_files_wait_for_the_end_of_an_episode_that_cannot_be_repeated(saved, tmp_path):
    """Its wrapper keeps statistics; without an end it is saved after ten times as long."""
    options = {"steps": 200, "save_to": tmp_path / "agent", "save_every": 10}
    DeepQ(Endless(11), **TINY).learn(**options)
    assert {length for _, length in saved[:-1]} == {0}
    assert len(saved) > 10
    saved.clear()
    DeepQ(Endless(), **TINY).learn(**options)
    assert [steps for steps, _ in saved] == [100, 200, 200]


@pytest.fixture(scope="module")
def untrained() -> DeepQ:
    return corridor()


BAD_LEARNING = [
    ({}, "no number of episodes or steps: give episodes, such as episodes=1000"),
    ({"steps": 2**30 + 6}, "steps must be less than 2^30 in all, got 1073741830"),
    ({"episodes": 0}, "episodes must be an integer of at least 1"),
    ({"steps": 2.5}, "steps must be an integer"),
    ({"steps": 10, "eval_every": 0}, "eval_every must be an integer"),
    ({"steps": 10, "eval_every": 5, "eval_episodes": 0}, "eval_episodes must be an integer"),
    ({"steps": 10, "save_to": "x", "save_every": 0}, "save_every must be an integer"),
    ({"steps": 10, "save_every": 5}, "save_to"),
    ({"steps": 10, "save_to": "no/such/folder/agent"}, "no/such/folder"),
    ({"steps": 10, "save_to": "."}, "save_to '.': is a folder, give the name of a file"),
    ({"steps": 10, "callback": 7}, "callback"),
    ({"steps": 10, "callback_every": 0}, "callback_every must be an integer"),
    ({"steps": 10, "stop_at_return": "high"}, "stop_at_return must be a number"),
    ({"steps": 10, "best_to": "best.npz"}, "best_to needs evaluations: give eval_every"),
    ({"steps": 10, "eval_every": 5, "best_to": "no/best.npz"}, "there is no folder no"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_LEARNING, ids=str)
def test_bad_ways_to_learn_are_refused_before_any_step(
    arguments, message, untrained, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    before = untrained.steps
    with refused(message):
        untrained.learn(**arguments)
    assert untrained.steps == before


def test_calls_of_stable_baselines3_are_answered_with_those_of_this_library(untrained):
    with refused("learn takes its arguments by name, not 100: learn(steps=100_000)"):
        untrained.learn(100)
    with refused("learn has no argument 'total_timesteps': use steps"):
        untrained.learn(total_timesteps=100)
    with refused("learn has no argument 'epsiodes': did you mean episodes?"):
        untrained.learn(epsiodes=100)
    with refused("DeepQ takes an environment and arguments by name, not also", "DeepQ(env, "):
        DeepQ("MlpPolicy", "CartPole-v1")
    assert "episodes: int | None = None" in str(inspect.signature(DeepQ.learn))


def test_bad_evaluations_are_refused(untrained):
    with refused("episodes must be an integer"):
        untrained.evaluate(0)
    with refused("seed"):
        untrained.evaluate(1, seed=-1)


def test_a_loss_that_is_not_finite_stops_the_training_in_one_line():
    agent = corridor()
    bad = jax.tree.map(lambda x: x * np.nan, agent._learner.online)
    agent._learner = agent._learner._replace(online=bad)
    with pytest.raises(FloatingPointError, match="the loss is not finite after 25 steps"):
        agent.learn(steps=60)


def test_steps_and_episodes_count_in_all_and_a_goal_that_is_reached_is_said_so():
    agent = corridor().learn(steps=30)
    for goal in ({"steps": 30}, {"episodes": agent.history.episodes, "steps": 40}):
        message = "counted in all, and this agent has 30 steps"
        with pytest.warns(UserWarning, match=message) as found:
            agent.learn(**goal)
        assert found[0].filename == __file__
    assert agent.steps == 30


def test_the_options_of_an_agent_are_changed_and_not_assigned():
    agent = corridor()
    with pytest.raises(AttributeError, match=r"agent\.change\(learning_rate=\.\.\.\)"):
        agent.config = agent.config
    with pytest.raises(AttributeError, match=r"learning_rate .*agent\.change\(learning_rate="):
        agent.learning_rate = 0.1
    with pytest.raises(AttributeError, match=r"DeepQ\.load\(path, env="):
        agent.env = "CartPole-v1"
    agent.learn(steps=30).change(learning_rate=0.005, explore="soft")
    assert agent.config.learning_rate == (0.005, 0.005, 0)
    assert agent.changes == [(30, "explore", "sparse", "soft"), (30, "learning_rate", 0.01, 0.005)]
    assert agent.change(explore="soft").changes == agent.changes[:2]
    assert (agent.policy([0.0, 0.0]) > 0).all()


@one_loop
def test_a_change_of_options_holds_from_its_step_on(make, tmp_path):
    """As in an agent with the new options from the start, and what the old one had learned."""
    agent = make().learn(episodes=4)
    agent.save(tmp_path / "agent")
    env = CORRIDOR if make is corridor else None
    again = DeepQ.load(tmp_path / "agent", env, learning_rate=0.001, gamma=0.5, double=True)
    assert again.config == make(learning_rate=0.001, gamma=0.5, double=True).config
    assert_same(agent.change(learning_rate=0.001, gamma=0.5, double=True), again)
    agent.learn(episodes=8)
    again.learn(episodes=8).save(tmp_path / "again")
    assert_same(agent, again)
    assert differ(agent, make().learn(episodes=8))
    loaded = DeepQ.load(tmp_path / "again", env)
    assert loaded.changes == agent.changes
    assert [change.option for change in agent.changes] == ["gamma", "learning_rate", "double"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"net_arch": (8,)}, "net_arch cannot change in an agent that is made"),
        ({"buffer_size": 64, "gamma": 0.5}, "Corridor-v0: buffer_size cannot change"),
        ({"shared_value": True, "net_arch": 9}, "net_arch, shared_value cannot change"),
        ({"n_envs": 2}, "n_envs cannot change"),
        ({"initial_value": 1.0}, "initial_value cannot change"),
        ({"layer_norm": True}, "layer_norm cannot change"),
        ({"alpha": "auto"}, "alpha from or to auto cannot change"),
        ({"seed": 2}, "unknown option 'seed': use the argument seed where the agent is made"),
        ({"gama": 0.5}, "unknown option 'gama': did you mean gamma?"),
        ({"gamma": 2.0}, "gamma must be a number"),
    ],
    ids=str,
)
def test_changes_that_an_agent_cannot_make_are_refused_and_nothing_changes(
    given, message, untrained
):
    before = untrained.config
    with refused(message):
        untrained.change(**given)
    assert (untrained.config, untrained.changes) == (before, [])


@pytest.mark.parametrize("make", [corridor, lambda: DDPG(CORRIDOR, **SMALL_DDPG, priority=0.4)])
def test_without_priorities_all_transitions_are_drawn_alike_from_then_on(make):
    agent = make().learn(steps=40)
    assert len(np.unique(agent._learner.replay.priority)) > 10
    agent.change(priority=0)
    assert set(np.unique(agent._learner.replay.priority)) == {0, 1}
    assert float(agent._learner.replay.sums.sum()) == 40


def test_parameters_are_copies_of_the_weights():
    agent = corridor()
    weights = agent.parameters()
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float32)}
    x = np.float32([[0.5, 2.0]])
    hidden = np.maximum(x @ weights["body.hidden.0.weight"] + weights["body.hidden.0.bias"], 0)
    q = hidden @ weights["output.weight"].T + weights["output.bias"]
    np.testing.assert_allclose(q, agent.q(x), rtol=1e-5)
    weights["output.bias"][:] = 7
    assert not np.array_equal(agent.parameters()["output.bias"], weights["output.bias"])


def rising(monkeypatch, values: list[float]) -> None:
    """Let evaluations find these mean returns, one after the other."""
    left = iter(np.repeat(values, 2))
    found = lambda *_, **__: Episodes(np.array([next(left)]), np.array([1]))  # noqa: E731
    monkeypatch.setattr(DeepQ, "_play", found)


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_agent_of_the_best_evaluation_is_kept_also_after_a_resume(
    interrupted, tmp_path, monkeypatch
):
    file, best = tmp_path / "agent", tmp_path / "best"
    rising(monkeypatch, [1.0, 5.0, 5.0, 2.0, 4.0])
    agent = corridor()
    if interrupted:
        agent.learn(steps=35, eval_every=10, best_to=best).save(file)
        assert DeepQ.load(best, CORRIDOR).steps == 20
        agent = DeepQ.load(file, CORRIDOR)
    agent.learn(steps=50, eval_every=10, best_to=best)
    kept = DeepQ.load(best, CORRIDOR)
    assert kept.steps == 20
    assert np.array_equal(kept.q([0.0, 1.0]), corridor().learn(steps=20).q([0.0, 1.0]))


def test_training_ends_at_a_return_of_an_evaluation(monkeypatch):
    rising(monkeypatch, [1.0, 5.0, 6.0, 2.0])
    agent = corridor().learn(steps=100, eval_every=10, stop_at_return=5.5)
    assert agent.steps == 30
    with pytest.warns(
        UserWarning, match="Corridor-v0: nothing is learned: the return of the last e"
    ):
        assert agent.learn(steps=100, eval_every=10, stop_at_return=5.5).steps == 30
    assert agent.learn(steps=100, eval_every=100, stop_at_return=7.0).steps == 100


def test_training_ends_at_a_mean_return_of_training_wherever_it_was_interrupted(monkeypatch):
    """Episodic has a return of 5 in 5 steps: eight episodes take 40 steps."""
    monkeypatch.setattr("tsallax.deep.agent.RETURN_EVERY", 100)
    monkeypatch.setattr("tsallax.deep.agent.RETURN_EPISODES", 8)
    goals = {"steps": 500, "stop_at_return": 5.0}
    whole = DeepQ(Episodic(), **TINY).learn(**goals)
    assert whole.steps == 100
    parts = DeepQ(Episodic(), **TINY).learn(steps=70, stop_at_return=5.0)
    assert parts.steps == 70
    assert parts.learn(**goals).steps == 100
    with pytest.warns(UserWarning, match="last 100 training episodes is at least stop_at_return=5"):
        assert parts.learn(**goals).steps == 100
    assert parts.learn(steps=110, stop_at_return=5.1).steps == 110
