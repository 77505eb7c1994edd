"""The replay memory draws what it says it draws, keeps what it was given and no more.

Everything is checked against plain Python lists of what was written, and exact probabilities.
"""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from tsallax.deep import categorical, replay
from tsallax.deep.replay import Batch, Replay, Transition
from tsallax.envs.observation_format import ObservationFormat

vector = ObservationFormat.vector
add = jax.jit(replay.add)
prioritize = jax.jit(replay.prioritize, static_argnums=3)
sample = jax.jit(replay.sample, static_argnums=(2, 5, 6))
draw_each = jax.jit(jax.vmap(lambda *x: replay.sample(*x[:2], 1, x[2], 0.9), (None, 0, None)))
importance = jax.jit(replay.importance)
CAPACITY, FULL = 24, 60
DRAWN = 240


class Recorder:
    """Writes random transitions to a memory and to a list, each marked by its number in time."""

    def __init__(self, capacity: int, n_envs: int, seed: int = 0, valid: float = 1.0) -> None:
        self.memory = replay.init(capacity, vector(2), (), jnp.int32)
        self.rng = np.random.default_rng(seed)
        self.capacity, self.n_envs, self.valid = capacity, n_envs, valid
        self.rows: list[dict[str, float]] = []

    def write(self, steps: int) -> Recorder:
        n = self.n_envs
        for _ in range(steps):
            first = len(self.rows)
            mark = np.arange(first, first + n)
            reward = self.rng.normal(size=n).astype(np.float32)
            terminated, truncated = self.rng.random((2, n)) < 0.15
            valid = self.rng.random(n) < self.valid
            rows = Transition(
                np.stack([mark, -mark], 1).astype(np.float32),
                (mark * 7 % 11).astype(np.int32),
                reward,
                np.stack([mark + 0.5, -mark - 0.5], 1).astype(np.float32),
                terminated,
                truncated,
                valid,
            )
            self.memory = add(self.memory, rows, first)
            self.rows += [
                {"mark": m, "reward": r, "terminated": t, "ended": t or c, "valid": v}
                for m, r, t, c, v in zip(mark, reward, terminated, truncated, valid)
            ]
        return self

    @property
    def written(self) -> int:
        return len(self.rows)

    @property
    def kept(self) -> range:
        """The numbers of the transitions that the memory still holds."""
        return range(max(0, self.written - self.capacity), self.written)

    def draw(self, seed: int = 0, discount: float = 0.9, n_step: int = 1) -> Batch:
        """A batch of ten times the capacity, as arrays of NumPy."""
        key = jax.random.PRNGKey(seed)
        batch = sample(self.memory, key, DRAWN, self.written, discount, self.n_envs, n_step)
        return jax.device_get(batch)

    def returns(self, number: int, discount: float, n_step: int) -> tuple[float, int, float]:
        """The n-step return from a transition, where it stops, and the discount of what follows."""
        total, factor = 0.0, 1.0
        for i in range(number, number + n_step * self.n_envs, self.n_envs):
            if i >= self.written:
                break
            total += factor * self.rows[i]["reward"]
            factor *= discount
            last = i
            if self.rows[i]["ended"]:
                break
        return total, last, 0.0 if self.rows[last]["terminated"] else factor


def marks(batch: Batch) -> NDArray[np.int64]:
    """The numbers in time of drawn transitions."""
    return np.asarray(batch.observation)[:, 0].astype(np.int64)


def of_priorities(weight: NDArray[np.floating]) -> Replay:
    """A full memory with about the given priorities, each transition marked by its place."""
    n, weight = len(weight), weight.astype(np.float32)
    mark = np.arange(n, dtype=np.float32)[:, None]
    never = np.zeros(n, bool)
    rows = Transition(mark, never, mark[:, 0], mark, never, never, weight > 0)
    memory = add(replay.init(n, vector(1), (), jnp.int32), rows, 0)
    there = np.flatnonzero(weight)
    index = np.resize(there, n)
    return prioritize(memory, index, weight[index], 1.0)


def probabilities(memory: Replay) -> NDArray[np.float64]:
    weight = np.asarray(memory.priority, np.float64).ravel()[: memory.capacity]
    return weight / weight.sum()


