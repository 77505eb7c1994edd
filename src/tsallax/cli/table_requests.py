"""What the options of `tsallax reproduce` ask for of the tables for which agents are trained."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tsallax.cli.arguments import key_values, separated
from tsallax.errors import InvalidInput

if TYPE_CHECKING:
    from tsallax.paper.suites.suite_jobs import SuiteRequest
    from tsallax.paper.sweep.sweep_specification import SweepRequest


def sweep_request(name: str, quick: bool, given: dict[str, Any]) -> SweepRequest:
    """The sweep of a task of the paper; `given` are the options of the command line."""
    from tsallax.paper.sweep.sweep_specification import changed_sweep, paper_sweep
    from tsallax.paper.sweep.sweep_tasks import TASKS, choose_variants

    task = TASKS[name]
    usual = paper_sweep(task, quick)
    changes: dict[str, Any] = {
        key: given[key] for key in ("seeds", "episodes", "steps") if key in given
    }
    if "episodes" in given and "steps" not in given:
        scaled = -(-usual.steps * max(given["episodes"], 1) // usual.episodes)
        changes["steps"] = max(scaled, task.length)
    if "actions" in given:
        changes["actions"] = tuple(separated("--actions", given["actions"], int, "9,121"))
    if "set" in given:
        changes["options"] = {**usual.options, **key_values("--set", given["set"])}
    words, alphas = given.get("variants"), given.get("alphas")
    if words is not None or alphas is not None:
        names = None if words is None else separated("--variants", words)
        numbers = None if alphas is None else separated("--alphas", alphas, float, "0.1,0.01")
        changes["variants"] = tuple(choose_variants(names, numbers))
    return changed_sweep(usual, changes)


def suite_request(name: str, quick: bool, given: dict[str, Any]) -> SuiteRequest:
    """The request for a suite; `given` are the options of the command line."""
    from tsallax.paper.suites.suite_jobs import default_request
    from tsallax.paper.suites.suite_tasks import (
        DEFAULT_ALPHAS,
        OURS,
        SUITES,
        choose,
        suite_agents,
    )

    suite = SUITES[name]
    words = {
        option: separated(f"--{option}", given[option])
        for option in ("tasks", "variants", "alphas", "levels")
        if option in given
    }
    usual = default_request(suite, quick)
    changes: dict[str, Any] = {key: given[key] for key in ("seeds", "steps") if key in given}
    changes["tasks"] = choose("task", words.get("tasks"), list(suite.tasks))
    options = {**usual.options, **key_values("--set", given.get("set"))}
    preset = {name: own for name, own in suite.agents.items() if name == OURS}
    if not preset or "variants" in words or "alphas" in words:
        agents = {**preset, **suite_agents(words.get("alphas", DEFAULT_ALPHAS))}
        chosen = choose("variant", words.get("variants"), list(agents))
        changes["agents"] = {agent: agents[agent] for agent in chosen}
        for option in options:
            if option in ("explore", "update", "alpha"):
                raise InvalidInput(f"--set {option}: not an option that all variants share")
    if "levels" in words:
        if suite.levels == (None,):
            raise InvalidInput(f"--levels is for control: the actions of {name} are discrete")
        changes["levels"] = tuple(_level(word) for word in words["levels"])
    return dataclasses.replace(usual, **changes, options=options)


def _level(word: str) -> int:
    if not word.isdecimal() or int(word) < 2:
        raise InvalidInput(f"--levels {word}: must be integers of 2 or more, such as 3,7")
    return int(word)
