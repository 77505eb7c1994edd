"""Agents of Stable-Baselines3 as rows of `tsallax reproduce classic`, `control` and `minatar`.

    python benchmarks/sb3_suites.py classic --out out/classic                  DQN, ten seeds
    python benchmarks/sb3_suites.py classic --out out/classic --workers 16     16 runs at a time
    python benchmarks/sb3_suites.py control --out out/control --tasks HalfCheetah,Hopper \\
        --steps 100000                                                         TD3, five seeds
    python benchmarks/sb3_suites.py minatar --out out/minatar                  DQN, ten seeds
    tsallax report out/classic                                                 the page, with both

The settings are those of RL Baselines3 Zoo, read from its package (`rl_zoo3/hyperparams/*.yml`),
which is found but not imported: it need not have its dependencies. It has settings for version 4 of
the MuJoCo tasks, which serve for version 5, and none for FrozenLake and Taxi, where DQN has its own
defaults and a one-hot observation. DQN does not know masks: Taxi with masks is not run. For MinAtar
it has the Zoo's settings for Atari, without the wrappers, learning from step 1,000 and not 100,000,
and with the convolution of MinAtar's authors, as that for Atari needs larger images. A run makes
the steps of ours (up to a multiple of `train_freq`) and is evaluated like ours: after the same
steps, without exploration, for as many episodes. Each run is a process with one thread. It is
appended when it is finished; what has a row is not run again.

JAX is not needed but for MinAtar; stable-baselines3, torch, rl_zoo3, ruamel.yaml and Gymnasium are.
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

from tsallax.paper.fleets.row_files import Point
from tsallax.paper.result import tidy
from tsallax.paper.suites.suite_rows import SUITE_ROWS, SuiteRow
from tsallax.paper.suites.suite_tasks import CLASSIC, CONTROL, MINATAR, SUITES, choose

CURVE_POINTS = 100
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
EVALUATION_SEED = 1_000_003


AGENTS = {CLASSIC.name: "DQN", CONTROL.name: "TD3", MINATAR.name: "DQN"}
"""The class of Stable-Baselines3 that trains each suite."""


class Run(NamedTuple):
    """One run to make: its suite and task, seed, steps, and the arguments of the agent."""

    suite: str
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


def row_name(suite: str) -> str:
    """The name of the agent of a suite in its rows."""
    return f"sb3-{AGENTS[suite].lower()}"


def zoo_settings(agent: str, path: Path | None = None) -> dict[str, dict[str, Any]]:
    """The arguments of an agent by environment, from the file of the installed Zoo."""
    from ruamel.yaml import YAML

    if path is None:
        spec = find_spec("rl_zoo3")
        if spec is None or not spec.submodule_search_locations:
            sys.exit("rl_zoo3 is not installed: pip install --no-deps rl_zoo3, or give --zoo FILE")
        path = Path(spec.submodule_search_locations[0]) / "hyperparams" / f"{agent.lower()}.yml"
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


def settings_for(zoo: dict[str, dict[str, Any]], env: str) -> dict[str, Any]:
    """The Zoo's settings of an environment, or of its version before; Atari's for MinAtar."""
    if "MinAtar" in env:
        wrapped = ("env_wrapper", "frame_stack")
        return {
            **{name: value for name, value in zoo["atari"].items() if name not in wrapped},
            "learning_starts": 1_000,
        }
    name, _, version = env.rpartition("-v")
    return zoo.get(env) or zoo.get(f"{name}-v{int(version) - 1}", {})


def make_agent(run: Run, env: str) -> Any:
    """The agent of a run, with the action noise that the Zoo's settings describe."""
    import gymnasium
    import stable_baselines3
    from stable_baselines3.common.noise import NormalActionNoise

    settings = {"policy": "MlpPolicy", **run.settings}
    if settings.pop("noise_type", None) == "normal":
        size = gymnasium.make(gymnasium_id(env)).action_space.shape
        noise = NormalActionNoise(np.zeros(size), np.full(size, settings.pop("noise_std")))
        settings["action_noise"] = noise
    if settings["policy"] == "CnnPolicy":
        settings["policy_kwargs"] = {
            "features_extractor_class": small_convolution(),
            "net_arch": [],
        }
    kind = getattr(stable_baselines3, AGENTS[run.suite])
    return kind(env=gymnasium_id(env), seed=run.seed, device="cpu", **settings)


def small_convolution() -> Any:
    """The network of MinAtar's authors before its output: 16 filters of 3 x 3 and 128 units."""
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class SmallConvolution(BaseFeaturesExtractor):
        def __init__(self, observation_space: Any) -> None:
            super().__init__(observation_space, features_dim=128)
            channels, height, width = observation_space.shape
            self.layers = torch.nn.Sequential(
                torch.nn.Conv2d(channels, 16, 3),
                torch.nn.ReLU(),
                torch.nn.Flatten(),
                torch.nn.Linear(16 * (height - 2) * (width - 2), 128),
                torch.nn.ReLU(),
            )

        def forward(self, observations: Any) -> Any:
            return self.layers(observations)

    return SmallConvolution


