"""Tasks, variants and the results of the paper."""

import pytest

from tsallax.errors import InvalidInput
from tsallax.paper.sweep import sweep_tasks
from tsallax.paper.sweep.sweep_tasks import (
    DDPG_VARIANT,
    PENDULUM,
    REACHER,
    VARIANTS,
    choose_variants,
)


def test_the_paper_has_a_result_for_every_variant_and_number_of_actions():
    for task in sweep_tasks.TASKS.values():
        cells = {(v.name, n) for v in VARIANTS for n in task.actions} | {("DDPG", None)}
        assert set(sweep_tasks.paper_results(task)) == cells
    assert sweep_tasks.paper_results(REACHER)["Soft+Bellman-0.1", 2601].expected_return == -27.5
    assert sweep_tasks.paper_results(REACHER)["Sparse+SparseBellman-0.1", 961].episodes == 5779
    assert len({v.name for v in VARIANTS}) == 27


def test_variants_are_chosen_by_name_with_and_without_alpha():
    assert choose_variants(None) == [*VARIANTS, DDPG_VARIANT]
    assert [v.alpha for v in choose_variants(["soft+bellman"])] == [1.0, 0.1, 0.01]
    assert [v.name for v in choose_variants(["DDPG", "Soft+Bellman-0.1"])] == [
        "Soft+Bellman-0.1", "DDPG"
    ]  # fmt: skip
    (small,) = choose_variants(["Sparse+SparseBellman"], [1e-5])
    assert small.name == "Sparse+SparseBellman-1e-05"


@pytest.mark.parametrize(
    ("names", "alphas"), [(["Sparse+Belman"], None), (None, [0.0]), (None, [float("nan")])]
)
def test_unknown_variants_and_alphas_are_refused(names, alphas):
    with pytest.raises(InvalidInput):
        choose_variants(names, alphas)


def test_numbers_of_actions_are_even_grids():
    assert [REACHER.levels(n) for n in REACHER.actions] == [3, 11, 31, 51]
    assert PENDULUM.levels(101) == 101
    for task, n in ((REACHER, 10), (REACHER, 1), (REACHER, -9), (PENDULUM, 1)):
        with pytest.raises(InvalidInput, match=f"{n} actions"):
            task.levels(n)
