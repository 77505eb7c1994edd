"""Milliseconds a step of a fleet: 27 variants and some seeds of Reacher as one program.

python benchmarks/fleet.py --actions 3,11,31,51 --seeds 3     on a GPU, in two minutes
python benchmarks/fleet.py --alone --actions 11,51            on a CPU: beside agents of their own
XLA_FLAGS=--xla_gpu_command_buffer_scheduling_mode=SERIALIZE python benchmarks/fleet.py
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from itertools import product
from typing import Any

import jax

from tsallax import DeepQ, DeepQConfig, Fleet, Member
from tsallax.deep.training_schedule import MAX_STEPS

VARIANTS = list(
    product(("sparse", "soft", "epsilon"), ("sparse", "soft", "hard"), (1.0, 0.1, 0.01))
)


def measure(levels: int, seeds: int, steps: int) -> None:
    """Time `steps` steps with updates, after as many without and as many with, to compile."""
    options = {"learning_starts": steps, "target_update_interval": steps}
    members = [
        Member(DeepQConfig(explore=e, update=u, alpha=a, **options), seed)
        for seed in range(seeds)
        for e, u, a in VARIANTS
    ]
    fleet = Fleet("Reacher-v5", members, actions=levels)
    fleet.learn(steps=MAX_STEPS, callback=lambda f: f.steps < 2 * steps, progress=False)
    begin, first = time.perf_counter(), fleet.steps
    fleet.learn(steps=MAX_STEPS, callback=lambda f: f.steps < first + steps, progress=False)
    seconds, steps = time.perf_counter() - begin, fleet.steps - first
    print(
        f"{jax.devices()[0].device_kind}: {len(members)} agents, {levels**2} actions: "
        f"{seconds / steps * 1e3:.3f} ms a step",
        flush=True,
    )


def compare(levels: int, seeds: int, steps: int) -> None:
    """Milliseconds per step and agent: agents alone, a fleet one by one, a fleet together."""
    segment = 200
    options: Any = {"learning_starts": segment, "target_update_interval": segment}
    steps = -(-steps // segment) * segment
    ways = [("sparse", "sparse"), ("soft", "soft"), ("epsilon", "hard")]
    members = [
        Member(DeepQConfig(explore=e, update=u, **options), seed)
        for e, u in ways
        for seed in range(seeds)
    ]
    agents = [
        DeepQ("Reacher-v5", actions=levels, config=member.config, seed=member.seed)
        for member in members
    ]
    fleets = [Fleet("Reacher-v5", members, actions=levels, together=t) for t in (False, True)]

    def alone(steps: int) -> None:
        for agent in agents:
            agent.learn(steps=agent.steps + steps, progress=False)

    def learn(fleet: Fleet, steps: int) -> None:
        end = fleet.steps + steps
        fleet.learn(steps=MAX_STEPS, callback=lambda f: f.steps < end, progress=False)

    runs = {
        "alone": alone,
        "one by one": partial(learn, fleets[0]),
        "together": partial(learn, fleets[1]),
    }
    for run in runs.values():
        run(3 * segment)
    for _ in range(3):
        print(f"{len(members)} agents, {levels**2} actions", end="")
        for name, run in runs.items():
            begin = time.perf_counter()
            run(steps)
            milliseconds = (time.perf_counter() - begin) * 1e3 / steps / len(members)
            print(f"; {name} {milliseconds:.3f} ms", end="", flush=True)
        print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--actions", default="3,11,31,51", help="levels per dimension")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--alone", action="store_true", help="also each agent by itself")
    given = parser.parse_args()
    for levels in given.actions.split(","):
        (compare if given.alone else measure)(int(levels), given.seeds, given.steps)
