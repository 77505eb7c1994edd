"""Sources of samples for tabular Q-learning: a finite MDP or a Gymnasium environment.

Both order the pairs (s, a) in the same way and take steps in chunks. An MDP is sampled by the
compiled loop, an environment is stepped here with the same compiled update. An environment's states
may say which actions they allow; an MDP's pairs are all allowed.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.envs.action_format import ActionFormat
from tsallax.envs.action_mask import mask_row
from tsallax.envs.gymnasium import contract, spaces
from tsallax.envs.gymnasium.environment_batch import MASK
from tsallax.envs.gymnasium.gymnasium_make import make, makes_environments, name_of
from tsallax.errors import InvalidInput
from tsallax.planning.forms import frozen
from tsallax.planning.mdp import MDP
from tsallax.tabular import kernel
from tsallax.tabular.kernel import QTable, Rule

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

    def restore(self, table: QTable, lacking: NDArray[np.bool_]) -> None:
        """Do nothing: the MDP defines its terminal states and the pairs of all others."""

    def to_table(self, values: NDArray[Any], fill: float = 0.0) -> NDArray[Any]:
        """A per-pair vector as a table (S, A)."""
        return self.mdp.table(values, fill)

    def flatten(self, table: NDArray[Any]) -> NDArray[Any]:
        """The per-pair vector of a table (S, A)."""
        return self.mdp.flatten(table)

    def chunks(self, table: QTable, rule: Rule, steps: int, seed: int) -> Iterator[Chunk]:
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

    def _arrays(self) -> kernel.SamplingArrays:
        t = self.mdp.transitions
        indptr = t.indptr.astype(np.uint64)
        chances = np.empty_like(t.data)
        kernel.cumulative_rows(indptr, frozen(t.data), chances)
        termination = self.mdp.termination
        return kernel.SamplingArrays(
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

    Args:
        env: the environment, its id or `module:function`, or a function or class that makes it.
        limit: the number of steps after which an episode is truncated.
        masked: whether states allow some actions only; None: if the first state says which.
        action_mask: a function of the environment that says so in place of `info["action_mask"]`.
    """

    def __init__(
        self,
        env: Any,
        limit: int,
        masked: bool | None,
        action_mask: Callable[[Any], Any] | None,
    ) -> None:
        self.opened = makes_environments(env)
        self.env = make(env) if self.opened else env
        self.name = name_of(self.env)
        self.limit = limit
        try:
            states, self.first_state = self._discrete("observation")
            actions, self.first_action = self._discrete("action")
        except InvalidInput:
            self.close()
            raise
        self.n_states, self.n_actions = states, actions
        self.masked = masked if action_mask is None else True
        self.action_mask = action_mask
        self.format = ActionFormat(spaces.action_space(self.name, self.env.action_space))
        self.allowed: dict[int, NDArray[np.bool_]] = {}
        """The masks of the states that were met."""
        self.pointer = np.arange(0, states * actions + 1, actions, dtype=np.uint64)
        self.entered = np.zeros(states, np.bool_)
        self.left = np.zeros(states, np.bool_)

    @property
    def terminal(self) -> NDArray[np.bool_]:
        """Mask (S,) of the states in which episodes ended and from which none continued."""
        return self.entered & ~self.left

    def restore(self, table: QTable, lacking: NDArray[np.bool_]) -> None:
        """Restore the visited, terminal and masked states of a run whose Q lacked these pairs."""
        shape = self.n_states, self.n_actions
        lacking = lacking.reshape(shape)
        ended = lacking.all(1)
        self.left |= table.visits.reshape(shape).any(1)
        self.entered |= ended
        if self.masked is False:
            return
        for state in np.flatnonzero(lacking.any(1) & ~ended).tolist():
            self.masked = True
            self._allow(table, state, ~lacking[state])

    def to_table(self, values: NDArray[Any], fill: float = 0.0) -> NDArray[Any]:
        """A per-pair vector as a table (S, A), `fill` at terminal states."""
        table = values.reshape(self.n_states, self.n_actions).copy()
        table[self.terminal] = fill
        return table

    def flatten(self, table: NDArray[Any]) -> NDArray[Any]:
        return table.reshape(-1)

    def chunks(self, table: QTable, rule: Rule, steps: int, seed: int) -> Iterator[Chunk]:
        """Take the steps: `terminated` cuts the bootstrap, `truncated` and the limit do not."""
        rng = np.random.default_rng(seed)
        state = self._enter(table, *contract.reset(self.name, self.env, seed=seed))
        length, total = 0, 0.0
        done, size = 0, 1 << 8
        while done < steps:
            returns: list[float] = []
            lengths: list[int] = []
            size = min(size, steps - done)
            for u in rng.random(size):
                self.left[state] = True
                pair = kernel.choose(table, rule, state, u)
                action = int(pair) - state * self.n_actions
                step = contract.step(self.name, self.env, action + self.first_action)
                ended = bool(step[2])
                after, reward = self._enter(table, step[0], step[4], ended), float(step[1])
                if not math.isfinite(reward):
                    raise InvalidInput(
                        f"{self.name}: the reward of action {action} in state {state} is {reward}"
                    )
                kernel.update(table, rule, pair, reward, after, ended)
                state, length, total = after, length + 1, total + reward
                if ended or step[3] or length >= self.limit:
                    self.entered[state] |= ended
                    returns.append(total)
                    lengths.append(length)
                    length, total = 0, 0.0
                    state = self._enter(table, *contract.reset(self.name, self.env))
            done += size
            yield done, np.array(returns), np.array(lengths, np.int64)

    def close(self) -> None:
        """Close the environment if it was made here."""
        if self.opened:
            self.env.close()

    def _enter(
        self, table: QTable, observation: Any, info: Mapping[str, Any], ended: bool = False
    ) -> int:
        """The state of an observation; Q of the actions that it does not allow becomes -inf."""
        state = self._state(observation)
        if self.masked is None:
            self.masked = info.get(MASK) is not None
        if self.masked and not ended:
            given: Any = info.get(MASK)
            if self.action_mask is not None:
                given = self.action_mask(self.env)
            before = self.allowed.get(state)
            if before is None or not np.array_equal(given, before):
                self._allow(table, state, self._mask(observation, given))
        return state

    def _mask(self, observation: Any, given: Any) -> NDArray[np.bool_]:
        name = f'info["{MASK}"]' if self.action_mask is None else f"{MASK}(env)"
        if given is None:
            problem = f"{name} is missing in state {observation}"
            remedy = f"give one in every state, a function as {MASK}, or masked=False"
            raise InvalidInput(f"{problem}: {remedy}", source=self.name)
        try:
            return mask_row(self.format, given)
        except InvalidInput as error:
            problem = f"{name} in state {observation} {error.problem}"
            raise InvalidInput(problem, source=self.name) from None

    def _allow(self, table: QTable, state: int, mask: NDArray[np.bool_]) -> None:
        """Allow these actions of a state alone; they must be the same whenever it is met."""
        before = self.allowed.setdefault(state, mask)
        if not np.array_equal(before, mask):
            was, is_now = (np.flatnonzero(m) + self.first_action for m in (before, mask))
            raise InvalidInput(
                f"state {state + self.first_state} allowed the actions {was.tolist()} and now "
                f"{is_now.tolist()}: a table needs masks that depend on the state alone; "
                "masked=False ignores them",
                source=self.name,
            )
        table.q.reshape(self.n_states, self.n_actions)[state, ~mask] = -np.inf

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
    given: Any,
    discount: float,
    limit: int | None,
    single: bool,
    masked: bool | None,
    action_mask: Callable[[Any], Any] | None,
) -> Source:
    """The source of samples of an MDP, a Gymnasium environment or its id."""
    if masked is not None:
        masked = checks.flag("masked", masked)
    if action_mask is not None and (not callable(action_mask) or masked is False):
        problem = "action_mask must be a function of the environment that gives a mask"
        raise InvalidInput(f"{problem}, with masked=True or None, got {action_mask!r}")
    if isinstance(given, MDP):
        if masked or action_mask is not None:
            problem = "an MDP has no masks: its states have the actions that are listed for them"
            raise InvalidInput(problem, omit="action_mask" if action_mask else "masked")
        return MDPSource(given, limit or max(100, math.ceil(3.0 / (1.0 - discount))), single)
    if single:
        problem = "an environment cannot be set to any state"
        raise InvalidInput(f"explore='pairs' needs an MDP: {problem}")
    if makes_environments(given) or all(
        hasattr(given, name) for name in ("reset", "step", "observation_space", "action_space")
    ):
        return EnvironmentSource(given, limit or NO_LIMIT, masked, action_mask)
    raise InvalidInput(
        f"q_learning needs an MDP, a Gymnasium environment or its id, not {type(given).__name__}"
    )
