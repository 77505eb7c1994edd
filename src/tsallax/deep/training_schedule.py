"""When a call of `learn` ends, and what has to happen on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tsallax.deep.agent import Agent

NEVER = 2**30
PATIENCE = 10
"""How many times as long as usual a file waits for the end of an episode."""


class Plan:
    """When learning ends, and what has to happen on the way."""

    def __init__(
        self,
        agent: Agent,
        episodes: int | None,
        steps: int | None,
        eval_every: int | None,
        save_every: int | None,
    ) -> None:
        self.agent = agent
        self.first_step, self.first_episode = agent.steps, agent.history.episodes
        self.last_step = NEVER if steps is None else agent.steps + steps
        self.last_episode = NEVER if episodes is None else agent.history.episodes + episodes
        self.by_episode = episodes is not None
        self.eval_every, self.save_every = eval_every, save_every
        self._evaluations = self._evaluation()
        self._saves = self._save()

    def _evaluation(self) -> int:
        done = self.agent.history.episodes if self.by_episode else self.agent.steps
        return done // (self.eval_every or NEVER)

    def _save(self) -> int:
        return self.agent.steps // (self.save_every or NEVER)

    def finished(self) -> bool:
        episodes = self.agent.history.episodes
        return self.agent.steps >= self.last_step or episodes >= self.last_episode

    def next_step(self) -> int:
        events = [NEVER]
        if self.eval_every is not None and not self.by_episode:
            events.append((self._evaluations + 1) * self.eval_every)
        if self.save_every is not None:
            events.append((self.agent.steps // self.save_every + 1) * self.save_every)
        return min(events)

    def next_episode(self) -> int:
        if self.eval_every is None or not self.by_episode:
            return self.last_episode
        return min(self.last_episode, (self._evaluations + 1) * self.eval_every)

    def evaluation_due(self) -> bool:
        due = self._evaluation() > self._evaluations
        self._evaluations = self._evaluation()
        return due

    def save_due(self) -> bool:
        return self._save() > self._saves

    def save_late(self) -> bool:
        """Whether a file has waited for the end of an episode long enough."""
        return self._save() >= self._saves + PATIENCE

    def saved(self) -> None:
        self._saves = self._save()

    def share(self) -> float:
        by_step = (self.agent.steps - self.first_step) / (self.last_step - self.first_step)
        by_episode = (self.agent.history.episodes - self.first_episode) / (
            self.last_episode - self.first_episode
        )
        return min(1.0, max(by_step, by_episode))
