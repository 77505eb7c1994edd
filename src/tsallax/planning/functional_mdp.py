"""Finite MDPs given by functions: nothing is stored, transitions are computed in every sweep.

A step from state s has two parts, each a function of one element of each space:

    decide(state, action) -> (post, reward, allowed)       what the action does
    evolve(post, event)   -> (next_state, reward, ends)    what chance does with the result

The *post-decision state* is all that the rest of the step depends on: an inventory after the order
has arrived, an asset position after consumption.  Many pairs lead to the same one, and its
expectation over the events is taken once: a sweep costs |post| |events| + |states| |actions|
evaluations instead of |states| |actions| |events|.  An exogenous process is a part of `post` that
only `evolve` changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from tsallax import checks
from tsallax.errors import InvalidInput, place_in_user_code
from tsallax.planning.forms import numbers
from tsallax.planning.function_space import Space, read_space
from tsallax.planning.functional_checks import SUM_TOLERANCE, find_invalid
from tsallax.planning.integer_overflow import refuse_overflow
from tsallax.planning.precision import double_precision
from tsallax.wording import plural

MAX_STORED_BRANCHES = 2**28
"""Triples (state, action, event) up to which `to_mdp` stores a model."""


@dataclass(frozen=True, eq=False, repr=False)
class FunctionalMDP:
    """A finite MDP whose transitions and rewards are computed by functions.

    `MDP.from_functions` makes one; `solve`, `evaluate` and `gap_certificate` take it as an MDP.

    Attributes:
        decide, evolve: JAX functions of one state and action, post-decision state and event.
        states, actions, events: spaces, products of ranges.
        post: the space of post-decision states; None where the pair is one.
        probabilities: of the events, as an array or a function.
        given_state: whether that is a function of the state, not of the post-decision state.
        discount: gamma in [0, 1).
        start: d(s) as an array, the index of a state, or None for all states alike.
        stored_class: the class that `to_mdp` makes.
    """

    decide: Callable[..., Any]
    evolve: Callable[..., Any]
    states: Space
    actions: Space
    events: Space
    post: Space | None
    probabilities: Any
    given_state: bool
    discount: float
    start: Any
    stored_class: Callable[..., Any]

    @property
    def n_states(self) -> int:
        """Number of states |S|."""
        return self.states.size

    @property
    def n_actions(self) -> int:
        """Number of actions, whether allowed in a state or not."""
        return self.actions.size

    @property
    def max_actions(self) -> int:
        """The largest number of actions of a state, at most."""
        return self.actions.size

    @property
    def n_pairs(self) -> int:
        """Number of states times number of actions."""
        return self.n_states * self.n_actions

    @property
    def initial(self) -> NDArray[np.float64]:
        """d(s), shape (S,)."""
        if self.start is None:
            return np.full(self.n_states, 1.0 / self.n_states)
        if np.ndim(self.start):
            return np.asarray(self.start, np.float64)
        d = np.zeros(self.n_states)
        d[self.start] = 1.0
        return d

    def probabilities_at(self, state: Any, post: Any) -> Array:
        """The probabilities of the events, given coordinates of a state and a post-decision state.

        One of the two is what they depend on.
        """
        if not callable(self.probabilities):
            return jnp.asarray(self.probabilities)
        return jnp.ravel(self.probabilities(state if self.given_state else post))

    def post_given(self, post: Any) -> Any:
        """A post-decision state that `decide` returns as `evolve` and `probabilities` receive it.

        Its coordinates in the space where there is one, and otherwise what it is.
        """
        return post if self.post is None else self.post.element(self.post.index(post)[0])

    def to_mdp(self, names: bool = False) -> Any:
        """The same model as an `MDP`, with all transitions stored.

        With `names`, states and actions are named by their coordinates, such as "(3, 0)".

        >>> from tsallax import problems
        >>> problems.inventory(capacity=20, lead_time=1, max_order=5).to_mdp()
        MDP(126 states, 6 actions, 756 pairs, 9996 transitions, discount 0.99, 0.1 MB)
        """
        branches = self.n_pairs * self.events.size
        if branches > MAX_STORED_BRANCHES:
            raise InvalidInput(
                f"{branches:,} branches are too many to be stored: solve the model as it is"
            )
        with double_precision():
            find_invalid(self)
        refuse_overflow(self)
        arguments = _tables(self)
        if names:
            arguments["state_names"] = self.states.names()
            arguments["action_names"] = self.actions.names()
        return self.stored_class(discount=self.discount, initial=self.initial, **arguments)

    def with_discount(self, discount: float) -> FunctionalMDP:
        """The same model with another gamma."""
        return replace(self, discount=_read_discount(discount))

    def __repr__(self) -> str:
        post = "" if self.post is None else f", {plural(self.post.size, 'post-decision state')}"
        return (
            f"FunctionalMDP({plural(self.n_states, 'state')}, {plural(self.n_actions, 'action')}"
            f"{post}, {plural(self.events.size, 'event')}, discount {self.discount:.12g})"
        )


def read_functions(
    decide: Any,
    evolve: Any,
    *,
    states: Any,
    actions: Any,
    events: Any,
    probabilities: Any,
    discount: Any,
    post: Any,
    given: str,
    initial: ArrayLike | None,
    stored_class: Callable[..., Any],
) -> FunctionalMDP:
    """A functional MDP from the arguments of `MDP.from_functions`; the functions are traced."""
    for name, function in (("decide", decide), ("evolve", evolve)):
        if not callable(function):
            raise InvalidInput(f"{name} must be a function, not {type(function).__name__}")
    checks.one_of("given", given, ("post", "state"))
    spaces = {
        name: read_space(name, value)
        for name, value in (("states", states), ("actions", actions), ("events", events))
    }
    if not callable(probabilities):
        probabilities = _read_probabilities(probabilities, spaces["events"])
    mdp = FunctionalMDP(
        decide=decide,
        evolve=evolve,
        post=None if post is None else read_space("post", post),
        probabilities=probabilities,
        given_state=given == "state",
        discount=_read_discount(discount),
        start=_read_initial(initial, spaces["states"]),
        stored_class=stored_class,
        **spaces,
    )
    with double_precision():
        _check_traces(mdp)
    return mdp


def no_finite_horizon(name: str) -> InvalidInput:
    """The refusal of an argument of finite horizons for a model from functions."""
    problem = "a model from functions has no finite horizon (use model.to_mdp() for one)"
    return InvalidInput(problem, omit=name)


def _tables(mdp: FunctionalMDP) -> dict[str, Any]:
    """Transitions, rewards, pairs, terminal states and termination, for `MDP`."""
    events = jnp.arange(mdp.events.size)

    def pair(index: Any) -> Any:
        state = mdp.states.element(index // mdp.n_actions)
        post, reward, allowed = mdp.decide(state, mdp.actions.element(index % mdp.n_actions))
        post = mdp.post_given(post)
        p = jnp.asarray(mdp.probabilities_at(state, post), jnp.float64)

        def branch(e: Any) -> Any:
            after, earned, ends = mdp.evolve(post, mdp.events.element(e))
            earned = jnp.asarray(earned, jnp.float64)
            return mdp.states.index(after)[0], earned, jnp.asarray(ends, bool)

        after, earned, ends = jax.vmap(branch)(events)
        p = p / jnp.sum(p)
        expected = jnp.asarray(reward, jnp.float64) + jnp.sum(jnp.where(p > 0.0, p * earned, 0.0))
        ending = jnp.minimum(jnp.sum(jnp.where(ends, p, 0.0)), 1.0)
        return after, jnp.where(ends, 0.0, p), expected, ending, jnp.asarray(allowed, bool)

    rows, block = [], min(max(2**20 // mdp.events.size, 1), mdp.n_pairs)
    with double_precision():
        compiled = jax.jit(jax.vmap(pair))
        for first in range(0, mdp.n_pairs, block):
            index = np.minimum(np.arange(first, first + block), mdp.n_pairs - 1)
            out = [np.asarray(x)[: mdp.n_pairs - first] for x in compiled(index)]
            allowed = np.broadcast_to(out[4], out[2].shape)
            rows.append((np.flatnonzero(allowed) + first, *(x[allowed] for x in out[:4])))
    listed, after, p, rewards, ends = (np.concatenate(x) for x in zip(*rows, strict=True))
    start = np.arange(0, p.size + 1, mdp.events.size)
    transitions = csr_array((p.ravel(), after.ravel(), start), shape=(len(listed), mdp.n_states))
    transitions.sum_duplicates()
    transitions.eliminate_zeros()
    states, actions = np.divmod(listed, mdp.n_actions)
    terminal = np.setdiff1d(np.arange(mdp.n_states), states)
    return {
        "transitions": transitions,
        "rewards": rewards,
        "pairs": np.column_stack([states, actions]),
        "terminal": terminal if len(terminal) else None,
        "termination": ends if ends.any() else None,
    }


def _read_probabilities(given: Any, events: Space) -> NDArray[np.float64]:
    try:
        p = np.asarray(given, np.float64).reshape(-1)
    except (TypeError, ValueError):
        kind = type(given).__name__
        raise InvalidInput(
            f"probabilities must be an array of numbers or a function, not {kind}"
        ) from None
    if p.size != events.size:
        raise InvalidInput(f"probabilities has {p.size} numbers for {events.size} events")
    if not np.all(p >= 0.0):
        i = int(np.flatnonzero(~(p >= 0.0))[0])
        raise InvalidInput(f"the probability of event {events.describe(i)} is {p[i]}")
    if not abs(p.sum() - 1.0) <= SUM_TOLERANCE:
        raise InvalidInput(f"probabilities sum to {p.sum():.8g}, not to 1")
    return p


def _read_initial(given: Any, states: Space) -> Any:
    if given is None:
        return None
    if checks.is_integer(given):
        return checks.count("initial", given, at_least=0, below=states.size)
    d = numbers(given, "initial").astype(np.float64)
    if d.shape != (states.size,) or not np.all(d >= 0.0) or abs(d.sum() - 1.0) > SUM_TOLERANCE:
        raise InvalidInput(
            "initial must be the index of a state, as numpy.ravel_multi_index gives it, or "
            f"{states.size} probabilities that sum to 1"
        )
    return d / d.sum()


def _read_discount(given: Any) -> float:
    if checks.is_number(given) and given == 1:
        raise InvalidInput(
            "a model from functions has a discount below 1: store it for a discount of 1, by "
            "model.to_mdp().with_discount(1)"
        )
    return checks.discount(given)


def _check_traces(mdp: FunctionalMDP) -> None:
    """Trace the functions: they must be JAX functions that return what they have to."""
    zero = jnp.zeros((), jnp.int32)
    state, action, event = (s.element(zero) for s in (mdp.states, mdp.actions, mdp.events))
    decided = _trace("decide", mdp.decide, ("post", "reward", "allowed"), state, action)
    post = decided[0]
    if mdp.post is not None:
        _check_coordinates("decide", "post", post, mdp.post)
        post = mdp.post.element(zero)
    elif len(jax.tree.leaves(post)) == 0:
        raise InvalidInput("decide must return a post-decision state, such as (state, action)")
    evolved = _trace("evolve", mdp.evolve, ("next_state", "reward", "ends"), post, event)
    _check_coordinates("evolve", "next_state", evolved[0], mdp.states)
    if callable(mdp.probabilities):
        given = state if mdp.given_state else post
        p = _shape("probabilities", mdp.probabilities, given)
        if not isinstance(p, jax.ShapeDtypeStruct):
            raise InvalidInput("probabilities must return one array: use jnp.array or jnp.stack")
        if p.size != mdp.events.size:
            raise InvalidInput(
                f"probabilities returns {p.size} numbers for {mdp.events.size} events"
            )


def _shape(name: str, function: Any, *arguments: Any) -> Any:
    try:
        return jax.eval_shape(function, *arguments)
    except InvalidInput:
        raise
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InvalidInput(
            f"{name} is not a JAX function of one element of each space: {reason.rstrip('.')}"
            f"{place_in_user_code(error)}{_remedy(error)}"
        ) from error


def _remedy(error: Exception) -> str:
    """What to write in place of Python that needs the value of a traced array."""
    if isinstance(error, jax.errors.TracerBoolConversionError):
        return ": use jnp.where for if, jnp.minimum for min, & for and"
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return ": use the functions of jax.numpy for those of numpy"
    if isinstance(error, jax.errors.TracerIntegerConversionError):
        return ": use jnp.asarray(x)[i] for x[i], jnp.arange and jnp.where for range"
    if isinstance(error, jax.errors.ConcretizationTypeError):
        return ": use jnp.where for if, jnp.minimum for min, jnp.floor for int"
    return ""


def _trace(name: str, function: Any, parts: tuple[str, ...], *arguments: Any) -> Any:
    out = _shape(name, function, *arguments)
    if not isinstance(out, tuple) or len(out) != len(parts):
        raise InvalidInput(f"{name} must return ({', '.join(parts)})")
    for part, value in zip(parts[1:], out[1:], strict=True):
        if not isinstance(value, jax.ShapeDtypeStruct) or value.shape != ():
            raise InvalidInput(f"{name} must return one number as its {part}")
    _check_kinds(name, parts, *(value.dtype for value in out[1:]))
    return out


def _check_kinds(name: str, parts: tuple[str, ...], reward: Any, condition: Any) -> None:
    """Refuse a condition that is no Boolean and no integer, and the two in each other's place."""
    exchanged = reward.kind == "b" and condition.kind != "b"
    for part, kind, known in ((parts[2], condition, "biu"), (parts[1], reward, "biuf")):
        if kind.kind not in known or exchanged:
            what = "a Boolean" if part == parts[2] else "a real number"
            raise InvalidInput(
                f"{name} must return ({', '.join(parts)}), with {what} as its {part}, not {kind}"
            )


def _check_coordinates(name: str, part: str, value: Any, space: Space) -> None:
    leaves = jax.tree.leaves(value)
    if len(leaves) != len(space.axes) or any(leaf.shape != () for leaf in leaves):
        raise InvalidInput(
            f"{name} must return {len(space.axes)} coordinates as its {part}, one for each axis"
        )
