"""Sparse exploration against epsilon-greedy under other schedules of epsilon.

    python ablations/compare.py

For each schedule and number of actions: how many epsilon-greedy runs train to the threshold within
the episodes of these runs, the median episode at which they do, and the probability that a
run with sparse exploration and the same update is there sooner, over matched cells in which any run
got there (95% bootstrap interval over runs).
"""

from pathlib import Path

import numpy as np

from tsallax.paper.runs import rows
from tsallax.paper.runs.tasks import TASKS
from tsallax.paper.tables.cells import times
from tsallax.paper.tables.statistics import earlier, improvement, resample

HERE = Path(__file__).parent
ROOT = HERE.parent


def cells(found, explore, actions, most):
    """Episodes to the threshold of the runs, by update and alpha, none beyond `most` episodes."""
    runs = {}
    for row in found:
        if (row.explore, row.actions) == (explore, actions):
            alpha = None if (row.explore, row.update) == ("epsilon", "hard") else row.alpha
            runs.setdefault((explore, row.update, alpha), []).append(row)
    return {cell: _cut(times(of), most) for cell, of in runs.items()}


def _cut(runs, most):
    there = (runs[:, 1] > 0) & (runs[:, 0] <= most)
    return np.stack([np.minimum(runs[:, 0], most), there], 1)


def line(sparse, epsilon):
    """The three numbers of a cell of the table, as text."""
    every = {**sparse, **epsilon}
    matches = []
    for cell in sparse:
        _, update, alpha = cell
        other = ("epsilon", update, None if update == "hard" else alpha)
        if every[cell][:, 1].any() or every[other][:, 1].any():
            matches.append((cell, other))
    runs = np.concatenate(list(epsilon.values()))
    there = runs[runs[:, 1] > 0, 0]
    middle = f"{np.median(there):,.0f}" if len(there) else "-"
    chance, _ = improvement(
        every, resample({c: len(r) for c, r in every.items()}), matches, earlier
    )
    interval = "" if chance.low is None else f" [{chance.low:.2f}, {chance.high:.2f}]"
    return f"{len(there):>2} of {len(runs)}  {middle:>6}  {chance.value:.2f}{interval}"


def main():
    for name, task in TASKS.items():
        usual = rows.read_file(ROOT / "results" / f"{name}.jsonl")
        swept = {
            folder.name.removeprefix(f"{name}-"): rows.read_file(folder / f"{name}.jsonl")
            for folder in sorted(
                HERE.glob(f"{name}-*"), key=lambda f: -float(f.name.split("-")[-1])
            )
        }
        most = max(row.episodes for found in swept.values() for row in found)
        print(f"{task.title}: to {task.threshold:g} within {most:,} episodes")
        for actions in task.actions:
            sparse = cells(usual, "sparse", actions, most)
            runs = np.concatenate(list(sparse.values()))
            there = runs[runs[:, 1] > 0, 0]
            if not len(there):
                continue
            shown = f"{len(there):>2} of {len(runs)}  {np.median(there):>6,.0f}"
            print(f"  {actions:>5,} actions  {'sparse':<14}  {shown}")
            for label, found in {"usual": usual, **swept}.items():
                epsilon = cells(found, "epsilon", actions, most)
                if epsilon:
                    print(f"  {'':>13}  {label:<14}  {line(sparse, epsilon)}")


if __name__ == "__main__":
    main()
