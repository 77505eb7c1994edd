"""One update of deep Q-learning equals a NumPy one, and actions follow the policy.

The oracle is written from the formulas: forward and backward pass, regularised maxima by sorting
and root finding, importance weights, Adam, all in double precision.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax
from scipy.stats import chisquare

from numpy_network import Floats, backward, double, forward
from tsallax.deep import adam, deep_q, replay
from tsallax.deep.action_layout import ActionLayout
from tsallax.deep.deep_q import DeepQLearning, Learner, hyperparameters_of
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.deep.options import with_defaults
from tsallax.deep.regularizer_choice import Choice
from tsallax.deep.replay import Transition
from tsallax.envs.observation_format import ObservationFormat

INPUTS, ACTIONS, HIDDEN, STEPS = 3, 5, (8, 6), 40
add = jax.jit(replay.add)
sample = jax.jit(replay.sample, static_argnums=(2, 5, 6))
init = jax.jit(
    lambda algorithm, key, hyperparameters: algorithm.init(key, hyperparameters), static_argnums=0
)
learn = jax.jit(lambda algorithm, *arguments: algorithm.learn(*arguments), static_argnums=0)
values = jax.jit(lambda algorithm, *arguments: algorithm.values(*arguments), static_argnums=0)
RULES = (("sparse", None), ("hard", None), ("soft", None), ("tsallis", 1.5))


@partial(jax.jit, static_argnums=0)
def draw(algorithm: DeepQLearning, learner: Learner, x: Any, step: Any) -> Any:
    """Many exploring actions and their support, many sampled ones, and the policy."""
    seen, keys = jnp.broadcast_to(x, (40_000, INPUTS)), jax.random.split(jax.random.PRNGKey(4))
    policy = algorithm.policy(learner, seen[:1], step)[0]
    action, support = algorithm.act(learner, seen, step, keys[0])
    return action, support, algorithm.sample(learner, seen, step, keys[1]), policy


def policy_of(rule: str, z: Floats, alpha: float) -> Floats:
    """argmax_p <p, z> + alpha Omega(p) of one row, q = 1.5 for Tsallis."""
    if rule == "hard":
        return np.eye(len(z))[np.argmax(z)]
    if rule == "soft":
        return softmax(z / alpha)
    x = z / alpha - np.max(z / alpha)
    power = {"sparse": 1.0, "tsallis": 2.0}[rule]

    def mass(t: float) -> Floats:
        return np.maximum(0, 1 + (x - t) / power) ** power

    return mass(brentq(lambda t: mass(t).sum() - 1, 0, power * len(z), xtol=1e-14))


def entropy_of(rule: str, p: Floats) -> float:
    p = p[p > 0]
    if rule == "soft":
        return float(-(p * np.log(p)).sum())
    if rule == "sparse":
        return float(0.5 * (1 - (p**2).sum()))
    return float((1 - (p**1.5).sum()) / 0.75) if rule == "tsallis" else 0.0


def value_of(rule: str, z: Floats, alpha: float) -> float:
    if rule == "soft":
        return float(alpha * logsumexp(z / alpha))
    p = policy_of(rule, z, alpha)
    return float(p @ z + alpha * entropy_of(rule, p))


class Recorded:
    """A learner that has stored some transitions, and those transitions as plain rows.

    Its algorithm selects among all regularisers, so that tests share compiled programs. An action
    has one of the `choices` in each dimension; with `masked`, states allow some actions only.
    """

    def __init__(
        self,
        rules: Any = RULES,
        choices: tuple[int, ...] = (ACTIONS,),
        factored: bool = False,
        masked: bool = False,
        **options: Any,
    ) -> None:
        common = {"batch_size": 16, "buffer_size": STEPS, "net_arch": HIDDEN, "alpha": 0.3}
        common |= {"learning_rate": 0.01, "gamma": 0.9, "beta": "0.4:1:80", "output_scale": 2.0}
        self.config = c = DeepQConfig(**{**common, **options})
        explore = "hard" if c.explore == "epsilon" else c.explore
        which = [[name for name, _ in rules].index(rule) for rule in (explore, c.update)]
        choice, static = Choice(rules), with_defaults(c, deep_q.MEMBER_OPTIONS)
        layout = ActionLayout(choices, factored)
        self.algorithm = DeepQLearning(
            ObservationFormat.vector(INPUTS), layout, masked, HIDDEN, choice, choice, False, static
        )
        ends = np.cumsum(choices)
        self.dimensions = [np.arange(end - n, end) for n, end in zip(choices, ends, strict=True)]
        self.masked = masked
        learner = init(self.algorithm, jax.random.PRNGKey(0), hyperparameters_of(c, *which))
        moved = np.random.default_rng(1).normal(size=64).astype(np.float32)
        shift = jax.tree.map(lambda x: np.asarray(x) + np.resize(0.2 * moved, x.shape), learner[0])
        self.learner: Learner = learner._replace(online=shift)
        self.written = 0

    def store(self) -> Recorded:
        rng = np.random.default_rng(2)
        x = rng.normal(size=(STEPS + 1, INPUTS)).astype(np.float32)
        ends = rng.choice([0, 1, 2], size=STEPS, p=[0.7, 0.2, 0.1])
        self.x, self.after = x[:-1], x[1:] + np.float32(0.1)
        sizes = [len(outputs) for outputs in self.dimensions]
        numbers = np.stack([rng.integers(n, size=STEPS) for n in sizes], 1).astype(np.int32)
        self.outputs = numbers + [outputs[0] for outputs in self.dimensions]
        self.action = numbers if self.algorithm.layout.factored else numbers[:, 0]
        self.reward = rng.normal(size=STEPS).astype(np.float32)
        self.terminated, self.ended = ends == 1, ends > 0
        columns = (self.x, self.action, self.reward, self.after, self.terminated, ends == 2)
        self.mask = np.ones((STEPS, sum(sizes)), bool)
        if self.masked:
            self.mask = rng.random(self.mask.shape) < 0.5
            for outputs in self.dimensions:
                self.mask[np.arange(STEPS), rng.choice(outputs, STEPS)] = True
        for i in range(STEPS):
            mask = self.mask[i : i + 1] if self.masked else None
            rows = Transition(*(column[i : i + 1] for column in columns), mask=mask)
            self.learner = self.learner._replace(replay=add(self.learner.replay, rows, i))
        self.written = STEPS
        return self

    def updated(self, key: Any) -> dict[str, Any]:
        """What an update must give, from the formulas."""
        c, net, target = self.config, double(self.learner.online), double(self.learner.target)
        alpha, gamma = 0.3, 0.9
        batch = sample(self.learner.replay, key, 16, self.written, gamma, 1, c.n_step)
        index = np.asarray(batch.index)
        priority = np.asarray(self.learner.replay.priority, np.float64).ravel()
        weight = (STEPS * priority[index] / priority.sum()) ** -(0.4 + 0.6 * STEPS / 80)
        weight /= weight.max()
        y = np.zeros(16)
        for j, i in enumerate(index):
            last, factor = i, gamma
            y[j] = self.reward[i]
            for _ in range(c.n_step - 1):
                if self.ended[last] or last + 1 == self.written:
                    break
                last += 1
                y[j] += factor * self.reward[last]
                factor *= gamma
            if self.terminated[last]:
                continue
            _, q = forward(target, self.after[last : last + 1].astype(np.float64))
            _, online = forward(net, self.after[last : last + 1].astype(np.float64))
            for outputs in self.dimensions:
                some = outputs[self.mask[last, outputs]]
                p = policy_of(c.update, online[0, some], alpha)
                value = p @ q[0, some] + alpha * entropy_of(c.update, p)
                if not c.double:
                    value = value_of(c.update, q[0, some], alpha)
                if c.relative_entropy:
                    value -= alpha * entropy_of(c.update, np.full(len(some), 1 / len(some)))
                y[j] += factor * value / len(self.dimensions)
        layers, q = forward(net, self.x[index].astype(np.float64))
        chosen = np.arange(16)[:, None], self.outputs[index]
        error = y - q[chosen].mean(1)
        cost, slope = error**2, 2 * error
        if c.huber is not None:
            far = np.abs(error) > c.huber
            cost = np.where(far, c.huber * (2 * np.abs(error) - c.huber), cost)
            slope = np.where(far, 2 * c.huber * np.sign(error), slope)
        dq = np.zeros(q.shape)
        dq[chosen] = (-weight * slope / 16 / len(self.dimensions))[:, None]
        g, _ = backward(net, layers, dq)
        norm = np.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(g)))
        if c.max_grad_norm is not None:
            g = jax.tree.map(lambda leaf: leaf * min(1, c.max_grad_norm / norm), g)
        t = int(self.learner.adam.count) + 1
        m, v = double(self.learner.adam.mean), double(self.learner.adam.square)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        online = jax.tree.map(
            lambda p, m, v: p - 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8),
            net,
            m,
            v,
        )
        if c.priority > 0:
            priority[index] = (np.abs(error) + 1e-3) ** 0.6
        return {
            "online": online, "mean": m, "square": v, "priority": priority, "error": error,
            "loss": (weight * cost).mean(), "value": y.mean(), "norm": norm,
        }  # fmt: skip


def same(a: Any, b: Any, tolerance: float = 3e-5) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, tolerance, tolerance), a, b)


ALL = {
    "double": True, "huber": 0.5, "max_grad_norm": 0.2, "relative_entropy": True,
    "shared_value": True, "n_step": 3, "priority": 0.6,
}  # fmt: skip
ROWS_OPTIONS = {"update": "sparse", **ALL, "rules": RULES[:1]}
ROWS = {**ROWS_OPTIONS, "initial_value": 0.1}
UPDATES = {"sparse": {}, "hard": {}, "soft": {}, "tsallis": {"update_q": 1.5}}


@pytest.mark.parametrize("options", [{"priority": 0.0}, ALL], ids=["plain", "all options"])
@pytest.mark.parametrize("update", UPDATES)
def test_an_update_is_the_one_of_the_formulas(update, options):
    check_updates({"update": update, **UPDATES[update], **options})


FACTORED = {"choices": (3, 2, 4), "factored": True, **ALL, "update": "sparse", "rules": RULES[:1]}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"masked": True, **ROWS_OPTIONS}, marks=pytest.mark.slow),
        pytest.param(FACTORED, marks=pytest.mark.slow),
        {"masked": True, **FACTORED},
        pytest.param({**FACTORED, "double": False, "choices": (3, 3)}, marks=pytest.mark.slow),
    ],
    ids=["masked", "factored", "factored and masked", "equal dimensions"],
)
def test_factored_and_masked_updates_are_those_of_the_formulas(options):
    check_updates(options)


def test_an_update_by_rows_as_with_many_actions_is_the_one_of_the_formulas():
    check_updates({**ROWS, "choices": (deep_q.DENSE_OUTPUTS + 1,)})


@pytest.mark.parametrize(("batch_size", "ages"), [(8, 10), (deep_q.DENSE_OUTPUTS + 32, 3)])
def test_updates_by_rows_are_those_of_the_whole_layer(batch_size, ages):
    """Most rows have no gradient in most updates, each of which has another learning rate."""
    rows = Recorded(
        choices=(deep_q.DENSE_OUTPUTS + 1,), rules=RULES[:1], batch_size=batch_size,
        buffer_size=max(STEPS, batch_size), max_grad_norm=0.5,
        learning_rate=f"0.01:0.02:{2 * STEPS}",
    ).store()  # fmt: skip
    lazy = rows.learner
    whole = lazy._replace(adam=lazy.adam._replace(written=None))
    for step in range(30):
        key = jax.random.PRNGKey(step)
        lazy, whole = (learn(rows.algorithm, one, STEPS + step, key)[0] for one in (lazy, whole))
    assert len(np.unique(lazy.adam.written)) >= ages, "the rows must be of several ages"
    same(lazy.online, whole.online, 1e-6)
    same(all_moments(lazy.adam), (whole.adam.mean, whole.adam.square))


def all_moments(moments: adam.Adam) -> tuple[Any, Any]:
    """The moments as they are now, also of the rows that were not written by the last update."""
    mean, square, count, written = moments
    if written is None:
        return mean, square
    age = (count - written)[:, None]
    weight = adam.decayed(mean.output.weight, square.output.weight, age)
    bias = adam.decayed(mean.output.bias, square.output.bias, age[:, 0])
    m, v = (type(mean.output)(*parts) for parts in zip(weight, bias, strict=True))
    return mean._replace(output=m), square._replace(output=v)


def check_updates(options: dict[str, Any]) -> None:
    recorded = Recorded(**options).store()
    for step in range(2):
        key = jax.random.PRNGKey(step)
        expected = recorded.updated(key)
        before = recorded.learner
        recorded.learner, metrics = learn(recorded.algorithm, before, recorded.written, key)
        after = recorded.learner
        assert float(metrics.loss) == pytest.approx(expected["loss"], rel=1e-4)
        assert float(metrics.value) == pytest.approx(expected["value"], rel=1e-4)
        mean, square = all_moments(after.adam)
        same(mean, expected["mean"])
        same(square, expected["square"])
        same(after.online, expected["online"])
        same(np.asarray(after.replay.priority).ravel(), expected["priority"], 1e-4)
        assert int(after.adam.count) == step + 1
        if options.get("max_grad_norm"):
            assert expected["norm"] > 0.2, "the case must clip"
        if options.get("huber"):
            assert (np.abs(expected["error"]) > 0.5).any(), "the case must have large errors"
            assert (np.abs(expected["error"]) < 0.5).any(), "the case must have small errors"
        for part in ("target", "hyperparameters", "key"):
            jax.tree.map(np.testing.assert_array_equal, getattr(after, part), getattr(before, part))


def test_a_copy_makes_the_target_equal_and_nothing_else_different():
    learner = Recorded(**ROWS).learner
    copied = Recorded(**ROWS).algorithm.copy(learner)
    jax.tree.map(np.testing.assert_array_equal, copied.target, learner.online)
    same(copied._replace(target=learner.target), learner, 0)
    assert any(np.any(a != b) for a, b in zip(*map(jax.tree.leaves, (learner[0], learner[1]))))
    initial = np.full(ACTIONS, np.float32(0.1))
    assert np.array_equal(learner.target.output.bias, initial), "the initial value of all actions"


def assert_drawn_from(p: Floats, drawn: Any) -> None:
    count = np.bincount(np.asarray(drawn), minlength=len(p))
    assert count[p == 0].sum() == 0
    if (p > 0).sum() > 1:
        assert chisquare(count[p > 0], count.sum() * p[p > 0]).pvalue > 1e-3


def observation_with_some_support(learner: Learner, rule: str) -> tuple[Any, Floats]:
    """An observation, and its policy, which has between one and all actions where it can have."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        x = rng.normal(size=INPUTS).astype(np.float32)
        _, q = forward(double(learner.online), x[None].astype(np.float64))
        p = policy_of(rule, q[0], 0.3)
        if rule in ("hard", "soft") or 1 < (p > 1e-3).sum() == (p > 0).sum() < ACTIONS:
            return x, p
    raise AssertionError("no such observation")


