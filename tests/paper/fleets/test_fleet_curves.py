"""Curves beside a checkpoint: they agree with the fleet whatever was written last."""

import json
from types import SimpleNamespace

import pytest

from tsallax.paper.fleets.fleet_curves import EvaluationProtocol, FleetCurves, curves_up_to


def fleet(steps: int, *episodes: int) -> SimpleNamespace:
    records = [SimpleNamespace(returns=[1.0] * count) for count in episodes]
    return SimpleNamespace(steps=steps, records=records)


def test_evaluations_are_due_at_multiples_and_milestones_but_not_at_the_end():
    protocol = EvaluationProtocol(1000, 300, 10, 100, milestones=(450,))
    curves = FleetCurves()
    due = {at: curves.record(protocol, fleet(at, 1, 1)) for at in (150, 300, 450, 600, 910, 1000)}
    assert due == {150: None, 300: 10, 450: 100, 600: 10, 910: 10, 1000: None}


def test_a_training_curve_has_the_means_between_its_entries():
    curves = FleetCurves(counts=[(10, [1, 2]), (20, [1, 3]), (30, [4, 3])])
    returns = [1.0, 2.0, 3.0, 7.0]
    assert curves.training_curve(returns, 0) == ((10, 1.0, 1), (30, 4.0, 3))
    assert curves.training_curve(returns[:3], 1) == ((10, 1.5, 2), (20, 3.0, 1))


def test_entries_after_the_checkpoint_are_dropped():
    counts = [(50, [1, 2]), (100, [3, 4]), (150, [5, 6])]
    evaluations = [(100, 2, [9.0, 9.5]), (150, 2, [8.0, None])]
    state = json.loads(json.dumps(FleetCurves(150, counts, evaluations).to_plain()))
    assert curves_up_to(150, 2, state) == FleetCurves(150, counts, evaluations)
    assert curves_up_to(100, 2, state) == FleetCurves(100, counts[:2], evaluations[:1])


@pytest.mark.parametrize(
    "state", [[], {}, {"counts": [[5, [1]]], "evaluations": []},
              {"counts": [[-5, [1, 2]]], "evaluations": []},
              {"counts": [], "evaluations": [[5, 2, [1, "x"]]]}],
    ids=str,
)  # fmt: skip
def test_damaged_curves_are_refused(state):
    with pytest.raises((ValueError, KeyError, TypeError)):
        curves_up_to(100, 2, state)
