"""The commands that train the runs of a suite again, from their rows."""

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from tsallax.paper.suites.suite_cells import SuiteCell, SuiteRuns
from tsallax.paper.suites.suite_jobs import Request, agent_options, default_request, whole_cycles
from tsallax.paper.suites.suite_tasks import AUTO, DEFAULT_ALPHAS, OURS, PEER, suite_agents
from tsallax.paper.tables.commands import set_flags

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class Settings(NamedTuple):
    """What the runs of one command share, beside agents, levels and tasks."""

    seeds: int
    steps: int | None
    """None for those of the task."""
    options: tuple[str, ...]


def commands_for_suite(runs: SuiteRuns) -> list[str]:
    """One command for all agents, levels and tasks that share their settings."""
    ours = [cell for cell in runs.cells.values() if cell.agent != PEER]
    quick = default_request(runs.suite, quick=True)
    is_quick = all(row.evaluated == quick.final_episodes for cell in ours for row in cell.rows)
    usual = quick if is_quick else default_request(runs.suite)
    agents = _grouped(((cell.place, _settings(cell, usual)), cell.agent) for cell in ours)
    levels = _grouped(((t, a, s), level) for ((t, level), s), a in agents.items())
    tasks = _grouped(((a, levels_, s), t) for (t, a, s), levels_ in levels.items())
    found = [
        " ".join(
            [
                f"tsallax reproduce {runs.suite.name}{' --quick' * is_quick}",
                *([] if own == tuple(runs.suite.tasks) else [f"--tasks {','.join(own)}"]),
                *_agents(agents_, usual),
                *([] if each == usual.levels else [f"--levels {','.join(map(str, each))}"]),
                *([] if settings.seeds == usual.seeds else [f"--seeds {settings.seeds}"]),
                *([] if settings.steps is None else [f"--steps {settings.steps}"]),
                *settings.options,
            ]
        )
        for (agents_, each, settings), own in tasks.items()
    ]
    return found + ["python benchmarks/sb3_classic.py --out DIR"] * (PEER in runs.agents)


def _grouped(pairs: Iterable[tuple[K, T]]) -> dict[K, tuple[T, ...]]:
    """The second parts of pairs by their first parts."""
    found: dict[K, tuple[T, ...]] = {}
    for key, value in pairs:
        found[key] = (*found.get(key, ()), value)
    return found


def _settings(cell: SuiteCell, usual: Request) -> Settings:
    """Seeds, steps, and the options in which a cell differs from the usual ones of its agent."""
    task, row = usual.suite.tasks[cell.place[0]], cell.rows[0]
    alpha = cell.agent.partition("-")[2] or AUTO
    own = {OURS: {}, **suite_agents([alpha])}[cell.agent]
    expected = agent_options(task, own, usual.options)
    options = tuple(set_flags(row.config, expected, own))
    steps = whole_cycles(usual.steps or task.steps, row.config)
    return Settings(
        max(row.seed for row in cell.rows) + 1, None if row.steps == steps else row.steps, options
    )


def _agents(agents: Sequence[str], usual: Request) -> list[str]:
    if list(agents) == list(usual.agents):
        return []
    alphas = list(dict.fromkeys(agent.partition("-")[2] for agent in agents if "-" in agent))
    known = not alphas or set(alphas) <= set(DEFAULT_ALPHAS)
    return [f"--variants {','.join(agents)}", *([] if known else [f"--alphas {','.join(alphas)}"])]
