"""`DeepQ` as people use it: however it is called, an agent's future depends on its state alone."""

from __future__ import annotations

import signal
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import tsallax
from small_agents import CORRIDOR, TINY, assert_same, differ
from tsallax import DeepQ
from tsallax.deep.load import load_agent as load
from tsallax.errors import InvalidInput

ONE_LINE = r"^[^\n]*$"


def corridor(seed: int = 0, **options: Any) -> DeepQ:
    return DeepQ(CORRIDOR, actions=3, seed=seed, **{**TINY, **options})


def cart_pole(seed: int = 0) -> DeepQ:
    return DeepQ("CartPole-v1", seed=seed, **TINY)


def cart_poles(seed: int = 0) -> DeepQ:
    env = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    return DeepQ(env, seed=seed, **TINY)


MAKERS = {"jax": corridor, "gymnasium": cart_pole, "vector": cart_poles}
everywhere = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@pytest.fixture(scope="module")
def whole() -> dict[Any, DeepQ]:
    """Agents that learned 120 steps in one go."""
    return {make: make().learn(steps=120) for make in MAKERS.values()}


@everywhere
def test_learning_in_pieces_is_learning_in_one_go(make, whole):
    agent = make()
    for steps in (2, 10, 50, 2, 56):
        agent.learn(steps=steps)
    assert_same(agent, whole[make])
    assert len(agent.history["trace_loss"]) == 120 // 25
    assert agent.history["trace_loss"].min() > 0


@everywhere
def test_the_pace_of_the_machine_changes_nothing(make, whole, monkeypatch):
    """Pieces are as long as they take half a second; let them be a cycle each."""
    monkeypatch.setattr("tsallax.deep.agent.PACE", 1e-9)
    assert_same(make().learn(steps=120), whole[make])


@everywhere
def test_the_seed_fixes_everything(make, whole):
    same, other = make().learn(steps=120), make(seed=1).learn(steps=120)
    assert_same(same, whole[make])
    assert differ(other, whole[make])
    seen = [np.asarray(agent._learner.replay.observation) for agent in (other, whole[make])]
    assert not np.array_equal(*seen)
    actions = [np.asarray(agent._learner.replay.action) for agent in (other, whole[make])]
    assert not np.array_equal(*actions)


def test_fresh_agents_of_different_seeds_have_different_weights():
    agents = [corridor(seed) for seed in (0, 1, 2**32 - 1)]
    weights = {np.asarray(agent._learner.online.output.weight).tobytes() for agent in agents}
    assert len(weights) == 3


@everywhere
def test_evaluation_leaves_no_trace_in_the_training(make, whole):
    agent = make()
    evaluations = 0
    while agent.steps < 120:
        agent.learn(steps=40, eval_every=20, eval_episodes=2)
        agent.evaluate(2, deterministic=False)
        evaluations += 2
    for name in list(agent.history.columns):
        if name.startswith("evaluation_"):
            assert len(agent.history[name]) == evaluations
            agent.history.columns[name] = []
    assert_same(agent, whole[make])


def test_evaluations_are_noted_with_what_they_found():
    agent = corridor().learn(episodes=10, eval_every=4, eval_episodes=7)
    assert list(agent.history["evaluation_episode"]) == [4, 8]
    assert np.all(agent.history["evaluation_step"] % 1 == 0)
    agent.learn(steps=23, eval_every=10, eval_episodes=7)
    steps = agent.history["evaluation_step"][2:]
    assert len(steps) in (2, 3)
    assert all(step % 10 == 0 for step in steps)
    agent = corridor()
    result = agent.learn(steps=50, eval_every=50, eval_episodes=7).evaluate(7)
    assert agent.history["evaluation_return"] == pytest.approx([result.mean])
    assert agent.history["evaluation_std"] == pytest.approx([result.returns.std()])
    assert agent.history["evaluation_length"] == pytest.approx([result.lengths.mean()])


def test_evaluations_with_a_seed_are_repeatable_and_others_have_their_own_episodes(whole):
    agent = whole[corridor]
    first = agent.evaluate(20, deterministic=False, seed=3)
    assert np.array_equal(first.returns, agent.evaluate(20, deterministic=False, seed=3).returns)
    other = agent.evaluate(20, deterministic=False, seed=4)
    assert not np.array_equal(first.returns, other.returns)


