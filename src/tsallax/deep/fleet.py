"""Many agents as one program: the learner of `DeepQ` or `DDPG` with the agents as a leading axis.

What the agents may differ in are numbers (alpha, epsilon, beta, learning rate, seed) and the names
of their regularisers, of which each picks its own while the program runs. An agent of a fleet
learns what it would learn alone, up to the rounding of batched products.

On an accelerator all agents make each step together. A CPU has nothing to gain from that, and
caches to lose: there the agents of a piece of training take turns.

An agent that has its episodes at the end of a piece of training leaves the fleet: its network is
kept, it gets no more turns, and when half of the agents have left, the arrays shrink to those that
still learn.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from os import PathLike
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from tsallax import provenance
from tsallax.deep import checkpoint, ddpg, deep_q, loop_jax, options
from tsallax.deep.agent import (
    Agent,
    is_false,
    is_whole,
    require_counts,
    require_folder,
    require_seed,
)
from tsallax.deep.ddpg_config import DDPGConfig
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.deep.environment_spec import World, world_of
from tsallax.deep.evaluation_episodes import Episodes, evaluation_seed, play
from tsallax.deep.loop_jax import Algorithm, Feed, Log
from tsallax.deep.training_schedule import NEVER
from tsallax.envs.jax.environment import Environment
from tsallax.errors import InvalidInput
from tsallax.interrupts import deferred
from tsallax.progress import bar

KINDS: dict[str, type[DeepQConfig] | type[DDPGConfig]] = {"deep_q": DeepQConfig, "ddpg": DDPGConfig}


@dataclass(frozen=True)
class Member:
    """One agent of a fleet: its options, of `DeepQ` or of `DDPG`, and its seed."""

    config: DeepQConfig | DDPGConfig
    seed: int


@dataclass
class Record:
    """What a member went through: the returns of its episodes and where it is now."""

    returns: list[float]
    running: float = 0.0
    finished_at: int | None = None
    """The number of steps after which it had its episodes."""
    network: Any = field(default=None, repr=False)
    """What acting needs, once it is finished."""


class Diverged(FloatingPointError):
    """The loss of a member of a fleet is no number any more."""

    def __init__(self, member: int, environment: str, steps: int) -> None:
        super().__init__(
            f"{environment}: the loss of agent {member} of this fleet is not finite after {steps} "
            "steps; a lower learning_rate or max_grad_norm=10 may help"
        )
        self.member = member


class Fleet:
    """Agents that learn side by side in copies of one environment.

    Args:
        env: the name of a JAX environment, or one of `tsallax.envs`.
        members: the agents, alike but for their seeds and for what `deep_q.KNOBS` names.
        actions: levels per dimension of a continuous action, for agents of `DeepQ`.
        together: make each step with all agents at once; default: on an accelerator.

    >>> from tsallax.deep.deep_q_config import DeepQConfig
    >>> options = dict(
    ...     net_arch=(8,), batch_size=4, buffer_size=200, learning_starts=50,
    ...     target_update_interval=50,
    ... )
    >>> settings = [DeepQConfig(alpha=alpha, **options) for alpha in (0.1, 1)]
    >>> members = [Member(c, seed) for c in settings for seed in (0, 1)]
    >>> fleet = Fleet("Reacher-v5", members, actions=3).learn(episodes=2)
    >>> fleet.steps, [len(record.returns) for record in fleet.records]
    (100, [2, 2, 2, 2])
    """

    def __init__(
        self,
        env: Any,
        members: Iterable[Member],
        *,
        actions: int | Sequence[int] | None = None,
        together: bool | None = None,
    ) -> None:
        self.members = _members(members)
        common = self.members[0].config
        if common.n_envs != 1:
            raise InvalidInput("an agent of a fleet has one environment: leave n_envs at 1")
        for member in self.members[1:]:
            _require_alike(common, member.config)
        if isinstance(common, DDPGConfig) and actions is not None:
            raise InvalidInput(f"actions={actions} makes no sense with DDPG: leave it out")
        world = world_of(
            env,
            actions=actions,
            n_envs=common.n_envs,
            continuous=isinstance(common, DDPGConfig),
            backend="jax",
            options={},
        )
        assert world.jax is not None
        self.world = world
        self.environment: Environment = world.jax
        self.actions = None if actions is None else np.asarray(actions).tolist()
        self.together = jax.default_backend() != "cpu" if together is None else together
        self._together = together
        self.steps = 0
        self.seconds = 0.0
        """Spent learning."""
        self.whole = True
        """False where an exception ended a piece of training half way: not to be saved."""
        self.records = [Record([]) for _ in self.members]
        self._alive = list(range(len(self.members)))
        self.config = common
        """The options of the first member, of which all share those that shape the program."""
        self._algorithm, knobs = _program(world, [member.config for member in self.members])
        self._table = None if world.table is None else jnp.asarray(world.table)
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *knobs)
        keys = jnp.stack([jax.random.PRNGKey(member.seed) for member in self.members])
        self._learner, self._feed = _begin(
            self._algorithm, self.environment, common.n_envs, keys, stacked
        )

    def __repr__(self) -> str:
        n, left = len(self.members), len(self.learning)
        return f"Fleet({self.world.name!r}, {n} agents, {left} learning, {self.steps} steps)"

    @property
    def learning(self) -> list[int]:
        """The members that have not finished."""
        return [i for i, record in enumerate(self.records) if record.finished_at is None]

    def learn(
        self,
        *,
        episodes: int | None = None,
        steps: int | None = None,
        save_to: str | PathLike[str] | None = None,
        save_every: int = 100_000,
        callback: Callable[[Self], bool | None] | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Learn until every agent has so many episodes in all, or has made so many steps in all.

        An agent is finished, and for good, at the end of the piece of training, between two copies
        of the target network, in which it reaches its episodes. `callback` is called after each
        piece, and ends the training by returning False.
        """
        require_counts({"episodes": episodes, "steps": steps, "save_every": save_every})
        if episodes is None and steps is None:
            raise InvalidInput("learn needs a number of episodes or steps, such as episodes=1000")
        self._require_open(episodes, steps)
        require_folder(save_to)
        most = NEVER if steps is None else int(steps)
        with bar(f"{len(self.members)} agents", progress) as report, deferred() as interrupted:
            while self.learning and self.steps < most and not interrupted():
                before, begin = self.steps, time.perf_counter()
                self.whole = False
                self._piece(most)
                self._finish(episodes, most)
                self.whole = True
                self.seconds += time.perf_counter() - begin
                if save_to is not None and self.steps // save_every > before // save_every:
                    self.save(save_to)
                report(self.share(episodes, steps), self._status())
                if callback is not None and is_false(callback(self)):
                    break
            if save_to is not None:
                self.save(save_to)
            if interrupted():
                raise KeyboardInterrupt
        return self

    def _require_open(self, episodes: int | None, steps: int | None) -> None:
        """Refuse to ask more of an agent that is finished than it was finished with."""
        for i, record in enumerate(self.records):
            if record.finished_at is None:
                continue
            enough = episodes is not None and len(record.returns) >= episodes
            if not enough and (steps is None or record.finished_at < steps):
                raise InvalidInput(
                    f"agent {i} of this fleet was finished, for good, after "
                    f"{len(record.returns)} episodes and {record.finished_at} steps: make a fleet "
                    "with the larger goal, and end it early by its callback"
                )

    def _piece(self, most: int) -> None:
        c = self.config
        size = c.n_envs * c.train_freq
        learning = self.steps >= c.learning_starts
        until = min(most, (self.steps // c.target_update_interval + 1) * c.target_update_interval)
        if not learning:
            until = min(until, c.learning_starts)
        cycles = max(1, min(-(-(until - self.steps) // size), loop_jax.CYCLES))
        before = self.steps
        self._learner, self._feed, log = _compiled(jax.default_backend())(
            self._algorithm,
            self.environment,
            learning,
            cycles,
            self.together,
            self._learner,
            self._feed,
            self._table,
            jnp.asarray(self.steps, jnp.int32),
            jnp.asarray([self.records[i].finished_at is None for i in self._alive]),
        )
        self.steps += cycles * size
        if self.steps // c.target_update_interval > before // c.target_update_interval:
            self._learner = self._algorithm.copy(self._learner)
        self._require_finite(np.asarray(log.loss))
        self._record(np.asarray(log.reward, np.float64), np.asarray(log.ended))

    def _require_finite(self, loss: NDArray[Any]) -> None:
        """Refuse to go on with an agent that is none any more, given losses (cycles, agents)."""
        bad = ~np.isfinite(loss).all(0)
        for i in (i for slot, i in enumerate(self._alive) if bad[slot]):
            if self.records[i].finished_at is None:
                raise Diverged(i, self.world.name, self.steps)

    def _record(self, rewards: NDArray[np.float64], ended: NDArray[np.bool_]) -> None:
        """Take note of rewards and ends, (cycles, agents, steps, environments)."""
        flat: list[Any] = [
            np.moveaxis(x[..., 0], 1, 2).reshape(-1, x.shape[1]) for x in (rewards, ended)
        ]
        for slot, i in enumerate(self._alive):
            record = self.records[i]
            if record.finished_at is not None:
                continue
            total = np.cumsum(flat[0][:, slot]) + record.running
            ends = np.flatnonzero(flat[1][:, slot])
            record.returns += np.diff(total[ends], prepend=0.0).tolist()
            record.running = float(total[-1] - (total[ends[-1]] if len(ends) else 0.0))

    def _finish(self, episodes: int | None, most: int) -> None:
        """Let the agents go that have their episodes, and shrink when half have gone."""
        for slot, i in enumerate(self._alive):
            record = self.records[i]
            enough = episodes is not None and len(record.returns) >= episodes
            if record.finished_at is None and (enough or self.steps >= most):
                record.finished_at = self.steps
                if episodes is not None:
                    del record.returns[episodes:]
                shared = self._algorithm.shared(self._member(slot))
                record.network = jax.tree.map(np.asarray, shared)
        left = [slot for slot, i in enumerate(self._alive) if self.records[i].finished_at is None]
        if left and len(left) <= len(self._alive) // 2:
            keep = jnp.asarray(left)
            self._learner, self._feed = jax.tree.map(lambda x: x[keep], (self._learner, self._feed))
            self._alive = [self._alive[slot] for slot in left]

    def _member(self, slot: int) -> Any:
        return jax.tree.map(lambda x: x[slot], self._learner)

    def evaluate(
        self, member: int, episodes: int = 100, deterministic: bool = True, seed: int | None = None
    ) -> Episodes:
        """Play episodes with one agent, without learning; the same as `DeepQ.evaluate`."""
        require_counts({"episodes": episodes})
        record = self.records[self._number(member)]
        learner = self._algorithm.complete(self._shared(member), self._member(0))
        start = evaluation_seed(self.members[member].seed) if seed is None else seed
        require_seed(start)
        step = record.finished_at or self.steps
        return play(
            self._algorithm,
            self.environment,
            learner,
            self._table,
            step=step,
            episodes=episodes,
            deterministic=deterministic,
            seed=start,
        )

    def agent(self, member: int) -> Agent:
        """One agent by itself, as it is now, to play with, predict and save; it cannot learn on."""
        from tsallax.deep.ddpg_agent import DDPG
        from tsallax.deep.deep_q_agent import DeepQ

        one, record = self.members[self._number(member)], self.records[member]
        agent: Agent
        env = self.world.source
        if isinstance(one.config, DDPGConfig):
            agent = DDPG(env, config=one.config, seed=one.seed)
        else:
            agent = DeepQ(env, actions=self.actions, config=one.config, seed=one.seed)
        agent.become(self._shared(member), record.finished_at or self.steps)
        return agent

    def _number(self, member: int) -> int:
        if not (is_whole(member) and 0 <= member < len(self.records)):
            raise InvalidInput(
                f"a fleet of {len(self.records)} agents has none numbered {member!r}"
            )
        return member

    def _shared(self, member: int) -> Any:
        """What acting needs of an agent."""
        network = self.records[member].network
        if network is not None:
            return network
        return self._algorithm.shared(self._member(self._alive.index(member)))

    def share(self, episodes: int | None, steps: int | None) -> float:
        """How much of such a goal is done."""
        least = min(len(self.records[i].returns) for i in self.learning) if self.learning else 0
        if not self.learning:
            return 1.0
        return max(least / (episodes or NEVER), self.steps / (steps or NEVER))

    def _status(self) -> str:
        recent = [np.mean(r.returns[-100:]) for r in self.records if r.returns]
        best = f"best return {max(recent):.4g}" if recent else ""
        return f"step {self.steps}  {len(self.learning)} learning  {best}"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fleet to a file, from which it goes on exactly where it was."""
        if not self.whole:
            raise InvalidInput("a fleet interrupted within a piece of training cannot be saved")
        about = {
            "kind": "fleet",
            "algorithm": next(k for k, kind in KINDS.items() if isinstance(self.config, kind)),
            "world": self.world.describe(),
            "actions": self.actions,
            "together": self._together,
            "members": [
                {"config": options.to_mapping(m.config), "seed": m.seed} for m in self.members
            ],
            "steps": self.steps,
            "seconds": self.seconds,
            "alive": self._alive,
            "finished_at": [r.finished_at for r in self.records],
            "provenance": provenance.of_training(),
        }
        arrays = checkpoint.flatten("learner.", self._learner)
        arrays |= checkpoint.flatten("feed.", self._feed)
        for i, record in enumerate(self.records):
            arrays[f"record.{i}.returns"] = np.asarray(record.returns, np.float64)
            arrays[f"record.{i}.running"] = np.asarray(record.running)
            if record.network is not None:
                arrays |= checkpoint.flatten(f"record.{i}.network.", record.network)
        checkpoint.write(path, about, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str], env: Any = None) -> Self:
        """Read a fleet from a file; `env` is its environment, where that goes by no name."""
        about, arrays = checkpoint.read(path)
        if about.get("kind") != "fleet":
            raise InvalidInput(f"{path}: holds a {about.get('kind')} agent, not a fleet")
        try:
            kind = KINDS[about["algorithm"]]
            members = [
                Member(
                    options.from_mapping(kind, options.with_current_names(m["config"])),
                    int(m["seed"]),
                )
                for m in about["members"]
            ]
            if env is None and not about["world"]["by_name"]:
                raise InvalidInput("saved without a way to make its environment: give it as env")
            fleet = cls(
                about["world"]["name"] if env is None else env,
                members,
                actions=about["actions"],
                together=None if about["together"] is None else bool(about["together"]),
            )
            fleet.steps, fleet._alive = int(about["steps"]), [int(i) for i in about["alive"]]
            fleet.seconds = float(about["seconds"])
            ends = [None if end is None else int(end) for end in about["finished_at"]]
        except InvalidInput as error:
            raise InvalidInput(f"{path}: {error}") from None
        except KeyError as error:
            raise InvalidInput(f"{path}: damaged: its description lacks {error}") from None
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInput(f"{path}: damaged: its description is wrong: {error}") from None
        n, alive = len(members), fleet._alive
        if len(ends) != n or fleet.steps < 0 or len(set(alive)) != len(alive) or not alive:
            raise InvalidInput(f"{path}: damaged: its description is of another fleet")
        if min(alive) < 0 or max(alive) >= n:
            raise InvalidInput(f"{path}: damaged: its description is of another fleet")
        like = jax.eval_shape(
            lambda: jax.tree.map(lambda x: x[: len(alive)], (fleet._learner, fleet._feed))
        )
        fleet._learner = checkpoint.restore(path, "learner.", like[0], arrays)
        fleet._feed = checkpoint.restore(path, "feed.", like[1], arrays)
        one = jax.eval_shape(lambda learner: jax.tree.map(lambda x: x[0], learner), like[0])
        shared = fleet._algorithm.shared(one)
        for i, record in enumerate(fleet.records):
            returns, running = (arrays.get(f"record.{i}.{x}") for x in ("returns", "running"))
            if returns is None or running is None or (returns.ndim, running.ndim) != (1, 0):
                raise InvalidInput(f"{path}: incomplete: record.{i} missing")
            record.returns, record.running = returns.tolist(), float(running)
            record.finished_at = ends[i]
            if ends[i] is not None:
                found = checkpoint.restore(path, f"record.{i}.network.", shared, arrays)
                record.network = jax.tree.map(np.asarray, found)
        return fleet


def _members(given: Any) -> tuple[Member, ...]:
    """The members of a fleet, refused where they are none."""
    try:
        members = tuple(given)
    except TypeError:
        raise InvalidInput(f"a fleet has a list of Members, not {given!r}") from None
    if not members:
        raise InvalidInput("a fleet needs at least one member")
    for member in members:
        if not isinstance(member, Member):
            raise InvalidInput(f"a fleet has Members, not {type(member).__name__}")
        if not isinstance(member.config, DeepQConfig | DDPGConfig):
            raise InvalidInput(
                f"a Member has a DeepQConfig or DDPGConfig, not {type(member.config).__name__}"
            )
        require_seed(member.seed)
    return tuple(Member(member.config, int(member.seed)) for member in members)


def _program(world: World, configs: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The algorithm that the agents share, and the numbers of each."""
    if isinstance(configs[0], DDPGConfig):
        return ddpg.program(world, configs)
    return deep_q.program(world, configs)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _begin(
    algorithm: Any, environment: Environment, n: int, keys: Array, knobs: Any
) -> tuple[Any, Feed]:
    """The learners and environments at the start, as an agent alone has them for each seed."""

    def one(key: Array, knobs: Any) -> tuple[Any, Feed]:
        return algorithm.init(key, knobs), loop_jax.begin(
            environment, n, jax.random.fold_in(key, 1)
        )

    return jax.vmap(one)(keys, knobs)


def _advance(
    algorithm: Algorithm,
    environment: Environment,
    learning: bool,
    cycles: int,
    together: bool,
    learner: Any,
    feed: Feed,
    table: Array | None,
    step: Array,
    learns: Array,
) -> tuple[Any, Feed, Log]:
    """`cycles` cycles of all agents, or in turns of those that `learns` names.

    The log has the cycles first and the agents second.
    """
    size = algorithm.config.n_envs * algorithm.config.train_freq
    one = partial(loop_jax.cycle, algorithm, environment, learning)
    each = jax.vmap(one, (0, 0, None, None)) if together else one

    def body(carry: tuple[Any, Feed], i: Array) -> tuple[tuple[Any, Feed], Log]:
        learner, feed, log = each(*carry, table, step + i * size)
        return (learner, feed), log

    def all_cycles(carry: tuple[Any, Feed]) -> tuple[tuple[Any, Feed], Log]:
        return lax.scan(body, carry, jnp.arange(cycles, dtype=jnp.int32))

    if together:
        (learner, feed), log = all_cycles((learner, feed))
    else:
        none = jax.eval_shape(all_cycles, jax.tree.map(lambda x: x[0], (learner, feed)))[1]

        def skip(carry: tuple[Any, Feed]) -> tuple[tuple[Any, Feed], Log]:
            return carry, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), none)

        def turn(given: tuple[Array, tuple[Any, Feed]]) -> tuple[tuple[Any, Feed], Log]:
            result: tuple[tuple[Any, Feed], Log] = lax.cond(given[0], all_cycles, skip, given[1])
            return result

        (learner, feed), log = lax.map(turn, (learns, (learner, feed)))
        log = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), log)
    return learner, feed, log


OVERLAP = "xla_gpu_command_buffer_scheduling_mode"
"""XLA's name for whether kernels that do not wait for each other run at the same time."""


@cache
def _compiled(backend: str) -> Callable[..., tuple[Any, Feed, Log]]:
    """`_advance` for a kind of device; the variable XLA_FLAGS has the last word."""
    ours = backend == "gpu" and OVERLAP not in os.environ.get("XLA_FLAGS", "")
    return jax.jit(
        _advance,
        static_argnums=(0, 1, 2, 3, 4),
        donate_argnums=(5, 6),
        compiler_options={OVERLAP: "CONCURRENT"} if ours else None,
    )


def _require_alike(one: Any, other: Any) -> None:
    """Refuse agents that cannot share a program."""
    if type(one) is not type(other):
        raise InvalidInput("agents of a fleet must all be of DeepQ or all of DDPG")
    knobs = ddpg.KNOBS if isinstance(one, DDPGConfig) else deep_q.KNOBS
    for name in (each.name for each in dataclasses.fields(one)):
        a, b = getattr(one, name), getattr(other, name)
        if name not in knobs and a != b:
            raise InvalidInput(f"agents of a fleet must have the same {name}, not {a} and {b}")
