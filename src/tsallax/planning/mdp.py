"""Finite Markov decision processes, stored as one sparse row for each state-action pair.

An MDP is the tuple (S, A, d, T, γ, r): states, actions, initial distribution d(s), transition
probabilities T(s'|s,a), discount γ in [0, 1] and expected reward r(s,a). Whatever form it is given
in, it is kept as a list of *pairs* (s,a), ordered by state and then by action, with

    transitions[i, s'] = T(s'|s_i,a_i)      a CSR matrix of float64
    rewards[i]         = r(s_i,a_i)
    pairs of state s   = pointer[s], ..., pointer[s+1] - 1

so that states may differ in their actions. A terminal state has no pair: it is worth 0 and earns
no entropy. An episode may also end *on* a pair, with probability `termination[i]`; the row then
sums to 1 - termination[i].
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.memory import require_memory
from tsallax.planning import forms, toy_text, validation
from tsallax.planning.formats import exchange
from tsallax.planning.functional_mdp import FunctionalMDP, read_functions
from tsallax.planning.names import Index
from tsallax.wording import plural


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MDP:
    """A finite MDP (S, A, d, T, γ, r), checked when it is made and read-only afterwards.

    Args:
        transitions: T(s'|s,a) in one of these forms, sparse ones stay sparse:
            an array or nested lists of shape (S, A, S);
            one SciPy sparse matrix of shape (S*A, S), row s*A + a for state s and action a;
            a list of A sparse or dense matrices of shape (S, S), one for each action (A dense
            ones with A = S are refused: they could be one for each state);
            with `pairs`, a sparse or dense matrix of shape (N, S), one row for each pair.
            A CSR that is float64, sorted and without zeros is shared, not copied.
            Rows within 1e-6 of summing to one are rescaled to sum to one.
        rewards: r(s,a) as a table (S, A) or one number for each pair (row) of `transitions`;
            or r(s,a,s') as an array (S, A, S), a list of A matrices (S, S), or a matrix with the
            shape of `transitions`, of which the expectation is taken.
        discount: γ in [0, 1]. With 1, `solve` needs a horizon, or a proof that every policy ends.
        initial: d(s), shape (S,); one state, by index or name; or a dict of states and their
            probabilities, {"working": 1.0}. Default: uniform over the states that are not
            terminal.
        pairs: integers (N, 2), the state and action of each row, in any order, for states with
            different actions.
        terminal: indices or names of the terminal states, or a Boolean mask (S,). What the
            other arguments say about their actions is ignored, rewards included.
        termination: probability that the episode ends on a pair, (S, A) or one for each pair. The
            probabilities of a pair and its termination sum to one.
        state_names: one distinct name for each state.
        action_names: one distinct name for each action.

    A machine that works or is broken; run it or repair it:

    >>> mdp = MDP(
    ...     transitions=[[[0.9, 0.1], [1.0, 0.0]], [[0.0, 1.0], [0.8, 0.2]]],
    ...     rewards=[[1.0, 0.5], [0.0, -0.5]],
    ...     discount=0.9,
    ...     initial="working",
    ...     state_names=["working", "broken"],
    ...     action_names=["run", "repair"],
    ... )
    >>> mdp
    MDP(2 states, 2 actions, 4 pairs, 6 transitions, discount 0.9, 0.0 MB)
    >>> mdp.transitions.toarray()
    array([[0.9, 0.1],
           [1. , 0. ],
           [0. , 1. ],
           [0.8, 0.2]])
    """

    transitions: csr_array
    rewards: NDArray[np.float64]
    pointer: NDArray[np.int32] | NDArray[np.int64]
    action_of: NDArray[np.int32]
    discount: float
    initial: NDArray[np.float64]
    termination: NDArray[np.float64] | None
    state_names: tuple[str, ...] | None
    action_names: tuple[str, ...] | None
    n_actions: int

    def __init__(
        self,
        transitions: Any,
        rewards: Any,
        discount: float,
        initial: ArrayLike | Mapping[Any, float] | None = None,
        *,
        pairs: ArrayLike | None = None,
        terminal: ArrayLike | Set[Any] | None = None,
        termination: ArrayLike | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> None:
        gamma = checks.probability("discount", discount)
        toy_text.refuse_table(transitions)
        forms.refuse_exchanged(transitions, rewards)
        rows, n_actions, shared = forms.read_rows(transitions, pairs, state_names)
        n_states = rows.shape[1]
        states = Index("state", n_states, forms.read_names(state_names, "state", n_states))
        ends = forms.read_terminal(terminal, states)
        layout = forms.read_layout(pairs, rows.shape, n_actions, ends)
        layout = layout.with_names(states, action_names)
        rows, shared = forms.rows_in_order(transitions, rows, shared, layout)
        pointer = forms.require_actions(layout, ends)
        stops = validation.read_termination(termination, layout)
        csr, stops = validation.distributions(rows, shared, stops, layout)
        fields: dict[str, Any] = {
            "transitions": csr,
            "rewards": forms.frozen(
                validation.read_rewards(rewards, csr, stops is not None, layout, ends)
            ),
            "pointer": forms.frozen(pointer),
            "action_of": forms.frozen(layout.action),
            "discount": gamma,
            "initial": forms.frozen(validation.read_initial(initial, layout, ends)),
            "termination": None if stops is None else forms.frozen(stops),
            "state_names": layout.state_names,
            "action_names": layout.action_names,
            "n_actions": layout.n_actions,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_gymnasium(cls, env_or_id: Any, discount: float, **make_kwargs: Any) -> MDP:
        """Read the MDP of a toy-text environment of Gymnasium, by its id, as an object or a table.

        The table is `env.unwrapped.P`, which lists (probability, next state, reward, terminated) of
        P[state][action]; it has no initial distribution, which is then uniform.

        `terminated` transitions earn their reward and nothing after it. A state that is only ever
        entered by them is terminal; of a table, only if it leads nowhere else and earns nothing.
        Time limits and other wrappers are not part of the MDP.

        >>> MDP.from_gymnasium("FrozenLake-v1", 0.99, is_slippery=False)
        MDP(16 states (5 terminal), 4 actions, 44 pairs, 44 transitions, discount 0.99, 0.0 MB)
        """
        name, arguments = toy_text.arguments(env_or_id, make_kwargs)
        try:
            return cls(discount=discount, **arguments)
        except InvalidInput as error:
            raise error.of(name) from None

    @classmethod
    def from_functions(
        cls,
        decide: Callable[..., Any],
        evolve: Callable[..., Any],
        *,
        states: Any,
        actions: Any,
        events: Any,
        probabilities: Any,
        discount: float,
        post: Any = None,
        given: str = "post",
        initial: ArrayLike | None = None,
    ) -> FunctionalMDP:
        """A model without stored transitions, computed by JAX functions in every sweep.

        A space is a size, an array of increasing values, or a tuple of these for a product.
        Functions receive the coordinates of one element, a number or a tuple of them as the space
        was given, and return coordinates in the same way; they are vectorised here.

        Args:
            decide: (state, action) -> (post, reward, allowed). A state without an allowed action
                is terminal and worth 0.
            evolve: (post, event) -> (next_state, reward, ends); nothing follows where it ends.
                `allowed` and `ends` are Booleans or integers.
            states, actions, events: spaces.
            post: the space of post-decision states, on which alone the rest of the step depends:
                a sweep costs |post| |events| + |states| |actions| evaluations. Without it, what
                `decide` returns as `post`, such as (state, action), is passed on to `evolve`, and
                a sweep costs |states| |actions| |events|.
            probabilities: of the events, as an array or a function of the post-decision state.
            given: "state" where `probabilities` is a function of the state instead; every event
                must then lead to a state, whatever its probability.
            discount: γ in [0, 1).
            initial: d(s), or the index of one state. Default: uniform over all states.

        Demand is 0 or 1, stock is up to 2; sell at 3, order at 1:

        >>> import jax.numpy as jnp
        >>> stock = MDP.from_functions(
        ...     lambda stock, order: (stock + order, -1.0 * order, stock + order <= 2),
        ...     lambda stock, demand: (
        ...         stock - jnp.minimum(stock, demand), 3.0 * jnp.minimum(stock, demand), False
        ...     ),
        ...     states=3, actions=3, post=3, events=2, probabilities=[0.5, 0.5], discount=0.9,
        ... )
        >>> stock
        FunctionalMDP(3 states, 3 actions, 3 post-decision states, 2 events, discount 0.9)
        """
        return read_functions(
            decide, evolve, states=states, actions=actions, events=events, post=post,
            probabilities=probabilities, discount=discount, given=given, initial=initial,
            stored_class=cls,
        )  # fmt: skip

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        discount: float | None = None,
        rewards: str | None = None,
        max_bytes: int | None = None,
    ) -> MDP:
        """Read an MDP that `save` or a model checker wrote, checking it all again.

        `.umb`, `.drn` and `.tra` stand for the formats of `save`. `discount` replaces that of the
        file and is needed where the file has none, `rewards` chooses one of several reward
        structures.

        An `.npz` file that unpacks to more than `max_bytes` is refused before anything is
        allocated; the default is 256 MB or ten times the size of the file, whichever is more.

        >>> MDP.load("absent.npz")
        Traceback (most recent call last):
        ...
        tsallax.errors.InvalidInput: absent.npz: no such file
        """
        try:
            return cls(**exchange.read_arguments(path, discount, rewards, max_bytes))
        except InvalidInput as error:
            raise error.of(path) from None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the MDP as an `.npz` file without pickles, whole or not at all.

        The ending `.umb` stands for the exchange format UMB, `.drn` for Storm's text, and `.tra`
        for PRISM's explicit files, with `.lab`, `.sta`, `.srew` and `.trew` beside it.

        >>> import tempfile, pathlib
        >>> mdp = MDP([[[1.0]]], [[2.0]], 0.5)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mdp.save(pathlib.Path(folder, "one.npz"))
        ...     MDP.load(pathlib.Path(folder, "one.npz")).rewards
        array([2.])
        """
        exchange.write_mdp(path, self)

    @property
    def n_states(self) -> int:
        """Number of states |S|, terminal ones included."""
        return len(self.pointer) - 1

    @property
    def n_pairs(self) -> int:
        """Number of state-action pairs."""
        return len(self.action_of)

    @property
    def rectangular(self) -> bool:
        """Whether every state has every action, so that a per-pair vector is a table."""
        return self.n_pairs == self.n_states * self.n_actions

    @cached_property
    def terminal(self) -> NDArray[np.bool_]:
        """Mask (S,) of the terminal states: those without actions."""
        return forms.frozen(self.pointer[1:] == self.pointer[:-1])

    @cached_property
    def state_of(self) -> NDArray[np.int32]:
        """State of each pair."""
        states = np.arange(self.n_states, dtype=np.int32)
        return forms.frozen(np.repeat(states, np.diff(self.pointer)))

    @cached_property
    def max_actions(self) -> int:
        """The largest number of actions of a state."""
        return int(np.diff(self.pointer).max())

    @cached_property
    def max_successors(self) -> int:
        """The largest number of successors of a pair."""
        return int(np.diff(self.transitions.indptr).max())

    @cached_property
    def max_reward(self) -> float:
        """The largest |r(s,a)|."""
        return float(max(self.rewards.max(), -self.rewards.min()))

    def table(self, values: ArrayLike, fill: float = 0.0) -> NDArray[Any]:
        """Lay a per-pair vector out as a table (S, A), `fill` where an action is missing.

        >>> chain = MDP([[0.0, 1.0]], [1.0], 0.9, pairs=[(0, 0)], terminal=[1])
        >>> chain.table(chain.rewards, fill=-np.inf)
        array([[  1.],
               [-inf]])
        """
        values = np.asarray(values)
        if values.shape != (self.n_pairs,):
            shape = (self.n_pairs,)
            raise InvalidInput(
                f"values must have shape {shape}, one for each pair, got {values.shape}"
            )
        if self.rectangular:
            return values.reshape(self.n_states, self.n_actions)
        whole = float(fill).is_integer() or values.dtype.kind not in "bui"
        dtype = values.dtype if whole else np.dtype(np.float64)
        entries = self.n_states * self.n_actions
        what = f"a table of {plural(self.n_states, 'state')} and {plural(self.n_actions, 'action')}"
        remedy = "use the vectors over pairs, such as pair_policy, or to_columns()"
        require_memory(entries * dtype.itemsize, what, remedy)
        table = np.full((self.n_states, self.n_actions), fill, dtype)
        table[self.state_of, self.action_of] = values
        return table

    def flatten(self, table: ArrayLike) -> NDArray[Any]:
        """Take the per-pair vector out of a table (S, A), the inverse of `table`."""
        table, shape = np.asarray(table), (self.n_states, self.n_actions)
        if table.shape != shape:
            raise InvalidInput(f"a table of this MDP must have shape {shape}, got {table.shape}")
        return table.reshape(-1) if self.rectangular else table[self.state_of, self.action_of]

    def with_discount(self, discount: float) -> MDP:
        """The same MDP with another γ, sharing all arrays.

        >>> MDP([[[1.0]]], [[2.0]], 0.5).with_discount(0.99)
        MDP(1 state, 1 action, 1 pair, 1 transition, discount 0.99, 0.0 MB)
        """
        other = copy.copy(self)
        object.__setattr__(other, "discount", checks.probability("discount", discount))
        return other

    def __repr__(self) -> str:
        ends = int(np.count_nonzero(self.terminal))
        plain = partial(plural, separator="")
        states = plain(self.n_states, "state") + (f" ({ends} terminal)" if ends else "")
        arrays = (self.transitions.data, self.transitions.indices, self.transitions.indptr)
        size = sum(array.nbytes for array in arrays) / 1e6
        return (
            f"MDP({states}, {plain(self.n_actions, 'action')}, {plain(self.n_pairs, 'pair')}, "
            f"{plain(self.transitions.nnz, 'transition')}, discount {self.discount:.12g}, "
            f"{size:.1f} MB)"
        )