@everywhere
def test_ctrl_c_leaves_an_agent_that_goes_on_as_if_nothing_had_happened(make, whole, tmp_path):
    handler = signal.getsignal(signal.SIGINT)
    agent = make()
    pressed = []

    def press(agent: DeepQ) -> None:
        if agent.steps >= 40 and not pressed:
            pressed.append(agent.steps)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        agent.learn(steps=120, callback=press, save_to=tmp_path / "agent", save_every=20)
    assert signal.getsignal(signal.SIGINT) is handler
    assert pressed == [agent.steps]
    assert 40 <= agent.steps < 120
    assert_same(load(tmp_path / "agent"), agent)
    agent.learn(steps=120 - agent.steps)
    assert_same(agent, whole[make])


def test_a_callback_that_returns_false_ends_the_training():
    agent = corridor().learn(steps=10_000_000, callback=lambda agent: agent.history.episodes < 30)
    assert agent.history.episodes >= 30
    assert agent.steps < 10_000_000
    assert cart_pole().learn(steps=10_000, callback=lambda agent: np.bool_(False)).steps < 10_000


@pytest.mark.parametrize("make", [corridor, cart_pole], ids=["jax", "gymnasium"])
def test_episodes_are_counted_exactly(make):
    agent = make().learn(episodes=3)
    assert agent.history.episodes == 3
    assert agent.steps == agent.history["episode_length"].sum() == agent.history["episode_step"][-1]
    agent.learn(episodes=2)
    assert agent.history.episodes == 5
    assert agent.history.lengths.sum() == 0
    before = agent.steps
    agent.learn(episodes=10_000, steps=7)
    assert agent.steps == before + 7, "whichever comes first"


def test_what_is_given_by_name_is_the_jax_environment_where_there_is_one():
    agent = DeepQ("MultiGoal-v0", actions=3, **TINY)
    assert agent.actions.shape == (9, 2)
    assert agent.environment == "MultiGoal-v0"
    assert isinstance(agent.predict([0.0, 0.0]), np.ndarray)


# What an agent says -------------------------------------------------------------------------


def test_predictions_are_actions_of_the_environment(whole):
    agent = whole[corridor]
    seen = np.array([[0.0, 1.0], [2.0, 3.0], [-1.0, 0.0]])
    q, p = agent.q(seen), agent.policy(seen)
    assert q.shape == p.shape == (3, 3)
    assert p.sum(-1) == pytest.approx(1.0)
    assert np.array_equal(agent.predict(seen), agent.actions[np.argmax(q, -1)])
    assert np.array_equal(agent.predict(seen[1]), agent.actions[np.argmax(q[1])])
    assert np.array_equal(agent.policy(seen[1]), p[1])
    drawn = [agent.predict(seen[0], deterministic=False)[0] for _ in range(200)]
    possible = agent.actions[p[0] > 0, 0]
    assert len(possible) > 1
    assert set(drawn) == set(possible)


def test_predictions_for_a_discrete_environment_are_plain_integers(whole):
    action = whole[cart_pole].predict(np.zeros(4))
    assert type(action) is int
    assert action in (0, 1)
    assert whole[cart_pole].predict(np.zeros((5, 4))).shape == (5,)


class Odd(gymnasium.Env):
    """Observations and actions that are not vectors and numbers from zero."""

    def __init__(self, observations: Any, actions: Any) -> None:
        self.observation_space, self.action_space = observations, actions
        self.taken: list[Any] = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.taken.append(action)
        self.t += 1
        return self.observation_space.sample(), 1.0, False, self.t >= 5, {}


ODD = {
    "discrete observations": (Discrete(7), Discrete(3)),
    "a matrix of observations": (Box(-1, 1, (2, 3)), Discrete(3)),
    "actions from five": (Box(-1, 1, (2,)), Discrete(3, start=5)),
    "a matrix of actions": (Box(-1, 1, (2,)), Box(-1, 1, (1, 2))),
    "actions without dimensions": (Box(-1, 1, (2,)), Box(-1, 1, ())),
}


@pytest.mark.parametrize("case", ODD)
def test_what_the_environment_returns_can_be_predicted_from_and_given_back(case):
    env = Odd(*ODD[case])
    agent = DeepQ(env, actions=3 if isinstance(env.action_space, Box) else None, **TINY)
    seen, _ = env.reset(seed=0)
    for deterministic in (True, False, False, False):
        action = agent.predict(seen, deterministic=deterministic)
        assert env.action_space.contains(action)
        if agent.actions is not None:
            table = agent.actions.reshape(len(agent.actions), -1).tolist()
            assert np.ravel(action).tolist() in table
    assert agent.q(seen).ndim == 1
    assert agent.policy(seen).ndim == 1


