"""Stable-Baselines3's DQN on the tasks of `tsallax reproduce classic`, as rows of that table.

    python benchmarks/sb3_classic.py --out out/classic                     all tasks, ten seeds
    python benchmarks/sb3_classic.py --out out/classic --workers 16        16 runs at a time
    python benchmarks/sb3_classic.py --out out/classic --tasks CartPole --seeds 3
    tsallax report out/classic                                             the page, with both

The settings are those of RL Baselines3 Zoo, read from its package (`rl_zoo3/hyperparams/dqn.yml`),
which is found but not imported: it need not have its dependencies. The Zoo has none for FrozenLake
and Taxi, where DQN has its own defaults and a one-hot observation. DQN does not know masks: Taxi
with masks is not run. A run makes the steps of ours (up to a multiple of `train_freq`) and is
evaluated like ours: after the same steps, without exploration, for as many episodes. Each run is a
process with one thread. It is appended when it is finished; what has a row is not run again.

JAX is not needed; stable-baselines3, torch, rl_zoo3, ruamel.yaml and Gymnasium are.
"""

from __future__ import annotations

import argparse
import ast
import multiprocessing
import os
import platform
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tsallax.paper.result import tidy
from tsallax.paper.suites.suite_rows import Point, SuiteRow, append_suite_row, read_suite_rows
from tsallax.paper.suites.suite_tasks import CLASSIC, PEER, choose

CURVE_POINTS = 100
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
EVALUATION_SEED = 1_000_003


class Run(NamedTuple):
    """One run to make: its task, seed, steps, and the arguments of DQN."""

    task: str
    seed: int
    steps: int
    settings: dict[str, Any]


