"""The commands that train the runs of a suite again, from their rows."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from tsallax.paper.suites.suite_cells import SuiteCell, SuiteRuns
from tsallax.paper.suites.suite_jobs import (
    SuiteRequest,
    agent_options,
    default_request,
    whole_cycles,
)
from tsallax.paper.suites.suite_tasks import AUTO, DEFAULT_ALPHAS, OURS, WAYS, Suite
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
    ours = [cell for cell in runs.cells.values() if cell.agent.partition("-")[0] in (OURS, *WAYS)]
    quick = default_request(runs.suite, quick=True)
    is_quick = all(row.evaluated == quick.final_episodes for cell in ours for row in cell.rows)
    usual = quick if is_quick else default_request(runs.suite)
    by_place = _grouped(((*cell.place, _settings(cell, usual)), cell.agent) for cell in ours)
    by_task = _grouped(((t, agents, s), level) for (t, level, s), agents in by_place.items())
    groups = _grouped(((agents, levels, s), t) for (t, agents, s), levels in by_task.items())
    first = f"tsallax reproduce {runs.suite.name}{' --quick' * is_quick}"
    found = [
        " ".join([first, *_flags(tasks, agents, levels, usual), *_settings_flags(settings, usual)])
        for (agents, levels, settings), tasks in groups.items()
    ]
    peers = [cell for cell in runs.cells.values() if cell.agent == runs.suite.peer]
    return found + _peer_commands(runs.suite, peers)


def _peer_commands(suite: Suite, cells: Sequence[SuiteCell]) -> list[str]:
    """The commands that train the peer: one for all tasks of full length, one for each other."""
    groups = _grouped((_peer_steps(suite, cell), cell.place[0]) for cell in cells)
    script = f"python benchmarks/sb3_suites.py {suite.name} --out DIR"
    return [
        f"{script} --tasks {','.join(tasks)}" + (f" --steps {steps}" if steps else "")
        for steps, tasks in groups.items()
    ]


def _peer_steps(suite: Suite, cell: SuiteCell) -> int | None:
    """The steps of runs that are shorter than their task's."""
    steps = cell.rows[0].steps
    return steps if steps < suite.tasks[cell.place[0]].steps else None


def _grouped(pairs: Iterable[tuple[K, T]]) -> dict[K, tuple[T, ...]]:
    """The second parts of pairs by their first parts."""
    found: dict[K, tuple[T, ...]] = {}
    for key, value in pairs:
        found[key] = (*found.get(key, ()), value)
    return found


def _settings(cell: SuiteCell, usual: SuiteRequest) -> Settings:
    """Seeds, steps, and the options in which a cell differs from the usual ones of its agent."""
    task, row = usual.suite.tasks[cell.place[0]], cell.rows[0]
    own = dict(WAYS.get(cell.agent.partition("-")[0], {}))
    if "-" in cell.agent:
        own["alpha"] = row.config.get("alpha", AUTO)
    expected = agent_options(task, own, usual.options)
    steps = whole_cycles(usual.steps or task.steps, row.config)
    return Settings(
        seeds=max(row.seed for row in cell.rows) + 1,
        steps=None if row.steps == steps else row.steps,
        options=tuple(set_flags(row.config, expected, own)),
    )


def _flags(
    tasks: Sequence[str], agents: Sequence[str], levels: Sequence[int | None], usual: SuiteRequest
) -> Iterator[str]:
    """The flags of tasks, agents and levels, where these are not the usual ones."""
    if list(tasks) != list(usual.tasks):
        yield f"--tasks {','.join(tasks)}"
    if list(agents) != list(usual.agents):
        yield f"--variants {','.join(agents)}"
        alphas = dict.fromkeys(agent.partition("-")[2] for agent in agents if "-" in agent)
        if not alphas.keys() <= set(DEFAULT_ALPHAS):
            yield f"--alphas {','.join(alphas)}"
    if list(levels) != list(usual.levels):
        yield f"--levels {','.join(map(str, levels))}"


def _settings_flags(settings: Settings, usual: SuiteRequest) -> Iterator[str]:
    """The flags of seeds, steps and options, where these are not the usual ones."""
    if settings.seeds != usual.seeds:
        yield f"--seeds {settings.seeds}"
    if settings.steps is not None:
        yield f"--steps {settings.steps}"
    yield from settings.options
