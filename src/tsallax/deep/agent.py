"""`Agent`: what all learners share: learn, predict, evaluate, save and load.

A training step, top to bottom: `Agent.learn` asks the loop (`loop_jax` or `loop_gymnasium`) for a
segment of cycles; the loop calls `act`, the environment, `store` and `learn` of the algorithm
(`deep_q` or `ddpg`), which are pure functions of the learner; the agent records the episodes that
ended and copies the target network.

The future of an agent is a function of its learner, its episodes in progress and its number of
steps: it does not depend on how `learn` is called, nor on being saved and loaded in between.
"""

import dataclasses
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tsallax import checks, provenance
from tsallax.deep import checkpoint, options
from tsallax.deep.algorithm import Algorithm, acting_learner, init_learner
from tsallax.deep.environment_description import from_description
from tsallax.deep.environment_spec import EnvironmentSpec, make_spec
from tsallax.deep.evaluation_episodes import (
    EpisodeRequest,
    Episodes,
    choose_actions,
    evaluation_seed,
    play_gymnasium,
    play_jax,
)
from tsallax.deep.history import History, read_history
from tsallax.deep.loop import Loop, Segment
from tsallax.deep.loop_gymnasium import GymnasiumLoop
from tsallax.deep.loop_jax import JaxLoop
from tsallax.deep.memory_size import require_memory
from tsallax.deep.option_changes import (
    Change,
    changes_between,
    from_plain,
    require_same_shapes,
)
from tsallax.deep.replay import with_exponent
from tsallax.deep.training_schedule import (
    MAX_STEPS,
    SaveSchedule,
    TrainingSchedule,
    cycles_until,
    is_false,
    passes_multiple,
)
from tsallax.envs.gymnasium import wrapper_statistics
from tsallax.envs.gymnasium.adapter import GymnasiumAdapter
from tsallax.errors import InvalidInput
from tsallax.interrupts import deferred
from tsallax.progress import bar

SEGMENT_SECONDS = 0.5
"""About how long a segment of training runs; the progress bar moves after each."""
CALLBACK_EVERY = 1_000
"""Steps from one call of a callback to the next."""
RETURN_EVERY, RETURN_EPISODES = 1_000, 100
"""The steps between two comparisons with `stop_at_return`, and the training episodes averaged."""