EXPLORATION = [
    ({"explore": "sparse"}, 0.0),
    ({"explore": "soft"}, 0.0),
    ({"explore": "tsallis", "explore_q": 1.5}, 0.0),
    ({"explore": "sparse", "uniform_share": 0.3}, 0.3),
    ({"explore": "epsilon", "epsilon": "1:0:100"}, 0.75),
    ({"explore": "epsilon", "epsilon": 0.4}, 0.4),
    ({"explore": "epsilon", "epsilon": 0.0}, 0.0),
]


@pytest.mark.parametrize(("options", "share"), EXPLORATION, ids=lambda x: str(x))
def test_actions_are_drawn_from_the_policy_and_its_share_of_uniform_ones(options, share):
    recorded = Recorded(**options)
    rule = "hard" if options["explore"] == "epsilon" else options["explore"]
    x, plain = observation_with_some_support(recorded.learner, rule)
    mixed = (1 - share) * plain + share / ACTIONS
    action, support, sampled, policy = draw(recorded.algorithm, recorded.learner, x, 25)
    assert_drawn_from(mixed, action)
    assert_drawn_from(plain, sampled)
    assert float(support) == pytest.approx((plain > 0).mean())
    assert np.asarray(policy) == pytest.approx(plain, abs=1e-5)


