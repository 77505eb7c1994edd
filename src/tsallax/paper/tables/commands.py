"""The commands that train the runs of a sweep again, from their rows."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tsallax.deep import options
from tsallax.paper.sweep.sweep_rows import SweepRow
from tsallax.paper.sweep.sweep_specification import (
    SEED_SHIFT,
    SweepRequest,
    learner_config,
    paper_sweep,
)
from tsallax.paper.sweep.sweep_tasks import SweepTask, Variant, choose_variants
from tsallax.paper.tables.run_options import options_of


def commands_for(task: SweepTask, rows: Sequence[SweepRow]) -> list[str]:
    """One command, or one for each number of seeds."""
    by_seeds: dict[int, list[SweepRow]] = {}
    for name in dict.fromkeys(row.algorithm for row in rows):
        mine = [row for row in rows if row.algorithm == name]
        by_seeds.setdefault(max(row.seed % SEED_SHIFT for row in mine) + 1, []).extend(mine)
    most = max(by_seeds, key=lambda seeds: len(by_seeds[seeds]))
    quick = all(row.evaluated == paper_sweep(task, quick=True).evaluated for row in rows)
    usual = paper_sweep(task, quick)
    found = [_command(usual, quick, by_seeds.pop(most), most, {row.algorithm for row in rows})]
    for seeds, mine in by_seeds.items():
        found.append(_command(usual, quick, mine, seeds, {row.algorithm for row in mine}))
    return found


def _command(
    usual: SweepRequest, quick: bool, rows: Sequence[SweepRow], seeds: int, names: set[str]
) -> str:
    """The command for `names`, with the options of `rows`."""
    words = [f"tsallax reproduce {usual.task.name}", *(["--quick"] if quick else [])]
    if names != {v.name for v in usual.variants}:
        words.append(f"--variants {','.join(_named(names))}")
    alphas = {row.alpha for row in rows if row.alpha is not None}
    if alphas - {v.alpha for v in choose_variants(None)}:
        words.append(f"--alphas {','.join(f'{a:g}' for a in sorted(alphas, reverse=True))}")
    actions = tuple(sorted({row.actions for row in rows if row.actions is not None}))
    if actions and actions != usual.actions:
        words.append(f"--actions {','.join(map(str, actions))}")
    asked = {"seeds": seeds, **_protocol(rows, usual)}
    words += [f"--{k} {value}" for k, value in asked.items() if value != getattr(usual, k)]
    return " ".join([*words, *_set(usual, rows)])


def _protocol(rows: Sequence[SweepRow], usual: SweepRequest) -> dict[str, int]:
    """The episodes and steps that were asked for, inferred from the runs."""
    episodes, steps = max(row.episodes for row in rows), max(row.steps for row in rows)
    ended = {row.steps for row in rows}
    by_steps = episodes < usual.episodes and ended == {usual.steps}
    return {} if by_steps else {"episodes": episodes, "steps": max(steps, usual.task.length)}


def _named(names: set[str]) -> list[str]:
    ordered = [v.name for v in choose_variants(None)]
    return sorted(names, key=lambda one: ordered.index(one) if one in ordered else len(ordered))


def _set(usual: SweepRequest, rows: Sequence[SweepRow]) -> list[str]:
    """Options that differ from those of such a sweep."""
    first = rows[0]
    variant = Variant(first.explore, first.update, first.alpha)
    expected = options.to_mapping(learner_config(usual.task, variant, usual.options))
    return set_flags(options_of(rows)[0], expected, ("explore", "update", "alpha"))


def set_flags(
    found: Mapping[str, Any], expected: Mapping[str, Any], but: Collection[str]
) -> list[str]:
    """The flags for options that differ from the expected ones, `but` some.

    >>> set_flags({"net_arch": [8, 8], "gamma": 0.9}, {"net_arch": [64], "gamma": 0.9}, ())
    ['--set net_arch=8,8']
    """
    return [
        f"--set {name}={','.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in found.items()
        if name not in but and name in expected and value != expected[name]
    ]
