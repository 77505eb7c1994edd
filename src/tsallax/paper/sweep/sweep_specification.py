"""What a sweep trains: variants, numbers of actions and seeds, and the options of the learners."""

import dataclasses
import zlib
from dataclasses import dataclass, field
from typing import Any

from tsallax import checks
from tsallax.deep import options
from tsallax.deep.ddpg_config import DDPGConfig
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.errors import InvalidInput
from tsallax.paper.sweep.sweep_tasks import ALPHAS, DDPG_VARIANT, VARIANTS, SweepTask, Variant

QUICK_VARIANTS = {"Sparse+SparseBellman-0.1", "Soft+SoftBellman-0.1", "EpsGrdy+Bellman-0.1", "DDPG"}
SEED_SHIFT = 1000
"""The difference of the seeds of epsilon-greedy with the plain update from alpha to alpha."""


@dataclass(frozen=True)
class SweepRequest:
    """What to train: every variant, with every number of actions and every seed."""

    task: SweepTask
    actions: tuple[int, ...]
    variants: tuple[Variant, ...]
    seeds: int
    episodes: int
    steps: int
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the learners that differ from the defaults, for all variants alike."""
    evaluated: int = 100
    """Evaluation episodes of each kind."""


@dataclass(frozen=True)
class SweepRun:
    """One agent to train."""

    variant: Variant
    actions: int | None
    seed: int


def paper_sweep(task: SweepTask, quick: bool = False) -> SweepRequest:
    """The paper's protocol, or a miniature: small networks, few variants, few episodes."""
    every = (*VARIANTS, DDPG_VARIANT)
    if not quick:
        return SweepRequest(task, task.actions, every, 3, task.episodes, task.steps)
    few = tuple(variant for variant in every if variant.name in QUICK_VARIANTS)
    return SweepRequest(
        task, task.actions[:1], few, 2, 200, 10_000, {"net_arch": [64, 64]}, evaluated=20
    )


def changed_sweep(sweep: SweepRequest, changes: dict[str, Any]) -> SweepRequest:
    """The sweep with other fields, refused here where it could not be trained."""
    made = dataclasses.replace(sweep, **changes)
    for name in ("seeds", "episodes", "steps"):
        checks.count(name, getattr(made, name))
    if made.steps < made.task.length:
        raise InvalidInput(
            f"steps must be at least {made.task.length}, the longest episode, got {made.steps}"
        )
    for n in made.actions:
        made.task.levels(n)
    kinds = {DDPGConfig if v.explore is None else DeepQConfig for v in made.variants}
    known = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    for option in made.options:
        if option not in known or option in ("explore", "update", "alpha"):
            raise InvalidInput(f"--set {option}: not an option that all variants share")
    for variant in made.variants:
        if learner_config(made.task, variant, made.options).n_envs != 1:
            raise InvalidInput("--set n_envs: an agent of a fleet has one environment")
    return made


def runs_of(sweep: SweepRequest) -> list[SweepRun]:
    """Every run of a sweep.

    Epsilon-greedy with the plain update has no alpha: where the paper lists it once for each, the
    seeds differ, by `SEED_SHIFT`.
    """
    found = []
    for variant in sweep.variants:
        shift = 0
        if (variant.explore, variant.update) == ("epsilon", "hard"):
            shift = SEED_SHIFT * _alpha_index(variant.alpha)
        sizes: tuple[int | None, ...] = sweep.actions if variant.explore else (None,)
        found += [SweepRun(variant, n, seed + shift) for n in sizes for seed in range(sweep.seeds)]
    return list(dict.fromkeys(found))


def _alpha_index(alpha: float | None) -> int:
    """The index of an alpha among the paper's; for another, one after them that is its own."""
    if alpha in ALPHAS:
        return ALPHAS.index(alpha)
    return len(ALPHAS) + zlib.crc32(f"{alpha:g}".encode()) % 1_000_000


def learner_config(
    task: SweepTask, variant: Variant, given: dict[str, Any]
) -> DeepQConfig | DDPGConfig:
    """The options of a variant's learner, those of the network spelled out."""
    kind = DDPGConfig if variant.explore is None else DeepQConfig
    known = {f.name for f in dataclasses.fields(kind)}
    mine = {name: value for name, value in {**task.options, **given}.items() if name in known}
    if variant.explore is None:
        return DDPGConfig(**mine)
    choice = {"explore": variant.explore, "update": variant.update, "alpha": variant.alpha}
    made = options.from_mapping(DeepQConfig, options.without_unused({**mine, **choice}))
    return dataclasses.replace(made, net_arch=options.hidden_layers(made, task.env))