class Agent:
    """An agent in an environment; its subclasses are the learners."""

    kind: ClassVar[str]
    """The name of the learner, in files and on the command line."""
    Config: ClassVar[type]
    """Its options."""
    member_options: ClassVar[tuple[str, ...]]
    """The options in which members of a fleet may differ."""
    continuous_actions: ClassVar[bool]
    """Whether its actions are real vectors rather than numbers of actions."""

    def __init__(
        self,
        env: Any,
        *others: Any,
        actions: int | Iterable[int] | None = None,
        seed: int = 0,
        config: Any = None,
        backend: str = "auto",
        env_options: Mapping[str, Any] | None = None,
        action_mask: Callable[[Any], Any] | None = None,
        **more: Any,
    ) -> None:
        if others:
            kind = type(self).__name__
            problem = (
                f"{kind} takes an environment and arguments by name, not also {others[0]!r:.60}"
            )
            raise InvalidInput(f"{problem}: {kind}(env, learning_rate=1e-4)")
        settings = options.make_config(self.Config, config, more)
        given = {"backend": backend, "options": env_options, "action_mask": action_mask}
        spec = self.describe_environment(env, settings, actions=actions, **given)
        self.check_effects(spec, settings)
        self._start(spec, settings, seed)

    @classmethod
    def describe_environment(cls, env: Any, config: Any, **given: Any) -> EnvironmentSpec:
        """The specification of an environment for agents with these options, by `make_spec`."""
        return make_spec(
            env,
            n_envs=config.n_envs,
            continuous=cls.continuous_actions,
            factored=getattr(config, "factored", None),
            masked=getattr(config, "masked", False),
            **given,
        )

    @classmethod
    def from_acting_state(
        cls, spec: EnvironmentSpec, config: Any, seed: int, state: Any, steps: int
    ) -> Self:
        """An agent that acts like another one by its acting state after `steps` steps."""
        agent = cls.__new__(cls)
        agent._start(spec, config, seed, partial(acting_learner, state))
        agent.steps, agent._has_replay = steps, False
        return agent

    def _start(
        self,
        spec: EnvironmentSpec,
        config: Any,
        seed: int,
        make_learner: Callable[[Algorithm, jax.Array, Any], Any] | None = None,
    ) -> None:
        """Set the state before the first step; `make_learner` makes another learner than that."""
        self.seed = checks.seed(seed)
        if config.n_envs not in (1, spec.n_envs):
            made = f"{spec.n_envs} environments are already made"
            raise InvalidInput(made, source=spec.name, omit="n_envs")
        self.spec = spec
        self._config = dataclasses.replace(config, n_envs=spec.n_envs)
        self.changes: list[Change] = []
        """The options that changed since the agent was made, with the steps at which they did."""
        self.steps = 0
        self.history = History(running=np.zeros(spec.n_envs), lengths=np.zeros(spec.n_envs, int))
        self.saved_at: int | None = None
        """The number of steps after which it was last saved with its replay memory."""
        self._unevaluated: tuple[int, int] | None = None
        """The position before the last segment, while the evaluation that follows it is missing."""
        self.consistent = True
        """False after an exception within a segment of training: the state is not consistent."""
        self._algorithm, self._learner = self._build(make_learner)
        self._has_replay = True
        self._action_table = None if spec.table is None else jnp.asarray(spec.table)
        self._loop: Loop = (
            GymnasiumLoop(self._algorithm, spec, self.seed)
            if spec.jax is None
            else JaxLoop(self._algorithm, spec.jax, spec.n_envs, self._action_table, self.seed)
        )
        self._predictions = 0
        self._seconds_per_cycle = 0.01
        self._compiled: set[bool] = set()

    @staticmethod
    def build_algorithm(
        spec: EnvironmentSpec, configs: Sequence[Any]
    ) -> tuple[Algorithm, list[Any]]:
        """The algorithm that agents with these options share, and the hyperparameters of each."""
        raise NotImplementedError

    @staticmethod
    def check_effects(spec: EnvironmentSpec, config: Any) -> None:
        """Refuse options that would have no effect in the environment."""

    def _build(
        self, make_learner: Callable[[Algorithm, jax.Array, Any], Any] | None
    ) -> tuple[Algorithm, Any]:
        """The algorithm and the learner."""
        try:
            algorithm, (hyperparameters,) = self.build_algorithm(self.spec, [self.config])
            key = jax.random.PRNGKey(self.seed)
            if make_learner is None:
                shapes = jax.eval_shape(algorithm.init, key, hyperparameters)
                require_memory(self.spec.name, shapes, self.config.buffer_size)
            learner = (make_learner or init_learner)(algorithm, key, hyperparameters)
            return algorithm, jax.block_until_ready(learner)
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise InvalidInput(
                "not enough memory for the networks and a replay of "
                f"{self.config.buffer_size} transitions: lower buffer_size or net_arch",
                source=self.spec.name,
            ) from None

    @property
    def config(self) -> Any:
        """Its options."""
        return self._config

    @config.setter
    def config(self, value: Any) -> None:
        raise AttributeError(
            "the options of an agent cannot be assigned: agent.change(learning_rate=...) changes "
            f"them, and {type(self).__name__}.load(path, learning_rate=...) continues with others"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse options as attributes, which would have no effect."""
        if name == "env" or any(name == f.name for f in dataclasses.fields(self.Config)):
            how = f"agent.change({name}=...) changes it"
            if name == "env":
                how = f"{type(self).__name__}.load(path, env=...) continues in another one"
            raise AttributeError(f"{name} of an agent cannot be assigned: {how}")
        super().__setattr__(name, value)

    def change(self, **given: Any) -> Self:
        """Go on with other options, from the next step on; `changes` records them.

        An option on which the shapes of networks or replay memory depend cannot change.

        >>> from tsallax import DeepQ
        >>> agent = DeepQ("MultiGoal-v0", actions=3, net_arch=(8,), batch_size=8, buffer_size=48)
        >>> agent.change(learning_rate=1e-3).changes
        [Change(step=0, option='learning_rate', before=0.0001, after=0.001)]
        """
        new = options.make_config(self.Config, self._config, given)
        require_same_shapes(self.build_algorithm, self.spec, self._config, new)
        self.changes += changes_between(self.steps, self._config, new)
        self._algorithm, (hyperparameters,) = self.build_algorithm(self.spec, [new])
        memory, exponents = self._learner.replay, (self._config.priority, new.priority)
        if exponents[0] != exponents[1]:
            memory = with_exponent(memory, *exponents)
        self._config, self._loop.algorithm = new, self._algorithm
        self._learner = self._learner._replace(hyperparameters=hyperparameters, replay=memory)
        return self

    def parameters(self) -> dict[str, NDArray[np.float32]]:
        """Copies of the weights of the networks, by their names in files.

        >>> from tsallax import DeepQ
        >>> agent = DeepQ("MultiGoal-v0", actions=3, net_arch=(8,), batch_size=8, buffer_size=48)
        >>> {name: array.shape for name, array in agent.parameters().items()}
        {'body.hidden.0.weight': (2, 8), 'body.hidden.0.bias': (8,),
         'output.weight': (9, 8), 'output.bias': (9,)}
        """
        named = checkpoint.flatten("", self._learner.online)
        return {name: np.array(array) for name, array in named.items()}

    @property
    def environment(self) -> str:
        """The name of the environment."""
        return self.spec.name

    @property
    def actions(self) -> NDArray[np.float32] | None:
        """The real actions by their numbers, where they were made by a grid.

        Where actions are factored, the levels of each dimension: (dimensions, most levels).
        """
        return self.spec.table

    @property
    def description(self) -> str:
        """Class, environment, main options and seed in one line."""
        return f"{type(self).__name__}, {self.environment}, {self._summary()}, seed={self.seed}"

    def __repr__(self) -> str:
        recent = self.history.recent()
        state = "" if math.isnan(recent) else f", recent return {recent:.4g}"
        return (
            f"{type(self).__name__}({self.environment!r}, {self._summary()}, seed={self.seed}: "
            f"{self.steps} steps, {self.history.episodes} episodes{state})"
        )

    def _summary(self) -> str:
        """The main options, for `repr`."""
        raise NotImplementedError

    @options.arguments_by_name("steps=100_000")
    def learn(
        self,
        *,
        episodes: int | None = None,
        steps: int | None = None,
        eval_every: int | None = None,
        eval_episodes: int = 20,
        eval_env: Any = None,
        best_to: str | PathLike[str] | None = None,
        stop_at_return: float | None = None,
        save_to: str | PathLike[str] | None = None,
        save_every: int | None = None,
        callback: Callable[[Self], bool | None] | None = None,
        callback_every: int = CALLBACK_EVERY,
        progress: bool | None = None,
    ) -> Self:
        """Learn until the agent has `episodes` or `steps` in all, whichever is reached first.

        Args:
            episodes: finished episodes in all, those before this call included.
            steps: transitions in all; several environments make several at a time.
            eval_every: the episodes between two evaluations; steps where only steps are given.
            eval_episodes: greedy episodes of an evaluation, which does not change the training; it
                plays as many sampled ones, too.
            eval_env: the environment to evaluate in; default: another one like that of training.
            best_to: a file for the agent, without its replay memory, whenever its greedy return in
                an evaluation is higher than in all evaluations before.
            stop_at_return: end the training when the greedy return of an evaluation is at least
                this; without `eval_every`, the mean of the last 100 training episodes, which is
                looked at every 1,000 steps.
            save_to: a file to save the agent to on the way and at the end.
            save_every: steps between two such files; default: a minute of training. Where an
                episode of a Gymnasium environment could not be repeated, as with a wrapper that
                keeps statistics, the file waits for its end, up to ten times as long.
            callback: a function of the agent that ends the training by returning False.
            callback_every: steps from one call of it to the next.
            progress: show a progress bar, or without a terminal a line a minute; default: on a
                terminal.

        Ctrl-C ends it after the segment at hand, in a state that can be saved and continued. An
        evaluation ends at once, and is made when the training continues.
        What an environment or a callback raises is passed on, after saving to `save_to`.
        """
        goals = {"episodes": episodes, "steps": steps}
        counts = {
            **goals, "eval_every": eval_every, "eval_episodes": eval_episodes,
            "save_every": save_every, "callback_every": callback_every,
        }  # fmt: skip
        self._check_learn(callback, eval_env, {"save_to": save_to, "best_to": best_to}, counts)
        if stop_at_return is not None:
            checks.number("stop_at_return", stop_at_return)
        evaluated = eval_every is not None
        stops = [save_every, callback_every if callback is not None else None]
        if stop_at_return is not None and not evaluated:
            stops.append(RETURN_EVERY)
        schedule = TrainingSchedule(
            *self._position(), **goals, eval_every=eval_every, stop_every=stops
        )
        saves = SaveSchedule(self.steps, save_every)
        reached = self.reached(stop_at_return, evaluated)
        if schedule.finished(*self._position()) and not (reached or self.evaluation_missing):
            warnings.warn(
                f"{self.environment}: nothing is learned: steps and episodes are counted in all, "
                f"and this agent has {self.steps} steps and {self.history.episodes} episodes",
                stacklevel=3,
            )
        if reached and not self.evaluation_missing:
            what = "last evaluation" if evaluated else "last 100 training episodes"
            warnings.warn(
                f"{self.environment}: nothing is learned: the return of the {what} is at least "
                f"stop_at_return={stop_at_return:g}",
                stacklevel=3,
            )
        with (
            bar(self.environment, progress) as report,
            deferred() as interrupted,
            self._saved_on_error(save_to),
        ):
            begin, first = time.monotonic(), self.steps
            while self.evaluation_missing or not (
                schedule.finished(*self._position()) or reached or interrupted()
            ):
                before = self._unevaluated or self._position()
                if not self.evaluation_missing:
                    if self._learning not in self._compiled:
                        report(schedule.fraction_done(*before), "compiling")
                    self._run_segment(schedule, save_to is not None and saves.due(self.steps))
                rate = (self.steps - first) / max(time.monotonic() - begin, 1e-9)
                evaluates = schedule.evaluation_due(before, self._position())
                if evaluates:
                    self._unevaluated = before
                    self._record_evaluation(eval_episodes, eval_env, interrupted)
                self._unevaluated = None
                if evaluates and best_to is not None and self.history.is_best():
                    self.save(best_to, replay=False)
                reached = self.reached(stop_at_return, evaluated)
                can_save = self._can_be_saved() or saves.overdue(self.steps)
                if save_to is not None and can_save and saves.due(self.steps):
                    self.save(save_to)
                    saves.saved(self.steps)
                report(schedule.fraction_done(*self._position()), self._status(rate))
                due = passes_multiple(before[0], self.steps, callback_every)
                if callback is not None and due and is_false(callback(self)):
                    break
            if save_to is not None:
                self.save(save_to)
        if interrupted():
            raise KeyboardInterrupt
        return self

    def _check_learn(
        self,
        callback: Any,
        eval_env: Any,
        files: Mapping[str, Any],
        counts: Mapping[str, int | None],
    ) -> None:
        """Refuse arguments of `learn` before any step."""
        for name, value in counts.items():
            if value is not None:
                checks.count(name, value)
        if counts["save_every"] is not None and files["save_to"] is None:
            raise InvalidInput("save_every needs a file", add=("save_to", "agent.npz"))
        for name, path in files.items():
            if path is not None:
                checks.output_file(name, path)
        if files["best_to"] is not None and counts["eval_every"] is None:
            raise InvalidInput("best_to needs evaluations", add=("eval_every", 100))
        if self.spec.is_training_environment(eval_env):
            problem = f"{self.environment} is the environment of training: give another one"
            raise InvalidInput(problem, source="eval_env")
        if callback is not None and not callable(callback):
            raise InvalidInput(f"callback must be a function of the agent, got {callback!r}")
        if counts["episodes"] is None and counts["steps"] is None:
            raise InvalidInput("no number of episodes or steps", add=("episodes", 1000))
        if not self._has_replay:
            raise InvalidInput("this agent was saved without its replay: it can act, but not learn")
        last = counts["steps"] or 0
        if last >= MAX_STEPS:
            raise InvalidInput(f"steps must be less than 2^30 in all, got {last}")
        if counts["eval_every"] is not None and (self.spec.jax is None or eval_env is not None):
            self.spec.evaluation_environment(eval_env).close()
        if self.spec.jax is None:
            self.spec.training_environment()

    def reached(self, stop_at_return: float | None, evaluated: bool) -> bool:
        """Whether `learn` would end at this return: by the last evaluation, or by training.

        The answer is a function of the history at the last multiple of 1,000 steps, so that it
        does not depend on where a training was interrupted.
        """
        if stop_at_return is None:
            return False
        if evaluated:
            last = self.history.columns["evaluation_return"][-1:]
        else:
            at = self.steps // RETURN_EVERY * RETURN_EVERY
            last = [self.history.mean_return(at, RETURN_EPISODES)]
        return bool(last and last[0] >= stop_at_return)

    @property
    def evaluation_missing(self) -> bool:
        """Whether the last evaluation was interrupted; `learn` begins with it."""
        return self._unevaluated is not None

    def _position(self) -> tuple[int, int]:
        """The numbers of steps and of finished episodes."""
        return self.steps, self.history.episodes

    @contextmanager
    def _saved_on_error(self, path: str | PathLike[str] | None) -> Iterator[None]:
        """Save before an interrupt or an error of the environment or a callback is passed on."""
        try:
            yield
        except FloatingPointError:
            raise  # networks that contain NaN are not worth a file
        except KeyboardInterrupt:
            if path is not None and self.consistent:
                with suppress(RuntimeError):  # of arrays that a compiled step had taken over
                    self.save(path)
            raise
        except Exception as error:
            if path is not None:
                with suppress(Exception):
                    self.save(path)
                    error.add_note(f"the agent of {self.steps} steps was saved to {path}")
            raise

    @property
    def _learning(self) -> bool:
        """Whether the next steps are learned from, and not only stored."""
        return bool(self.steps >= self.config.learning_starts)

    def _run_segment(self, schedule: TrainingSchedule, to_episode_end: bool) -> None:
        """Run cycles up to the next evaluation, save, start of learning or copy of the target."""
        c, first, learning = self.config, self.steps, self._learning
        in_time = int(SEGMENT_SECONDS / self._seconds_per_cycle)
        cycles = min(cycles_until(schedule.next_stop(first), first, c), in_time)
        episodes = schedule.next_episode_stop(self.history.episodes) - self.history.episodes
        so_far = int(self.history.lengths[0]), float(self.history.running[0])
        if self.history.lengths.any() and not self._loop.resume(*so_far):
            self._drop_lost_episodes()
        begin = time.monotonic()
        self.consistent = False
        ends = 1 if to_episode_end else max(1, episodes)
        segment = self._loop.run(self._learner, learning, first, max(1, cycles), ends)
        self._compiled.add(learning)
        done = len(segment.log.loss)
        self._seconds_per_cycle = (time.monotonic() - begin) / max(done, 1)
        self.steps += done * c.n_envs * c.train_freq
        self._record(segment)
        if passes_multiple(first, self.steps, c.target_update_interval):
            self._learner = self._algorithm.copy(self._learner)
            self.history.append_trace(self.steps)
        self.consistent = True
        if segment.error is not None:
            self._loop.abandon(self.history.episodes)
            with suppress(RuntimeError):  # of arrays that an error of the device has deleted
                self._learner = self._algorithm.end_episodes(self._learner, self.steps)
            raise segment.error

    def _record(self, segment: Segment) -> None:
        """Take over the learner of a segment, and record its episodes and averages."""
        self._learner, log = segment.learner, segment.log
        rewards, ended, stepped = (
            x.reshape(-1, self.config.n_envs) for x in (log.reward, log.ended, segment.stepped)
        )
        self.history.record(self.steps, rewards, ended, stepped)
        self.history.accumulate(log.loss, log.value, log.support)
        if not np.isfinite(log.loss).all():
            raise FloatingPointError(
                f"{self.environment}: the loss is not finite after {self.steps} steps; "
                "a lower learning_rate or max_grad_norm=10 may help"
            )

    def _drop_lost_episodes(self) -> None:
        """Go on without the episodes that were in progress, whose state is not known."""
        warnings.warn(
            f"{self.environment}: the episode that was under way is lost, as its state is not "
            "saved and it could not be repeated: learning goes on with a new one",
            stacklevel=5,
        )
        self.history.drop_unfinished()
        self._learner = self._algorithm.end_episodes(self._learner, self.steps)

    def _can_be_saved(self) -> bool:
        """Whether a file holds all of the present state; several environments never end at once."""
        between_episodes = not self.history.lengths.any()
        return self._loop.resumes_mid_episode or self.config.n_envs > 1 or between_episodes

    def _status(self, rate: float) -> str:
        """The line of the progress bar."""
        support = self.history.columns["trace_support"][-1:]
        known = f"  support {support[0]:.2g}" if support and not math.isnan(support[0]) else ""
        return f"{rate:.0f} steps/s  return {self.history.recent():.4g}{known}"

    def predict(self, observation: Any, deterministic: bool = True, mask: Any = None) -> Any:
        """An action for an observation, or one for each of several, as the environment takes it.

        Several actions are an array, or a list where the actions are tuples or dicts.
        Greedy, or sampled from the policy that explores, without its share of uniform actions.
        Where the environment masks actions, `mask` is needed: `info["action_mask"]` of each
        observation, or "all" to allow all actions.
        """
        x, single = self.spec.encode(observation)
        allowed = self.spec.mask(mask, len(x), single)
        seeds = None
        if not deterministic:
            self._predictions += 1
            seeds = np.uint32(self.seed ^ 0x5EED), np.uint32(self._predictions)
        action = choose_actions(self._algorithm, self._learner, x, self.steps, seeds, allowed)
        actions = self.spec.action.decode(np.asarray(action))
        if not single:
            return actions
        return int(actions[0]) if self.spec.action.space.kind == "discrete" else actions[0]

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
        training itself, the episode that was under way there is lost. The statistics of
        `NormalizeObservation` and `NormalizeReward` are those of training, and are not updated.
        """
        checks.count("episodes", episodes)
        start = evaluation_seed(self.seed) if seed is None else checks.seed(seed)
        return self._play(episodes, deterministic, start, env)

    def _play(
        self,
        episodes: int,
        deterministic: bool,
        seed: int,
        env: Any,
        on_state: Callable[[bool], None] = lambda over: None,
    ) -> Episodes:
        """Play episodes in `env` or in an environment like that of training."""
        if self.spec.jax is None or env is not None:
            held: AbstractContextManager[None] = nullcontext()
            if self.spec.is_training_environment(env):
                self._loop.abandon(self.history.episodes)
                held = self.spec.training_environment().held_statistics()
            with held, closing(self.spec.evaluation_environment(env)) as environment:
                return self.play_in(environment, episodes, deterministic, seed, on_state)
        asked = EpisodeRequest(self.steps, episodes, deterministic, seed)
        return play_jax(self._algorithm, self.spec.jax, self._learner, self._action_table, asked)

    def play_in(
        self,
        environment: GymnasiumAdapter,
        episodes: int,
        deterministic: bool,
        seed: int,
        on_state: Callable[[bool], None],
    ) -> Episodes:
        """Play episodes in a Gymnasium environment; `on_state(over)` is called in each state."""
        asked = EpisodeRequest(self.steps, episodes, deterministic, seed)
        return play_gymnasium(self._algorithm, environment, self._learner, asked, on_state)

    def _record_evaluation(self, episodes: int, env: Any, interrupted: Callable[[], bool]) -> None:
        """Play greedy and as many sampled episodes; an interrupt ends them within an episode."""

        def on_state(over: bool) -> None:
            if interrupted():
                raise KeyboardInterrupt

        seed = evaluation_seed(self.seed)
        greedy = self._play(episodes, True, seed, env, on_state)
        sampled = self._play(episodes, False, seed, env, on_state)
        self.history.append(
            evaluation_step=self.steps,
            evaluation_episode=self.history.episodes,
            evaluation_return=greedy.mean,
            evaluation_std=float(greedy.returns.std()),
            evaluation_length=float(greedy.lengths.mean()),
            evaluation_sampled=sampled.mean,
        )

    def save(self, path: str | PathLike[str], replay: bool = True) -> None:
        """Write the agent to a file; without `replay` it is small, and cannot go on learning."""
        if not self.consistent:
            raise InvalidInput("an agent interrupted within a segment of training cannot be saved")
        replay = replay and self._has_replay
        about = {
            "kind": self.kind,
            "world": self.spec.describe(),
            "config": options.to_mapping(self.config),
            "seed": self.seed,
            "steps": self.steps,
            "replay": replay,
            "predictions": self._predictions,
            "changes": self.changes,
            "unevaluated": self._unevaluated,
            "provenance": provenance.of_training(),
        }
        if not replay:
            acting = self._algorithm.acting_state(self._learner)
            arrays = checkpoint.flatten(checkpoint.LEARNER, acting)
        else:
            arrays = checkpoint.flatten_learner(self._learner, self.steps)
            arrays |= self._loop.arrays(between_episodes=not self.history.lengths.any())
        starts_again = replay and self.config.n_envs == 1 and not self.history.lengths.any()
        arrays |= wrapper_statistics.to_arrays(self.spec.statistics(before_reset=starts_again))
        history = {f"history.{k}": v for k, v in self.history.arrays().items()}
        checkpoint.write(path, about, {**arrays, **history})
        if replay:
            self.saved_at = self.steps

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        env: Any = None,
        max_bytes: int | None = None,
        action_mask: Callable[[Any], Any] | None = None,
        **given: Any,
    ) -> Self:
        """Read an agent from a file; `env` replaces the environment, which is made when needed.

        Further arguments are options that change, as by `change`. The sizes that the file describes
        are compared with those of its arrays before anything is allocated. `max_bytes` is that of
        `load_agent`. The function that masks actions, where there was one, is not in the file: give
        it again as `action_mask`.
        """
        about, arrays = checkpoint.read(path, max_bytes)
        with checkpoint.errors_of(path):
            if about["kind"] != cls.kind:
                raise InvalidInput(f"holds a {about['kind']} agent, not {cls.kind}")
            config: Any = options.from_file(cls.Config, about["config"])
            spec = from_description(about["world"], action_mask=action_mask)
        if env is not None:
            with checkpoint.refusals_of(path):
                spec = from_description(about["world"], env, action_mask)
        with checkpoint.errors_of(path):
            steps, predictions = int(about["steps"]), int(about["predictions"])
            if not (0 <= steps < MAX_STEPS and 0 <= predictions < MAX_STEPS):
                made = f"{steps} steps and {predictions} predictions"
                raise InvalidInput(f"damaged: it cannot have made {made}")
            history = read_history(arrays, steps, spec.n_envs)
            read_learner = partial(checkpoint.read_acting_learner, arrays)
            if about["replay"]:
                read_learner = partial(checkpoint.read_learner, arrays, steps)
            agent = cls.__new__(cls)
            agent._start(spec, config, about["seed"], read_learner)
            agent.steps, agent._predictions, agent.history = steps, predictions, history
            agent._has_replay = bool(about["replay"])
            spec.restore_statistics(wrapper_statistics.from_arrays(arrays))
            if agent._has_replay:
                agent._loop.restore(arrays, agent._learner, history.episodes)
            agent.saved_at = steps
            agent.changes = from_plain(about.get("changes", []), steps)
            agent._unevaluated = _position_before(about.get("unevaluated"), agent._position())
        return agent.change(**given) if given else agent


def _position_before(given: Any, now: tuple[int, int]) -> tuple[int, int] | None:
    """The position in a file after which an evaluation is missing, or None."""
    if given is None:
        return None
    step, episode = given
    if not (0 <= step <= now[0] and 0 <= episode <= now[1]):
        raise InvalidInput(f"damaged: it cannot have been at {given!r} before an evaluation")
    return int(step), int(episode)
