"""Sources of samples for tabular Q-learning: a finite MDP or a Gymnasium environment.

Both order the pairs (s, a) in the same way and take steps in chunks. An MDP is sampled by the
compiled loop, an environment is stepped here with the same compiled update.
"""

import math
import time
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tsallax.errors import InvalidInput
from tsallax.planning import toy_text
from tsallax.planning.forms import frozen
from tsallax.planning.mdp import MDP
from tsallax.tabular import kernel
from tsallax.tabular.kernel import Rule, Table

Floats = NDArray[np.float64]
Chunk = tuple[int, Floats, NDArray[np.int64]]
"""Total number of steps so far; returns and lengths of the episodes that ended in this chunk."""

NO_LIMIT = 2**62
CHUNK_SECONDS = 0.05
"""Intended duration of a chunk, the longest delay of a Ctrl-C."""
MAX_CHUNK = 1 << 18
"""Largest number of steps in a chunk."""


class MDPSource:
    """Samples of an MDP: episodes, from d to a terminal state or the limit; or single pairs."""

    def __init__(self, mdp: MDP, limit: int, single: bool) -> None:
        self.name = f"an MDP of {mdp.n_states} states and {mdp.n_pairs} pairs"
        self.n_states, self.n_actions = mdp.n_states, mdp.n_actions
        self.pointer = mdp.pointer.astype(np.uint64)
        self.mdp = mdp
        chances = np.diff(mdp.pointer) if single else np.where(mdp.terminal, 0.0, mdp.initial)
        starts = np.cumsum(chances, dtype=np.float64)
        if starts[-1] <= 0.0:
            problem = "every initial state of the MDP is terminal"
            raise InvalidInput(f"{problem}: there is nothing to learn")
        self.starts = starts / starts[-1]
        self.limit = 1 if single else limit
        self.single = single

    @property
    def terminal(self) -> NDArray[np.bool_]:
        """Mask (S,) of the terminal states."""
        return self.mdp.terminal

    def restore(self, visits: NDArray[np.int64], ended: NDArray[np.bool_]) -> None:
        """Do nothing: the MDP defines its terminal states."""

    def to_table(self, values: NDArray[Any], fill: float = 0.0) -> NDArray[Any]:
        """A per-pair vector as a table (S, A)."""
        return self.mdp.table(values, fill)

    def flatten(self, table: NDArray[Any]) -> NDArray[Any]:
        """The per-pair vector of a table (S, A)."""
        return self.mdp.flatten(table)

    def chunks(self, table: Table, rule: Rule, steps: int, seed: int) -> Iterator[Chunk]:
        """Take the steps in chunks of about 0.05 s, with one stream of random numbers."""
        arrays = self._arrays()
        rng = np.random.default_rng(seed)
        place, total = np.zeros(2, np.int64), np.zeros(1)
        done, size = 0, 1 << 8
        while done < steps:
            size = min(size, steps - done)
            returns, lengths = np.empty(size), np.empty(size, np.int64)
            clock = time.perf_counter()
            count = kernel.simulate(
                arrays, table, rule, rng.random((size, 3)), place, total, returns, lengths
            )
            done += size
            count = 0 if self.single else count
            yield done, returns[:count].copy(), lengths[:count].copy()
            if time.perf_counter() - clock < CHUNK_SECONDS / 2:
                size = min(2 * size, MAX_CHUNK)

    def close(self) -> None:
        """Do nothing: an MDP needs no closing."""

    def _arrays(self) -> kernel.MDPArrays:
        t = self.mdp.transitions
        indptr = t.indptr.astype(np.uint64)
        chances = np.empty_like(t.data)
        kernel.cumulative_rows(indptr, frozen(t.data), chances)
        termination = self.mdp.termination
        return kernel.MDPArrays(
            indptr,
            frozen(t.indices.view(np.uint32 if t.indices.itemsize == 4 else np.uint64)),
            chances,
            self.mdp.rewards,
            frozen(np.zeros(self.mdp.n_pairs)) if termination is None else termination,
            self.starts,
            self.limit,
        )