def test_an_environment_that_fails_leaves_a_usable_agent(tmp_path):
    class Failing(Odd):
        def step(self, action):
            if len(self.taken) == 40:
                raise RuntimeError("out of order")
            return super().step(action)

    agent = DeepQ(Failing(Box(-1, 1, (2,)), Discrete(3)), **TINY)
    with pytest.raises(RuntimeError, match="out of order") as failure:
        agent.learn(steps=100, save_to=tmp_path / "saved")
    assert failure.value.__notes__ == [f"the agent of 40 steps was saved to {tmp_path / 'saved'}"]
    assert DeepQ.load(tmp_path / "saved").steps == agent.steps == 40
    agent.predict([0.0, 0.0])
    agent.save(tmp_path / "agent")


def test_a_callback_that_fails_leaves_a_file(tmp_path):
    def failing(agent):
        raise ValueError("no more space")

    agent = corridor()
    with pytest.raises(ValueError, match="no more space"):
        agent.learn(steps=10_000_000, save_to=tmp_path / "agent", callback=failing)
    assert DeepQ.load(tmp_path / "agent", env=CORRIDOR).steps == agent.steps > 0


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"reward": -np.inf}, "Wrong: gave the reward -inf"),
        ({"reward": np.nan}, "Wrong: gave the reward nan"),
        ({"seen": np.nan}, "Wrong: an observation holds nan"),
        ({"seen": 1e39}, "Wrong: an observation holds inf"),
    ],
    ids=str,
)
def test_an_environment_that_gives_no_numbers_is_named_at_once(wrong, message):
    class Wrong(Odd):
        def step(self, action):
            seen, reward, *ends = super().step(action)
            if len(self.taken) == 7:
                return np.full(2, wrong.get("seen", 0.0)), wrong.get("reward", reward), *ends
            return seen, reward, *ends

    agent = DeepQ(Wrong(Box(-1, 1, (2,)), Discrete(3)), **{**TINY, "start": 50})
    with pytest.raises(InvalidInput, match=message):
        agent.learn(steps=20)
    assert agent.steps == 6, "what it did is not remembered"


def test_rewards_may_be_arrays_of_one_number():
    class Boxed(Odd):
        def step(self, action):
            seen, reward, *ends = super().step(action)
            return seen, np.array([reward]), *ends

    agent = DeepQ(Boxed(Box(-1, 1, (2,)), Discrete(3)), **TINY).learn(episodes=2)
    assert agent.history["episode_return"].tolist() == [5.0, 5.0]


def test_an_observation_outside_of_its_space_is_refused():
    class Outside(Odd):
        def step(self, action):
            return -1, *super().step(action)[1:]

    with pytest.raises(InvalidInput, match="not in its space"):
        DeepQ(Outside(Discrete(7), Discrete(3)), **TINY).learn(steps=3)


class Unrecorded(gymnasium.Wrapper):
    """A wrapper that does not tell Gymnasium how it was made."""


ONCE = {
    "without an id": lambda: Odd(Box(-1, 1, (2,)), Discrete(3)),
    "in a wrapper of its own": lambda: Unrecorded(gymnasium.make("CartPole-v1")),
}


@pytest.mark.parametrize("make", ONCE.values(), ids=ONCE)
def test_an_environment_that_cannot_be_made_twice_is_evaluated_in_another_that_is_given(make):
    agent = DeepQ(make(), **TINY)
    for refused in (lambda: agent.evaluate(1), lambda: agent.learn(steps=20, eval_every=10)):
        with pytest.raises(InvalidInput, match=r"second time.*: give one to evaluate in") as error:
            refused()
        assert "\n" not in str(error.value)
        assert agent.steps == 0
    other = make()
    agent.learn(steps=20, eval_every=10, eval_episodes=2, eval_env=other)
    assert len(agent.history["evaluation_return"]) == 2
    assert agent.evaluate(3, env=other).returns.shape == (3,)


def test_evaluating_in_the_environment_of_training_starts_a_new_episode_there():
    env = Odd(Box(-1, 1, (2,)), Discrete(3))
    agent = DeepQ(env, **TINY).learn(steps=8)
    agent.evaluate(2, env=env)
    with pytest.warns(UserWarning, match="is lost"):
        agent.learn(steps=10)
    assert agent.history["episode_length"].tolist() == [5, 5, 5], "3 steps of one were lost"
    flags = agent._learner.replay.flags[:18].tolist()
    assert [i for i, flag in enumerate(flags) if flag] == [4, 7, 12, 17]
    for same in (env, gymnasium.wrappers.TimeLimit(env, 3)):
        with pytest.raises(InvalidInput, match="Odd is the one to learn in: give another"):
            agent.learn(steps=20, eval_every=10, eval_env=same)