def gymnasium_id(env: str) -> str:
    """An id by which Gymnasium finds an environment, those of this library included."""
    own = "tsallax.envs.gymnasium.registration:" if env.startswith("tsallax/") else ""
    return own + env


def make_run(run: Run) -> SuiteRow:
    """Train and evaluate one agent."""
    import torch
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)
    suite = SUITES[run.suite]
    task, curves = suite.tasks[run.task], Curves()
    milestones = [at for at in task.milestones if at < run.steps]

    class Look(BaseCallback):
        """Records the ends of episodes, and evaluates on the way."""

        def _on_step(self) -> bool:
            now = self.num_timesteps
            for info in self.locals["infos"]:
                if "episode" in info:
                    curves.episodes.append((now, float(info["episode"]["r"])))
            episodes = suite.final_episodes if now in milestones else suite.eval_episodes
            if now < run.steps and (now in milestones or now % suite.eval_every == 0):
                begin = time.perf_counter()
                mean = float(np.mean(greedy_returns(self.model, task.env, episodes, run.seed)))
                curves.evaluations.append((now, tidy(mean, 6), episodes))
                curves.seconds += time.perf_counter() - begin
            return True

    agent = make_agent(run, task.env)
    begin = time.perf_counter()
    agent.learn(run.steps, callback=Look())
    seconds = time.perf_counter() - begin - curves.seconds
    returns = greedy_returns(agent, task.env, suite.final_episodes, run.seed)
    steps = int(agent.num_timesteps)
    last = steps, tidy(float(np.mean(returns)), 6), len(returns)
    return SuiteRow(
        suite=run.suite,
        task=run.task,
        agent=row_name(run.suite),
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
        config={
            **run.settings,
            "from": "RL Zoo" if run.settings else f"defaults of {AGENTS[run.suite]}",
        },
        provenance=_provenance(),
    )


def greedy_returns(agent: Any, env: str, episodes: int, seed: int) -> list[float]:
    """Returns of episodes without exploration, in an environment made for them."""
    import gymnasium

    made, found = gymnasium.make(gymnasium_id(env)), []
    for episode in range(episodes):
        seen, _ = made.reset(seed=EVALUATION_SEED + 100_000 * seed + episode)
        total, over = 0.0, False
        while not over:
            action, _ = agent.predict(np.asarray(seen), deterministic=True)
            seen, reward, terminated, truncated, _ = made.step(action)
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
    parser.add_argument("suite", choices=list(AGENTS))
    parser.add_argument("--out", type=Path, help="default: out/SUITE")
    parser.add_argument("--tasks", help="names with commas; default: all")
    parser.add_argument("--seeds", type=int, help="default: those of the suite")
    parser.add_argument("--steps", type=int, help="default: those of the task")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--zoo", type=Path, help="another file of settings than that of rl_zoo3")
    given = parser.parse_args()
    for name in THREADS:
        os.environ[name] = "1"
    suite, agent, out = SUITES[given.suite], row_name(given.suite), given.out
    out = Path("out") / suite.name if out is None else out
    known = [name for name, task in suite.tasks.items() if not task.options.get("masked")]
    words = None if given.tasks is None else given.tasks.split(",")
    tasks, zoo = choose("task", words, known), zoo_settings(AGENTS[suite.name], given.zoo)
    done = {row.key: row.steps for row in SUITE_ROWS.read(out) if row.agent == agent}
    runs = [
        Run(suite.name, name, seed, given.steps or task.steps, settings_for(zoo, task.env))
        for seed in range(given.seeds or suite.seeds)
        for name, task in suite.tasks.items()
        if name in tasks and (suite.name, name, agent, None, seed) not in done
    ]
    for (_, name, *_), steps in done.items():
        if name in tasks and steps < (given.steps or suite.tasks[name].steps):
            sys.exit(f"{out}: holds runs of {name} with {steps} steps: use another --out")
    rows = out / "rows" / f"{agent}.suite.jsonl"
    rows.parent.mkdir(parents=True, exist_ok=True)
    print(f"{len(runs)} runs to make, {given.workers} at a time", flush=True)
    with multiprocessing.get_context("spawn").Pool(given.workers, maxtasksperchild=1) as pool:
        for row in pool.imap_unordered(make_run, runs):
            SUITE_ROWS.append(row, rows)
            speed = f"{row.steps_per_second:.0f} steps/s"
            print(f"{row.task} seed {row.seed}: {row.greedy:.1f}, {speed}", flush=True)


if __name__ == "__main__":
    main()
