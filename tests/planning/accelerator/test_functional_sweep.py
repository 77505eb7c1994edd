"""Sweeps of a model from functions, in each form, against the same MDP stored."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planning.functional_models import LEVELS, PROBABILITIES, decide, evolve, stock_mdp, stock_model
from tsallax import MDP, Hard, InvalidInput, Sparse, problems, solve
from tsallax.planning.accelerator import functional_sweep
from tsallax.planning.accelerator.functional_sweep import FunctionalSweep
from tsallax.planning.bellman import Bellman
from tsallax.planning.precision import double_precision

FORMS = {
    "post-decision states": stock_model(),
    "pairs": stock_model(
        decide=lambda s, a: ((s, a), -1.0 * a, s + a < LEVELS),
        evolve=lambda x, e: evolve(x[0] + x[1], e),
        post=None,
    ),
    "values on the axes, and probabilities of the post-decision state": stock_model(
        probabilities=lambda x: jnp.asarray(PROBABILITIES) + 0.0 * x,
        decide=lambda s, a: decide(s / 10, a),
        evolve=lambda x, e: ((10.0 * evolve(x, e + 1)[0]), *evolve(x, e + 1)[1:]),
        states=10.0 * np.arange(LEVELS),
        events=np.array([-1, 0, 1]),
    ),
}


@pytest.mark.parametrize(("form", "block"), list(zip(FORMS, [7, 7, 2**18], strict=True)))
def test_a_sweep_in_every_form_is_that_of_the_stored_mdp(form, block, monkeypatch):
    monkeypatch.setattr(functional_sweep, "CPU_BLOCK", block)
    _compare(FORMS[form], stock_mdp(), Sparse(0.5))


def test_a_sweep_of_groups_of_states_is_that_of_the_stored_mdp(monkeypatch):
    monkeypatch.setattr(functional_sweep, "CPU_BLOCK", 100)
    model = problems.perishables(max_order=1)
    _compare(model, model.to_mdp(), Hard())


def _compare(model, mdp, regularizer):
    v = np.random.default_rng(0).normal(size=mdp.n_states)
    compiled = Bellman(mdp, regularizer)
    certificate = compiled.certify(compiled.start(v))
    followed, _, _ = compiled.policy_sweeps(certificate, certificate.updated, 1, 0.0)
    with double_precision():
        sweep = FunctionalSweep(model, jnp.float64)
        found = sweep.sweep(regularizer, sweep.place(v), 2)
        lists = sweep.prepared(regularizer, found.policy, int(found.max_support))
        again = sweep.follow(lists, found.updated)
        rows = sweep.policy_rows(regularizer, found.policy, np.arange(mdp.n_states))
        terminal, ends, reward = sweep.survey
    np.testing.assert_allclose(found.updated, certificate.updated, rtol=1e-12)
    np.testing.assert_allclose(again, followed, rtol=1e-12)
    np.testing.assert_allclose(rows, mdp.table(certificate.policy.weights), atol=1e-12)
    assert found.valid
    assert ends == compiled.ends
    np.testing.assert_array_equal(terminal, mdp.terminal)
    assert reward >= mdp.max_reward
    assert found.pairs_used == np.count_nonzero(rows)


def test_a_model_without_any_allowed_action_is_refused():
    mdp = MDP.from_functions(
        lambda state, action: (state, 0.0, False),
        lambda post, event: (post, 0.0, False),
        states=5, actions=2, post=5, events=1, probabilities=[1.0], discount=0.9,
    )  # fmt: skip
    with pytest.raises(InvalidInput, match="every state is terminal"):
        solve(mdp, Hard())


def test_a_model_whose_values_do_not_fit_into_memory_is_refused_before_it_is_checked():
    model = MDP.from_functions(
        lambda state, action: (state, 0.0, True),
        lambda post, event: (post, 0.0, False),
        states=(10**6, 10**7), actions=2, post=(10**6, 10**7), events=1, probabilities=[1.0],
        discount=0.9,
    )  # fmt: skip
    words = "not enough memory for the values of 10,000,000,000,000 states and .*: use coarser"
    with pytest.raises(InvalidInput, match=words):
        solve(model, Hard())


def test_blocks_are_those_of_the_device_that_computes(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with jax.default_device(jax.devices("cpu")[0]):
        assert FunctionalSweep(stock_model(), jnp.float32)._block == functional_sweep.CPU_BLOCK
    monkeypatch.setattr(functional_sweep, "_platform", lambda mesh: "gpu")
    assert FunctionalSweep(stock_model(), jnp.float32)._block == functional_sweep.GPU_BLOCK
