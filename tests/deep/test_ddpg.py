"""An update of DDPG equals one written by hand in NumPy; actions keep to their bounds."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numpy_network import backward, double, forward
from tsallax.deep import exploration_noise, network
from tsallax.deep.algorithm import Metrics
from tsallax.deep.ddpg import Hyperparameters, Learner, PolicyGradient, hyperparameters_of
from tsallax.deep.ddpg_config import DDPGConfig
from tsallax.deep.network import Network
from tsallax.deep.replay import Transition

LOW, HIGH = (-0.25, 2.0), (0.75, 5.0)
SIZE, MANY, LIMIT = 3, 2000, 1e-3


def algorithm(other: bool = False) -> PolicyGradient:
    """With the default options, or with all that shape the program different from them."""
    options: dict[str, Any] = {"net_arch": (6, 5), "batch_size": 32, "buffer_size": 64}
    if other:
        options |= {"normalize": False, "bounded": False, "noise": "parameter"}
        options |= {"max_grad_norm": LIMIT, "priority": 0.6}
    return PolicyGradient(SIZE, LOW, HIGH, DDPGConfig(learning_starts=10, **options))


def transitions(n: int = 32) -> Transition:
    """`n` transitions in one environment, a quarter of them terminated, a quarter truncated."""
    draw = np.random.default_rng(0)
    fate = draw.integers(0, 4, n)
    return Transition(
        draw.normal(3.0, 2.0, (n, 1, SIZE)).astype(np.float32),
        draw.uniform(LOW, HIGH, (n, 1, 2)).astype(np.float32),
        draw.normal(size=(n, 1)).astype(np.float32),
        draw.normal(3.0, 2.0, (n, 1, SIZE)).astype(np.float32),
        fate[:, None] == 0,
        fate[:, None] == 1,
        np.ones((n, 1), bool),
    )


def row(i: int) -> Transition:
    return jax.tree.map(lambda x: x[i], transitions())


@partial(jax.jit, static_argnums=0)
def start(program: PolicyGradient, hyperparameters: Hyperparameters) -> Learner:
    return program.init(jax.random.PRNGKey(0), hyperparameters)


@partial(jax.jit, static_argnums=0)
def store(program: PolicyGradient, learner: Learner, row: Transition, step: Any) -> Learner:
    return program.store(learner, row, step)


@partial(jax.jit, static_argnums=0)
def act(program: PolicyGradient, learner: Learner, seen: Any, step: Any) -> Any:
    """An exploring action and its support, a greedy one and a sampled one."""
    key = jax.random.fold_in(jax.random.PRNGKey(6), step)
    return (
        *program.act(learner, seen, step, key),
        program.greedy(learner, seen),
        program.sample(learner, seen, step, key),
    )


@partial(jax.jit, static_argnums=0)
def learn(program: PolicyGradient, learner: Learner, seed: int = 5) -> tuple[Learner, Metrics]:
    return program.learn(learner, 32, jax.random.PRNGKey(seed))


def filled(program: PolicyGradient, **options: Any) -> Learner:
    """A learner whose memory holds exactly a batch, and whose targets differ from its networks."""
    learner = start(program, hyperparameters_of(DDPGConfig(**options)))
    for i in range(program.config.batch_size):
        learner = store(program, learner, row(i), i)
    draw = np.random.default_rng(1)

    def shifted(x: Any) -> np.ndarray:
        return (np.asarray(x) + 0.1 * draw.normal(size=x.shape)).astype(np.float32)

    return learner._replace(target=jax.tree.map(shifted, learner.target))


def standard(x: np.ndarray, seen: np.ndarray) -> np.ndarray:
    return (x - seen.mean(0)) / seen.std(0)


def halves(a: np.ndarray) -> np.ndarray:
    low, high = np.array(LOW), np.array(HIGH)
    return 2 * (a - low) / (high - low) - 1


def close(gradient: Network, mean: Network, clip: bool) -> None:
    """The first mean of Adam is a tenth of the gradient, of a norm of LIMIT if it is clipped."""
    norm = np.sqrt(sum((x**2).sum() for x in jax.tree.leaves(gradient)))
    assert norm > 1.1 * LIMIT
    share = LIMIT / norm if clip else 1
    for expected, found in zip(jax.tree.leaves(gradient), jax.tree.leaves(mean), strict=True):
        np.testing.assert_allclose(found, 0.1 * share * expected, rtol=2e-4, atol=2e-6 * share)


@pytest.mark.parametrize("other", [pytest.param(False, marks=pytest.mark.slow), True])
def test_an_update_equals_one_by_hand(other: bool) -> None:
    program = algorithm(other)
    n, gamma, penalty = program.config.batch_size, program.config.gamma, 0.0 if other else 0.01
    before = filled(program, action_penalty=penalty)
    after, metrics = learn(program, before)

    data = jax.tree.map(lambda x: x[:, 0], transitions())
    seen = data.observation.astype(np.float64)
    s, following = seen, data.next_observation.astype(np.float64)
    if not other:
        s, following = standard(s, seen), standard(following, seen)
    a = halves(data.action.astype(np.float64))
    target = double(before.target)
    mu = np.tanh(forward(target.actor, following)[1])
    value = forward(target.critic, np.hstack([following, mu]))[1][:, 0]
    assert data.terminated.any()
    assert data.truncated.any()
    y = data.reward + gamma * np.where(data.terminated, 0, value)

    critic = double(before.online.critic)
    layers, q = forward(critic, np.hstack([s, a]))
    error = q[:, 0] - y
    np.testing.assert_allclose(metrics.loss, np.mean(error**2), rtol=1e-4)
    np.testing.assert_allclose(metrics.value, y.mean(), rtol=1e-4, atol=1e-5)
    gradient, _ = backward(critic, layers, 2 * error[:, None] / n)
    close(gradient, after.critic_adam.mean, other)
    priority = np.asarray(after.replay.priority).ravel()[:n]
    expected = (np.abs(error) + 1e-3) ** 0.6 if other else np.ones(n)
    np.testing.assert_allclose(priority, expected, rtol=1e-4)

    critic, actor = double(after.online.critic), double(before.online.actor)
    actor_layers, u = forward(actor, s)
    mu = np.tanh(u)
    layers, _ = forward(critic, np.hstack([s, mu]))
    _, by_input = backward(critic, layers, np.full((n, 1), -1 / n))
    by_output = by_input[:, SIZE:] * (1 - mu**2) + 2 * penalty * u / u.size
    close(backward(actor, actor_layers, by_output)[0], after.actor_adam.mean, other)


@pytest.mark.slow
def test_an_update_goes_down_the_loss_and_up_the_value() -> None:
    program = algorithm()
    before = filled(program, learning_rate=1e-4)
    after, metrics = learn(program, before)
    assert learn(program, before._replace(online=after.online))[1].loss < metrics.loss
    s = standard(*[transitions().observation[:, 0].astype(np.float64)] * 2)

    def value(actor: Network) -> float:
        mu = np.tanh(forward(double(actor), s)[1])
        return forward(double(after.online.critic), np.hstack([s, mu]))[1].mean()

    assert value(after.online.actor) > value(before.online.actor)


def test_targets_move_by_the_share_tau() -> None:
    program = algorithm()
    before = filled(program, tau=0.3)
    after, _ = learn(program, before)
    jax.tree.map(
        lambda old, online, new: np.testing.assert_allclose(
            new, 0.7 * np.asarray(old) + 0.3 * np.asarray(online), rtol=1e-5, atol=1e-6
        ),
        before.target,
        after.online,
        after.target,
    )
    assert program.copy(after) is after


def test_targets_keep_to_what_the_rewards_allow() -> None:
    program = algorithm()
    before = filled(program)
    rewards = transitions().reward
    np.testing.assert_array_equal(before.rewards, [rewards.min(), rewards.max()])
    far = before.target.critic.output._replace(bias=np.full(1, 1e6, np.float32))
    critic = before.target.critic._replace(output=far)
    _, metrics = learn(program, before._replace(target=before.target._replace(critic=critic)))
    ended = transitions().terminated[:, 0]
    y = np.where(ended, rewards[:, 0], 100 * rewards.max())
    np.testing.assert_allclose(metrics.value, y.mean(), rtol=1e-4)


def test_actions_keep_to_their_bounds_and_reach_them() -> None:
    seen = np.random.default_rng(0).normal(size=(MANY, SIZE)).astype(np.float32)
    program = algorithm()
    learner = start(program, hyperparameters_of(DDPGConfig(sigma=5.0)))
    for step in (0, MANY):
        wild, support, *others = act(program, learner, seen, step)
        assert np.isnan(support)
        for action in (wild, *others):
            assert ((action >= np.array(LOW)) & (action <= np.array(HIGH))).all()
        assert (np.ptp(halves(np.asarray(wild)), 0) > 1.9).all()


def test_the_first_actions_are_uniform_and_later_ones_have_the_noise_asked_for() -> None:
    program = algorithm()
    learner = start(program, hyperparameters_of(DDPGConfig(sigma="0.2:0.1:1000")))
    for step, spread in ((9, 1 / np.sqrt(3)), (10, 0.2), (2000, 0.1)):
        taken, _, greedy, sampled = act(program, learner, np.zeros((MANY, SIZE), np.float32), step)
        np.testing.assert_allclose(halves(np.asarray(taken, float)).std(0), spread, rtol=0.05)
    np.testing.assert_allclose(halves(np.asarray(sampled)).std(0), 0.1, rtol=0.05)
    for noisy in (taken, sampled):
        np.testing.assert_allclose(halves(noisy).mean(0), halves(greedy[0]), atol=0.01)


def test_parameter_noise_moves_actions_as_far_as_asked() -> None:
    program = algorithm(other=True)
    learner = filled(program, sigma=0.1, learning_rate=1e-9)
    s = program._inputs(learner, jnp.asarray(transitions().observation[:, 0]))
    actor = learner.online.actor

    @jax.jit
    @partial(jax.vmap, in_axes=(None, 0))
    def apart(size: Any, key: jax.Array) -> jax.Array:
        noisy = exploration_noise.perturb(actor, size, key)
        moved = jnp.tanh(network.values(noisy, s)) - jnp.tanh(network.values(actor, s))
        return jnp.sqrt(jnp.mean(moved**2))

    keys = jax.random.split(jax.random.PRNGKey(1), 200)
    for size in (0.02, 0.5):
        assert not 0.05 < np.median(apart(size, keys)) < 0.2
        state = learner._replace(noise=learner.noise._replace(size=np.float32(size)))
        for seed in range(250):
            state, _ = learn(program, state, seed)
        assert 0.08 < np.median(apart(state.noise.size, keys)) < 0.125


def test_parameters_are_perturbed_anew_when_an_episode_ends() -> None:
    program = algorithm(other=True)
    learner = start(program, hyperparameters_of(DDPGConfig()))
    false, true = np.array([False]), np.array([True])

    def weight(terminated: np.ndarray, truncated: np.ndarray) -> np.ndarray:
        it = row(0)._replace(terminated=terminated, truncated=truncated)
        return np.asarray(store(program, learner, it, 0).noise.actor.body.hidden[0].weight)

    old = np.asarray(learner.noise.actor.body.hidden[0].weight)
    np.testing.assert_array_equal(weight(false, false), old)
    for anew in (weight(true, false), weight(false, true)):
        assert (anew != old).all()
        moved = anew - np.asarray(learner.online.actor.body.hidden[0].weight)
        assert 0.03 < moved.std() < 0.3


def test_the_actor_has_a_learning_rate_of_its_own_only_if_asked() -> None:
    both, own = DDPGConfig(), DDPGConfig(actor_learning_rate=1e-4)
    assert hyperparameters_of(own).actor_learning_rate == np.float32(1e-4)
    assert hyperparameters_of(both).actor_learning_rate == np.float32(both.learning_rate)
