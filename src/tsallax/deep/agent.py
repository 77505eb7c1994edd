"""`Agent`: what all learners share: learn, predict, evaluate, save and load.

An agent's future is fixed by its state: the learner, its environment, and the number of steps. How
`learn` is called does not matter to it, nor whether it was saved and loaded in between.
"""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import provenance
from tsallax.deep import checkpoint, loop_gymnasium, loop_jax, options, replay
from tsallax.deep.environment_spec import World, revive
from tsallax.deep.evaluation_episodes import Episodes, evaluation_seed, play
from tsallax.deep.history import History
from tsallax.deep.loop_jax import Algorithm, Feed
from tsallax.deep.training_schedule import NEVER, PATIENCE, Plan
from tsallax.errors import InvalidInput
from tsallax.interrupts import deferred
from tsallax.progress import bar

if TYPE_CHECKING:
    from tsallax.envs.gymnasium.adapter import GymnasiumAdapter

PACE = 0.5
"""Seconds that a piece of training may take before the host looks at it."""


class Agent:
    """An agent in an environment."""

    kind: ClassVar[str]
    Config: ClassVar[type]

    def __init__(self, world: World, settings: Any, seed: int) -> None:
        require_seed(seed)
        if settings.n_envs not in (1, world.n_envs):
            raise InvalidInput(f"{world.name}: {world.n_envs} are already made: leave n_envs out")
        self.config = dataclasses.replace(settings, n_envs=world.n_envs)
        self.seed = int(seed)
        self.steps = 0
        self.history = History(running=np.zeros(world.n_envs), lengths=np.zeros(world.n_envs, int))
        self._world = world
        try:
            built = self._build(world, self.config, self.seed)
            self._algorithm, self._learner = jax.block_until_ready(built)
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise InvalidInput(
                f"{world.name}: not enough memory for the networks and a replay of "
                f"{self.config.buffer_size} transitions: lower buffer_size or net_arch"
            ) from None
        self._table = None if world.table is None else jnp.asarray(world.table)
        self._feed: Feed | loop_gymnasium.HostFeed | None = None
        self._pending: tuple[Any, Any] | None = None
        self._done: list[int] | None = None
        self._complete = True
        self.saved_at: int | None = None
        """The number of steps after which it was last saved, all of it."""
        self._predictions = 0
        self._seconds_per_cycle = 0.01

    def _build(self, world: World, settings: Any, seed: int) -> tuple[Algorithm, Any]:
        """The algorithm and its learner at the start."""
        raise NotImplementedError

    @property
    def environment(self) -> str:
        """The name of the environment."""
        return self._world.name

    @property
    def actions(self) -> NDArray[np.float32] | None:
        """The real actions by their numbers, where they were made by a grid."""
        return self._world.table

    @property
    def description(self) -> str:
        """Class, environment, main options and seed in one line."""
        return f"{type(self).__name__}, {self.environment}, {self._words()}, seed={self.seed}"

    def __repr__(self) -> str:
        recent = self.history.recent()
        state = "" if math.isnan(recent) else f", recent return {recent:.4g}"
        return (
            f"{type(self).__name__}({self.environment!r}, {self._words()}, seed={self.seed}: "
            f"{self.steps} steps, {self.history.episodes} episodes{state})"
        )

    def _words(self) -> str:
        raise NotImplementedError

    def learn(
        self,
        *,
        episodes: int | None = None,
        steps: int | None = None,
        eval_every: int | None = None,
        eval_episodes: int = 20,
        eval_env: Any = None,
        save_to: str | PathLike[str] | None = None,
        save_every: int | None = None,
        callback: Callable[[Self], bool | None] | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Learn for so many more episodes or steps, whichever is reached first.

        Args:
            episodes: episodes to finish.
            steps: transitions to make; several environments make several at a time.
            eval_every: evaluate after so many episodes, or steps where only steps are given.
            eval_episodes: episodes of an evaluation, which leaves no trace in the training.
            eval_env: the environment to evaluate in; default: another one like that of training.
            save_to: a file to save the agent to now and then, and at the end.
            save_every: steps between two such files; default: a minute of training. A Gymnasium
                environment is saved when its episode ends, or after ten times as long.
            callback: called with the agent about twice a second; False ends the training.
            progress: show a progress bar; default: on a terminal.

        Ctrl-C ends it after the piece at hand, in a state that can be saved and goes on from there.
        What an environment or a callback raises is passed on, after saving to `save_to`.
        """
        given = {
            "episodes": episodes,
            "steps": steps,
            "eval_every": eval_every,
            "eval_episodes": eval_episodes,
            "save_every": save_every,
        }
        require_counts(given)
        if save_every is not None and save_to is None:
            raise InvalidInput("save_every needs save_to, the file to save to")
        require_folder(save_to)
        if self._world.learns_in(eval_env):
            raise InvalidInput(
                f"eval_env: {self.environment} is the one to learn in: give another, not the same"
            )
        if callback is not None and not callable(callback):
            raise InvalidInput(f"callback must be a function of the agent, got {callback!r}")
        if episodes is None and steps is None:
            raise InvalidInput("learn needs a number of episodes or steps, such as episodes=1000")
        if not self._complete:
            raise InvalidInput("this agent was saved without its replay: it can act, but not learn")
        most = self.steps + (steps or 0)
        if most >= NEVER:
            raise InvalidInput(f"steps must be less than 2^30 in all, got {most}")
        if eval_every is not None and (self._world.jax is None or eval_env is not None):
            self._evaluation_environment(eval_env)  # refuse now what would fail then
        plan = Plan(self, episodes, steps, eval_every, save_every if save_to else None)
        saved, due = time.monotonic(), False
        with (
            bar(f"{self.environment}", progress) as report,
            deferred() as interrupted,
            self._saved_on_error(save_to),
        ):
            begin, first = time.monotonic(), self.steps
            while not plan.finished() and not interrupted():
                self._piece(plan, to_episode_end=due)
                now = time.monotonic()
                if plan.evaluation_due():
                    self._note_evaluation(eval_episodes, eval_env)
                if save_to is not None:
                    timed = save_every is None and now - saved > 60
                    due = timed or plan.save_due()
                    late = plan.save_late() if save_every else now - saved > 60 * PATIENCE
                    if due and (late or self._can_be_saved()):
                        self.save(save_to)
                        plan.saved()
                        saved, due = time.monotonic(), False
                rate = (self.steps - first) / max(now - begin, 1e-9)
                report(plan.share(), self._status(rate))
                if callback is not None and is_false(callback(self)):
                    break
            if save_to is not None:
                self.save(save_to)
            if interrupted():
                raise KeyboardInterrupt
        return self

    @contextmanager
    def _saved_on_error(self, path: str | PathLike[str] | None) -> Iterator[None]:
        """Save before an error of the environment or of a callback is passed on."""
        try:
            yield
        except FloatingPointError:
            raise  # an agent whose numbers are none is not worth a file
        except Exception as error:
            if path is not None:
                with suppress(Exception):
                    self.save(path)
                    error.add_note(f"the agent of {self.steps} steps was saved to {path}")
            raise

    def _piece(self, plan: Plan, to_episode_end: bool) -> None:
        """Run some cycles, up to the next thing that has to happen between two of them."""
        c = self.config
        size = c.n_envs * c.train_freq
        learning = self.steps >= c.learning_starts
        until = min(
            plan.last_step,
            NEVER if learning else c.learning_starts,
            (self.steps // c.target_update_interval + 1) * c.target_update_interval,
            plan.next_step(),
        )
        pace = max(1, int(PACE / self._seconds_per_cycle))
        cycles = max(1, min(-(-(until - self.steps) // size), loop_jax.CYCLES, pace))
        ends = max(1, plan.next_episode() - self.history.episodes)
        ends = 1 if to_episode_end else ends
        begin, before = time.monotonic(), self.steps
        failure: BaseException | None = None
        if self._world.jax is not None:
            done, log, valid = self._run_inside(learning, cycles, ends)
        else:
            done, log, valid, failure = self._run_outside(learning, cycles, ends)
        self._seconds_per_cycle = (time.monotonic() - begin) / max(done, 1)
        self.steps += done * size
        rewards = log.reward[:done].reshape(-1, c.n_envs)
        ended, valid = (x[:done].reshape(rewards.shape) for x in (log.ended, valid))
        self.history.record(self.steps, rewards, ended, valid)
        self.history.count(log.loss[:done], log.value[:done], log.support[:done])
        self._require_finite(log.loss[:done])
        if self.steps // c.target_update_interval > before // c.target_update_interval:
            self._learner = self._algorithm.copy(self._learner)
            self.history.trace(self.steps)
        if failure is not None:
            raise failure

    def _run_inside(self, learning: bool, cycles: int, ends: int) -> tuple[int, Any, Any]:
        inside = self._world.jax
        assert inside is not None
        if self._feed is None:
            key = jax.random.fold_in(jax.random.PRNGKey(self.seed), 1)
            self._feed = loop_jax.begin(inside, self.config.n_envs, key)
        self._learner, self._feed, log, done = loop_jax.advance(
            self._algorithm,
            inside,
            learning,
            self._learner,
            self._feed,
            self._table,
            jnp.asarray(self.steps, jnp.int32),
            jnp.asarray(cycles, jnp.int32),
            jnp.asarray(ends, jnp.int32),
        )
        seen = jax.tree.map(np.asarray, log)
        return int(done), seen, np.ones_like(seen.ended)

    def _run_outside(self, learning: bool, cycles: int, ends: int) -> tuple[int, Any, Any, Any]:
        environment = self._world.training()
        if not isinstance(self._feed, loop_gymnasium.HostFeed):
            if self.history.lengths.any():
                warnings.warn(
                    f"{self.environment}: the episode that was under way is lost, as its state "
                    "cannot be saved: learning goes on with a new one",
                    stacklevel=2,
                )
                self.history.forget_running()
                memory = replay.cut(self._learner.replay, self.steps, self.config.n_envs)
                self._learner = self._learner._replace(replay=memory)
            before = self._done or [self.history.episodes] * environment.n_envs
            self._feed = loop_gymnasium.begin(environment, self.seed, before)
            if self._pending is not None:
                self._feed.action, self._feed.share = self._pending
        self._learner, done, log, valid, failure = loop_gymnasium.advance(
            self._algorithm,
            environment,
            learning,
            self._learner,
            self._feed,
            self.steps,
            cycles,
            ends,
        )
        if failure is not None:
            self._feed, self._pending, self._done = None, None, None
        return done, log, valid, failure

    def _require_finite(self, loss: NDArray[Any]) -> None:
        if not np.isfinite(loss).all():
            raise FloatingPointError(
                f"{self.environment}: the loss is not finite after {self.steps} steps; "
                "a lower learning_rate or max_grad_norm=10 may help"
            )

    def _status(self, rate: float) -> str:
        support = self.history.columns["trace_support"]
        words = [f"{rate:.0f} steps/s", f"return {self.history.recent():.4g}"]
        return "  ".join([*words, f"support {support[-1]:.2g}"] if support else words)

    def predict(self, observation: ArrayLike, deterministic: bool = True) -> Any:
        """An action for an observation, or one for each of several, as the environment takes it.

        Greedy, or drawn from the policy that explores, without its share of uniform actions.
        """
        seen, single = self._observations(observation)
        if deterministic:
            action = _greedy(self._algorithm, self._learner, seen)
        else:
            self._predictions += 1
            key = jax.random.fold_in(jax.random.PRNGKey(self.seed ^ 0x5EED), self._predictions)
            action = _sampled(self._algorithm, self._learner, seen, self.steps, key)
        chosen = self._world.decode(np.asarray(action))
        if not single:
            return chosen
        by_number = self._world.n_actions is not None and self._world.table is None
        return int(chosen[0]) if by_number else np.asarray(chosen[0])

    def evaluate(
        self,
        episodes: int = 100,
        deterministic: bool = True,
        seed: int | None = None,
        env: Any = None,
    ) -> Episodes:
        """Play episodes without learning, and give their returns.

        They are played in an environment like that of training, made for it, or in `env`, which
        stays open: for one given as an object that cannot be made a second time. In the one of
        training itself, the episode that was under way there is lost.
        """
        require_counts({"episodes": episodes})
        start = evaluation_seed(self.seed) if seed is None else seed
        require_seed(start)
        inside = self._world.jax
        if inside is None or env is not None:
            if self._world.learns_in(env):
                self._feed, self._pending, self._done = None, None, None
            with closing(self._world.fresh(env)) as environment:
                return self.play_in(environment, episodes, deterministic, int(start))
        return play(
            self._algorithm,
            inside,
            self._learner,
            self._table,
            step=self.steps,
            episodes=episodes,
            deterministic=deterministic,
            seed=start,
        )

    def _evaluation_environment(self, env: Any) -> None:
        """Refuse to evaluate where it cannot be done."""
        self._world.fresh(env).close()

    def play_in(
        self,
        environment: GymnasiumAdapter,
        episodes: int,
        deterministic: bool,
        seed: int,
        look: Callable[[bool], None] = lambda over: None,
    ) -> Episodes:
        """Play episodes in an environment of the host; `look` at each state, and if it is over."""
        returns, lengths = [], []
        for episode in range(episodes):
            seen = environment.reset([loop_gymnasium.seed_of(seed, 0, episode)])
            total, length, over = 0.0, 0, False
            look(over)
            while not over:
                if deterministic:
                    action = _greedy(self._algorithm, self._learner, seen)
                else:
                    key = jax.random.PRNGKey(loop_gymnasium.seed_of(seed, length + 1, episode))
                    action = _sampled(self._algorithm, self._learner, seen, self.steps, key)
                seen, reward, terminated, truncated = environment.step(np.asarray(action))
                total, length = total + float(reward[0]), length + 1
                over = bool(terminated[0] or truncated[0])
                look(over)
            returns.append(total)
            lengths.append(length)
        return Episodes(np.array(returns), np.array(lengths, np.int64))

    def _note_evaluation(self, episodes: int, env: Any) -> None:
        greedy = self.evaluate(episodes, env=env)
        sampled = self.evaluate(episodes, deterministic=False, env=env)
        self.history.append(
            evaluation_step=self.steps,
            evaluation_episode=self.history.episodes,
            evaluation_return=greedy.mean,
            evaluation_std=float(greedy.returns.std()),
            evaluation_length=float(greedy.lengths.mean()),
            evaluation_sampled=sampled.mean,
        )

    def _observations(self, observation: ArrayLike) -> tuple[Any, bool]:
        seen, single = self._world.encode(observation)
        return jnp.asarray(seen), single

    def save(self, path: str | PathLike[str], replay: bool = True) -> None:
        """Write the agent to a file; without `replay` it is small, and cannot go on learning."""
        replay = replay and self._complete
        about = {
            "kind": self.kind,
            "world": self._world.describe(),
            "config": options.to_mapping(self.config),
            "seed": self.seed,
            "steps": self.steps,
            "replay": replay,
            "predictions": self._predictions,
            "provenance": provenance.of_training(),
        }
        learner = self._learner if replay else self._algorithm.shared(self._learner)
        arrays = checkpoint.flatten("learner.", learner)
        if replay and isinstance(self._feed, Feed):
            arrays |= checkpoint.flatten("feed.", self._feed)
        elif replay and self._world.jax is None:
            arrays |= self._host_arrays()
        history = {f"history.{k}": v for k, v in self.history.arrays().items()}
        checkpoint.write(path, about, {**arrays, **history})
        if replay:
            self.saved_at = self.steps

    def _host_arrays(self) -> dict[str, NDArray[Any]]:
        """How many episodes were begun on the host, and the action that is to open the next."""
        begun = None if self._done is None else [done + 1 for done in self._done]
        pending = self._pending
        if isinstance(self._feed, loop_gymnasium.HostFeed):
            begun, pending = self._feed.begun, (self._feed.action, self._feed.share)
        arrays = {} if begun is None else {"begun": np.asarray(begun, np.int64)}
        if pending is not None and pending[0] is not None and not self.history.lengths.any():
            arrays["pending"], arrays["pending_share"] = (np.asarray(x) for x in pending)
        return arrays

    @classmethod
    def load(cls, path: str | PathLike[str], env: Any = None) -> Self:
        """Read an agent from a file; `env` replaces the environment, which is made when needed."""
        about, arrays = checkpoint.read(path)
        try:
            if about["kind"] != cls.kind:
                raise InvalidInput(f"holds a {about['kind']} agent, not {cls.kind}")
            world = revive(about["world"], env)
            agent = cls.__new__(cls)
            settings: Any = options.from_mapping(
                cls.Config, options.with_current_names(about["config"])
            )
            Agent.__init__(agent, world, settings, about["seed"])
            agent.steps, agent._predictions = int(about["steps"]), int(about["predictions"])
            if not (0 <= agent.steps < NEVER and agent._predictions >= 0):
                raise InvalidInput(f"damaged: it cannot have made {agent.steps} steps")
            agent._complete = bool(about["replay"])
            agent._restore(path, arrays)
            agent.saved_at = agent.steps
        except InvalidInput as error:
            prefix = "" if str(error).startswith(str(path)) else f"{path}: "
            raise InvalidInput(f"{prefix}{error}") from None
        except KeyError as error:
            raise InvalidInput(f"{path}: damaged: its description lacks {error}") from None
        except (TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise InvalidInput(f"{path}: damaged: its description is wrong: {error}") from None
        return agent

    def _restore(self, path: str | PathLike[str], arrays: dict[str, NDArray[Any]]) -> None:
        """Take learner, environment and history from named arrays."""
        template = jax.eval_shape(lambda: self._learner)
        if not self._complete:
            shared = checkpoint.restore(path, "learner.", self._algorithm.shared(template), arrays)
            self._learner = self._algorithm.complete(shared, self._learner)
        else:
            self._learner = checkpoint.restore(path, "learner.", template, arrays)
            inside, n = self._world.jax, self.config.n_envs
            if inside is not None and "feed.observation" in arrays:
                like = jax.eval_shape(lambda: loop_jax.begin(inside, n, jax.random.PRNGKey(0)))
                self._feed = checkpoint.restore(path, "feed.", like, arrays)
            if "pending" in arrays:
                self._pending = self._restored_action(path, arrays)
            if "begun" in arrays:
                begun = arrays["begun"]
                if begun.shape != (n,) or begun.dtype.kind not in "iu" or begun.min() < 1:
                    raise InvalidInput(f"{path}: damaged: it cannot have begun {begun} episodes")
                self._done = (begun - 1).tolist()
        history = {k.removeprefix("history."): v for k, v in arrays.items() if k[:8] == "history."}
        try:
            self.history = History.from_arrays(history)
        except KeyError as error:
            raise InvalidInput(f"{path}: incomplete: history.{error.args[0]} missing") from None
        known = (self.history[name].max(initial=0) for name in ("episode_step", "trace_step"))
        if max(known) > self.steps:
            raise InvalidInput(f"{path}: damaged: a history of more than its {self.steps} steps")
        if len(self.history.running) != self.config.n_envs:
            raise InvalidInput(f"{path}: history.running has shape {self.history.running.shape}")

    def _restored_action(
        self, path: str | PathLike[str], arrays: dict[str, NDArray[Any]]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The action that opens the next episodes, and the share of actions it was chosen from."""
        seen = jnp.zeros((self.config.n_envs, self._world.observation_size))
        like = jax.eval_shape(
            lambda: self._algorithm.act(self._learner, seen, 0, jax.random.PRNGKey(0))
        )
        action, share = arrays["pending"], arrays.get("pending_share", np.empty(0))
        same = [
            (x.shape, x.dtype) == (y.shape, y.dtype)
            for x, y in zip((action, share), like, strict=True)
        ]
        numbers = self._world.n_actions
        if not all(same) or (numbers and not ((action >= 0) & (action < numbers)).all()):
            raise InvalidInput(f"{path}: damaged: its next action cannot be {action.tolist()}")
        return action, share

    def become(self, shared: Any, steps: int) -> None:
        """Act from now on as one that shares what acting needs, after so many steps of learning."""
        knobs = self._learner.knobs
        self._learner = self._algorithm.complete(shared, self._learner)._replace(knobs=knobs)
        self.steps, self._complete = steps, False

    def _can_be_saved(self) -> bool:
        """An environment on the host cannot be saved, but it starts an episode by its number."""
        inside = self._world.jax is not None
        return inside or self._world.n_envs > 1 or not self.history.lengths.any()


def is_whole(value: Any) -> bool:
    """Whether it is an integer, of Python or of NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_false(verdict: Any) -> bool:
    """Whether a callback said False, of Python or of NumPy; saying nothing is not that."""
    return isinstance(verdict, bool | np.bool_) and not verdict


def require_counts(given: Mapping[str, Any]) -> None:
    """Refuse numbers of things, by name, that are not whole and positive; None is left out."""
    for name, value in given.items():
        if value is not None and not (is_whole(value) and value >= 1):
            raise InvalidInput(f"{name} must be a whole number of at least 1, got {value!r}")


def require_folder(save_to: str | PathLike[str] | None) -> None:
    """Refuse a file to save to whose folder is not there, or which is a folder itself."""
    if save_to is None:
        return
    if not str(save_to) or Path(save_to).is_dir():
        raise InvalidInput(f"save_to {str(save_to)!r}: give the name of a file, such as agent.npz")
    if not Path(save_to).absolute().parent.is_dir():
        raise InvalidInput(f"save_to {save_to}: there is no folder {Path(save_to).parent}")


def require_seed(seed: Any) -> None:
    """Refuse what is no seed."""
    if not (is_whole(seed) and 0 <= seed < 2**32):
        raise InvalidInput(f"seed must be a whole number from 0 to 2^32 - 1, got {seed!r}")


_greedy = jax.jit(lambda a, learner, seen: a.greedy(learner, seen), static_argnums=0)
_sampled = jax.jit(
    lambda a, learner, seen, step, key: a.sampled(learner, seen, step, key), static_argnums=0
)
