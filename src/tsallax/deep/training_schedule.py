"""When a call of `learn` ends, and when it evaluates and saves on the way."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tsallax.deep.loop import MAX_CYCLES

MAX_STEPS = 2**30
"""The limit of steps in all, and of any count of steps or episodes that has no other."""
SAVE_SECONDS = 60.0
"""The time between two files where no number of steps is given."""
MAX_SAVE_DELAY = 10
"""The most intervals that a file waits for the end of an episode."""


class TrainingSchedule:
    """The goals of a call of `learn`, and where evaluations and other stops fall on the way.

    A position in training is a number of steps and a number of episodes. The goals are such
    numbers, whichever is reached first; `eval_every` counts episodes, or steps where only steps are
    limited. Segments also stop at all multiples of the numbers of steps in `stop_every`.

    >>> schedule = TrainingSchedule(100, 7, steps=150, eval_every=20)
    >>> schedule.last_step, schedule.next_stop(100), schedule.evaluation_due((100, 7), (120, 8))
    (150, 120, True)
    """

    def __init__(
        self,
        step: int,
        episode: int,
        /,
        *,
        episodes: int | None = None,
        steps: int | None = None,
        eval_every: int | None = None,
        stop_every: Iterable[int | None] = (),
    ) -> None:
        self.first_step, self.first_episode = step, episode
        self.last_step = MAX_STEPS if steps is None else steps
        self.last_episode = MAX_STEPS if episodes is None else episodes
        self.by_episode = episodes is not None
        self.eval_every = eval_every
        self.stop_every = [every for every in stop_every if every is not None]

    def finished(self, step: int, episode: int) -> bool:
        """Whether a goal is reached."""
        return step >= self.last_step or episode >= self.last_episode

    def fraction_done(self, step: int, episode: int) -> float:
        """The progress towards the goal that is closer."""
        if self.finished(step, episode):
            return 1.0
        by_step = (step - self.first_step) / (self.last_step - self.first_step)
        by_episode = (episode - self.first_episode) / (self.last_episode - self.first_episode)
        return min(1.0, max(by_step, by_episode))

    def next_stop(self, step: int) -> int:
        """The step of the next evaluation or other stop, or the last one."""
        stops = [self.last_step, *(next_multiple(step, every) for every in self.stop_every)]
        if self.eval_every is not None and not self.by_episode:
            stops.append(next_multiple(step, self.eval_every))
        return min(stops)

    def next_episode_stop(self, episode: int) -> int:
        """The episode after which the next evaluation falls, or the last one."""
        if self.eval_every is None or not self.by_episode:
            return self.last_episode
        return min(self.last_episode, next_multiple(episode, self.eval_every))

    def evaluation_due(self, before: tuple[int, int], now: tuple[int, int]) -> bool:
        """Whether an evaluation falls between two positions."""
        if self.eval_every is None:
            return False
        return passes_multiple(before[self.by_episode], now[self.by_episode], self.eval_every)


class SaveSchedule:
    """The time of the next file: every n steps, or once a minute.

    A file is due at the end of each interval. Where the episode in progress could not be repeated
    it waits for the end of the episode, until it is overdue.
    """

    def __init__(
        self, step: int, every: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._every, self._clock = every, clock
        self.saved(step)

    def saved(self, step: int) -> None:
        """A file was written at this step."""
        self._step, self._time = step, self._clock()

    def due(self, step: int) -> bool:
        """Whether an interval has passed."""
        return self._intervals(step) >= 1

    def overdue(self, step: int) -> bool:
        """Whether the file has waited long enough for the end of an episode."""
        return self._intervals(step) >= MAX_SAVE_DELAY

    def _intervals(self, step: int) -> float:
        if self._every is None:
            return (self._clock() - self._time) / SAVE_SECONDS
        return step // self._every - self._step // self._every


def cycles_until(stop: int, step: int, config: Any) -> int:
    """Cycles from a step to `stop`, the start of learning or the next copy of the target network.

    Whichever is reached first; at least one cycle and at most MAX_CYCLES.
    """
    stop = min(stop, next_multiple(step, config.target_update_interval))
    if step < config.learning_starts:
        stop = min(stop, config.learning_starts)
    cycles: int = -(-(stop - step) // (config.n_envs * config.train_freq))
    return max(1, min(cycles, MAX_CYCLES))


def next_multiple(n: int, of: int) -> int:
    """The smallest multiple of a number that is larger than n.

    >>> next_multiple(20, 10), next_multiple(21, 10)
    (30, 30)
    """
    return (n // of + 1) * of


def passes_multiple(before: int, now: int, of: int) -> bool:
    """Whether a multiple of a number is reached between two others, the second included.

    >>> passes_multiple(19, 20, 10), passes_multiple(20, 29, 10)
    (True, False)
    """
    return now // of > before // of


def is_false(answer: Any) -> bool:
    """Whether a callback returned False, of Python or NumPy; None does not end the training."""
    return isinstance(answer, bool | np.bool_) and not answer
