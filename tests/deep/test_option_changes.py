"""Changes of options: what differs, and what a file may claim."""

from refusals import refused
from tsallax import DDPGConfig
from tsallax.deep.option_changes import Change, changes_between, from_plain


def test_changes_are_plain_data():
    new = DDPGConfig(sigma="0.3:0.1:50", net_arch=(8,))
    assert changes_between(7, DDPGConfig(), new) == [
        Change(7, "sigma", 0.1, "0.3:0.1:50"),
        Change(7, "net_arch", [256, 256], [8]),
    ]


def test_a_record_of_changes_is_in_the_order_of_its_steps_and_ends_before_the_present():
    rows = [[0, "gamma", 0.9, 0.8], [50, "gamma", 0.8, 0.7]]
    assert from_plain(rows, 50) == [Change(*row) for row in rows]
    for wrong, steps in ((rows, 49), (rows[::-1], 50), ([["a", "gamma", 0, 1]], 50)):
        with refused("damaged: it cannot have changed an option"):
            from_plain(wrong, steps)
