"""DDPG on Reacher, by the protocol of Tianshou's published return.

python benchmarks/ddpg.py                  ten seeds, a million steps, on a GPU
python benchmarks/ddpg.py --steps 200000   on a CPU, in an hour
python benchmarks/ddpg.py --theirs         with the options that Tianshou documents
python benchmarks/ddpg.py --set learning_rate=1e-3 batch_size=256

Theirs is the largest, over evaluations every 5,000 steps, of an average over ten seeds with ten
episodes each: -3.3, with a deviation of 0.3 between seeds. The j-th episode of seed i begins as the
i+j-th of 19, so that the hundred episodes of an evaluation share 19 beginnings, and easy ones lift
them all: the largest of many such averages is biased upwards. The mean of 500 episodes of each
agent is printed beside it. Their environment, Reacher-v2, rewards the distance before a step
and Reacher-v5 the one after it, which adds the 0.23 of the beginning to returns.
"""

from __future__ import annotations

import argparse
import ast
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tsallax import DDPGConfig, Fleet, Member
from tsallax.deep.training_schedule import MAX_STEPS
from tsallax.envs import Reacher

THEIRS: dict[str, Any] = {
    "learning_rate": 1e-3,
    "batch_size": 256,
    "buffer_size": 1_000_000,
    "learning_starts": 25_000,
    "normalize": False,
    "bounded": False,
    "action_penalty": 0.0,
    "output_scale": 1.0,
}


def earlier(state: Any, action: Any) -> Any:
    """A step of Reacher-v2."""
    after, seen, _, terminated, truncated = Reacher.step(state, action)
    reach = state.fingertip - state.target
    reward = -jnp.sqrt(jnp.sum(reach**2)) - jnp.sum(action**2)
    return after, seen, reward, terminated, truncated


def learn_until(fleet: Fleet, end: int) -> None:
    """Learn up to so many steps."""
    fleet.learn(steps=MAX_STEPS, callback=lambda f: f.steps < end, progress=False)


def by_their_protocol(fleet: Fleet) -> np.ndarray:
    """The mean return of ten episodes of each agent, without noise."""
    agents = range(len(fleet.members))
    return np.array(
        [np.mean([fleet.evaluate(i, 1, seed=i + j).mean for j in range(10)]) for i in agents]
    )


def shown(returns: np.ndarray) -> str:
    """Mean and deviation over agents."""
    return f"{returns.mean():.2f} +- {returns.std():.2f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--theirs", action="store_true", help="the options Tianshou documents")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="other options")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--every", type=int, default=5_000, help="steps between evaluations")
    given = parser.parse_args()
    options = dict(THEIRS) if given.theirs else {}
    for word in given.set:
        name, _, value = word.partition("=")
        options[name] = ast.literal_eval(value)
    config = DDPGConfig(**options)
    fleet = Fleet(
        replace(Reacher, name="Reacher-v2", step=earlier),
        [Member(config, seed) for seed in range(given.seeds)],
    )
    print(f"{jax.devices()[0].device_kind}, {given.seeds} agents", flush=True)
    best = np.array([-np.inf])
    for end in range(given.every, given.steps + 1, given.every):
        learn_until(fleet, end)
        best = max(best, by_their_protocol(fleet), key=np.mean)
        if end % (4 * given.every) == 0 or end + given.every > given.steps:
            many = np.array([fleet.evaluate(i, 500).mean for i in range(given.seeds)])
            print(
                f"{end:>9,} steps, {fleet.seconds:5.0f} s: largest average so far {shown(best)}, "
                f"500 episodes {shown(many)}",
                flush=True,
            )