@pytest.mark.parametrize("capacity", [1, 2, 7, 60])
def test_the_priorities_fit_the_capacity_and_waste_less_than_a_block(capacity):
    memory = jax.eval_shape(lambda: replay.init(capacity, vector(3), (), jnp.int32))
    blocks, side = memory.priority.shape
    assert capacity <= memory.priority.size < capacity + side
    assert memory.sums.shape == (blocks,)
    assert memory.capacity == capacity
    several = jax.eval_shape(lambda: replay.init(capacity, vector(3), (), jnp.int32, n_envs=4))
    assert several.capacity == -(-capacity // 4) * 4


def test_a_million_transitions_take_hardly_more_than_their_raw_bytes():
    memory = jax.eval_shape(lambda: replay.init(1_000_000, vector(10), (), jnp.int32))
    held = sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(memory))
    raw = 1_000_000 * (10 * 4 * 2 + 4 + 4 + 1)
    assert held < 1.1 * raw


@pytest.mark.parametrize(("n_envs", "steps"), [(1, 5), (1, 24), (1, 47), (3, 8), (3, 19)])
def test_the_ring_holds_exactly_the_newest_transitions(n_envs, steps):
    recorder = Recorder(CAPACITY, n_envs).write(steps)
    drawn = recorder.draw()
    assert set(marks(drawn)) == set(recorder.kept)
    for j, m in enumerate(marks(drawn)):
        assert int(drawn.index[j]) == m % CAPACITY
        assert int(drawn.action[j]) == m * 7 % 11
        assert float(drawn.reward[j]) == np.float32(recorder.rows[m]["reward"])
        assert np.array_equal(drawn.observation[j], [m, -m])
        assert np.array_equal(drawn.next_observation[j], [m + 0.5, -m - 0.5])


@pytest.mark.parametrize(("n_envs", "steps"), [(1, 11), (1, 24), (3, 20)])
def test_single_draws_follow_the_priorities(n_envs, steps):
    """Before, when and after the ring is full; also where its last block is not."""
    recorder = Recorder(CAPACITY, n_envs).write(steps)
    index = np.resize([m % CAPACITY for m in recorder.kept], CAPACITY)
    error = np.random.default_rng(1).exponential(size=CAPACITY).astype(np.float32)[index]
    recorder.memory = prioritize(recorder.memory, index, error, 0.7)
    weight = np.zeros(CAPACITY)
    weight[index] = (error.astype(np.float64) + 1e-3) ** 0.7
    truth = weight / weight.sum()
    assert probabilities(recorder.memory) == pytest.approx(truth, rel=1e-5)
    keys = jax.random.split(jax.random.PRNGKey(2), 30_000)
    drawn = draw_each(recorder.memory, keys, recorder.written)
    index = np.asarray(drawn.index)[:, 0]
    np.testing.assert_allclose(np.asarray(drawn.probability)[:, 0], truth[index], rtol=1e-5)
    count = np.bincount(index, minlength=CAPACITY)
    there = truth > 0
    assert count[~there].sum() == 0
    assert chisquare(count[there], truth[there] * count.sum()).pvalue > 1e-3


def test_a_batch_holds_each_transition_as_often_as_its_share():
    """To within one in every batch, and exactly on average."""
    memory = of_priorities(np.random.default_rng(0).exponential(size=FULL) ** 2)
    keys = jax.random.split(jax.random.PRNGKey(0), 4000)
    draw = jax.jit(jax.vmap(lambda key: replay.sample(memory, key, 32, FULL, 0.9).index))
    count = np.stack([np.bincount(batch, minlength=FULL) for batch in np.asarray(draw(keys))])
    expected = probabilities(memory) * 32
    assert np.all(count <= np.floor(expected) + 2)
    assert np.all(count >= np.floor(expected) - 1)
    assert np.all(np.abs(count.mean(0) - expected) < 4.5 * np.sqrt(expected / len(keys)))


def test_new_transitions_get_the_largest_priority_so_far():
    recorder = Recorder(CAPACITY, 1).write(3)
    assert np.asarray(recorder.memory.priority).ravel()[:3] == pytest.approx(1.0)
    recorder.memory = prioritize(recorder.memory, np.array([0, 1]), np.float32([-4.0, 0.2]), 0.5)
    largest = (4 + 1e-3) ** 0.5
    recorder.memory = prioritize(recorder.memory, np.array([0, 0]), np.float32([0.1, 0.1]), 0.5)
    recorder.write(1)
    weight = np.asarray(recorder.memory.priority).ravel()[:4]
    assert weight == pytest.approx([0.101**0.5, 0.201**0.5, 1.0, largest], rel=1e-6)


