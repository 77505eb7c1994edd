"""The commands that train the runs of a sweep again."""

import dataclasses

import pytest

from made_up_rows import made_up_row
from tsallax.deep.options import to_mapping
from tsallax.paper.sweep.specification import learner_config
from tsallax.paper.sweep.tasks import DDPG, REACHER, VARIANTS
from tsallax.paper.tables.commands import commands_for

COMMANDS = {
    "everything": (lambda r: True, ["tsallax reproduce reacher --variants DDPG --seeds 6"]),
    "without DDPG": (lambda r: r.actions is not None, []),
}


@pytest.mark.parametrize("part", COMMANDS)
def test_the_commands_are_those_that_made_the_rows(part, whole):
    keep, more = COMMANDS[part]
    first, *others = commands_for(REACHER, [r for r in whole if keep(r)])
    assert others == more
    assert ("--variants" in first) == (part == "without DDPG")
    assert first.startswith("tsallax reproduce reacher")


def test_the_command_of_a_small_sweep_has_all_that_was_asked_for():
    variant = VARIANTS[1]
    config = to_mapping(learner_config(REACHER, variant, {"batch_size": 16, "net_arch": [64, 64]}))
    few = {"episodes": 30, "steps": 1500, "config": config, "evaluated": 20}
    rows = [made_up_row(REACHER, variant, 9, seed, -9.0, None, **few) for seed in range(4)]
    rows = [dataclasses.replace(r, returns=(-9.0, -9.0)) for r in rows]
    assert commands_for(REACHER, rows) == [
        f"tsallax reproduce reacher --quick --variants {variant.name} --seeds 4 --episodes 30 "
        "--steps 1500 --set batch_size=16"
    ]


def test_the_command_has_options_of_q_learning_alone_beside_ddpg():
    def of(variant, actions):
        config = to_mapping(
            learner_config(REACHER, variant, {"target_update_interval": 500, "batch_size": 32})
        )
        return [
            made_up_row(REACHER, variant, actions, s, -9.0, None, config=config) for s in range(3)
        ]

    rows = [one for v in VARIANTS for n in REACHER.actions for one in of(v, n)] + of(DDPG, None)
    (command,) = commands_for(REACHER, rows)
    assert "--set batch_size=32" in command
    assert "--set target_update_interval=500" in command
