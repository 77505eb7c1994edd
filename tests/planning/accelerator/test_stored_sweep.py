"""Sweeps of a stored MDP in JAX against those of the compiled loops."""

import jax.numpy as jnp
import numpy as np
import pytest

from tsallax import MDP, Hard, Soft, Sparse, problems
from tsallax.planning.accelerator import stored_sweep
from tsallax.planning.accelerator.stored_sweep import StoredSweep, group_states
from tsallax.planning.bellman import Bellman
from tsallax.planning.precision import double_precision


def ragged():
    """States with 0, 2 to 3 or 5 to 7 actions, and 4 to 6 successors each: two groups."""
    rng = np.random.default_rng(1)
    pairs, rows = [], []
    for s in range(40):
        for a in range([0, 2, 3, 5, 6, 7][s % 6]):
            row = np.zeros(40)
            row[rng.choice(40, 4 + s % 3, replace=False)] = 1.0
            pairs.append((s, a))
            rows.append(row / row.sum())
    ends = [s for s in range(40) if s % 6 == 0]
    return MDP(np.array(rows), rng.normal(size=len(rows)), 0.9, pairs=pairs, terminal=ends)


def bandit():
    """Every action ends the episode: no pair has a successor."""
    return MDP(np.zeros((4, 2)), [1.0, 3.0, -1.0, 0.0], 0.9, pairs=np.argwhere(np.ones((2, 2))),
               termination=np.ones(4))  # fmt: skip


GARNET = problems.garnet(30, 4, 3, discount=0.9, seed=0)


@pytest.mark.parametrize(
    ("mdp", "regularizer", "unrolled"),
    [
        (ragged(), Sparse(0.5), 32),
        (GARNET, Hard(), 32),
        (GARNET, Sparse(0.5), 2),
        (ragged(), Soft(0.5), 32),
        (bandit(), Sparse(0.5), 32),
    ],
)
def test_a_sweep_its_policy_and_following_it_agree_with_the_compiled_loops(
    mdp, regularizer, unrolled, monkeypatch
):
    monkeypatch.setattr(stored_sweep, "UNROLLED", unrolled)
    v = np.where(mdp.terminal, 0.0, np.random.default_rng(2).normal(size=mdp.n_states))
    compiled = Bellman(mdp, regularizer)
    certificate = compiled.certify(compiled.start(v))
    followed, _, _ = compiled.policy_sweeps(certificate, certificate.updated, 1, 0.0)
    with double_precision():
        model = StoredSweep(mdp, jnp.float64)
        found = model.sweep(regularizer, model.place(v), 1)
        prepared = model.prepared(regularizer, found.policy, int(found.max_support))
        again = model.follow(prepared, found.updated)
        pi = model.pair_policy(regularizer, found.policy)
    np.testing.assert_allclose(found.updated, certificate.updated, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(pi, certificate.policy.weights, atol=1e-12)
    np.testing.assert_allclose(again, followed, rtol=1e-12, atol=1e-12)
    assert (found.low, found.high) == pytest.approx(certificate.change, rel=1e-12)
    assert found.valid
    assert model.survey.ends == compiled.ends
    np.testing.assert_array_equal(model.survey.terminal, mdp.terminal)
    assert model.survey.reward >= np.abs(mdp.rewards).max()


def test_the_cost_of_a_policy_counts_the_actions_that_states_have():
    with double_precision():
        model = StoredSweep(ragged(), jnp.float64)
        garnet = StoredSweep(GARNET, jnp.float64)
    counts = np.diff(ragged().pointer)
    for size in (1, 2, 4, 8):
        assert model.follow_cost(size) == np.minimum(counts, size).sum() / counts.sum()
    assert garnet.follow_cost(4) == 1.0


def test_a_policy_of_all_actions_takes_the_transitions_of_the_model():
    with double_precision():
        model = StoredSweep(GARNET, jnp.float64)
        found = model.sweep(Soft(1.0), model.place(np.zeros(30)), 1)
        (prepared,) = model.prepared(Soft(1.0), found.policy, 4)
    group = model._groups[0]
    assert prepared.successors.unsafe_buffer_pointer() == group.successors.unsafe_buffer_pointer()


def test_states_of_a_group_differ_by_less_than_a_factor_of_two():
    mdp = ragged()
    groups = group_states(mdp)
    assert len(groups) == 2
    actions = np.diff(mdp.pointer)
    for states in groups:
        assert actions[states].max() < 2 * actions[states].min()
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.flatnonzero(actions))
    assert group_states(GARNET) == [None]