class EnvironmentSource:
    """Samples of a Gymnasium environment with Discrete observations and actions.

    Pairs that `info["action_mask"]` does not allow have Q = -inf: they are neither drawn nor in the
    value of a state.
    """

    def __init__(self, env: Any, limit: int, masked: bool | None = None) -> None:
        self.opened = isinstance(env, str)
        self.env = toy_text.make(env, {}) if isinstance(env, str) else env
        spec = getattr(self.env, "spec", None)
        self.name = getattr(spec, "id", None) or type(getattr(env, "unwrapped", env)).__name__
        self.limit = limit
        try:
            states, self.first_state = self._discrete("observation")
            actions, self.first_action = self._discrete("action")
        except InvalidInput:
            self.close()
            raise
        self.n_states, self.n_actions = states, actions
        self.pointer = np.arange(0, states * actions + 1, actions, dtype=np.uint64)
        self.entered = np.zeros(states, np.bool_)
        self.left = np.zeros(states, np.bool_)
        self.masked = masked
        self.allowed: dict[int, NDArray[np.int64]] = {}
        """The actions that states allow, of those states that have a mask."""

    @property
    def terminal(self) -> NDArray[np.bool_]:
        """Mask (S,) of the states in which episodes ended and from which none continued."""
        return self.entered & ~self.left

    def restore(self, visits: NDArray[np.int64], ended: NDArray[np.bool_]) -> None:
        """Restore from an earlier run the states with visits and its terminal states."""
        self.left |= visits.reshape(self.n_states, self.n_actions).any(1)
        self.entered |= ended

    def to_table(self, values: NDArray[Any], fill: float = 0.0) -> NDArray[Any]:
        """A per-pair vector as a table (S, A), `fill` at terminal states."""
        table = values.reshape(self.n_states, self.n_actions).copy()
        table[self.terminal] = fill
        return table

    def flatten(self, table: NDArray[Any]) -> NDArray[Any]:
        return table.reshape(-1)

    def chunks(self, table: Table, rule: Rule, steps: int, seed: int) -> Iterator[Chunk]:
        """Take the steps: `terminated` cuts the bootstrap, `truncated` and the limit do not."""
        rng = np.random.default_rng(seed)
        first, info = self.env.reset(seed=seed)
        state = self._state(first)
        self._mask(table, state, info)
        length, total = 0, 0.0
        done, size = 0, 1 << 8
        while done < steps:
            returns: list[float] = []
            lengths: list[int] = []
            size = min(size, steps - done)
            for u in rng.random(size):
                self.left[state] = True
                pair = self._choose(table, rule, state, float(u))
                action = int(pair) - state * self.n_actions
                step = self.env.step(action + self.first_action)
                after, reward = self._state(step[0]), float(step[1])
                if not math.isfinite(reward):
                    raise InvalidInput(
                        f"{self.name}: the reward of action {action} in state {state} is {reward}"
                    )
                ended = bool(step[2])
                if not ended:
                    self._mask(table, after, step[4])
                kernel.update(table, rule, pair, reward, after, ended)
                state, length, total = after, length + 1, total + reward
                if ended or step[3] or length >= self.limit:
                    self.entered[state] |= ended
                    returns.append(total)
                    lengths.append(length)
                    length, total = 0, 0.0
                    first, info = self.env.reset()
                    state = self._state(first)
                    self._mask(table, state, info)
            done += size
            yield done, np.array(returns), np.array(lengths, np.int64)

    def _choose(self, table: Table, rule: Rule, state: int, u: float) -> int:
        """Draw a pair of a state, as `kernel.choose` does, from the allowed ones."""
        allowed = self.allowed.get(state)
        if allowed is None or u >= rule.epsilon:
            return int(kernel.choose(table, rule, state, u))
        place = min(int(u / rule.epsilon * len(allowed)), len(allowed) - 1)
        return state * self.n_actions + int(allowed[place])

    def _mask(self, table: Table, state: int, info: Any) -> None:
        """Take over the mask of a state when it is first seen; it must stay the same."""
        given = info.get("action_mask") if self.masked is not False else None
        if given is None:
            if self.masked:
                problem = f'gave no info["action_mask"] in state {state}'
                raise InvalidInput(problem, source=self.name, omit="masked")
            return
        mask = np.asarray(given)
        if mask.shape != (self.n_actions,) or mask.dtype.kind not in "biu" or not mask.any():
            problem = f"should be {self.n_actions} zeros and ones, with at least a one"
            text = f'info["action_mask"] of state {state} is {mask.tolist()}, {problem}'
            raise InvalidInput(text, source=self.name)
        allowed = np.flatnonzero(mask)
        if state not in self.allowed:
            self.allowed[state] = allowed
            first = state * self.n_actions
            table.q[first + np.flatnonzero(mask == 0)] = -np.inf
        elif not np.array_equal(allowed, self.allowed[state]):
            problem = f'info["action_mask"] of state {state} is not always the same'
            raise InvalidInput(f"{problem}: use DeepQ, or masked=False", source=self.name)

    def close(self) -> None:
        """Close the environment if it was made here."""
        if self.opened:
            self.env.close()

    def _state(self, observation: Any) -> int:
        state = int(observation) - self.first_state
        if not 0 <= state < self.n_states:
            problem = f"observation {observation} is not in its observation space"
            raise InvalidInput(f"{self.name}: {problem}")
        return state

    def _discrete(self, kind: str) -> tuple[int, int]:
        """The number of observations or actions, and the first of them."""
        from gymnasium.spaces import Box, Discrete

        if hasattr(self.env, "num_envs"):
            raise InvalidInput(f"{self.name}: give one environment, not a vector of them")
        space = getattr(self.env, f"{kind}_space")
        if not isinstance(space, Discrete):
            remedy = "use DeepQ" if isinstance(space, Box) else "number them with a wrapper"
            problem = f"q_learning needs Discrete {kind}s, not {type(space).__name__}: {remedy}"
            raise InvalidInput(problem, source=self.name)
        return int(space.n), int(space.start)


Source: TypeAlias = MDPSource | EnvironmentSource


def read_source(
    given: Any, discount: float, limit: int | None, single: bool, masked: bool | None = None
) -> Source:
    """The source of samples of an MDP, a Gymnasium environment or its id."""
    if isinstance(given, MDP):
        if masked is not None:
            raise InvalidInput("an MDP has the actions of each state", omit="masked")
        return MDPSource(given, limit or max(100, math.ceil(3.0 / (1.0 - discount))), single)
    if single:
        problem = "an environment cannot be set to any state"
        raise InvalidInput(f"explore='pairs' needs an MDP: {problem}")
    if isinstance(given, str) or all(
        hasattr(given, name) for name in ("reset", "step", "observation_space", "action_space")
    ):
        return EnvironmentSource(given, limit or NO_LIMIT, masked)
    raise InvalidInput(
        f"q_learning needs an MDP, a Gymnasium environment or its id, not {type(given).__name__}"
    )