def test_an_evaluation_that_is_refused_leaves_the_episode_alone():
    agent, other = corridor().learn(steps=8), corridor().learn(steps=8)
    with pytest.raises(InvalidInput, match="neither an id nor a Gymnasium environment"):
        agent.evaluate(1, env=CORRIDOR)
    assert_same(agent.learn(steps=8), other.learn(steps=8))


def test_wrappers_of_a_vector_environment_are_there_in_evaluations():
    def short(env):
        return gymnasium.wrappers.TimeLimit(env, 7)

    several = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync", wrappers=[short])
    assert DeepQ(several, **TINY).evaluate(3).lengths.tolist() == [7, 7, 7]
    wrapped = gymnasium.wrappers.vector.ClipReward(
        gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync"), 0.0, 0.5
    )
    with pytest.raises(InvalidInput, match=r"second time \(ClipReward wraps several.*give one"):
        DeepQ(wrapped, **TINY).evaluate(1)


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


def test_what_a_backend_cannot_be_asked_for():
    with pytest.raises(InvalidInput, match="given as an environment in JAX: leave backend out"):
        DeepQ(tsallax.envs.Reacher, actions=3, backend="gymnasium")
    with pytest.raises(InvalidInput, match="env_options frame_skip: only for an environment of"):
        DeepQ("Reacher-v5", actions=3, backend="jax", env_options={"frame_skip": 1})
    with pytest.raises(InvalidInput, match=r"steps must be less than 2\^30 in all, got 1073741830"):
        cart_pole().learn(steps=2**30 + 6)


def test_an_environment_to_evaluate_in_must_be_of_the_same_kind():
    agent = cart_pole()
    with pytest.raises(InvalidInput, match=r"observation_shape \(2,\), but .* for \(4,\)"):
        agent.evaluate(1, env=Odd(Box(-1, 1, (2,)), Discrete(2)))
    with pytest.raises(InvalidInput, match="Acrobot-v1: has observation_shape"):
        agent.learn(steps=10, eval_every=5, eval_env="Acrobot-v1")
    with pytest.raises(InvalidInput, match="holds 2 environments: give a single one"):
        agent.learn(steps=10, eval_every=5, eval_env=gymnasium.make_vec("CartPole-v1", 2))
    assert agent.steps == 0


def test_steps_across_a_new_beginning_are_not_added_up(monkeypatch):
    """What follows the last transition before a failure is another episode."""

    class Failing(Odd):
        def step(self, action):
            if len(self.taken) == 13:
                self.taken.append(None)
                raise RuntimeError("out of order")
            return super().step(action)

    agent = DeepQ(Failing(Box(-1, 1, (2,)), Discrete(3)), n_step=3, **TINY)
    with pytest.raises(RuntimeError, match="out of order"):
        agent.learn(steps=30)
    assert agent.steps == 13
    assert agent._learner.replay.flags[:13].tolist() == [0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0]
    with pytest.warns(UserWarning, match="is lost"):
        agent.learn(steps=4)
    assert agent._learner.replay.flags[10:17].tolist() == [0, 0, 2, 0, 0, 0, 0]


def test_numbers_of_numpy_are_numbers():
    agent = DeepQ("CartPole-v1", seed=np.int64(3), **TINY).learn(steps=np.int32(5))
    assert (agent.seed, agent.steps) == (3, 5)
    assert len(agent.evaluate(np.int64(2), seed=np.uint32(1)).returns) == 2


def test_an_agent_introduces_itself(whole):
    words = repr(whole[cart_pole])
    assert words.startswith("DeepQ('CartPole-v1', 2 actions, explore='sparse', update='sparse'")
    assert "120 steps" in words


# What is refused -----------------------------------------------------------------------------

BAD_AGENTS = [
    ({"explore": "greedy"}, "unknown explore 'greedy'"),
    ({"alpha": float("nan")}, "alpha must be a number"),
    ({"alhpa": 0.1}, "unknown option 'alhpa': did you mean alpha"),
    ({"alpha": 1e-40}, "alpha must be positive, at least 1e-30 in single precision, got 1e-40"),
    ({"alpha": True}, "alpha must be a number"),
    ({"capacity": 10**14}, "not enough memory for the networks and a replay of 10"),
    ({"seed": -1}, "seed must be a whole number"),
    ({"seed": 1.5}, "seed must be a whole number"),
    ({"seed": True}, "seed must be a whole number"),
    ({"actions": None}, "give `actions`, such as actions=31"),
    ({"actions": 1}, "at least 2"),
    ({"actions": (3, 3)}, "dimension"),
    ({"backend": "torch"}, "unknown backend 'torch'"),
    ({"config": 7}, "config must be a DeepQConfig or a dict, not int"),
    ({"config": {"alpah": 1}}, "did you mean alpha"),
    ({"env_options": {"render_mode": "human"}}, "env_options"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_AGENTS, ids=str)
def test_bad_arguments_are_refused_in_one_line(arguments, message):
    with pytest.raises(InvalidInput, match=ONE_LINE) as refusal:
        DeepQ(CORRIDOR, **{"actions": 3, **arguments})
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("CartPoole-v1", "CartPoole"),
        ("nowhere:Env-v0", "nowhere"),
        (7, "7: neither an id nor a Gymnasium environment"),
        (None, "None"),
    ],
)
def test_unknown_environments_are_refused_in_one_line(env, message):
    with pytest.raises(InvalidInput, match=ONE_LINE) as refusal:
        DeepQ(env, **TINY)
    assert message in str(refusal.value)


