"""Sparse exploration against epsilon-greedy under other schedules of epsilon.

    python ablations/compare.py

For each schedule and number of actions: how many runs train to the threshold within the episodes of
these runs, the median episode at which they do, and the probability that a run with sparse
exploration and the same update is there sooner, over matched cells in which any run got there (95%
bootstrap interval over runs).
"""

from dataclasses import replace
from pathlib import Path
from statistics import median

from tsallax.paper.sweep import rows
from tsallax.paper.sweep.tasks import TASKS
from tsallax.paper.tables.cells import gather
from tsallax.paper.tables.improvement import duel

HERE = Path(__file__).parent
ROOT = HERE.parent


def cut(row, most):
    """The run as it was after `most` episodes."""
    there = row.reached is not None and row.reached <= most
    return replace(row, episodes=min(row.episodes, most), reached=row.reached if there else None)


def tally(found):
    """How many runs got there, and when, as text."""
    there = [row.reached for row in found if row.reached is not None]
    return f"{len(there):>2} of {len(found)}  {f'{median(there):,.0f}' if there else '-':>6}"


def main():
    for name, task in TASKS.items():
        folders = sorted(HERE.glob(f"{name}-*"), key=lambda f: -float(f.name.split("-")[-1]))
        swept = {
            folder.name.removeprefix(f"{name}-"): rows.read_file(folder / f"{name}.jsonl")
            for folder in folders
        }
        most = max(row.episodes for found in swept.values() for row in found)
        usual = [cut(row, most) for row in rows.read_file(ROOT / "results" / f"{name}.jsonl")]
        print(f"{task.title}: to {task.threshold:g} within {most:,} episodes")
        for actions in sorted({row.actions for found in swept.values() for row in found}):
            at = [row for row in usual if row.actions == actions]
            sparse = [row for row in at if row.explore == "sparse"]
            print(f"  {actions:>5,} actions  {'sparse':<14}  {tally(sparse)}")
            for label, found in {"usual": at, **swept}.items():
                epsilon = [r for r in found if (r.explore, r.actions) == ("epsilon", actions)]
                runs = gather(task, [*sparse, *epsilon])
                chance = duel(runs, "explore", "sparse", "epsilon", "episodes", [actions]).chance
                said = f"{chance.value:.2f}"
                if chance.low is not None:
                    said += f" [{chance.low:.2f}, {chance.high:.2f}]"
                print(f"  {'':>13}  {label:<14}  {tally(epsilon)}  {said}")


if __name__ == "__main__":
    main()
