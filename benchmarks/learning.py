"""Deep Q-learning next to Stable-Baselines3's DQN: steps per second, steps to a goal, memory.

    python benchmarks/learning.py                    all three, about an hour
    python benchmarks/learning.py speed              with the paper's networks
    python benchmarks/learning.py presets            presets, and DQN with the Zoo's settings
    python benchmarks/learning.py steps --seeds 5    steps until greedy episodes reach a return
    python benchmarks/learning.py memory             a replay of a million transitions
    python benchmarks/learning.py floor              the parts of an update, one by one

Both learn from the same transitions per update, with the same networks, learning rate, batch, start
and target copies; ours with prioritised replay and the sparse target switched on. SB3 explores as
it does by default, epsilon-greedy down to 0.05 over a tenth of its steps.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tsallax.statistics import mean_of, resample

SHARED = {
    "learning_rate": 1e-4,
    "batch_size": 64,
    "learning_starts": 1000,
    "target_update_interval": 1000,
}
SPEED = [("InvertedPendulum-v5", 1001, (512, 512)), ("Reacher-v5", 31, (256,) * 4)]
GOALS = [
    ("CartPole-v1", None, 195.0, 30_000),
    ("Acrobot-v1", None, -100.0, 60_000),
    ("InvertedPendulum-v5", 101, 950.0, 80_000),
]
EVERY = 2000
NETWORK = (256, 256)


def ours(env: str, actions: int | None, hidden: tuple[int, ...], seed: int, **more: Any) -> Any:
    """A sparse deep Q agent."""
    import tsallax

    return tsallax.DeepQ(env, actions=actions, net_arch=hidden, seed=seed, **SHARED, **more)


def theirs(env: str, actions: int | None, hidden: tuple[int, ...], seed: int, **more: Any) -> Any:
    """Stable-Baselines3's DQN on the same environment and grid of actions."""
    from stable_baselines3 import DQN

    return DQN(
        "MlpPolicy",
        gridded(env, actions),
        learning_rate=SHARED["learning_rate"],
        batch_size=int(SHARED["batch_size"]),
        learning_starts=int(SHARED["learning_starts"]),
        target_update_interval=int(SHARED["target_update_interval"]),
        buffer_size=65_536,
        train_freq=1,
        gradient_steps=1,
        policy_kwargs={"net_arch": list(hidden)},
        seed=seed,
        device="cpu",
        **more,
    )


def gridded(env: str, actions: int | None) -> Any:
    """A Gymnasium environment, with the numbers of an even grid as actions where it has a box."""
    import gymnasium

    made = gymnasium.make(env)
    if actions is None:
        return made
    from tsallax.envs import Discretize

    table = Discretize.of(made.action_space.low, made.action_space.high, actions).table

    class Grid(gymnasium.ActionWrapper):
        def __init__(self) -> None:
            super().__init__(made)
            self.action_space = gymnasium.spaces.Discrete(len(table))

        def action(self, action: int) -> Any:
            return table[action].astype(np.float32)

    return Grid()


def speed(rounds: int = 5, steps: int = 500) -> None:
    """Steps per second in interleaved rounds, after the compilation and the first updates."""
    for env, actions, hidden in SPEED:
        inside = ours(env, actions, hidden, 0).learn(steps=2000)
        outside = ours(env, actions, hidden, 0, backend="gymnasium").learn(steps=1500)
        peer = theirs(env, actions, hidden, 0)
        peer.learn(1500)
        runs = {
            "jax": partial(_learn_on, inside, steps),
            "gymnasium": partial(_learn_on, outside, steps),
            "sb3": partial(peer.learn, steps, reset_num_timesteps=False),
        }
        n = inside.policy(np.zeros(inside.spec.observation.size)).size
        print(f"{env}, {n} actions, {hidden}: steps/s, median (best) of {rounds} rounds")
        _print_rates(runs, rounds, steps)