def test_levels_for_actions_that_are_discrete_already_are_refused():
    with pytest.raises(InvalidInput, match=r"leave actions out"):
        DeepQ("CartPole-v1", actions=3)


def test_several_environments_of_one_that_was_made_already_are_refused():
    with pytest.raises(InvalidInput, match="environments"):
        DeepQ(gymnasium.make("CartPole-v1"), **{**TINY, "environments": 4})


def test_a_configuration_may_be_given_as_a_whole_and_changed():
    config = tsallax.deep.deep_q_config.DeepQConfig(alpha=0.5, hidden=(16,))
    agent = DeepQ(CORRIDOR, actions=3, config=config, alpha=0.25)
    assert agent.config.alpha.start == 0.25
    assert agent.config.hidden == (16,)
    assert DeepQ(CORRIDOR, actions=3, config={"hidden": [4]}).config.hidden == (4,)


@pytest.fixture(scope="module")
def untrained() -> DeepQ:
    return corridor()


BAD_LEARNING = [
    ({}, "episodes or steps"),
    ({"episodes": 0}, "episodes must be a whole number of at least 1"),
    ({"steps": -5}, "steps must be a whole number"),
    ({"steps": 2.5}, "steps must be a whole number"),
    ({"steps": True}, "steps must be a whole number"),
    ({"steps": 10, "eval_every": 0}, "eval_every must be a whole number"),
    ({"steps": 10, "eval_every": 5, "eval_episodes": 0}, "eval_episodes must be a whole number"),
    ({"steps": 10, "save_to": "x", "save_every": 0}, "save_every must be a whole number"),
    ({"steps": 10, "save_to": "x", "save_every": -3}, "save_every must be a whole number"),
    ({"steps": 10, "save_every": 5}, "save_to"),
    ({"steps": 10, "save_to": "no/such/folder/agent"}, "no/such/folder"),
    ({"steps": 10, "save_to": "."}, "save_to '.': give the name of a file"),
    ({"steps": 10, "save_to": ""}, "save_to '': give the name of a file"),
    ({"steps": 10, "callback": 7}, "callback"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_LEARNING, ids=str)
def test_bad_ways_to_learn_are_refused_before_any_step(
    arguments, message, untrained, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    before = untrained.steps
    with pytest.raises(InvalidInput, match=ONE_LINE) as refusal:
        untrained.learn(**arguments)
    assert message in str(refusal.value)
    assert untrained.steps == before


def test_observations_of_the_wrong_size_are_refused(untrained):
    for wrong in (0.0, [1.0], [1.0, 2.0, 3.0], np.zeros((4, 3)), []):
        with pytest.raises(InvalidInput, match="observation of shape"):
            untrained.predict(wrong)
    for wrong in ("abc", [[1.0], [1.0, 2.0]], None, [np.nan, 0.0]):
        for ask in (untrained.predict, untrained.policy, untrained.q):
            with pytest.raises(InvalidInput, match=ONE_LINE) as refusal:
                ask(wrong)
            assert "observation" in str(refusal.value)


@pytest.mark.parametrize("make", [corridor, cart_pole], ids=["jax", "gymnasium"])
def test_bad_evaluations_are_refused(make, whole):
    for episodes in (0, -1, 2.5):
        with pytest.raises(InvalidInput, match="episodes must be a whole number"):
            whole[make].evaluate(episodes)
    with pytest.raises(InvalidInput, match="seed"):
        whole[make].evaluate(1, seed=-1)


def test_a_loss_that_is_not_finite_stops_the_training_in_one_line():
    agent = corridor()
    bad = jax.tree.map(lambda x: x * np.nan, agent._learner.online)
    agent._learner = agent._learner._replace(online=bad)
    with pytest.raises(FloatingPointError, match="the loss is not finite after 25 steps"):
        agent.learn(steps=60)