def test_alpha_follows_its_schedule_when_acting():
    recorded, x = Recorded(alpha="1:0.01:100"), np.ones(INPUTS, np.float32)
    _, q = forward(double(recorded.learner.online), x[None].astype(np.float64))
    for step, alpha in ((0, 1.0), (50, 0.505), (100, 0.01), (10**6, 0.01)):
        policy = draw(recorded.algorithm, recorded.learner, x, step)[-1]
        assert np.asarray(policy) == pytest.approx(policy_of("sparse", q[0], alpha), abs=1e-4)


CRITICS = {"critics": 2, "huber": 0.5, "update": "sparse", "rules": RULES[:1]}


def test_the_critics_learn_towards_one_target_which_is_their_mean():
    """An update of twins that are equal is the update of each of them alone."""
    both, alone = (Recorded(**{**CRITICS, "critics": n}).store() for n in (2, 1))
    online, target = alone.learner.online, alone.learner.target
    twice = jax.tree.map(lambda x: np.stack([x, x]), (online, target))
    both.learner = both.learner._replace(online=twice[0], target=twice[1])
    key = jax.random.PRNGKey(0)
    one, metrics = learn(alone.algorithm, alone.learner, STEPS, key)
    two, twin_metrics = learn(both.algorithm, both.learner, STEPS, key)
    for i in range(2):
        same(jax.tree.map(lambda x, i=i: x[i], two.online), one.online)
    assert float(twin_metrics.value) == pytest.approx(float(metrics.value), rel=1e-5)
    assert float(twin_metrics.loss) == pytest.approx(2 * float(metrics.loss), rel=1e-5)
    different = jax.tree.map(
        lambda x: x * np.float32([1, 2]).reshape(2, *[1] * (x.ndim - 1)), twice
    )
    apart = both.learner._replace(online=different[0])
    q = values(both.algorithm, apart, both.x)
    single = [
        np.asarray(values(alone.algorithm, alone.learner._replace(online=net), both.x))
        for net in (online, jax.tree.map(lambda x: 2 * x, online))
    ]
    np.testing.assert_allclose(q, np.mean(single, 0), rtol=1e-5, atol=1e-6)