def presets(names: str | None = None, rounds: int = 5, steps: int = 2560) -> None:
    """As `speed`, for the presets of `tsallax reproduce classic` and DQN with the Zoo's settings.

    Tasks of `minatar`, which need gymnax, are asked for by name. Each has its own networks, batches
    and updates per step, which are printed; "no updates" is the preset while it only acts and
    stores.  `steps` is a multiple of all cycles.
    """
    import tsallax
    from sb3_suites import Run, make_agent, settings_for, zoo_settings
    from tsallax.paper.suites.suite_tasks import CLASSIC, MINATAR, choose

    zoo = zoo_settings("DQN")
    usual = [name for name, task in CLASSIC.tasks.items() if not task.options.get("masked")]
    chosen = usual if names is None else choose("task", names.split(","), [*usual, *MINATAR.tasks])
    for name in chosen:
        suite = MINATAR if name in MINATAR.tasks else CLASSIC
        task = suite.tasks[name]
        options = {**tsallax.preset(task.env), **task.options}
        agent = tsallax.DeepQ(task.env, seed=0, **options)
        warm_up = agent.config.learning_starts + steps
        agent.learn(steps=warm_up, progress=False)
        idle = tsallax.DeepQ(task.env, seed=0, **{**options, "learning_starts": 10**9})
        idle.learn(steps=steps, progress=False)
        peer = make_agent(Run(suite.name, name, 0, 0, settings_for(zoo, task.env)), task.env)
        peer.learn(max(warm_up, peer.learning_starts + steps))
        print(f"{name}: steps/s, median (best) of {rounds} rounds")
        print(f"  tsallax: {_work_of_ours(agent)}\n  sb3: {_work_of_theirs(peer)}")
        runs = {
            "tsallax": partial(_learn_on, agent, steps),
            "no updates": partial(_learn_on, idle, steps),
            "sb3": partial(peer.learn, steps, reset_num_timesteps=False),
        }
        _print_rates(runs, rounds, steps)


def _work_of_ours(agent: Any) -> str:
    """What a preset computes for a step."""
    c = agent.config
    sizes = f"{agent._algorithm.hidden}, batch {c.batch_size}"
    parts = [f"{sizes}, {c.gradient_steps / c.train_freq:g} updates per step"]
    passes = "online and target network" if c.double else "target network"
    parts.append(f"{c.n_step}-step targets by the {passes}")
    parts += ["layer normalisation"] if c.layer_norm else []
    parts += ["prioritised replay"] if c.priority else []
    return ", ".join([*parts, "copies of the target" if c.tau is None else "moving target"])


def _work_of_theirs(peer: Any) -> str:
    """What DQN computes for a step."""
    every = peer.train_freq.frequency
    updates = (peer.gradient_steps if peer.gradient_steps >= 0 else every) / every
    hidden = tuple(peer.policy.q_net.net_arch)
    sizes = f"{hidden}, batch {peer.batch_size}, {updates:g} updates per step"
    return f"{sizes}, 1-step targets by the target network, uniform replay, copies of the target"


def _print_rates(runs: dict[str, Callable[[], Any]], rounds: int, steps: int) -> None:
    """Steps per second of functions that make `steps` steps, in interleaved rounds.

    Also by processor time, which other processes on the machine disturb less; it is comparable
    where all have one thread (`taskset -c 0`).
    """
    rates: dict[str, list[float]] = {name: [] for name in runs}
    busy: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            begin, used = time.perf_counter(), time.process_time()
            run()
            rates[name].append(steps / (time.perf_counter() - begin))
            busy[name].append((time.process_time() - used) / steps)
    middle = {name: statistics.median(rate) for name, rate in rates.items()}
    cost = {name: statistics.median(seconds) for name, seconds in busy.items()}
    for name, rate in middle.items():
        ratio, best = rate / middle["sb3"], max(rates[name])
        print(
            f"  {name:10s} {rate:7.0f} ({best:.0f})   {ratio:5.2f} times sb3; processor time "
            f"{1e3 * cost[name]:.3f} ms a step, {cost['sb3'] / cost[name]:.2f} times",
            flush=True,
        )


def _learn_on(agent: Any, steps: int) -> None:
    """Learn for so many more steps."""
    agent.learn(steps=agent.steps + steps, progress=False)


def steps_needed(seeds: int, out: Path | None) -> None:
    """Train to the end, with 5 greedy episodes every 2,000 steps: when the goal is first reached,
    and in what share of the evaluations from then on it is."""
    import torch

    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = json.loads(out.read_text()) if out and out.exists() else []
    done = {(r["env"], r["seed"], r["who"]) for r in rows}
    trainers = {
        "tsallax": _our_evaluations,
        "sb3": _their_evaluations,
        "tsallax, 5 steps": partial(_our_evaluations, n_step=5),
        "sb3, 5 steps": partial(_their_evaluations, n_steps=5),
    }
    for seed in range(seeds):
        for env, actions, _, most in GOALS:
            for who, train in trainers.items():
                if (env, seed, who) in done:
                    continue
                found = train(env, actions, most, seed)
                rows.append({"env": env, "seed": seed, "who": who, "evaluations": found})
                if out is not None:
                    out.write_text(json.dumps(rows))
    for env, _, goal, most in GOALS:
        for who in trainers:
            curves = [r["evaluations"] for r in rows if r["env"] == env and r["who"] == who]
            print(f"{env:20s} {who:16s} {_summary(curves, goal, most)}", flush=True)


