"""Compare sparse exploration with epsilon-greedy under other schedules of epsilon.

    python ablations/compare.py

For each schedule and number of actions: how many runs reach the threshold in training within the
episodes of these runs, the median episode at which they do, and the probability that a run with
sparse exploration and the same update reaches it earlier, over matched cells in which any run does
(95% bootstrap interval over runs).
"""

import argparse
from dataclasses import replace
from pathlib import Path
from statistics import median

from tsallax.paper.sweep.sweep_rows import SWEEP_ROWS
from tsallax.paper.sweep.sweep_tasks import TASKS
from tsallax.paper.tables.cells import gather
from tsallax.paper.tables.formatting import shown
from tsallax.paper.tables.improvement import improvement_between

HERE = Path(__file__).parent
ROOT = HERE.parent


def truncated(row, episodes):
    """The run as it was after so many episodes."""
    reached = row.reached is not None and row.reached <= episodes
    return replace(
        row, episodes=min(row.episodes, episodes), reached=row.reached if reached else None
    )


def reached(found):
    """How many runs reached the threshold, and the median episode at which they did, as text."""
    times = [row.reached for row in found if row.reached is not None]
    return f"{len(times):>2} of {len(found)}  {f'{median(times):,.0f}' if times else '-':>6}"


def main():
    for name, task in TASKS.items():
        folders = sorted(HERE.glob(f"{name}-*"), key=lambda f: -float(f.name.split("-")[-1]))
        swept = {
            folder.name.removeprefix(f"{name}-"): SWEEP_ROWS.read_file(folder / f"{name}.jsonl")
            for folder in folders
        }
        most = max(row.episodes for found in swept.values() for row in found)
        usual = [
            truncated(row, most) for row in SWEEP_ROWS.read_file(ROOT / "results" / f"{name}.jsonl")
        ]
        print(f"{task.title}: to {task.threshold:g} within {most:,} episodes")
        for actions in sorted({row.actions for found in swept.values() for row in found}):
            at = [row for row in usual if row.actions == actions]
            sparse = [row for row in at if row.explore == "sparse"]
            print(f"  {actions:>5,} actions  {'sparse':<14}  {reached(sparse)}")
            for label, rows in {"usual": at, **swept}.items():
                epsilon = [r for r in rows if (r.explore, r.actions) == ("epsilon", actions)]
                runs = gather(task, [*sparse, *epsilon])
                found = improvement_between(
                    runs, "explore", "sparse", "epsilon", "episodes", [actions]
                )
                text = shown(found.chance)
                print(f"  {'':>13}  {label:<14}  {reached(epsilon)}  {text}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    main()