@dataclass
class Curves:
    """What a run showed on the way, and the time it spent evaluating."""

    episodes: list[tuple[int, float]] = field(default_factory=list)
    evaluations: list[Point] = field(default_factory=list)
    seconds: float = 0.0

    def training(self, steps: int) -> tuple[Point, ...]:
        """Mean returns of the episodes that ended in each hundredth of the steps."""
        width, bins = max(1, steps // CURVE_POINTS), dict[int, list[float]]()
        for at, value in self.episodes:
            bins.setdefault(min(-(-at // width) * width, steps), []).append(value)
        return tuple((at, tidy(float(np.mean(v)), 6), len(v)) for at, v in sorted(bins.items()))


def zoo_settings(path: Path | None = None) -> dict[str, dict[str, Any]]:
    """The arguments of DQN by environment, from the file of the installed Zoo."""
    from ruamel.yaml import YAML

    if path is None:
        spec = find_spec("rl_zoo3")
        if spec is None or not spec.submodule_search_locations:
            sys.exit("rl_zoo3 is not installed: pip install --no-deps rl_zoo3, or give --zoo FILE")
        path = Path(spec.submodule_search_locations[0]) / "hyperparams" / "dqn.yml"
    found = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    return {env: _arguments(dict(given)) for env, given in found.items()}


def _arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The settings of an environment without its steps, and without text that is Python code."""
    given.pop("n_timesteps", None)
    text = given.get("policy_kwargs")
    if isinstance(text, str):
        (call,) = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
        given["policy_kwargs"] = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    return given


def make_run(run: Run) -> SuiteRow:
    """Train and evaluate one DQN."""
    import torch
    from stable_baselines3 import DQN
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)
    task, curves = CLASSIC.tasks[run.task], Curves()
    milestones = [at for at in task.milestones if at < run.steps]

    class Look(BaseCallback):
        """Records the ends of episodes, and evaluates on the way."""

        def _on_step(self) -> bool:
            now = self.num_timesteps
            for info in self.locals["infos"]:
                if "episode" in info:
                    curves.episodes.append((now, float(info["episode"]["r"])))
            episodes = CLASSIC.final_episodes if now in milestones else CLASSIC.eval_episodes
            if now < run.steps and (now in milestones or now % CLASSIC.eval_every == 0):
                begin = time.perf_counter()
                mean = float(np.mean(greedy_returns(self.model, task.env, episodes, run.seed)))
                curves.evaluations.append((now, tidy(mean, 6), episodes))
                curves.seconds += time.perf_counter() - begin
            return True

    settings = {"policy": "MlpPolicy", **run.settings}
    agent = DQN(env=task.env, seed=run.seed, device="cpu", **settings)
    begin = time.perf_counter()
    agent.learn(run.steps, callback=Look())
    seconds = time.perf_counter() - begin - curves.seconds
    returns = greedy_returns(agent, task.env, CLASSIC.final_episodes, run.seed)
    steps = int(agent.num_timesteps)
    last = steps, tidy(float(np.mean(returns)), 6), len(returns)
    return SuiteRow(
        suite=CLASSIC.name,
        task=run.task,
        agent=PEER,
        levels=None,
        seed=run.seed,
        steps=steps,
        episodes=len(curves.episodes),
        greedy=float(np.mean(returns)),
        greedy_error=float(np.std(returns, ddof=1) / np.sqrt(len(returns))),
        evaluated=len(returns),
        evaluations=(*curves.evaluations, last),
        training=curves.training(steps),
        seconds=round(seconds, 3),
        agents=1,
        config={**settings, "from": "RL Zoo" if run.settings else "defaults of DQN"},
        provenance=_provenance(),
    )


def greedy_returns(agent: Any, env: str, episodes: int, seed: int) -> list[float]:
    """Returns of episodes without exploration, in an environment made for them."""
    import gymnasium

    made, found = gymnasium.make(env), []
    for episode in range(episodes):
        seen, _ = made.reset(seed=EVALUATION_SEED + 100_000 * seed + episode)
        total, over = 0.0, False
        while not over:
            action, _ = agent.predict(np.asarray(seen), deterministic=True)
            seen, reward, terminated, truncated, _ = made.step(np.asarray(action).item())
            total, over = total + float(reward), terminated or truncated
        found.append(total)
    made.close()
    return found


def _provenance() -> dict[str, str]:
    names = "stable_baselines3", "rl_zoo3", "torch", "gymnasium", "numpy"
    return {
        **{name: found for name in names if (found := _version(name))},
        "python": platform.python_version(),
        "device": "cpu: one thread",
        "machine": f"{platform.system()} {platform.machine()}",
        "date": datetime.now(UTC).date().isoformat(),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def main() -> None:
    """Make the runs that the folder does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/classic"))
    parser.add_argument("--tasks", help="names with commas; default: all")
    parser.add_argument("--seeds", type=int, default=CLASSIC.seeds)
    parser.add_argument("--steps", type=int, help="default: those of the task")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--zoo", type=Path, help="another file than the dqn.yml of rl_zoo3")
    given = parser.parse_args()
    for name in THREADS:
        os.environ[name] = "1"
    known = [name for name, task in CLASSIC.tasks.items() if not task.options.get("masked")]
    words = None if given.tasks is None else given.tasks.split(",")
    tasks, zoo = choose("task", words, known), zoo_settings(given.zoo)
    done = {row.key for row in read_suite_rows(given.out)}
    runs = [
        Run(name, seed, given.steps or CLASSIC.tasks[name].steps, zoo.get(name, {}))
        for seed in range(given.seeds)
        for name in tasks
        if (CLASSIC.name, name, PEER, None, seed) not in done
    ]
    rows = given.out / "rows" / f"{PEER}.suite.jsonl"
    rows.parent.mkdir(parents=True, exist_ok=True)
    print(f"{len(runs)} runs to make, {given.workers} at a time", flush=True)
    with multiprocessing.get_context("spawn").Pool(given.workers, maxtasksperchild=1) as pool:
        for row in pool.imap_unordered(make_run, runs):
            append_suite_row(row, rows)
            speed = f"{row.steps_per_second:.0f} steps/s"
            print(f"{row.task} seed {row.seed}: {row.greedy:.1f}, {speed}", flush=True)


if __name__ == "__main__":
    main()