def _summary(curves: list[list[float]], goal: float, most: int) -> str:
    """The steps to the goal, and the share of evaluations that reach it from then on."""
    first = [next((i for i, x in enumerate(c) if x >= goal), None) for c in curves]
    steps = np.array([most if i is None else EVERY * (i + 1) for i in first], float)
    kept = [
        0.0 if i is None else float(np.mean(np.array(c[i:]) >= goal)) for i, c in zip(first, curves)
    ]
    text = f"to {goal:g} after {_interval(steps)} steps of {steps.astype(int).tolist()}"
    text += f"; from then on in {_interval(100 * np.array(kept))}% of the evaluations"
    never = sum(i is None for i in first)
    return text + (f"; {never} never within {most}" if never else "")


def _interval(samples: Any) -> str:
    """The mean with its 95% interval over seeds, or the range of fewer than six."""
    found = mean_of(samples, resample({"seeds": len(samples)})["seeds"])
    return f"{found.value:.0f} [{found.low:.0f}, {found.high:.0f}]"


def _our_evaluations(
    env: str, actions: int | None, most: int, seed: int, **more: Any
) -> list[float]:
    agent = ours(env, actions, NETWORK, seed, **more)
    found = []
    while agent.steps < most:
        _learn_on(agent, EVERY)
        found.append(agent.evaluate(5).mean)
    return found


def _their_evaluations(
    env: str, actions: int | None, most: int, seed: int, **more: Any
) -> list[float]:
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.evaluation import evaluate_policy

    found: list[float] = []

    class Watch(BaseCallback):
        def _on_step(self) -> bool:
            if self.num_timesteps % EVERY == 0:
                test = gridded(env, actions)
                test.reset(seed=seed + 1_000_003)
                found.append(float(evaluate_policy(self.model, test, 5, warn=False)[0]))
            return True

    theirs(env, actions, NETWORK, seed, **more).learn(most, callback=Watch())
    return found


def floor() -> None:
    """Milliseconds of the parts of an update with 1,001 actions and 2 x 512, each on its own."""
    import jax
    import jax.numpy as jnp

    from tsallax import Sparse
    from tsallax.deep import network

    key = jax.random.PRNGKey(0)
    net = network.init(key, 4, (512, 512), 1001, 0.01)
    x, action = jax.random.normal(key, (64, 4)), jax.random.randint(key, (64,), 0, 1001)
    q, rows = network.values(net, x), network.output_rows(net, action)

    def loss(body: Any, rows: Any) -> Any:
        return jnp.mean(network.action_values(body, rows, x) ** 2)

    values, gradient = jax.jit(network.values), jax.jit(jax.grad(loss, (0, 1)))
    slopes = gradient(net.body, rows)
    agent = ours("InvertedPendulum-v5", 1001, (512, 512), 0)
    learners = [agent._learner]

    @partial(jax.jit, donate_argnums=0)  # the loops of agents do not copy the tables either
    def step(learner: Any) -> Any:
        online, moments = agent._algorithm._update_rows(learner, action, *slopes, 1e-4)
        return learner._replace(online=online, adam=moments)

    def update() -> Any:
        learners.append(step(learners.pop()))
        return learners[0].adam

    parts = {
        "target's forward pass": partial(values, net, x),
        "online pass and gradient": partial(gradient, net.body, rows),
        "Adam": update,
        "spmax of 64 rows": partial(jax.jit(Sparse(0.1).value), q),
    }
    for name, part in parts.items():
        times = []
        for _ in range(60):
            begin = time.perf_counter()
            jax.block_until_ready(part())
            times.append(time.perf_counter() - begin)
        print(f"{name:26s} {1e3 * min(times):.2f} ms")


def memory() -> None:
    """Bytes of a replay of a million transitions of Reacher against those of its raw numbers."""
    import jax

    from tsallax.deep import replay
    from tsallax.envs.observation_format import ObservationFormat

    vectors = ObservationFormat.vector(10)
    ring = jax.eval_shape(lambda: replay.init(1_000_000, vectors, (), "int32"))
    total = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(ring))
    raw = 1_000_000 * (10 * 4 * 2 + 4 + 4 + 1)
    print(f"a million transitions: {total / 1e6:.1f} MB, {total / raw:.3f} times the raw numbers")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ["speed", "presets", "steps", "memory", "floor"]
    parser.add_argument("what", nargs="*", choices=[*names, []])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tasks", help="of presets, with commas; default: all")
    given = parser.parse_args()
    chosen = given.what or ["speed", "memory", "steps"]
    parts = {
        "speed": speed,
        "presets": partial(presets, given.tasks),
        "memory": memory,
        "floor": floor,
        "steps": partial(steps_needed, given.seeds, given.out),
    }
    for what in chosen:
        parts[what]()
