"""What the suites train: environments, steps, agents and options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from io import StringIO
from typing import Any

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.paper.result import read_csv

OURS = "tsallax"
"""The agent of `classic` and `minatar`: the environment's preset."""


@dataclass(frozen=True)
class SuiteTask:
    """An environment with the length of training."""

    name: str
    env: str
    steps: int
    milestones: tuple[int, ...] = ()
    """Steps after which an evaluation has as many episodes as the last one."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the learners, instead of those of the environment's preset."""


@dataclass(frozen=True)
class Suite:
    """Tasks with one protocol of evaluation."""

    name: str
    title: str
    tasks: Mapping[str, SuiteTask]
    seeds: int
    eval_every: int
    """Steps from one evaluation on the way to the next."""
    eval_episodes: int
    final_episodes: int
    """Evaluation episodes after training."""
    peer: str
    """The agent that `benchmarks/sb3_suites.py` trains."""
    peer_description: str
    agents: Mapping[str, Mapping[str, Any]]
    """The agents by name, with the options in which they differ from the environment's preset."""
    levels: tuple[int | None, ...] = (None,)
    """Levels of each dimension of an action; None where actions are discrete."""


WAYS: Mapping[str, Mapping[str, Any]] = {
    "sparse": {"explore": "sparse", "update": "sparse"},
    "soft": {"explore": "soft", "update": "soft"},
    "epsilon": {"explore": "epsilon", "update": "hard", "epsilon": "1:0.1:10000"},
}
"""Ways to explore, each with the update that belongs to it."""
AUTO = "auto"
DEFAULT_ALPHAS = ("0.1", AUTO)


def suite_agents(alphas: Sequence[str] = DEFAULT_ALPHAS) -> dict[str, dict[str, Any]]:
    """Agents by name, with the options in which they differ.

    Beyond these they have the preset of the environment.

    >>> list(suite_agents())
    ['sparse-0.1', 'sparse-auto', 'soft-0.1', 'soft-auto', 'epsilon']
    """
    found: dict[str, dict[str, Any]] = {}
    for way, own in WAYS.items():
        if way == "epsilon":
            found[way] = dict(own)
            continue
        for alpha in alphas:
            value = alpha if alpha == AUTO else _alpha(alpha)
            found[f"{way}-{alpha}"] = {**own, "alpha": value}
    return found


def _alpha(text: str) -> float:
    try:
        return checks.number("alpha", float(text), above=0)
    except ValueError:
        raise InvalidInput(f"alpha must be a positive number or auto, got {text!r}") from None


def _by_name(tasks: Sequence[SuiteTask]) -> dict[str, SuiteTask]:
    return {task.name: task for task in tasks}


CLASSIC = Suite(
    "classic",
    "Classic control and toy text",
    _by_name(
        [
            SuiteTask("CartPole-v1", "CartPole-v1", 50_000),
            SuiteTask("Acrobot-v1", "Acrobot-v1", 100_000, milestones=(40_000,)),
            SuiteTask("MountainCar-v0", "MountainCar-v0", 120_000),
            SuiteTask("LunarLander-v3", "LunarLander-v3", 100_000),
            SuiteTask("Taxi-v4", "Taxi-v4", 200_000, options={"masked": False}),
            SuiteTask("Taxi-v4-masked", "Taxi-v4", 200_000, options={"masked": True}),
            SuiteTask("FrozenLake8x8-v1", "FrozenLake8x8-v1", 200_000),
        ]
    ),
    seeds=10,
    eval_every=10_000,
    eval_episodes=10,
    final_episodes=100,
    peer="sb3-dqn",
    peer_description="DQN of Stable-Baselines3 with the settings of RL Baselines3 Zoo, and with "
    "its defaults where the Zoo has none; it has no masks",
    agents={OURS: {}},
)

MUJOCO = (
    "InvertedDoublePendulum", "Pusher", "Swimmer", "Hopper", "HalfCheetah", "Walker2d", "Ant",
    "Humanoid",
)  # fmt: skip
CONTROL = Suite(
    "control",
    "MuJoCo control with factored actions",
    _by_name([SuiteTask(name, f"{name}-v5", 1_000_000) for name in MUJOCO]),
    seeds=5,
    eval_every=50_000,
    eval_episodes=5,
    final_episodes=10,
    peer="sb3-td3",
    peer_description="TD3 of Stable-Baselines3 with the settings of RL Baselines3 Zoo for version "
    "4 of the tasks; its actions are real vectors",
    agents=suite_agents(),
    levels=(3,),
)

MINATAR = Suite(
    "minatar",
    "MinAtar games",
    _by_name(
        [
            SuiteTask(game, f"tsallax/MinAtar-{game}-v0", 50_000)
            for game in ("Breakout", "SpaceInvaders")
        ]
    ),
    seeds=10,
    eval_every=10_000,
    eval_episodes=10,
    final_episodes=100,
    peer="sb3-dqn",
    peer_description="DQN of Stable-Baselines3 with the settings of RL Baselines3 Zoo for Atari, "
    "learning from step 1,000 and with a convolution for images of ten by ten",
    agents={OURS: {}},
)

SUITES = {suite.name: suite for suite in (CLASSIC, CONTROL, MINATAR)}


def choose(kind: str, names: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Some of the known names, in their order; all where none are given.

    A name without its version or alpha stands for all that begin with it.

    >>> choose("agent", ["sparse"], ["sparse-0.1", "sparse-auto", "soft-auto"])
    ['sparse-0.1', 'sparse-auto']
    """
    if names is None:
        return list(known)
    chosen = set()
    for name in names:
        found = [one for one in known if one == name] or [
            one for one in known if one.startswith(f"{name}-")
        ]
        if not found:
            raise InvalidInput(f"unknown {kind} {name!r}: choose from {', '.join(known)}")
        chosen |= set(found)
    return [name for name in known if name in chosen]


def published_returns(suite: Suite) -> list[dict[str, Any]]:
    """Returns that other libraries publish for the tasks of a suite, with steps and protocol.

    >>> published_returns(CLASSIC)[0]["source"]
    'SB3 zoo'
    """
    text = (files("tsallax.paper.suites") / "published.csv").read_text(encoding="utf-8")
    found = [row for row in read_csv(StringIO(text)) if row["task"] in suite.tasks]
    return [{**row, "return": float(row["return"])} for row in found]