@pytest.mark.parametrize("new", [0.0, 0.3, 1.5])
def test_priorities_with_another_exponent_are_those_of_the_same_errors(new):
    first = Recorder(CAPACITY, 1, valid=0.7).write(15).memory
    where, error = np.arange(5), np.array([0.0, 0.1, 1.0, 3.0, 10.0], np.float32)
    found = replay.with_exponent(prioritize(first, where, error, 0.6), 0.6, new)
    expected = prioritize(first, where, error, new)
    for name in ("priority", "sums", "largest"):
        one, other = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(one, other, rtol=1e-5, err_msg=name)
    assert (np.asarray(found.priority) == 0).any(), "places that are empty or hold no transition"
    again = replay.with_exponent(replay.with_exponent(found, new, 0), 0, 0.6)
    assert set(np.unique(again.priority)) == {0, 1}


def test_block_sums_do_not_drift():
    recorder = Recorder(CAPACITY, 1).write(CAPACITY)
    rng = np.random.default_rng(0)
    for _ in range(500):
        index = rng.integers(CAPACITY, size=8)
        error = (10.0 ** rng.uniform(-4, 4, CAPACITY))[index].astype(np.float32)
        recorder.memory = prioritize(recorder.memory, index, error, 1.0)
    priority = np.asarray(recorder.memory.priority, np.float64)
    exact = [math.fsum(row) for row in priority]
    assert np.asarray(recorder.memory.sums) == pytest.approx(exact, rel=3e-6)


def test_a_transition_drawn_twice_keeps_one_priority():
    recorder = Recorder(CAPACITY, 1).write(CAPACITY)
    index, error = np.resize([5, 5, 2, 5], 8), np.resize(np.float32([3, 3, 1, 3]), 8)
    memory = prioritize(recorder.memory, index, error, 1.0)
    expected = np.ones(CAPACITY)
    expected[[5, 2]] = 3.001, 1.001
    assert np.asarray(memory.priority).ravel()[:CAPACITY] == pytest.approx(expected, rel=1e-6)
    assert np.asarray(memory.sums).sum() == pytest.approx(expected.sum(), rel=1e-6)


