"""Prints checksums of solves and training runs, to show that a change leaves all results alone.

python benchmarks/checksums.py > before.txt     # then change the code
python benchmarks/checksums.py | diff before.txt -

Equal on one machine with the same versions of JAX, NumPy and Numba; a few minutes on two cores.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tsallax import (
    DDPG,
    MDP,
    DDPGConfig,
    DeepQ,
    DeepQConfig,
    Fleet,
    Hard,
    Member,
    Soft,
    Sparse,
    Tsallis,
    gap_certificate,
    problems,
    q_learning,
    solve,
)

SMALL: dict[str, Any] = {
    "net_arch": (32, 32), "batch_size": 16, "buffer_size": 2048, "learning_starts": 200,
}  # fmt: skip
SMALL_Q = {**SMALL, "target_update_interval": 100}
ACTIONS = 5, 12
"""Levels of each joint: Adam writes the moments of 144 actions by rows, of 25 all at once."""


def show(name: str, *arrays: Any) -> None:
    """Print the checksum of arrays."""
    digest = hashlib.sha256()
    for array in map(np.asarray, arrays):
        digest.update(f"{array.shape} {array.dtype.str}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    print(f"{digest.hexdigest()[:16]}  {name}", flush=True)


def show_solves() -> None:
    """Solves of four regularisers by every method."""
    mdps = {
        "garnet": problems.garnet(400, 5, 4, discount=0.99, seed=3),
        "maze": problems.maze(31, discount=0.99, seed=1),
        "FrozenLake": MDP.from_gymnasium("FrozenLake-v1", 0.99),
        "unicycle": problems.unicycle(),
    }
    methods = ("auto", "value_iteration", "modified_policy_iteration", "policy_iteration")
    for name, mdp in mdps.items():
        for regularizer in (Hard(), Soft(0.1), Sparse(0.1), Tsallis(0.1, 1.5)):
            for method in methods[: 1 if name == "unicycle" else 4]:
                s = solve(mdp, regularizer, method=method)
                arrays = (s.value, s.lower, s.upper, s.pair_policy, s.certified_support)
                show(f"{name}, {regularizer}, {method}", *arrays, s.iterations, s.sweeps)
            show(f"{name}, {regularizer}, gap", gap_certificate(mdp, s))


def show_agent(name: str, agent: Any, resumed: bool = False) -> None:
    """2,000 steps of an agent, saved and loaded after 900 of them if it is `resumed`."""
    if resumed:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "agent.npz"
            agent.learn(steps=900).save(path)
            agent = type(agent).load(path)
    agent.learn(steps=2000)
    history = agent.history.arrays()
    show(name, *jax.tree.leaves(agent._learner), *(history[key] for key in sorted(history)))


def show_training() -> None:
    """Each learner in both loops, alone, resumed and as a fleet."""
    soft, tsallis = {"explore": "soft", "update": "soft"}, {"explore": "tsallis", "explore_q": 1.5}
    for resumed in (False, True):
        more = ", resumed" if resumed else ""
        for actions in ACTIONS:
            reacher = DeepQ("Reacher-v5", actions=actions, seed=1, **SMALL_Q)
            show_agent(f"DeepQ, Reacher in JAX, {actions**2} actions{more}", reacher, resumed)
        show_agent(f"DDPG, Reacher in JAX{more}", DDPG("Reacher-v5", seed=6, **SMALL), resumed)
    cartpole = DeepQ("CartPole-v1", seed=4, **soft, **SMALL_Q)
    show_agent("DeepQ, CartPole in Gymnasium, soft", cartpole)
    lake = DeepQ("FrozenLake-v1", seed=5, **tsallis, update="hard", **SMALL_Q)
    show_agent("DeepQ, FrozenLake in Gymnasium, Tsallis", lake)
    several = DeepQ("Reacher-v5", actions=11, n_envs=4, train_freq=2, n_step=3, double=True,
                    huber=1.0, max_grad_norm=1.0, seed=2, **SMALL_Q)  # fmt: skip
    show_agent("DeepQ, four environments, double, three steps", several)
    pendulum = DDPG("Pendulum-v1", n_envs=2, noise="parameter", seed=7, **SMALL)
    show_agent("DDPG, Pendulum in Gymnasium, parameter noise", pendulum)
    variants = (("sparse", "sparse", 0.1), ("soft", "soft", 0.01), ("epsilon", "hard", 0.1))
    members = [
        Member(DeepQConfig(explore=e, update=u, alpha=a, **SMALL_Q), seed)
        for e, u, a in variants
        for seed in (0, 1)
    ]
    for actions, together in product(ACTIONS, (False, True)):
        fleet = Fleet("Reacher-v5", members, actions=actions, together=together).learn(steps=1000)
        name = f"Fleet of DeepQ, {actions**2} actions, together {together}"
        show(name, *jax.tree.leaves(fleet._loop.learners))
    fleet = Fleet("Reacher-v5", [Member(DDPGConfig(**SMALL), s) for s in (0, 1)])
    show("Fleet of DDPG", *jax.tree.leaves(fleet.learn(steps=1000)._loop.learners))
    table = q_learning(problems.forest(), Sparse(0.1), steps=20_000, seed=1)
    show("q_learning, forest", table.q)
    table = q_learning("FrozenLake-v1", Sparse(0.1), discount=0.99, steps=20_000, seed=1)
    show("q_learning, FrozenLake in Gymnasium", table.q)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    show_solves()
    show_training()
