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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.planning.function_space import Space, read_space

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False, repr=False)
class FunctionalMDP:
    """A finite MDP whose transitions and rewards are computed by functions; see `functional_mdp`.

    Attributes:
        decide, evolve: JAX functions of one state, action, post-decision state and event.
        states, actions, events: spaces, products of ranges.
        post: the space of post-decision states; None where the pair is one.
        probabilities: of the events, as an array or a function of the post-decision state.
        given_state: whether `probabilities` is a function of the state instead.
        discount: gamma in [0, 1).
        initial: d(s).
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
    start: Any = None

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.states.size

    @property
    def n_actions(self) -> int:
        """Number of actions, allowed in a state or not."""
        return self.actions.size

    @property
    def initial(self) -> NDArray[np.float64]:
        """d(s): uniform unless a distribution or the index of a state was given."""
        if self.start is None:
            return np.full(self.n_states, 1.0 / self.n_states)
        if np.ndim(self.start):
            return np.asarray(self.start)
        d = np.zeros(self.n_states)
        d[self.start] = 1.0
        return d

    def __repr__(self) -> str:
        post = "" if self.post is None else f", {self.post.size:,} post-decision states"
        return (
            f"FunctionalMDP({self.n_states:,} states, {self.n_actions:,} actions{post}, "
            f"{self.events.size:,} events, discount {self.discount:g})"
        )


def read_functions(
    decide: Any,
    evolve: Any,
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
    """A functional MDP from the arguments of `MDP.from_functions`, with its spaces read."""
    for name, function in (("decide", decide), ("evolve", evolve)):
        if not callable(function):
            raise InvalidInput(f"{name} must be a function, not {type(function).__name__}")
    spaces = {
        name: read_space(name, value)
        for name, value in (("states", states), ("actions", actions), ("events", events))
    }
    if not callable(probabilities):
        p = np.asarray(probabilities, np.float64)
        if p.size != spaces["events"].size:
            raise InvalidInput(
                f"probabilities has {p.size} numbers for {spaces['events'].size} events"
            )
        if not (np.all(p >= 0.0) and abs(p.sum() - 1.0) <= 1e-6):
            raise InvalidInput(f"probabilities sum to {p.sum():.8g}, not to 1")
        probabilities = p / p.sum()
    checks.one_of("given", given, ("post", "state"))
    return FunctionalMDP(
        decide=decide,
        evolve=evolve,
        post=None if post is None else read_space("post", post),
        probabilities=probabilities,
        given_state=given == "state",
        discount=checks.discount(discount),
        start=initial,
        **spaces,
    )
