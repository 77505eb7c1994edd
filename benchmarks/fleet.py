"""Milliseconds a step of a fleet: 27 variants and some seeds of Reacher as one program.

python benchmarks/fleet.py --actions 3,11,31,51 --seeds 3     on a GPU, in two minutes
"""

from __future__ import annotations

import argparse
import time
from itertools import product

import jax

from tsallax.learn.config import DeepQConfig
from tsallax.learn.fleet import Fleet, Member
from tsallax.learn.plan import NEVER

VARIANTS = list(
    product(("sparse", "soft", "epsilon"), ("sparse", "soft", "hard"), (1.0, 0.1, 0.01))
)


def measure(levels: int, seeds: int, steps: int) -> None:
    """Time `steps` steps with updates, after as many without and as many with, to compile."""
    options = {"start": steps, "copy_every": steps}
    members = [
        Member(DeepQConfig(explore=e, update=u, alpha=a, **options), seed)
        for seed in range(seeds)
        for e, u, a in VARIANTS
    ]
    fleet = Fleet("Reacher-v5", members, actions=levels)
    fleet.learn(steps=NEVER, callback=lambda f: f.steps < 2 * steps, progress=False)
    begin, first = time.perf_counter(), fleet.steps
    fleet.learn(steps=NEVER, callback=lambda f: f.steps < first + steps, progress=False)
    seconds, steps = time.perf_counter() - begin, fleet.steps - first
    print(
        f"{jax.devices()[0].device_kind}: {len(members)} agents, {levels**2} actions: "
        f"{seconds / steps * 1e3:.3f} ms a step",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--actions", default="3,11,31,51", help="levels per dimension")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=500)
    given = parser.parse_args()
    for levels in given.actions.split(","):
        measure(int(levels), given.seeds, given.steps)
