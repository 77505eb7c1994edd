"""The runs with other schedules of epsilon, and what the documents say of them."""

import re
import subprocess
import sys
from pathlib import Path

from tsallax.paper.sweep import rows

ROOT = Path(__file__).parents[2]


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
            names = before.keys() | row.config.keys()
            differ = {name for name in names if before.get(name) != row.config.get(name)}
            assert differ <= {"epsilon", "update", "alpha"}
            assert "epsilon" in differ
    reacher = {f"reacher-epsilon-{steps}": 81 for steps in (50_000, 25_000, 12_500)}
    assert sizes == {**reacher, "pendulum-epsilon-0.001": 108}


def test_the_document_says_what_the_comparison_prints():
    command = [sys.executable, ROOT / "ablations" / "compare.py"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    blocks = [block.splitlines()[1:] for block in re.split(r"^(?=\S)", printed, flags=re.M)[1:]]
    document = (ROOT / "docs" / "reproducing.md").read_text().replace("**", "")
    section = document.split("### Other schedules of epsilon")[1].split("\n### ")[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, flags=re.M)
    assert len(tables) == len(blocks) == 2
    for lines, table in zip(blocks, tables):
        rows_of = [row.strip("|").split("|")[1:] for row in table.splitlines()[2:]]
        said = [cell.strip().replace(" of 27", "") for column in zip(*rows_of) for cell in column]
        found = []
        for line in lines:
            runs, rest = re.search(r"(\d+) of 27 +(.*)", line).groups()
            episodes, *chance = rest.split(maxsplit=1)
            found.append("none" if runs == "0" else ", ".join([runs, episodes, *chance]))
        assert found == said
