"""The runs with other schedules of epsilon, and what the documents say of them."""

import re
import subprocess
import sys
from pathlib import Path

from tsallax.paper.runs import rows

ROOT = Path(__file__).parents[1]


def test_the_runs_are_complete_and_differ_in_epsilon_alone():
    usual = {
        (row.task, row.actions): row.config
        for task in ("reacher", "pendulum")
        for row in rows.read_file(ROOT / "results" / f"{task}.jsonl")
        if row.explore == "epsilon"
    }
    sizes = {}
    for path in ROOT.glob("ablations/*/*.jsonl"):
        found = rows.read_file(path)
        sizes[path.parent.name] = len({row.key for row in found})
        for row in found:
            before = usual[row.task, row.actions]
            differ = {name for name in before if before[name] != row.config[name]}
            assert differ <= {"epsilon", "update", "alpha"}
            assert "epsilon" in differ
    reacher = {f"reacher-epsilon-{steps}": 81 for steps in (50_000, 25_000, 12_500)}
    assert sizes == {**reacher, "pendulum-epsilon-0.001": 108}


def test_the_document_says_what_the_comparison_prints():
    command = [sys.executable, ROOT / "ablations" / "compare.py"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    document = (ROOT / "docs" / "reproducing.md").read_text().replace("**", "")
    cells = re.findall(r"(\d+) of 27 +([\d,]+)(?: +([\d.]+( \[[\d., ]+\])?))?", printed)
    assert len(cells) == 23
    for runs, episodes, chance, interval in cells:
        exact = interval[2:6] == interval[8:12]
        said = chance.split()[0] if exact and chance else chance
        said = f"{runs}, {episodes}, {said}" if said else f"{episodes}"
        assert said in document, said