@pytest.mark.parametrize("n_step", [5, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("n_envs", "steps"), [(1, 9), (1, 24), (1, 91), (3, 8), (3, 37)])
def test_returns_of_several_steps_are_those_of_the_recorded_trajectories(n_envs, steps, n_step):
    """They stop at terminations, truncations and the newest transition, and never wrap over it."""
    recorder = Recorder(CAPACITY, n_envs, seed=steps).write(steps)
    drawn = recorder.draw(discount=0.8, n_step=n_step)
    numbers = marks(drawn)
    assert set(numbers) == set(recorder.kept)
    for j, number in enumerate(numbers):
        total, last, factor = recorder.returns(number, 0.8, n_step)
        assert float(drawn.reward[j]) == pytest.approx(total, abs=1e-5)
        assert float(drawn.discount[j]) == pytest.approx(factor, rel=1e-6)
        assert float(drawn.next_observation[j][0]) == last + 0.5


def test_the_target_bootstraps_through_truncation_but_not_through_termination():
    recorder = Recorder(CAPACITY, 1).write(4)
    for i, (terminated, truncated) in enumerate(itertools.product([False, True], repeat=2)):
        x, one = np.zeros((1, 2), np.float32), np.ones(1, np.float32)
        row = Transition(x, one.astype("i4"), one, x, one == terminated, one == truncated, one > 0)
        recorder.memory = add(recorder.memory, row, i)
    batch = recorder.draw(discount=0.5)
    factor = dict(zip(batch.index.tolist(), batch.discount.tolist()))
    assert factor == {0: 0.5, 1: 0.5, 2: 0.0, 3: 0.0}


@pytest.mark.parametrize("n_envs", [1, 3])
def test_invalid_transitions_keep_their_place_in_time_but_are_never_drawn(n_envs):
    recorder = Recorder(CAPACITY, n_envs, valid=0.6).write(100 // n_envs)
    for seed in range(20):
        drawn = marks(recorder.draw(seed))
        assert all(recorder.rows[m]["valid"] for m in drawn)
    assert set(drawn) == {m for m in recorder.kept if recorder.rows[m]["valid"]}


@pytest.mark.parametrize("capacity", [FULL, pytest.param(4096, marks=pytest.mark.slow)])
def test_a_priority_of_zero_is_never_drawn_whatever_the_rounding(capacity, monkeypatch):
    """Draws at the seams between transitions, where running sums are rounded either way."""
    size = 1 << 15
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape: key)
    draw = jax.jit(lambda memory, u: replay.sample(memory, u, size, capacity, 0.9))
    rng = np.random.default_rng(capacity)
    for trial in range(12):
        weight = rng.exponential(size=capacity) ** 3 * (rng.random(capacity) < 0.1 + 0.07 * trial)
        weight[rng.integers(capacity)] = 1.0
        memory = of_priorities(weight)
        seams = np.cumsum(probabilities(memory)) * size
        u = rng.choice([0.0, 1 - 2**-24], size)
        u[np.minimum(seams.astype(int), size - 1)] = seams % 1
        batch = draw(memory, u.astype(np.float32))
        assert np.all(weight[np.asarray(batch.index)] > 0)
        assert np.all(np.isfinite(importance(batch, capacity, capacity, 1.0)))


def test_draws_are_those_of_exact_sums_in_blocks_of_several_runs():
    """Priorities are integers, so that all sums are exact; most draws are at a seam."""
    rng, capacity, size = np.random.default_rng(7), 2000, 2048
    memory = of_priorities(rng.integers(0, 5, capacity) * (rng.random(capacity) < 0.6))
    assert memory.priority.shape[1] > 2 * categorical.RUN
    weight = np.asarray(memory.priority).ravel()
    for weights in np.asarray(memory.priority):
        u = rng.choice(np.arange(0, weights.sum() + 1, 0.5), 64).astype(np.float32)
        found, drawn = categorical.search_runs(jnp.tile(weights, (64, 1)), u)
        expected = np.searchsorted(np.cumsum(weights), u, side="right")
        last = np.flatnonzero(weights).max()
        assert np.array_equal(found, np.minimum(expected, last))
        assert np.array_equal(drawn, weights[found])
        assert np.array_equal(categorical.search_runs(jnp.asarray(weights), u)[0], found)
    index = np.asarray(sample(memory, jax.random.PRNGKey(0), size, capacity, 0.9).index)
    part = np.arange(size) * weight.sum() / size
    before, after = np.cumsum(weight) - weight, np.cumsum(weight)
    assert np.all(after[index] >= part)
    assert np.all(before[index] <= part + weight.sum() / size)


def test_importance_weights_are_those_of_prioritised_replay():
    """With beta = 1 a weighted mean over draws is the plain mean over the memory."""
    rng = np.random.default_rng(0)
    memory = of_priorities(rng.exponential(size=FULL) + 0.1)
    batch = sample(memory, jax.random.PRNGKey(0), 200_000, FULL, 0.9)
    p = probabilities(memory)[np.asarray(batch.index)]
    for beta in (0.0, 0.4, 1.0):
        expected = (FULL * p) ** -beta
        found = np.asarray(importance(batch, FULL, FULL, beta))
        np.testing.assert_allclose(found, expected / expected.max(), rtol=1e-4)
    number, w = rng.normal(size=FULL), found.astype(np.float64)
    mean = (w * number[np.asarray(batch.index)]).sum() / w.sum()
    assert mean == pytest.approx(number.mean(), abs=1e-3)


def test_integers_images_and_masks_come_back_as_they_were_written():
    """n-step returns take the observation and the mask at the end of their steps."""
    rng, capacity, n_actions = np.random.default_rng(5), 12, 11
    for form in (ObservationFormat.integer(500), ObservationFormat.image(4, 3, 2)):
        memory = replay.init(capacity, form, (2,), jnp.int32, mask_size=n_actions)
        high = 500 if form.kind == "integer" else 256
        seen = rng.integers(high, size=(capacity + 1, *form.shape)).astype(form.dtype)
        masks = rng.random((capacity, n_actions)) < 0.5
        actions = rng.integers(9, size=(capacity, 2)).astype(np.int32)
        flag, reward = np.zeros(1, bool), np.zeros(1, np.float32)
        for i in range(capacity):
            one = slice(i, i + 1)
            after = seen[i + 1 : i + 2]
            row = Transition(seen[one], actions[one], reward, after, flag, flag, mask=masks[one])
            memory = add(memory, row, i)
        assert memory.observations.dtype == form.dtype
        assert memory.rows.shape == (capacity, 4)
        batch = sample(memory, jax.random.PRNGKey(0), 8, capacity, 0.9, 1, 3)
        first = np.asarray(batch.index)
        last = np.minimum(first + 2, capacity - 1)
        assert np.array_equal(batch.observation, seen[first])
        assert np.array_equal(batch.next_observation, seen[last + 1])
        assert np.array_equal(batch.mask, masks[last])
        assert np.array_equal(batch.action, actions[first])
