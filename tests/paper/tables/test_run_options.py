"""Options that all runs share, and those that differ."""

import dataclasses

import pytest

from tsallax.paper.sweep.sweep_tasks import REACHER
from tsallax.paper.tables.cells import gather
from tsallax.paper.tables.run_options import missing, parameters


def test_options_that_differ_are_named(whole, data):
    found = parameters(data)
    assert found["options_of_all_variants"] == {"batch_size": 64, "gamma": 0.99}
    assert found["options_that_differ"] == {"alpha": [1.0, 0.1, 0.01]}
    config = {**whole[0].config, "batch_size": 32}
    changed = dataclasses.replace(whole[0], config=config, seconds=1800.0)
    other = gather(REACHER, [changed, *whole[1:]])
    assert parameters(other)["hours_of_the_longest_fleet"] == 0.5
    assert sorted(parameters(other)["options_that_differ"]) == ["alpha", "batch_size"]
    assert "alpha and batch_size" in missing(other)
    assert found["hardware"] == "gpu: H200, x"
    assert found["hours_of_the_longest_fleet"] == 0.167


@pytest.mark.parametrize(("explore", "named"), [("sparse", False), ("epsilon", True)])
def test_an_epsilon_that_no_run_uses_is_no_difference(explore, named, whole):
    def config(row, first):
        other = first and row.explore == explore
        return {**row.config, "epsilon": "1:0.1:5" if other else "1:0.02:5"}

    rows = [
        dataclasses.replace(r, config=config(r, r.seed == 0)) if r.explore else r for r in whole
    ]
    found = parameters(gather(REACHER, rows))
    assert ("epsilon" in found["options_that_differ"]) == named
    assert (found["options_of_all_variants"].get("epsilon") == "1:0.02:5") != named
