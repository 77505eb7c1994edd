"""Training of a fleet in Gymnasium environments: one environment for each agent, all side by side.

The environments are in worker processes (`envs.gymnasium.environment_workers`) or in this one; the
agents make each step together, as a leading axis of all arrays, or one by one. Step t is

    s_t+1, r_t   from the environments, for the actions a_t
    act          a_t+1 ~ explore.policy(Q(s_t+1, .; theta))
    store, learn (s_t, a_t, r_t, s_t+1), then one update of theta
    the actions a_t+1 go to the environments, with `overlap` before `learn`

With `overlap`, `act` is computed before `learn`, with the theta of the update before, and the
environments make step t+1 while the device learns from step t. An agent then acts one update later
than it would alone. Without, `act` follows `learn`, as for an agent alone. Either order is fixed:
results do not depend on timing nor on the number of workers.

An episode is a function of its seed and its actions, which are recorded: where the environments
were closed or come from a file, the episodes in progress are repeated up to the present, and
checked. One that turns out differently is lost: the agent goes on with a new one.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tsallax.deep import checkpoint
from tsallax.deep.algorithm import Algorithm, init_learner
from tsallax.deep.evaluation_episodes import EpisodeRequest, Episodes
from tsallax.deep.fleet_episodes import EpisodeLayout, FleetEpisodes
from tsallax.deep.fleet_evaluation import play_in_turn
from tsallax.deep.fleet_step import (
    act_one,
    choose_all,
    compiled_step,
    end_episodes,
    init_learners,
)
from tsallax.deep.loop import FleetLog, episode_seed
from tsallax.deep.loop_fleet import stack, take
from tsallax.envs.action_format import ActionFormat
from tsallax.envs.gymnasium.adapter import GymnasiumAdapter
from tsallax.envs.gymnasium.environment_workers import EnvironmentWorkers, WorkerLost, row_type
from tsallax.errors import InvalidInput


class GymnasiumFleetLoop:
    """The loop of a fleet in Gymnasium environments, which are made at the first step.

    Args:
        algorithm: that of all agents.
        name: of the environment.
        make: makes an environment for one agent, in a worker process if there are any.
        observation: an array like the observation of one agent, (1, ...).
        mask: an array like its mask, (1, ...), None where actions are not masked.
        action_format: that of the actions.
        seeds: those of the agents.
        hyperparameters: those of the agents.
        together: make each step with all agents at once.
        overlap: act before learning, see above.
        workers: the number of worker processes, 0 for none.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        name: str,
        make: Callable[[], GymnasiumAdapter],
        *,
        observation: NDArray[Any],
        mask: NDArray[np.bool_] | None,
        action_format: ActionFormat,
        seeds: Sequence[int],
        hyperparameters: Sequence[Any],
        together: bool,
        overlap: bool,
        workers: int,
    ) -> None:
        self.algorithm, self.name, self.overlap, self.workers = algorithm, name, overlap, workers
        self.together, self.seeds, self._make = together, seeds, make
        self._hyperparameters = hyperparameters
        self._row = row_type(observation, mask)
        self.learners: list[Any] = []
        """The learners by group: one with the agents as leading axis, or that of each agent."""
        self.members = np.arange(len(seeds))
        """The numbers of the members that the learners belong to."""
        packed = jax.ShapeDtypeStruct((1, self._row.itemsize), jnp.uint8)
        like = jax.eval_shape(algorithm.init, jax.random.PRNGKey(0), hyperparameters[0])
        action, _ = jax.eval_shape(partial(act_one, algorithm, self._row, step=0), like, packed)
        self._action = np.zeros(action.shape[1:], action.dtype)
        self._layout = EpisodeLayout(self._row, self._action, action_format, together)
        self.episodes = FleetEpisodes.none(self._layout, len(seeds))
        self.lost: list[int] = []
        """The members that lost an episode in the last `run`."""
        self.seconds = {"environments": 0.0, "device": 0.0, "dispatch": 0.0}
        """Time spent waiting for environments, waiting for actions, and calling the device."""
        self._separate = overlap and (workers > 0 or jax.default_backend() != "cpu")
        """Whether acting is a program of its own, so that something can run beside learning."""
        self._pool: EnvironmentWorkers | None = None
        self._at_present = False
        """Whether the environments are where the episodes are."""

    def start(self) -> None:
        """Make the learners."""
        keys = [jax.random.PRNGKey(seed) for seed in self.seeds]
        if self.together:
            self.learners = [
                init_learners(self.algorithm, jnp.stack(keys), stack(self._hyperparameters))
            ]
        else:
            self.learners = [
                init_learner(self.algorithm, key, hyperparameters)
                for key, hyperparameters in zip(keys, self._hyperparameters, strict=True)
            ]

    def run(self, learning: bool, step: int, steps: int, active: Any = None) -> FleetLog:
        """Make `steps` steps from `step`; an error of an environment ends them.

        All agents take part, those that are not `active` as well.
        """
        n, k = len(self.members), self.algorithm.config.train_freq
        reward, ended = np.zeros((steps, n)), np.zeros((steps, n), np.bool_)
        loss: list[Any] = [np.zeros(g.stop - g.start, np.float32) for g in self.episodes.groups]
        done, error = 0, None
        try:
            pool = self._resume(step)
            action = self._send(pool)
            while done < steps:
                self._wait(pool)
                outcome, reward[done] = pool.rows[self.members], pool.reward[self.members]
                outcome["step"] = step + done + 1
                over = ended[done] = outcome["terminated"] | outcome["truncated"]
                taken, update = action, learning and (step + done + 1) % k == 0
                self.episodes.record(taken, over)
                self._set_seeds(pool, np.flatnonzero(over))
                done += 1
                send = partial(self._send, pool) if done < steps else None
                action = self._store_learn_act(outcome, update, loss, send)
        except (InvalidInput, WorkerLost) as raised:
            error = raised
        except BaseException:
            self.close()
            raise
        total = np.concatenate([np.asarray(part) for part in loss])
        return FleetLog(reward[:done], ended[:done], total[None], error, self.lost)

    def _send(self, pool: EnvironmentWorkers) -> NDArray[Any]:
        """Send the chosen actions to the environments, and return them."""
        action = np.empty((len(self.members), *self._action.shape), self._action.dtype)
        for group, chosen in zip(self.episodes.groups, self.episodes.action, strict=True):
            begin = time.perf_counter()
            action[group] = np.asarray(chosen).reshape(action[group].shape)
            sending = time.perf_counter()
            pool.send(self.members[group], action[group])
            self.seconds["device"] += sending - begin
            self.seconds["environments"] += time.perf_counter() - sending
        return action

    def _wait(self, pool: EnvironmentWorkers) -> None:
        """Wait for the step of all environments."""
        begin = time.perf_counter()
        for _ in self.episodes.action:
            pool.wait()
        self.seconds["environments"] += time.perf_counter() - begin

    def _store_learn_act(
        self,
        outcome: NDArray[Any],
        update: bool,
        loss: list[Any],
        send: Callable[[], NDArray[Any]] | None,
    ) -> Any:
        """Store the transitions that led to the rows `outcome`, learn, choose and `send` actions.

        Where choosing is a program of its own, the environments step while the device is given the
        rest of the work.
        """
        program, now = compiled_step(jax.default_backend()), self.episodes
        choices = self.algorithm, self._row, self.together
        new, given = self._layout.by_group(outcome), list(zip(now.rows, now.action, strict=True))
        if self._separate:
            with self._timed("dispatch"):
                for i, rows in enumerate(new):
                    now.action[i], now.rows[i] = program.act(*choices, self.learners[i], rows)
                    now.action[i].copy_to_host_async()
            try:
                return None if send is None else send()
            finally:  # an error of an environment must not lose the step before
                with self._timed("dispatch"):
                    for i, before in enumerate(given):
                        self.learners[i], loss[i] = program.store_learn(
                            *choices, update, self.learners[i], *before, now.rows[i], loss[i]
                        )
        with self._timed("dispatch"):
            for i, before in enumerate(given):
                self.learners[i], now.action[i], now.rows[i], loss[i] = program.all(
                    *choices, update, self.overlap, self.learners[i], *before, new[i], loss[i]
                )
        return None if send is None else send()

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        """Add the time of a block to one of the `seconds`."""
        begin = time.perf_counter()
        yield
        self.seconds[part] += time.perf_counter() - begin

    def _open(self) -> EnvironmentWorkers:
        """The environments, made if need be."""
        if self._pool is None or self._pool.closed:
            n = len(self.seeds)
            sizes = n, self._row, self._action, self.workers
            self._pool = EnvironmentWorkers(self.name, self._make, *sizes)
            self._at_present = False
        return self._pool

    def _resume(self, step: int) -> EnvironmentWorkers:
        """The environments, in the episodes in progress."""
        pool, self.lost = self._open(), []
        if self._at_present:
            return pool
        everyone = np.arange(len(self.members))
        if self.episodes.rows:
            lost = self._repeat(pool)
            if len(lost):
                self._drop(pool, lost, step)
        else:
            self._begin(pool, everyone)
            rows = pool.rows[self.members]
            rows["step"] = step
            self.episodes.rows, self.episodes.action = self._choose(rows)
        self._set_seeds(pool, everyone)
        self._at_present = True
        return pool

    def _choose(self, rows: NDArray[Any]) -> tuple[list[Any], list[Any]]:
        """The rows by group, and actions for them."""
        act = partial(
            compiled_step(jax.default_backend()).act, self.algorithm, self._row, self.together
        )
        found = [
            act(*pair) for pair in zip(self.learners, self._layout.by_group(rows), strict=True)
        ]
        return [rows for _, rows in found], [action for action, _ in found]

    def _begin(self, pool: EnvironmentWorkers, agents: NDArray[np.int64]) -> None:
        """Begin a new episode of some agents."""
        now = self.episodes
        pool.reset(self.members[agents], self._seeds(agents, now.begun[agents]))
        now.begun[agents] += 1
        now.length[agents] = 0

    def _seeds(self, agents: NDArray[np.int64], episodes: NDArray[np.int64]) -> list[int]:
        numbers = zip(self.members[agents], episodes, strict=True)
        return [episode_seed(self.seeds[m], 0, int(episode)) for m, episode in numbers]

    def _set_seeds(self, pool: EnvironmentWorkers, agents: NDArray[np.int64]) -> None:
        """Set the seeds of the next episodes of some agents."""
        if len(agents):
            pool.seed[self.members[agents]] = self._seeds(agents, self.episodes.begun[agents])

    def _repeat(self, pool: EnvironmentWorkers) -> NDArray[np.int64]:
        """Repeat the episodes in progress from their seeds and actions; return the lost ones."""
        now, expected = self.episodes, self.episodes.present()
        same = now.length <= now.taken.shape[1]
        agents = np.flatnonzero(same)
        pool.reset(self.members[agents], self._seeds(agents, now.begun[agents] - 1))
        for t in range(max(now.length[agents], default=0)):
            agents = np.flatnonzero(same & (now.length > t))
            pool.send(self.members[agents], now.taken[agents, t])
            pool.wait()
            rows = pool.rows[self.members[agents]]
            same[agents] &= ~(rows["terminated"] | rows["truncated"])
        found = pool.rows[self.members]
        for name in self._layout.seen:
            axes = tuple(range(1, found[name].ndim))
            same &= (found[name] == expected[name]).all(axes)
        return np.flatnonzero(~same)

    def _drop(self, pool: EnvironmentWorkers, lost: NDArray[np.int64], step: int) -> None:
        """Go on with new episodes where those in progress could not be repeated."""
        self.lost = self.members[lost].tolist()
        warnings.warn(
            f"{self.name}: the episodes that were under way of the agents {self.lost} could not be "
            "repeated from their seeds and actions, and are lost: learning goes on with new ones",
            stacklevel=5,
        )
        rows, chosen = self.episodes.present(), self.episodes.action
        self._begin(pool, lost)
        rows[lost] = pool.rows[self.members[lost]]
        rows["step"] = step
        is_lost = np.isin(np.arange(len(rows)), lost)
        parts = [is_lost[group] for group in self.episodes.groups]
        self.learners = [
            end_episodes(self.algorithm, self.together, learner, part, step)
            for learner, part in zip(self.learners, parts, strict=True)
        ]
        self.episodes.rows, new = self._choose(rows)
        self.episodes.action = [
            np.where(part.reshape(-1, *[1] * (np.ndim(a) - 1)), a, b)
            for part, a, b in zip(parts, new, chosen, strict=True)
        ]

    def close(self) -> None:
        """Close the environments; the next `run` makes them again and repeats the episodes."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def copy(self) -> None:
        """Copy the online networks to the target networks."""
        self.learners = [self.algorithm.copy(learner) for learner in self.learners]

    def acting_state(self, slot: int) -> Any:
        """The acting state of the agent in a slot."""
        if not self.together:
            return self.algorithm.acting_state(self.learners[slot])
        return take(self.algorithm.acting_state(self.learners[0]), slot)

    def keep(self, slots: Sequence[int]) -> None:
        """Keep the agents in these slots only."""
        chosen = np.asarray(slots)
        self.learners = (
            [take(self.learners[0], chosen)]
            if self.together
            else [self.learners[slot] for slot in slots]
        )
        self.members = self.members[chosen]
        self.episodes.keep(chosen)

    def arrays(self, step: int) -> dict[str, NDArray[Any]]:
        """The learners and the episodes in progress after `step` steps, as named arrays."""
        learners = self.learners[0] if self.together else _stack_on_host(self.learners)
        found = checkpoint.flatten_learner(learners, step, many=True)
        return found | self.episodes.arrays()

    def restore(self, arrays: dict[str, NDArray[Any]], slots: Sequence[int], step: int) -> None:
        """Take the state from the arrays of a file, of the members `slots` after `step` steps."""
        n = len(slots)
        self.members = np.asarray(slots)
        hyperparameters = stack([self._hyperparameters[i] for i in slots])
        keys = jax.ShapeDtypeStruct((n, 2), jnp.uint32)
        like = jax.eval_shape(partial(init_learners, self.algorithm), keys, hyperparameters)
        learners = checkpoint.restore_learner(like, hyperparameters, arrays, step, many=True)
        self.learners = [learners] if self.together else [take(learners, i) for i in range(n)]
        self.episodes = FleetEpisodes.restore(self._layout, arrays, n, step)

    def play(self, state: Any, member: int, asked: EpisodeRequest) -> Episodes:
        """Play episodes with the acting state of a member, as many at once as there are members.

        Seeds are those of an agent alone; the number of environments does not depend on the
        machine.
        """
        step, episodes, deterministic, seed = asked
        environments = np.arange(min(episodes, len(self.seeds)))
        agent = state, self._hyperparameters[member], step
        return self._play(False, agent, environments, [seed], episodes, deterministic)[0]

    def play_all(
        self,
        states: Sequence[Any],
        *,
        members: Sequence[int],
        steps: Sequence[int],
        episodes: int,
        deterministic: bool,
        seeds: Sequence[int],
    ) -> list[Episodes]:
        """`play` of several members at the same time, each in an environment of its own."""
        hyperparameters = [self._hyperparameters[member] for member in members]
        agents = stack(states), stack(hyperparameters), jnp.asarray(steps)
        return self._play(True, agents, np.asarray(members), seeds, episodes, deterministic)

    def _play(
        self,
        many: bool,
        agents: tuple[Any, Any, Any],
        environments: NDArray[Any],
        seeds: Sequence[int],
        episodes: int,
        deterministic: bool,
    ) -> list[Episodes]:
        """Episodes of each of the agents, in as many of the environments for each.

        `agents` are acting state, hyperparameters and step of one, or with `many` of several on a
        leading axis.
        """
        choose = partial(choose_all, self.algorithm, self._row, many, self.learners[0], agents)
        slots = environments + len(self.seeds)
        return play_in_turn(self._open(), slots, choose, seeds, episodes, deterministic)


def _stack_on_host(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)
