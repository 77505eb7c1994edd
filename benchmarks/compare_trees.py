"""Times two source trees of tsallax side by side, such as before and after a change.

python benchmarks/compare_trees.py OLD/src NEW/src            # all cases
python benchmarks/compare_trees.py OLD/src NEW/src solve      # cases whose name contains a word
python benchmarks/compare_trees.py OLD/src NEW/src solve --processor   # where other work runs

Each case runs in processes of its own, the trees in alternation, so that a drift of the machine's
speed affects both. Printed is the smallest time of each tree over all rounds, and their ratio.
With `--processor` it is the processor time of all threads, of which Numba has one.  A case that
fails in a tree, such as one that uses what the old tree lacks, is "inf" there.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

SOLVE = """
import time
from tsallax import Hard, Soft, Sparse, Tsallis, problems, solve
mdp = {mdp}
solve(mdp, {regularizer})
times = []
for _ in range({repeats}):
    begin = time.perf_counter()
    solve(mdp, {regularizer})
    times.append(time.perf_counter() - begin)
print(min(times))
"""
LEARN = """
import time
import tsallax
from tsallax import DeepQ, DDPG
agent = {agent}
agent.learn(steps=1500)
times = []
for _ in range(3):
    first, begin = agent.steps, time.perf_counter()
    agent.learn(steps=first + {steps})
    times.append((time.perf_counter() - begin) / (agent.steps - first))
print(min(times))
"""
OPERATOR = """
import time
import jax
import numpy as np
from tsallax import simplex
z = jax.numpy.asarray(np.random.default_rng(0).normal(size=(64, 2601)), "float32")
f = jax.jit(simplex.{name})
f(z).block_until_ready()
times = []
for _ in range(200):
    begin = time.perf_counter()
    f(z).block_until_ready()
    times.append(time.perf_counter() - begin)
print(min(times))
"""
MDPS = {
    "garnet": ("problems.garnet(10_000, 10, 10, discount=0.99, seed=0)", 15),
    "maze": ("problems.maze(200, discount=0.99, seed=0)", 3),
    "unicycle": ("problems.unicycle()", 20),
    "forest": ("problems.forest(states=3, discount=0.9)", 300),
}
REGULARIZERS = ("Hard()", "Sparse(0.1)", "Soft(0.1)", "Tsallis(0.1, 1.5)")
AGENTS = {
    "DeepQ in JAX, 961 actions": ('DeepQ("Reacher-v5", actions=31, seed=0)', 600),
    "DeepQ in Gymnasium, 2 actions": ('DeepQ("CartPole-v1", seed=0)', 1500),
    **{
        f"the preset of {env}": (f'DeepQ("{env}", seed=0, **tsallax.preset("{env}"))', 1500)
        for env in ("CartPole-v1", "Acrobot-v1", "FrozenLake8x8-v1", "Taxi-v4")
    },
    "DDPG in JAX": ('DDPG("Reacher-v5", seed=0)', 1500),
}
CASES = {
    "import tsallax": "import time; t = time.perf_counter(); import tsallax\n"
    "print(time.perf_counter() - t)",
    **{
        f"solve {name} {regularizer}": SOLVE.format(
            mdp=mdp, regularizer=regularizer, repeats=repeats
        )
        for name, (mdp, repeats) in MDPS.items()
        for regularizer in REGULARIZERS
    },
    **{f"operator {name}": OPERATOR.format(name=name) for name in ("sparsemax", "spmax")},
    **{
        f"step of {name}": LEARN.format(agent=agent, steps=steps)
        for name, (agent, steps) in AGENTS.items()
    },
}


def seconds(tree: str, program: str, processor: bool) -> float:
    """What a program prints that imports tsallax from a source tree; infinite where it fails."""
    environment = {**os.environ, "PYTHONPATH": tree}
    if processor:
        environment["NUMBA_NUM_THREADS"] = "1"
        program = program.replace("perf_counter", "process_time")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        reason = done.stderr.splitlines() or [f"exit code {done.returncode}"]
        print(f"{tree}: {reason[-1]}", file=sys.stderr)
        return float("inf")
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", help="the folder src of one source tree")
    parser.add_argument("new", help="the folder src of the other")
    parser.add_argument("word", nargs="?", default="", help="only cases whose name contains it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processor", action="store_true", help="processor time on one thread")
    given = parser.parse_args()
    print(f"{'':34}  {'old':>10}  {'new':>10}  new/old", flush=True)
    for name, program in CASES.items():
        if given.word not in name:
            continue
        best = {given.old: float("inf"), given.new: float("inf")}
        for _ in range(given.rounds):
            for tree in best:
                best[tree] = min(best[tree], seconds(tree, program, given.processor))
        old, new = best[given.old], best[given.new]
        print(f"{name:34}  {1e3 * old:7.3f} ms  {1e3 * new:7.3f} ms  {new / old:7.2f}", flush=True)


if __name__ == "__main__":
    main()