def test_several_gradient_steps_are_several_updates_and_tau_moves_the_target():
    several = Recorded(**ROWS_OPTIONS, gradient_steps=3, tau=0.1).store()
    once = Recorded(**ROWS_OPTIONS).store()
    key = jax.random.PRNGKey(0)
    after, metrics = learn(several.algorithm, several.learner, STEPS, key)
    step, losses = once.learner, []
    for sub in jax.random.split(key, 3):
        target = step.target
        step, found = learn(once.algorithm, step, STEPS, sub)
        moved = jax.tree.map(
            lambda t, o: 0.9 * np.asarray(t) + 0.1 * np.asarray(o), target, step.online
        )
        step = step._replace(target=moved)
        losses.append(float(found.loss))
    same(after.online, step.online)
    same(after.target, step.target)
    assert float(metrics.loss) == pytest.approx(np.mean(losses), rel=1e-4)
    kept = several.algorithm.copy(after)
    jax.tree.map(np.testing.assert_array_equal, kept.target, after.target)


@pytest.mark.parametrize(
    "scale", [*(pytest.param(s, marks=pytest.mark.slow) for s in (1e-3, 1.0)), 1e4]
)
def test_alpha_follows_the_support_whatever_the_scale_of_the_values(scale):
    """Networks are frozen by a tiny learning rate: only alpha moves."""
    config = DeepQConfig(
        alpha="auto", support=0.4, learning_rate=1e-30, batch_size=32, buffer_size=64, gamma=0.9
    )
    choice = Choice((("sparse", None),))
    static = with_defaults(config, deep_q.MEMBER_OPTIONS)
    layout, form = ActionLayout((4, 3), factored=True), ObservationFormat.vector(INPUTS)
    algorithm = DeepQLearning(form, layout, False, HIDDEN, choice, choice, True, static)
    learner = init(algorithm, jax.random.PRNGKey(0), hyperparameters_of(config))
    output = learner.online.output
    output = output._replace(weight=output.weight * np.float32(scale * 100))
    online = learner.online._replace(output=output)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, INPUTS)).astype(np.float32)
    rows = Transition(
        x, rng.integers(3, size=(64, 2)), np.zeros(64), x, np.zeros(64, bool), np.zeros(64, bool)
    )
    learner = learner._replace(online=online, target=online, replay=add(learner.replay, rows, 0))

    @jax.jit
    def many(learner: Learner) -> Learner:
        def body(i: Any, learner: Learner) -> Learner:
            return algorithm.learn(learner, 64, jax.random.PRNGKey(i))[0]

        return jax.lax.fori_loop(0, 4000, body, learner)

    learner = many(learner)
    alpha = float(np.exp(learner.log_alpha))
    q = np.asarray(values(algorithm, learner, x), np.float64)
    shares = []
    for row in q:
        for part in (row[:4], row[4:]):
            p = policy_of("sparse", part, alpha)
            shares.append((1 / (p**2).sum() - 1) / (len(part) - 1))
    assert np.mean(shares) == pytest.approx(0.4, abs=0.05)
