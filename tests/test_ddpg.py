"""DDPG: an update equals one written by hand in NumPy; noise, bounds, resuming, refusals."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsallax.envs.environment import Environment
from tsallax.errors import InvalidInput
from tsallax.learn import moments, noise, rollout
from tsallax.learn.config import from_mapping, to_mapping
from tsallax.learn.ddpg import Learner, PolicyGradient, knobs_of
from tsallax.learn.ddpg_agent import DDPG
from tsallax.learn.ddpg_config import DDPGConfig
from tsallax.learn.network import Network
from tsallax.learn.replay import Transition

LOW, HIGH = (-0.25, 2.0), (0.75, 5.0)
SIZE = 3


def algorithm(**options: Any) -> PolicyGradient:
    settings = {"hidden": (6, 5), "batch": 32, "capacity": 64, "start": 10, **options}
    return PolicyGradient(SIZE, LOW, HIGH, DDPGConfig(**settings))


def transitions(n: int, seed: int = 0) -> Transition:
    """`n` transitions in one environment, a quarter of them terminated, a quarter truncated."""
    draw = np.random.default_rng(seed)
    fate = draw.integers(0, 4, n)
    return Transition(
        draw.normal(3.0, 2.0, (n, 1, SIZE)).astype(np.float32),
        draw.uniform(LOW, HIGH, (n, 1, 2)).astype(np.float32),
        draw.normal(size=(n, 1)).astype(np.float32),
        draw.normal(3.0, 2.0, (n, 1, SIZE)).astype(np.float32),
        fate[:, None] == 0,
        fate[:, None] == 1,
    )


def filled(program: PolicyGradient, seed: int = 0) -> Learner:
    """A learner whose memory holds exactly a batch, and whose targets differ from its networks."""
    learner = program.init(jax.random.PRNGKey(seed), knobs_of(program.config))
    rows = transitions(program.config.batch, seed)
    for i in range(program.config.batch):
        row = jax.tree.map(lambda x, i=i: x if isinstance(x, bool) else x[i], rows)
        learner = store(program, learner, row, i)
    draw = np.random.default_rng(seed + 1)
    shifted = jax.tree.map(lambda x: x + 0.1 * draw.normal(size=x.shape), learner.target)
    return learner._replace(target=jax.tree.map(lambda x: x.astype(jnp.float32), shifted))


store = jax.jit(
    lambda program, learner, row, step: program.store(learner, row, step), static_argnums=0
)
learn = jax.jit(
    lambda program, learner, written, key: program.learn(learner, written, key), static_argnums=0
)


# --------------------------------------------------------------------------- the oracle, in NumPy


class Tape(NamedTuple):
    """The inputs of every layer, and the output."""

    inputs: list[np.ndarray]
    output: np.ndarray


def weights(network: Network) -> list[tuple[np.ndarray, np.ndarray]]:
    """(W, b) of every layer, x -> x W + b, in double precision."""
    layers = [(layer.weight, layer.bias) for layer in network.body.hidden]
    layers.append((network.output.weight.T, network.output.bias))
    return [(np.asarray(w, np.float64), np.asarray(b, np.float64)) for w, b in layers]


def forward(layers: list[tuple[np.ndarray, np.ndarray]], x: np.ndarray) -> Tape:
    inputs = []
    for i, (w, b) in enumerate(layers):
        inputs.append(x)
        x = x @ w + b
        if i < len(layers) - 1:
            x = np.maximum(x, 0)
    return Tape(inputs, x)


def backward(
    layers: list[tuple[np.ndarray, np.ndarray]], tape: Tape, g: np.ndarray
) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """The gradient of every (W, b), and of the input, from that of the output."""
    slopes = []
    for i in reversed(range(len(layers))):
        x = tape.inputs[i]
        slopes.append((x.T @ g, g.sum(0)))
        g = g @ layers[i][0].T
        if i > 0:
            g = g * (x > 0)
    return slopes[::-1], g


def standard(x: np.ndarray, seen: np.ndarray) -> np.ndarray:
    return (x - seen.mean(0)) / seen.std(0)


def halves(a: np.ndarray) -> np.ndarray:
    low, high = np.array(LOW), np.array(HIGH)
    return 2 * (a - low) / (high - low) - 1


def close(slopes: list[tuple[np.ndarray, np.ndarray]], network: Network) -> None:
    for (w, b), (got_w, got_b) in zip(slopes, weights(network), strict=True):
        np.testing.assert_allclose(got_w, w, rtol=2e-4, atol=2e-6)
        np.testing.assert_allclose(got_b, b, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("normalize", [True, False])
def test_an_update_equals_one_by_hand(normalize: bool) -> None:
    program = algorithm(normalize=normalize)
    n, gamma = program.config.batch, program.config.discount
    before = filled(program)
    after, metrics = learn(program, before, n, jax.random.PRNGKey(5))

    data = jax.tree.map(lambda x: x if isinstance(x, bool) else x[:, 0], transitions(n))
    seen = data.observation.astype(np.float64)
    s, following = seen, data.next_observation.astype(np.float64)
    if normalize:
        s, following = standard(s, seen), standard(following, seen)
    a = halves(data.action.astype(np.float64))
    mu = np.tanh(forward(weights(before.target.actor), following).output)
    value = forward(weights(before.target.critic), np.hstack([following, mu])).output[:, 0]
    assert data.terminated.any()
    assert data.truncated.any()
    y = data.reward + gamma * np.where(data.terminated, 0, value)

    critic = weights(before.online.critic)
    tape = forward(critic, np.hstack([s, a]))
    error = tape.output[:, 0] - y
    np.testing.assert_allclose(metrics.loss, np.mean(error**2), rtol=1e-4)
    np.testing.assert_allclose(metrics.value, y.mean(), rtol=1e-4, atol=1e-5)
    slopes, _ = backward(critic, tape, 2 * error[:, None] / n)
    close([(0.1 * w, 0.1 * b) for w, b in slopes], after.critic_adam.mean)

    critic, actor = weights(after.online.critic), weights(before.online.actor)
    policy = forward(actor, s)
    mu = np.tanh(policy.output)
    tape = forward(critic, np.hstack([s, mu]))
    _, by_input = backward(critic, tape, np.full((n, 1), -1 / n))
    slopes, _ = backward(actor, policy, by_input[:, SIZE:] * (1 - mu**2))
    close([(0.1 * w, 0.1 * b) for w, b in slopes], after.actor_adam.mean)


def test_an_update_goes_down_the_loss_and_up_the_value() -> None:
    program = algorithm(learning_rate=1e-4)
    before = filled(program)
    after, _ = learn(program, before, 32, jax.random.PRNGKey(0))
    frozen = before._replace(online=after.online)
    assert learn(program, frozen, 32, jax.random.PRNGKey(0))[1].loss < (
        learn(program, before, 32, jax.random.PRNGKey(0))[1].loss
    )
    s = standard(*[transitions(32).observation[:, 0].astype(np.float64)] * 2)

    def value(actor: Network) -> float:
        mu = np.tanh(forward(weights(actor), s).output)
        return forward(weights(after.online.critic), np.hstack([s, mu])).output.mean()

    assert value(after.online.actor) > value(before.online.actor)


def test_targets_move_by_the_share_tau() -> None:
    program = algorithm(tau=0.3)
    before = filled(program)
    after, _ = learn(program, before, 32, jax.random.PRNGKey(0))
    jax.tree.map(
        lambda old, online, new: np.testing.assert_allclose(
            new, 0.7 * np.asarray(old) + 0.3 * np.asarray(online), rtol=1e-5, atol=1e-6
        ),
        before.target,
        after.online,
        after.target,
    )
    assert program.copy(after) is after


def test_gradients_are_clipped() -> None:
    free, short = algorithm(), algorithm(clip=1e-3)
    before = filled(free)
    for name in ("critic_adam", "actor_adam"):
        norms = []
        for program in (free, short):
            after, _ = learn(program, before, 32, jax.random.PRNGKey(0))
            leaves = jax.tree.leaves(getattr(after, name).mean)
            norms.append(10 * np.sqrt(sum(float(jnp.sum(x**2)) for x in leaves)))
        assert norms[0] > 1.1e-3
        np.testing.assert_allclose(norms[1], 1e-3, rtol=1e-3)


def test_priorities_follow_the_errors_only_if_asked() -> None:
    for exponent in (0.0, 0.6):
        program = algorithm(priority=exponent)
        after, _ = learn(program, filled(program), 32, jax.random.PRNGKey(0))
        drawn = np.asarray(after.replay.priority).ravel()[:32]
        assert (len(set(drawn.tolist())) > 1) == (exponent > 0)


# ------------------------------------------------------------------------------------- observations


@given(st.integers(0, 2**31), st.lists(st.integers(1, 7), min_size=1, max_size=8))
def test_running_moments_are_those_of_numpy(seed: int, sizes: list[int]) -> None:
    draw = np.random.default_rng(seed)
    known, kept = moments.init(2), []
    for size in sizes:
        x = (100 + draw.normal(size=(size, 2))).astype(np.float32)
        valid = draw.random(size) < 0.7
        known = moments.update(known, jnp.asarray(x), jnp.asarray(valid))
        kept.append(x[valid])
    seen = np.concatenate(kept).astype(np.float64)
    assert int(known.count) == len(seen)
    if len(seen):
        np.testing.assert_allclose(known.mean, seen.mean(0), rtol=1e-6)
        np.testing.assert_allclose(known.variance, seen.var(0), rtol=1e-3, atol=1e-3)
    else:
        np.testing.assert_array_equal(known.variance, 1)


def test_moments_stay_exact_over_many_steps() -> None:
    x = np.random.default_rng(0).normal([5.0, -300.0], [0.1, 7.0], (20_000, 2)).astype(np.float32)
    known, _ = jax.lax.scan(
        lambda m, row: (moments.update(m, row[None]), None), moments.init(2), jnp.asarray(x)
    )
    np.testing.assert_allclose(known.mean, x.mean(0, np.float64), rtol=1e-5)
    np.testing.assert_allclose(np.sqrt(known.variance), x.std(0, np.float64), rtol=1e-3)


def test_a_number_that_never_changes_does_no_harm() -> None:
    known = moments.update(moments.init(1), jnp.full((9, 1), 4.0))
    z = moments.standardize(known, jnp.asarray([[4.0], [1e9]]))
    assert z.tolist() == [[0.0], [moments.BOUND]]


# -------------------------------------------------------------------------------------------- noise


def test_actions_keep_to_their_bounds_and_reach_them() -> None:
    seen = jnp.asarray(np.random.default_rng(0).normal(size=(500, SIZE)), jnp.float32)
    for kind in noise.KINDS:
        program = algorithm(noise=kind, sigma=5.0, environments=500, capacity=1000)
        learner = program.init(jax.random.PRNGKey(0), knobs_of(program.config))
        for step in (0, 500, 1000):
            action, support = program.act(learner, seen, step, jax.random.PRNGKey(step))
            wild = np.asarray(action)
            assert np.isnan(support)
            assert (wild.min(0) >= LOW).all()
            assert (wild.max(0) <= HIGH).all()
            span = np.ptp(wild, 0) / np.ptp([LOW, HIGH], 0)
            assert (span > 0.95).all()
        for action in (
            program.greedy(learner, seen),
            program.sampled(learner, seen, 1000, jax.random.PRNGKey(7)),
        ):
            assert ((np.asarray(action) >= LOW) & (np.asarray(action) <= HIGH)).all()


def test_the_first_actions_are_uniform_and_later_ones_have_the_noise_asked_for() -> None:
    n = 4000
    program = algorithm(sigma="0.2:0.1:1000", environments=n, capacity=n)
    learner = program.init(jax.random.PRNGKey(0), knobs_of(program.config))
    seen = jnp.zeros((n, SIZE))

    def spread(step: int) -> np.ndarray:
        action, _ = program.act(learner, seen, step, jax.random.PRNGKey(1))
        return halves(np.asarray(action, np.float64)).std(0)

    np.testing.assert_allclose(spread(9), 1 / np.sqrt(3), rtol=0.05)
    np.testing.assert_allclose(spread(10), 0.2, rtol=0.05)
    np.testing.assert_allclose(spread(2000), 0.1, rtol=0.05)
    mean = halves(np.asarray(program.greedy(learner, seen[:1])))
    drawn = halves(np.asarray(program.sampled(learner, seen, 2000, jax.random.PRNGKey(2))))
    np.testing.assert_allclose(drawn.mean(0), mean[0], atol=0.01)


def test_ou_noise_is_stationary_forgets_at_its_rate_and_starts_again() -> None:
    rate, n = 0.15, 4000
    x = jax.random.normal(jax.random.PRNGKey(0), (n, 2))
    later, again = x, jnp.zeros(n, bool).at[: n // 2].set(True)
    for i in range(3):
        later = noise.drift(later, rate, again if i == 2 else ~(again | True), jax.random.key(i))
    np.testing.assert_allclose(later.std(), 1, atol=0.03)
    half = n // 2
    kept = np.mean(np.asarray(x * later), 1)
    np.testing.assert_allclose(kept[half:].mean(), np.exp(-3 * rate), atol=0.05)
    np.testing.assert_allclose(kept[:half].mean(), 0, atol=0.05)


def test_parameter_noise_moves_actions_as_far_as_asked() -> None:
    program = algorithm(noise="parameter", sigma=0.1, learning_rate=1e-9)
    learner = filled(program)
    for size in (0.005, 20.0):
        start = learner._replace(noise=learner.noise._replace(size=jnp.asarray(size)))
        end = jax.lax.fori_loop(
            0,
            1500,
            lambda i, x: program.learn(x, 32, jax.random.fold_in(jax.random.PRNGKey(0), i))[0],
            start,
        )
        s = program._seen(end, jnp.asarray(transitions(32).observation[:, 0]))
        keys = jax.random.split(jax.random.PRNGKey(9), 200)

        def apart(key: jax.Array, end: Learner = end, s: jax.Array = s) -> jax.Array:
            other = noise.perturbed(end.online.actor, end.noise.size, key)
            moved = [forward_jax(actor, s) for actor in (other, end.online.actor)]
            return jnp.sqrt(jnp.mean((moved[0] - moved[1]) ** 2))

        typical = np.median(jax.vmap(apart)(keys))
        assert 0.08 < typical < 0.125


def forward_jax(actor: Network, s: jax.Array) -> jax.Array:
    for layer in actor.body.hidden:
        s = jnp.maximum(s @ layer.weight + layer.bias, 0)
    return jnp.tanh(s @ actor.output.weight.T + actor.output.bias)


def test_parameters_are_perturbed_anew_when_an_episode_ends() -> None:
    program = algorithm(noise="parameter")
    learner = program.init(jax.random.PRNGKey(0), knobs_of(program.config))
    row = jax.tree.map(lambda x: x if isinstance(x, bool) else x[0], transitions(1))
    false, true = np.array([False]), np.array([True])

    def first(terminated: np.ndarray, truncated: np.ndarray) -> np.ndarray:
        it = row._replace(terminated=terminated, truncated=truncated)
        actor = store(program, learner, it, 0).noise.actor
        assert actor is not None
        return np.asarray(actor.body.hidden[0].weight)

    old = np.asarray(learner.noise.actor.body.hidden[0].weight)
    np.testing.assert_array_equal(first(false, false), old)
    for ended in (first(true, false), first(false, true)):
        assert (ended != old).all()
        moved = ended - np.asarray(learner.online.actor.body.hidden[0].weight)
        assert 0.03 < moved.std() < 0.3


# ------------------------------------------------------------------------------------ the whole agent


class Tracking(NamedTuple):
    wish: jax.Array
    step: jax.Array


def tracking() -> Environment:
    """Name the number that is seen, scaled to the range of the actions; a new one every step."""

    def observe(state: Tracking) -> jax.Array:
        return 100 + 3 * state.wish

    def move(state: Tracking, action: Any) -> Any:
        centre, half = (jnp.asarray(HIGH) + jnp.asarray(LOW)) / 2, jnp.asarray(HIGH) - jnp.asarray(
            LOW
        )
        reward = -jnp.sum(((action - centre) / (half / 2) - state.wish) ** 2)
        wish = jnp.sin(12.9898 * state.wish + 78.233 * state.step + jnp.arange(2))
        after = Tracking(wish, state.step + 1)
        return after, observe(after), reward, jnp.zeros((), bool), after.step >= 20

    def reset(key: Any) -> Tracking:
        return Tracking(jax.random.uniform(key, (2,), minval=-1.0), jnp.zeros((), jnp.int32))

    return Environment("Tracking", 2, LOW, HIGH, 20, reset, observe, move)


def test_it_learns() -> None:
    agent = DDPG(tracking(), hidden=(32, 32), start=300, batch=32, capacity=5000, discount=0.5)
    blind = agent.evaluate(50).mean
    agent.learn(steps=3000)
    assert blind < -8
    assert agent.evaluate(50).mean > -0.8
    assert agent.evaluate(50, deterministic=False).mean > -2.5
    action = agent.predict([100.0, 101.5])
    np.testing.assert_allclose(halves(action), [0, 0.5], atol=0.2)
    known = agent._learner.moments
    assert known is not None
    seen = np.asarray(agent._learner.replay.observation[: agent.steps], np.float64)
    np.testing.assert_allclose(known.mean, seen.mean(0), rtol=1e-5)
    np.testing.assert_allclose(np.sqrt(known.variance), seen.std(0), rtol=1e-3)


SMALL = {"hidden": (8,), "batch": 16, "capacity": 200, "start": 40}


def same(a: Any, b: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, a, b)


@pytest.mark.parametrize("kind", ["ou", "parameter"])
def test_a_resumed_agent_equals_an_uninterrupted_one(kind: str, tmp_path: Any) -> None:
    options = {**SMALL, "noise": kind, "environments": 2}
    whole = DDPG("MultiGoal-v0", seed=3, **options).learn(steps=300)
    first = DDPG("MultiGoal-v0", seed=3, **options).learn(steps=134)
    first.save(tmp_path / "agent.npz")
    second = DDPG.load(tmp_path / "agent.npz")
    assert second.config == first.config
    second.learn(steps=166)
    same(second._learner, whole._learner)
    same(second._feed, whole._feed)
    same(second.history.arrays(), whole.history.arrays())


def test_gymnasium_environments_get_vectors_and_resume_between_episodes(tmp_path: Any) -> None:
    make = {"env_options": {"max_episode_steps": 20}, **SMALL}
    whole = DDPG("Pendulum-v1", seed=1, **make).learn(steps=120)
    first = DDPG("Pendulum-v1", seed=1, **make).learn(steps=60)
    first.save(tmp_path / "agent.npz")
    second = DDPG.load(tmp_path / "agent.npz").learn(steps=60)
    same(second._learner, whole._learner)
    action = second.predict(np.zeros(3))
    assert action.shape == (1,)
    assert abs(action[0]) <= 2
    assert whole.history.episodes == 6
    assert len(second.evaluate(2).returns) == 2
    taken = np.asarray(whole._learner.replay.action[:120])
    assert np.abs(taken).max() <= 2
    assert np.ptp(taken) > 2


def test_a_shared_agent_acts_the_same_and_does_not_learn(tmp_path: Any) -> None:
    agent = DDPG("MultiGoal-v0", seed=3, noise="ou", environments=2, **SMALL).learn(steps=134)
    agent.save(tmp_path / "small.npz", replay=False)
    other = DDPG.load(tmp_path / "small.npz")
    seen = np.random.default_rng(0).normal(size=(9, 2))
    for deterministic in (True, False):
        same(agent.predict(seen, deterministic), other.predict(seen, deterministic))
    with pytest.raises(InvalidInput, match="without its replay"):
        other.learn(steps=1)


def test_agents_side_by_side_equal_agents_alone() -> None:
    program, environment = algorithm(hidden=(8,)), tracking()
    program = PolicyGradient(2, LOW, HIGH, program.config)
    settings = [DDPGConfig(sigma=0.1), DDPGConfig(sigma=0.5, learning_rate=3e-3, tau=0.1)]
    knobs = [knobs_of(one) for one in settings]
    keys = jax.random.split(jax.random.PRNGKey(0), 2)

    def train(key: jax.Array, knobs: Any) -> Any:
        feed = rollout.begin(environment, 1, key)

        def body(i: jax.Array, carry: Any) -> Any:
            return rollout.cycle(program, environment, True, *carry, None, i)[:2]

        learner, _ = jax.lax.fori_loop(0, 60, body, (program.init(key, knobs), feed))
        return learner.online

    stacked = jax.tree.map(lambda *x: jnp.stack(x), *knobs)
    together = jax.jit(jax.vmap(train))(keys, stacked)
    alone = [jax.jit(train)(key, one) for key, one in zip(keys, knobs)]
    jax.tree.map(
        lambda both, *one: np.testing.assert_allclose(both, np.stack(one), rtol=2e-3, atol=2e-4),
        together,
        *alone,
    )


def test_the_options_survive_as_plain_data() -> None:
    config = DDPGConfig(noise="ou", sigma="0.3:0.1:500", hidden=[9, 8], actor_rate=1e-4)
    assert from_mapping(DDPGConfig, to_mapping(config)) == config
    assert hash(config) == hash(from_mapping(DDPGConfig, to_mapping(config)))
    assert knobs_of(config).actor_rate == np.float32(1e-4)
    assert knobs_of(DDPGConfig()).actor_rate == np.float32(DDPGConfig().learning_rate)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"noise": "white"}, "unknown noise 'white': choose from gaussian, ou, parameter"),
        ({"sigma": -0.1}, "sigma must be at least 0"),
        ({"sigma": "much"}, "sigma must be a number or start:end:steps"),
        ({"tau": 0}, "tau must be a number above 0"),
        ({"tau": 1.5}, "tau must be at most 1"),
        ({"ou_rate": 0}, "ou_rate must be"),
        ({"discount": 1.0}, "discount must be"),
        ({"actor_rate": 0}, "actor_rate must be"),
        ({"batch": 0}, "batch must be"),
        ({"batch": 500, "capacity": 100}, "capacity 100 is less than a batch of 500"),
        ({"beta": 2}, "beta must be between 0 and 1"),
        ({"hidden": (0,)}, "hidden must be widths"),
        ({"sgima": 0.2}, "did you mean sigma"),
        ({"actions": 11}, "unknown option 'actions'"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_impossible_options_are_refused_in_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        DDPG("Reacher-v5", **options)
    assert "\n" not in str(caught.value)


class Endless(gymnasium.Env):  # type: ignore[type-arg]
    observation_space = gymnasium.spaces.Box(-1, 1, (3,))
    action_space = gymnasium.spaces.Box(np.float32([-1, -1]), np.float32([1, np.inf]))


def test_actions_without_bounds_or_without_numbers_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"Endless: dimension 1 .* from -1 to inf"):
        DDPG(Endless())
    with pytest.raises(InvalidInput, match="CartPole-v1"):
        DDPG("CartPole-v1")
