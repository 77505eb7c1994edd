"""Milliseconds a step of a fleet in a Gymnasium environment, split into environments and device.

python benchmarks/gymnasium_fleet.py --env HalfCheetah-v5 --agents 16 --actions 3 \
    --net 512,512 --batch 256 --steps 5000             on a GPU, with a worker for two environments
python benchmarks/gymnasium_fleet.py --env CartPole-v1 --agents 4 --alone      beside single agents
python benchmarks/gymnasium_fleet.py --workers 0,4,8,14 --overlap both         several ways in turn
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from typing import Any

import jax
import numpy as np

from tsallax import DeepQ, DeepQConfig, Fleet, Member

WARM_UP = 200


def learn(fleet: Fleet, steps: int) -> float:
    """Seconds of so many steps."""
    end, begin = fleet.steps + steps, time.perf_counter()
    fleet.learn(steps=10**9, callback=lambda f: f.steps < end, progress=False)
    return time.perf_counter() - begin


def measure(fleet: Fleet, steps: int) -> None:
    """Time steps with updates, after some to compile, in three parts."""
    learn(fleet, 2 * WARM_UP)
    loop: Any = fleet._loop
    for _ in range(3):
        before, first = dict(loop.seconds), fleet.steps
        seconds = learn(fleet, steps // 3)
        made = fleet.steps - first
        parts = {name: (loop.seconds[name] - before[name]) / made * 1e3 for name in before}
        split = ", ".join(f"{name} {ms:.3f}" for name, ms in parts.items())
        per_agent = seconds / made / len(fleet.members) * 1e3
        print(
            f"  {seconds / made * 1e3:.3f} ms a step, {per_agent:.4f} per agent; waiting: {split}",
            flush=True,
        )


def measure_parts(fleet: Fleet, steps: int) -> None:
    """Time the environments without the agents, and the agents without the environments."""
    loop: Any = fleet._loop
    pool, episodes = loop._resume(fleet.steps), loop.episodes
    rows, action = episodes.present(), episodes.chosen()
    begin = time.perf_counter()
    for _ in range(steps):
        pool.send(loop.members, action)
        pool.wait()
    environments = (time.perf_counter() - begin) / steps * 1e3
    loss: list[Any] = [np.zeros(g.stop - g.start, np.float32) for g in episodes.groups]
    begin = time.perf_counter()
    for i in range(steps):
        rows["step"] = fleet.steps + i
        loop._store_learn_act(rows.copy(), True, loss, None)
        episodes.chosen()
    jax.block_until_ready(loss)
    agents = (time.perf_counter() - begin) / steps * 1e3
    print(f"  by themselves: environments {environments:.3f}, agents {agents:.3f} ms a step")


def measure_alone(env: str, member: Member, actions: Any, steps: int) -> None:
    """Time the steps of one agent by itself."""
    agent = DeepQ(env, actions=actions, config=member.config, seed=member.seed, backend="gymnasium")
    agent.learn(steps=2 * WARM_UP, progress=False)
    for _ in range(3):
        begin = time.perf_counter()
        agent.learn(steps=agent.steps + steps // 3, progress=False)
        print(f"  {(time.perf_counter() - begin) / (steps // 3) * 1e3:.3f} ms a step, alone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default="HalfCheetah-v5")
    parser.add_argument("--agents", type=int, default=16)
    parser.add_argument("--actions", type=int, help="levels per dimension of real actions")
    parser.add_argument("--net", default="512,512")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--buffer", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--workers", default="auto", help="numbers of processes, such as 0,8")
    parser.add_argument("--overlap", choices=("yes", "no", "both"), default="yes")
    parser.add_argument("--together", choices=("auto", "yes", "no", "both"), default="auto")
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=NUMBER")
    parser.add_argument("--alone", action="store_true", help="also one agent by itself")
    given = parser.parse_args()
    more: dict[str, Any] = {}
    for name, value in (item.split("=") for item in given.set):
        more[name] = float(value) if "." in value or "e" in value else int(value)
    config = DeepQConfig(
        net_arch=tuple(map(int, given.net.split(","))),
        batch_size=given.batch,
        buffer_size=given.buffer,
        learning_starts=WARM_UP,
        target_update_interval=WARM_UP,
        **more,
    )
    members = [Member(config, seed) for seed in range(given.agents)]
    choices = {"yes": (True,), "no": (False,), "both": (True, False), "auto": (None,)}
    workers = [None if w == "auto" else int(w) for w in given.workers.split(",")]
    print(f"{jax.devices()[0].device_kind}: {given.agents} agents, {given.env}", flush=True)
    for number, overlap, together in product(
        workers, choices[given.overlap], choices[given.together]
    ):
        fleet = Fleet(
            given.env, members, actions=given.actions, backend="gymnasium",
            workers=number, overlap=overlap, together=together,
        )  # fmt: skip
        loop: Any = fleet._loop
        print(f"workers {loop.workers}, overlap {overlap}, together {fleet.together}", flush=True)
        measure(fleet, given.steps)
        measure_parts(fleet, max(1, given.steps // 10))
        fleet.close()
    if given.alone:
        measure_alone(given.env, members[0], given.actions, given.steps)


if __name__ == "__main__":
    main()
