"""The commands that train the runs of a sweep again."""

from made_up_rows import made_up_row
from tsallax.deep.options import to_mapping
from tsallax.paper.sweep.sweep_specification import learner_config
from tsallax.paper.sweep.sweep_tasks import DDPG_VARIANT, REACHER, VARIANTS
from tsallax.paper.tables.commands import commands_for


def test_variants_with_another_number_of_seeds_have_a_command_of_their_own(whole):
    first, *others = commands_for(REACHER, whole)
    assert others == ["tsallax reproduce reacher --variants DDPG --seeds 6"]
    assert first.startswith("tsallax reproduce reacher")
    assert "--variants" not in first
    (alone,) = commands_for(REACHER, [r for r in whole if r.actions is not None])
    assert "--variants" in alone


def test_the_command_of_a_small_sweep_has_all_that_was_asked_for():
    variant = VARIANTS[1]
    config = to_mapping(learner_config(REACHER, variant, {"batch_size": 16, "net_arch": [64, 64]}))
    few = {"episodes": 30, "steps": 1500, "returns": (-9.0, -9.0), "evaluated": 20}
    rows = [
        made_up_row(REACHER, variant, 9, seed, -9.0, None, config=config, **few)
        for seed in range(4)
    ]
    assert commands_for(REACHER, rows) == [
        f"tsallax reproduce reacher --quick --variants {variant.name} --seeds 4 --episodes 30 "
        "--steps 1500 --set batch_size=16"
    ]


def test_the_command_has_options_of_q_learning_alone_beside_ddpg():
    given = {"target_update_interval": 500, "batch_size": 32}
    cells = [(v, n) for v in VARIANTS for n in REACHER.actions] + [(DDPG_VARIANT, None)]
    configs = {v: to_mapping(learner_config(REACHER, v, given)) for v, _ in cells}
    rows = [
        made_up_row(REACHER, v, n, seed, -9.0, None, config=configs[v])
        for v, n in cells
        for seed in range(3)
    ]
    (command,) = commands_for(REACHER, rows)
    assert "--set batch_size=32" in command
    assert "--set target_update_interval=500" in command
