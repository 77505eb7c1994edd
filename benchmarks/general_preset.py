"""The preset `general` next to the defaults of `DeepQ`, where no preset was chosen by results.

    python benchmarks/general_preset.py                              all tasks, three seeds
    python benchmarks/general_preset.py --tasks Pendulum-v1,point --seeds 5 --steps 20000
    python benchmarks/general_preset.py --agents general,n_step=1    other candidates
    python benchmarks/general_preset.py --out rows.jsonl             skips what the file has

Every agent learns for as many steps with the same seeds. The table has the greedy return of 30
episodes after training: the mean over seeds, and the least and the greatest in brackets.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

EPISODES = 30
LINES = (
    *((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8)),
    *((0, 4, 8), (2, 4, 6)),
)


class TicTacToe(gymnasium.Env[Any, Any]):
    """Noughts and crosses against a uniformly random opponent, with masks of the empty squares."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-1, 1, (9,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(9)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.board = np.zeros(9, np.float32)
        if self.np_random.random() < 0.5:
            self.board[self.np_random.integers(9)] = -1
        return self.board.copy(), self._info()

    def step(self, action: Any) -> Any:
        reward = self._play(int(action), 1)
        if reward is None:
            reward = self._play(int(self.np_random.choice(np.flatnonzero(self.board == 0))), -1)
        return self.board.copy(), reward or 0.0, reward is not None, False, self._info()

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.board == 0}

    def _play(self, square: int, player: int) -> float | None:
        """The result of the game for the first player after a move, None where it goes on."""
        self.board[square] = player
        if any(all(self.board[list(line)] == player) for line in LINES):
            return float(player)
        return None if (self.board == 0).any() else 0.0


class Point(gymnasium.Env[Any, Any]):
    """Steer a point in three dimensions to the origin by its acceleration."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (6,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.speed = self.np_random.uniform(-1, 1, 3), np.zeros(3)
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        self.speed = 0.9 * self.speed + 0.1 * np.clip(action, -1, 1)
        self.place = self.place + 0.2 * self.speed
        return self._observation(), -float(np.linalg.norm(self.place)), False, False, {}

    def _observation(self) -> Any:
        return np.concatenate([self.place, self.speed]).astype(np.float32)


class Catch(gymnasium.Env[Any, Any]):
    """Catch a ball that falls through a grid of 10 x 5; the reward comes at the end."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 1, (50,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.row, self.column, self.paddle = 0, int(self.np_random.integers(5)), 2
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        self.paddle = min(max(self.paddle + int(action) - 1, 0), 4)
        self.row += 1
        caught = 1.0 if self.paddle == self.column else -1.0
        return self._observation(), caught * (self.row == 9), self.row == 9, False, {}

    def _observation(self) -> Any:
        grid = np.zeros((10, 5), np.float32)
        grid[self.row, self.column] = grid[9, self.paddle] = 1
        return grid.ravel()


class Task(NamedTuple):
    env: Callable[[], Any]
    actions: int | None = None


def registered(name: str, **options: Any) -> Callable[[], Any]:
    return partial(gymnasium.make, name, **options)


def point() -> Any:
    return gymnasium.wrappers.TimeLimit(Point(), 100)


TASKS = {
    "Pendulum-v1": Task(registered("Pendulum-v1"), 11),
    "CliffWalking-v1": Task(registered("CliffWalking-v1", max_episode_steps=200)),
    "FrozenLake-v1": Task(registered("FrozenLake-v1")),
    "point": Task(point, 5),
    "tic-tac-toe": Task(TicTacToe),
    "catch": Task(Catch),
    "Blackjack-v1": Task(registered("Blackjack-v1")),
    "MountainCarContinuous-v0": Task(registered("MountainCarContinuous-v0"), 11),
}
CHANGES: dict[str, dict[str, Any]] = {
    "alpha=0.1": {"alpha": 0.1},
    "n_step=1": {"n_step": 1},
}
"""What other candidates change of the preset."""
AGENTS = ("defaults", "general", *CHANGES)


def options_of(agent: str) -> dict[str, Any]:
    """The options of `DeepQ` for an agent of the table."""
    import tsallax
    from tsallax.deep.options import without_unused

    if agent == "defaults":
        return {}
    return without_unused({**tsallax.preset("general"), **CHANGES.get(agent, {})})


def run(task: str, agent: str, seeds: list[int], steps: int) -> list[dict[str, Any]]:
    """Train an agent with several seeds, and evaluate each."""
    import tsallax

    env, actions = TASKS[task]
    rows = []
    for seed in seeds:
        learner = tsallax.DeepQ(env, actions=actions, seed=seed, **options_of(agent))
        learner.learn(steps=steps, progress=False)
        found = learner.evaluate(episodes=EPISODES, seed=1000 + seed)
        row = {"task": task, "agent": agent, "seed": seed, "steps": steps}
        rows.append({**row, "return": float(np.mean(found.returns))})
    return rows


def table(rows: list[dict[str, Any]], tasks: list[str], agents: list[str]) -> str:
    """Mean and range of the returns over seeds, tasks by agents."""
    lines = [["task", *agents]]
    for task in tasks:
        cells = [
            [row["return"] for row in rows if (row["task"], row["agent"]) == (task, agent)]
            for agent in agents
        ]
        lines.append([task, *map(_cell, cells)])
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(returns: list[float]) -> str:
    if not returns:
        return ""
    low, high = min(returns), max(returns)
    return f"{np.mean(returns):.4g} [{low:.4g}, {high:.4g}]"


def main() -> None:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description="The preset `general` next to the defaults.")
    parser.add_argument("--tasks", type=names, default=[*TASKS], help="names, with commas between")
    parser.add_argument("--agents", type=names, default=[*AGENTS[:2]], help=", ".join(AGENTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4_000)
    parser.add_argument("--workers", type=int, default=2, help="runs at a time, of one thread each")
    parser.add_argument("--out", type=Path, help="file of rows, which are not run again")
    given = parser.parse_args()
    stored = given.out is not None and given.out.exists()
    rows = [json.loads(line) for line in given.out.read_text().splitlines()] if stored else []
    rows = [row for row in rows if row["steps"] == given.steps and row["seed"] < given.seeds]
    done = {(row["task"], row["agent"], row["seed"]) for row in rows}
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.workers, mp_context=spawn) as pool:
        pending = []
        for task, agent in itertools.product(given.tasks, given.agents):
            seeds = [seed for seed in range(given.seeds) if (task, agent, seed) not in done]
            pending.append(pool.submit(run, task, agent, seeds, given.steps))
        for finished in as_completed(pending):
            rows += finished.result()
            lines = "".join(json.dumps(row) + "\n" for row in finished.result())
            print(lines, end="", flush=True)
            if given.out is not None:
                with given.out.open("a") as file:
                    file.write(lines)
    print(f"\nGreedy return after {given.steps:,} steps, {given.seeds} seeds\n")
    print(table(rows, given.tasks, given.agents))


if __name__ == "__main__":
    main()
