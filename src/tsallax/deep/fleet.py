"""Many agents as one program: the learner of `DeepQ` or `DDPG` with the agents as a leading axis.

The agents may differ in numbers (alpha, epsilon, beta, learning rate, seed) and in their
regularisers, which are selected while the program runs. An agent of a fleet learns what it would
learn alone, up to the rounding of batched products; in a Gymnasium environment it acts one update
later, unless `overlap` is False (see `loop_gymnasium_fleet`).

An agent that has its episodes at the end of a segment of training is finished: its network is kept
and it does not learn any more. When half of the agents are finished, the arrays shrink to those
that still learn.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tsallax import checks, provenance
from tsallax.deep import checkpoint, options
from tsallax.deep.agent import Agent
from tsallax.deep.environment_description import options_for
from tsallax.deep.environment_spec import NO_MASK_FUNCTION
from tsallax.deep.evaluation_episodes import EpisodeRequest, Episodes, evaluation_seed
from tsallax.deep.fleet_members import Member, checked_members
from tsallax.deep.learners import LEARNERS, learner_of
from tsallax.deep.loop import FleetLog
from tsallax.deep.loop_fleet import JaxFleetLoop
from tsallax.deep.loop_gymnasium_fleet import GymnasiumFleetLoop
from tsallax.deep.memory_size import require_memory
from tsallax.deep.training_schedule import (
    MAX_STEPS,
    cycles_until,
    is_false,
    passes_multiple,
)
from tsallax.envs.gymnasium.environment_workers import copies, default_workers
from tsallax.envs.gymnasium.gymnasium_make import makes_environments, names_module
from tsallax.envs.jax.environment import Environment
from tsallax.errors import InvalidInput
from tsallax.interrupts import deferred
from tsallax.progress import bar

SETTINGS: dict[str, Any] = {"together": None, "workers": None, "overlap": True}
"""How a fleet computes, with the values that it has where a file lacks them."""


@dataclass
class MemberRecord:
    """The training of a member so far: the returns of its episodes and its position."""

    returns: list[float]
    running: float = 0.0
    """The return so far of the episode in progress."""
    finished_at: int | None = None
    """The number of steps after which it had its episodes; None before."""
    diverged_at: int | None = None
    """The number of steps after which its loss was not finite; None before."""
    acting_state: Any = field(default=None, repr=False)
    """Its acting state, once it is finished."""

    @property
    def learning(self) -> bool:
        """Whether it has neither finished nor diverged."""
        return self.finished_at is None and self.diverged_at is None


class Diverged(FloatingPointError):
    """The loss of a member of a fleet is not finite any more.

    >>> print(Diverged(3, "Reacher-v5", 1000))
    Reacher-v5: the loss of agent 3 of this fleet is not finite after 1000 steps; a lower
    learning_rate or max_grad_norm=10 may help
    """

    def __init__(self, member: int, environment: str, steps: int) -> None:
        super().__init__(
            f"{environment}: the loss of agent {member} of this fleet is not finite after {steps} "
            "steps; a lower learning_rate or max_grad_norm=10 may help"
        )
        self.member = member


class Fleet:
    """Agents that learn side by side in copies of one environment.

    Args:
        env: the id of an environment, in JAX or of Gymnasium, a function that makes a Gymnasium
            environment, or one of `tsallax.envs`.
        members: the agents, alike but for their seeds and their learner's `member_options`.
        actions: levels per dimension of a continuous action, for agents of `DeepQ`.
        together: make each step with all agents at once; default: on an accelerator.
        backend: "jax" or "gymnasium", for an id that both have; default: JAX.
        env_options: arguments of `gymnasium.make` or of the function.
        action_mask: that of `DeepQ`; workers must be able to import it.
        workers: processes for Gymnasium environments, 0 for none; default: by the number of cores.
        overlap: in Gymnasium environments, choose the next actions before learning, so that the
            environments make a step while the agents learn from the one before.

    A script that has such a function needs `if __name__ == "__main__":` for its workers.

    >>> from tsallax import DeepQConfig
    >>> options = dict(
    ...     net_arch=(8,), batch_size=8, buffer_size=48, learning_starts=0,
    ...     target_update_interval=25,
    ... )
    >>> members = [Member(DeepQConfig(alpha=alpha, **options), seed=0) for alpha in (0.1, 1)]
    >>> fleet = Fleet("MultiGoal-v0", members, actions=3).learn(steps=50)
    >>> fleet.steps, len(fleet.records)
    (50, 2)
    """

    def __init__(
        self,
        env: Any,
        members: Iterable[Member],
        *,
        actions: int | Sequence[int] | None = None,
        together: bool | None = None,
        backend: str = "auto",
        env_options: Mapping[str, Any] | None = None,
        action_mask: Callable[[Any], Any] | None = None,
        workers: int | None = None,
        overlap: bool = True,
    ) -> None:
        settings = {"together": together, "workers": workers, "overlap": overlap}
        given = {"backend": backend, "options": env_options, "action_mask": action_mask}
        self._prepare(env, members, settings, actions=actions, **given)
        self._kind.check_effects(self.spec, self.config)
        self._loop.start()

    def _prepare(
        self,
        env: Any,
        members: Iterable[Member],
        settings: Mapping[str, Any],
        *,
        actions: int | Sequence[int] | None,
        **given: Any,
    ) -> None:
        """Set all but the learners and their episodes; what is `given` goes to `make_spec`."""
        self.members = checked_members(members)
        self.config = self.members[0].config
        """The options of the first member; those that shape the program are the same for all."""
        self._kind = learner_of(self.config)
        self.spec = self._kind.describe_environment(env, self.config, actions=actions, **given)
        self.actions = None if actions is None else np.asarray(actions).tolist()
        self._settings = _checked_settings(settings)
        self.steps = 0
        self.seconds = 0.0
        """Time spent learning."""
        self.consistent = True
        """False after an exception within a segment of training: the state is not consistent."""
        self.records = [MemberRecord([]) for _ in self.members]
        self._slots = list(range(len(self.members)))
        """The number of the member in each slot of the arrays' leading axis."""
        self._loop = self._make_loop()

    def _make_loop(self) -> JaxFleetLoop | GymnasiumFleetLoop:
        """The loop in the environment."""
        configs, spec = [member.config for member in self.members], self.spec
        algorithm, hyperparameters = self._kind.build_algorithm(spec, configs)
        shapes = jax.eval_shape(algorithm.init, jax.random.PRNGKey(0), hyperparameters[0])
        require_memory(spec.name, shapes, self.config.buffer_size, len(configs))
        together, workers = self._settings["together"], self._settings["workers"]
        self.together = jax.default_backend() != "cpu" if together is None else together
        shared: dict[str, Any] = {
            "seeds": [member.seed for member in self.members],
            "hyperparameters": hyperparameters,
            "together": self.together,
        }
        if spec.jax is not None:
            table = None if spec.table is None else jnp.asarray(spec.table)
            return JaxFleetLoop(algorithm, spec.jax, action_table=table, **shared)
        if not makes_environments(spec.source):
            problem = "a fleet makes an environment for each agent: give its id, or a function"
            raise InvalidInput(f"{problem} that makes it", source=spec.name)
        like, n = spec.training_environment(), len(self.members)
        if like.statistics():
            problem = "a fleet does not keep the statistics of NormalizeObservation and"
            remedy = "use normalize_observations=True and normalize_rewards=True of DeepQ instead"
            raise InvalidInput(f"{problem} NormalizeReward: {remedy}", source=spec.name)
        return GymnasiumFleetLoop(
            algorithm,
            spec.name,
            copies(spec.source, options=spec.options, **spec.adapter_options),
            observation=like.reset([0]),
            mask=like.mask,
            action_format=spec.action,
            workers=default_workers(n) if workers is None else min(workers, n),
            overlap=self._settings["overlap"],
            **shared,
        )

    @property
    def environment(self) -> Environment | None:
        """The environment, where it is written in JAX."""
        return self.spec.jax

    def close(self) -> None:
        """End the worker processes; learning starts them again."""
        self._loop.close()

    def __repr__(self) -> str:
        n, left = len(self.members), len(self.learning)
        return f"Fleet({self.spec.name!r}, {n} agents, {left} learning, {self.steps} steps)"

    @property
    def learning(self) -> list[int]:
        """The numbers of the members that have neither finished nor diverged."""
        return [i for i, record in enumerate(self.records) if record.learning]

    @property
    def diverged(self) -> list[int]:
        """The numbers of the members whose loss was not finite any more."""
        return [i for i, record in enumerate(self.records) if record.diverged_at is not None]

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
        """Learn until every agent has `episodes` in all, or has made `steps` in all.

        An agent is finished, permanently, at the end of the segment, between two copies of the
        target network, in which it reaches its episodes. `callback` is called after each segment,
        and ends the training by returning False.

        An agent whose loss is not finite leaves the fleet; `Diverged` is raised for it when the
        others are finished.
        """
        for name, value in (("episodes", episodes), ("steps", steps), ("save_every", save_every)):
            if value is not None:
                checks.count(name, value)
        if episodes is None and steps is None:
            raise InvalidInput("no number of episodes or steps", add=("episodes", 1000))
        self._check_finished(episodes, steps)
        if save_to is not None:
            checks.output_file("save_to", save_to)
        last_step = MAX_STEPS if steps is None else int(steps)
        with bar(f"{len(self.members)} agents", progress) as report, deferred() as interrupted:
            while self.learning and self.steps < last_step and not interrupted():
                before, begin = self.steps, time.perf_counter()
                self.consistent = False
                error = self._run_segment(last_step)
                self._finish(episodes, last_step)
                self.consistent = True
                self.seconds += time.perf_counter() - begin
                if error is not None:
                    self._save_on_error(save_to, error)
                    raise error
                if save_to is not None and passes_multiple(before, self.steps, save_every):
                    self.save(save_to)
                report(self.share(episodes, steps), self._status())
                if callback is not None and is_false(callback(self)):
                    break
            if save_to is not None:
                self.save(save_to)
            if interrupted():
                raise KeyboardInterrupt
        if not self.learning and self.diverged:
            raise self._divergence(self.diverged[0])
        return self

    def _divergence(self, member: int) -> Diverged:
        return Diverged(member, self.spec.name, self.records[member].diverged_at or self.steps)

    def _save_on_error(self, path: str | PathLike[str] | None, error: Exception) -> None:
        """Save the fleet before an error of an environment is passed on."""
        if path is not None:
            with suppress(Exception):
                self.save(path)
                error.add_note(f"the fleet of {self.steps} steps was saved to {path}")

    def _check_finished(self, episodes: int | None, steps: int | None) -> None:
        """Refuse goals beyond those with which an agent was finished."""
        for i, record in enumerate(self.records):
            if record.finished_at is None:
                continue
            enough = episodes is not None and len(record.returns) >= episodes
            if not enough and (steps is None or record.finished_at < steps):
                raise InvalidInput(
                    f"agent {i} of this fleet is finished, after {len(record.returns)} episodes "
                    f"and {record.finished_at} steps, and cannot continue: make a fleet with the "
                    "larger goal, and end it early by its callback"
                )

    def _run_segment(self, last_step: int) -> Exception | None:
        """Run cycles up to the start of learning or the next copy of the target network.

        What an environment raises ends it early, and is returned: the state remains consistent.
        """
        c, k = self.config, self.config.train_freq
        first = self.steps // k * k  # of a cycle, which an error may have ended early
        end = first + k * cycles_until(last_step, first, c)
        active = [self.records[i].learning for i in self._slots]
        learning = first >= c.learning_starts
        log = self._loop.run(learning, self.steps, end - self.steps, active)
        self.steps += len(log.reward)
        if self.steps >= end and passes_multiple(first, end, c.target_update_interval):
            self._loop.copy()
        finite = np.isfinite(log.loss).all(0)
        for slot, i in enumerate(self._slots):
            if active[slot] and not finite[slot]:
                self.records[i].diverged_at = self.steps
        self._record(log)
        self._remove_diverged()
        return log.error

    def _remove_diverged(self) -> None:
        """Remove the arrays of agents that diverged; raise `Diverged` where no agent is left."""
        left = [s for s, i in enumerate(self._slots) if self.records[i].diverged_at is None]
        if not left:
            raise self._divergence(self._slots[0])
        if len(left) < len(self._slots):
            self._keep(left)

    def _keep(self, slots: list[int]) -> None:
        self._loop.keep(slots)
        self._slots = [self._slots[slot] for slot in slots]

    def _record(self, log: FleetLog) -> None:
        """Record rewards and ends of episodes."""
        for i in log.lost:
            self.records[i].running = 0.0
        for slot, i in enumerate(self._slots):
            record = self.records[i]
            if not record.learning:
                continue
            total = np.cumsum(log.reward[:, slot]) + record.running
            ends = np.flatnonzero(log.ended[:, slot])
            record.returns += np.diff(total[ends], prepend=0.0).tolist()
            if len(total):
                record.running = float(total[-1] - (total[ends[-1]] if len(ends) else 0.0))

    def _finish(self, episodes: int | None, last_step: int) -> None:
        """Finish the agents that have their episodes; shrink when half of them are finished."""
        for slot, i in enumerate(self._slots):
            record = self.records[i]
            enough = episodes is not None and len(record.returns) >= episodes
            if record.finished_at is None and (enough or self.steps >= last_step):
                record.finished_at = self.steps
                if episodes is not None:
                    del record.returns[episodes:]
                state = self._loop.acting_state(slot)
                record.acting_state = jax.tree.map(np.asarray, state)
        left = [slot for slot, i in enumerate(self._slots) if self.records[i].finished_at is None]
        if left and len(left) <= len(self._slots) // 2:
            self._keep(left)

    def evaluate(
        self, member: int, episodes: int = 100, deterministic: bool = True, seed: int | None = None
    ) -> Episodes:
        """Play episodes with one agent, without learning; the same as `DeepQ.evaluate`."""
        checks.count("episodes", episodes)
        self._check_member(member)
        default = evaluation_seed(self.members[member].seed)
        asked = EpisodeRequest(
            step=self.records[member].finished_at or self.steps,
            episodes=episodes,
            deterministic=deterministic,
            seed=default if seed is None else checks.seed(seed),
        )
        return self._loop.play(self._acting_state(member), member, asked)

    def evaluate_all(
        self,
        episodes: int = 100,
        deterministic: bool = True,
        members: Sequence[int] | None = None,
    ) -> list[Episodes | None]:
        """`evaluate` of all agents, or of some `members`; None for those that diverged.

        In Gymnasium environments the agents play at the same time, each in one environment.
        """
        checks.count("episodes", episodes)
        asked = range(len(self.members)) if members is None else members
        members = [i for i in asked if self.records[i].diverged_at is None]
        if isinstance(self._loop, JaxFleetLoop) or not members:
            found = [self.evaluate(i, episodes, deterministic) for i in members]
        else:
            found = self._loop.play_all(
                [self._acting_state(i) for i in members],
                members=members,
                steps=[self.records[i].finished_at or self.steps for i in members],
                episodes=episodes,
                deterministic=deterministic,
                seeds=[evaluation_seed(self.members[i].seed) for i in members],
            )
        played = dict(zip(members, found, strict=True))
        return [played.get(i) for i in asked]

    def agent(self, member: int) -> Agent:
        """An agent with the state of a member, to evaluate, predict and save; it cannot learn."""
        self._check_member(member)
        one, record = self.members[member], self.records[member]
        acting = self._acting_state(member), record.finished_at or self.steps
        return self._kind.from_acting_state(self.spec, one.config, one.seed, *acting)

    def _check_member(self, member: int) -> None:
        if not (checks.is_integer(member) and 0 <= member < len(self.records)):
            n = len(self.records)
            raise InvalidInput(f"a fleet of {n} agents has none numbered {member!r}")
        if self.records[member].diverged_at is not None:
            raise InvalidInput(str(self._divergence(member)))

    def _acting_state(self, member: int) -> Any:
        """The acting state of an agent, as it is now or was when it finished."""
        state = self.records[member].acting_state
        if state is not None:
            return state
        return self._loop.acting_state(self._slots.index(member))

    def share(self, episodes: int | None, steps: int | None) -> float:
        """The progress towards such goals, from 0 to 1."""
        if not self.learning:
            return 1.0
        fewest = min(len(self.records[i].returns) for i in self.learning)
        return max(fewest / (episodes or MAX_STEPS), self.steps / (steps or MAX_STEPS))

    def _status(self) -> str:
        """The line of the progress bar."""
        recent = [np.mean(r.returns[-100:]) for r in self.records if r.returns]
        best = f"best return {max(recent):.4g}" if recent else ""
        return f"step {self.steps}  {len(self.learning)} learning  {best}"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fleet to a file, from which it continues exactly where it was."""
        if not self.consistent:
            raise InvalidInput("a fleet interrupted within a segment of training cannot be saved")
        about = {
            "kind": "fleet",
            "algorithm": self._kind.kind,
            "world": self.spec.describe(),
            "actions": self.actions,
            **self._settings,
            "members": [
                {"config": options.to_mapping(m.config), "seed": m.seed} for m in self.members
            ],
            "steps": self.steps,
            "seconds": self.seconds,
            "alive": self._slots,
            "finished_at": [r.finished_at for r in self.records],
            "diverged_at": [r.diverged_at for r in self.records],
            "provenance": provenance.of_training(),
        }
        arrays = self._loop.arrays(self.steps)
        for i, record in enumerate(self.records):
            arrays[f"record.{i}.returns"] = np.asarray(record.returns, np.float64)
            arrays[f"record.{i}.running"] = np.asarray(record.running)
            if record.acting_state is not None:
                arrays |= checkpoint.flatten(f"record.{i}.network.", record.acting_state)
        checkpoint.write(path, about, arrays)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        env: Any = None,
        max_bytes: int | None = None,
        action_mask: Callable[[Any], Any] | None = None,
        workers: int | None = None,
    ) -> Self:
        """Read a fleet from a file; `env` is its environment, where that has no id.

        `max_bytes` is that of `load_agent`, `workers` replaces the number in the file. Functions
        are not in it: one that makes the environment or masks actions is to be given again.
        """
        about, arrays = checkpoint.read(path, max_bytes)
        with checkpoint.errors_of(path):
            if about.get("kind") != "fleet":
                raise InvalidInput(f"holds a {about.get('kind')} agent, not a fleet")
            kind = LEARNERS[about["algorithm"]].Config
            members = [
                Member(options.from_file(kind, m["config"]), int(m["seed"]))
                for m in about["members"]
            ]
            world, name = about["world"], str(about["world"]["name"])
            if env is None and (not world["by_name"] or names_module(name)):
                raise InvalidInput("saved without a way to make its environment: give it as env")
            settings = {key: about.get(key, default) for key, default in SETTINGS.items()}
            settings |= {} if workers is None else {"workers": workers}
            again = name if env is None else env
            by_file = env in (None, name) and not world["jax"]
            given: dict[str, Any] = {
                "actions": _checked_levels(about["actions"]),
                "backend": "gymnasium" if by_file else "auto",
                "options": {} if world["jax"] else options_for(again, world),
                "action_mask": action_mask,
            }
            if world.get("masked_by_function") and action_mask is None:
                raise InvalidInput(NO_MASK_FUNCTION)
        fleet = cls.__new__(cls)
        with checkpoint.refusals_of(path):
            fleet._prepare(again, members, settings, **given)
        with checkpoint.errors_of(path):
            if fleet.spec.masked != world.get("masked", False):
                if fleet.spec.masked:
                    raise InvalidInput("saved without masks of actions, which its environment has")
                raise InvalidInput(
                    "saved with masks of actions: give their function",
                    add=("action_mask", "function"),
                )
            fleet._restore(about, arrays)
        return fleet

    def _restore(self, about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take position, learners, episodes in progress and records from a file."""
        self.steps, self.seconds = int(about["steps"]), float(about["seconds"])
        self._slots = slots = [int(i) for i in about["alive"]]
        n = len(self.members)
        ends, stops = (
            [None if step is None else int(step) for step in steps]
            for steps in (about["finished_at"], about.get("diverged_at", [None] * n))
        )
        known = slots and len(set(slots)) == len(slots) and 0 <= min(slots) <= max(slots) < n
        if not known or (len(ends), len(stops)) != (n, n) or not 0 <= self.steps < MAX_STEPS:
            raise InvalidInput("damaged: its description is of another fleet")
        self._loop.restore(arrays, slots, self.steps)
        one = jax.eval_shape(lambda: self._loop.acting_state(0))
        for i, record in enumerate(self.records):
            returns, running = (arrays.get(f"record.{i}.{x}") for x in ("returns", "running"))
            if returns is None or running is None or (returns.ndim, running.ndim) != (1, 0):
                raise InvalidInput(f"incomplete: record.{i} missing")
            record.returns, record.running = returns.tolist(), float(running)
            record.finished_at, record.diverged_at = ends[i], stops[i]
            if ends[i] is not None:
                state = checkpoint.restore(f"record.{i}.network.", one, arrays)
                record.acting_state = jax.tree.map(np.asarray, state)


def _checked_levels(given: Any) -> int | list[int] | None:
    """The numbers of levels of a file: one for all dimensions, or one for each."""
    if given is None:
        return None
    if isinstance(given, list):
        return [checks.count("actions", n, at_least=2) for n in given]
    return checks.count("actions", given, at_least=2)


def _checked_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """How a fleet computes: `together`, `workers` and `overlap`."""
    together, workers = given["together"], given["workers"]
    return {
        "together": None if together is None else checks.flag("together", together),
        "workers": None if workers is None else checks.count("workers", workers, at_least=0),
        "overlap": checks.flag("overlap", given["overlap"]),
    }
