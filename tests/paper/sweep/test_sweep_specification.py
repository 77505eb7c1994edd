"""Runs of a sweep, and the options of their learners."""

import dataclasses

import pytest

from small_sweeps import NAME, small
from tsallax import DeepQConfig
from tsallax.errors import InvalidInput
from tsallax.paper.sweep.sweep_specification import (
    changed_sweep,
    learner_config,
    paper_sweep,
    runs_of,
)
from tsallax.paper.sweep.sweep_tasks import DDPG_VARIANT, PENDULUM, REACHER, choose_variants


def test_epsilon_greedy_with_the_plain_update_has_other_seeds_for_every_alpha():
    names = ["EpsGrdy+Bellman", NAME, "DDPG"]
    made = small(variants=tuple(choose_variants(names)), actions=(9, 121))
    seeds: dict[str, list[int]] = {}
    for run in runs_of(made):
        seeds.setdefault(run.variant.name, []).append(run.seed)
        assert (run.actions is None) == (run.variant == DDPG_VARIANT)
    assert seeds == {
        NAME: [0, 1] * 2,
        "EpsGrdy+Bellman-1": [0, 1] * 2,
        "EpsGrdy+Bellman-0.1": [1000, 1001] * 2,
        "EpsGrdy+Bellman-0.01": [2000, 2001] * 2,
        "DDPG": [0, 1],
    }


def test_seeds_do_not_depend_on_the_other_alphas_of_a_sweep():
    def seeds(*alphas: float) -> dict[str, int]:
        found = choose_variants(["EpsGrdy+Bellman"], alphas)
        return {run.variant.name: run.seed for run in runs_of(small(1, variants=tuple(found)))}

    one, more = seeds(0.5), seeds(0.2, 0.5, 0.1, 7.0)
    assert one["EpsGrdy+Bellman-0.5"] == more["EpsGrdy+Bellman-0.5"] >= 3000
    assert len(set(more.values())) == 4


def test_runs_that_are_asked_for_twice_are_trained_once():
    made = small(actions=(9, 9), variants=tuple(choose_variants([NAME])) * 2)
    assert len(runs_of(made)) == 2
    assert len(runs_of(paper_sweep(REACHER, quick=True))) == 8


def test_the_options_of_a_task_hold_for_the_learners_that_have_them():
    (variant,) = choose_variants([NAME])
    greedy = dataclasses.replace(variant, explore="epsilon")
    assert learner_config(PENDULUM, greedy, {}).epsilon == (1.0, 0.02, 10_000)
    assert learner_config(PENDULUM, variant, {}).epsilon == DeepQConfig().epsilon, "not used"
    assert not hasattr(learner_config(PENDULUM, DDPG_VARIANT, {}), "epsilon")
    assert learner_config(REACHER, variant, {}).net_arch == (256,) * 4
    assert learner_config(REACHER, variant, {"net_arch": [8]}).net_arch == (8,)


@pytest.mark.parametrize(
    "changes",
    [{"seeds": 0}, {"episodes": 0}, {"steps": 49}, {"actions": (10,)}, {"options": {"batches": 3}},
     {"options": {"alpha": 3}}, {"options": {"batch_size": 0}}, {"options": {"n_envs": 2}},
     {"options": {"sigma": 0.2}, "variants": tuple(choose_variants([NAME]))}],
    ids=str,
)  # fmt: skip
def test_a_sweep_that_cannot_be_trained_is_refused(changes):
    with pytest.raises(InvalidInput):
        changed_sweep(paper_sweep(REACHER), changes)
