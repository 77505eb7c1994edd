"""Tabular Q-learning, hard, soft, sparse or Tsallis, from samples of an MDP or an environment.

The update of the paper, for the regularised maximum `value` of any regulariser,

    Q(s, a) <- Q(s, a) + eta [r + gamma value(Q(s', .)) - Q(s, a)],

converges to the Q* that `tsallax.solve` computes, if every pair is tried again and again and the
step sizes satisfy the condition of `tsallax.tabular.step_size`. It runs in float64.

A sparse policy gives some actions no probability, so a learner that follows it alone may never
try them again, and the first condition fails. The behaviour policy is therefore

    (1 - epsilon) policy(Q(s, .)) + epsilon uniform,    epsilon = 0.1 unless said otherwise,

and epsilon = 0, the paper's own exploration, has to be asked for. What was tried how often is
part of the result.
"""

from __future__ import annotations

import time
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tsallax.errors import InvalidInput
from tsallax.planning.forms import frozen, read_discount
from tsallax.planning.kernels.vectors import padded_length
from tsallax.planning.mdp import MDP
from tsallax.progress import bar
from tsallax.regularizer import Hard, Regularizer
from tsallax.tabular import kernel
from tsallax.tabular.sampling import NEVER, Source, read_source
from tsallax.tabular.step_size import StepSize, read_step_size
from tsallax.tabular.tabular_result import Interrupted, TabularResult


def q_learning(
    source: Any,
    regularizer: Regularizer,
    *,
    discount: float | None = None,
    steps: int = 1_000_000,
    explore: Regularizer | Literal["uniform", "epsilon", "pairs"] | None = None,
    epsilon: float = 0.1,
    step_size: StepSize | str = "rescaled",
    limit: float | None = None,
    initial: ArrayLike | TabularResult = 0.0,
    seed: int = 0,
    progress: bool | None = None,
) -> TabularResult:
    """Learn Q* of the regularised MDP from samples alone.

    Args:
        source: an `MDP`; or a Gymnasium environment, or its id, with Discrete observations and
            actions. `terminated` ends the bootstrap there, `truncated` does not.
        regularizer: of the update: `Hard()`, `Soft(alpha)`, `Sparse(alpha)`, `Tsallis(alpha, q)`.
        discount: gamma; an MDP has its own.
        steps: how many samples to take.
        explore: the policy that acts: a regulariser's, "uniform", or "epsilon" (greedy, with ties
            broken at random). Default: the update's own, which for `Hard()` is "epsilon".
            "pairs", for an MDP: no episodes, every sample is of a pair drawn uniformly, wherever
            it is: the fastest where T(s'|s,a) can be sampled at will.
        epsilon: the share of actions drawn uniformly instead. 0 leaves it all to `explore`: with
            a sparse or greedy one, some pairs may then never be tried again.
        step_size: "rescaled", eta(n) = 1/(1 + (1-gamma) n) after n visits of the pair;
            "polynomial", 1/(1 + n)^0.8; or a `StepSize`. All satisfy the paper's condition.
        limit: steps after which an episode is cut and a new one starts, a truncation; math.inf:
            never. Default: an environment's own; 3/(1-gamma) for an MDP, at least 100.
        initial: the first Q: a number, a table (S, A), or an earlier result to go on from, whose
            visits and returns are counted on.
        seed: of all randomness: the same seed gives the same result. To go on, take another.
        progress: show a progress bar; default: on a terminal, for runs over two seconds.

    Raises:
        InvalidInput: where an argument makes no sense, before any work.
        Interrupted: on Ctrl-C, with the result so far; a `KeyboardInterrupt`.

    >>> import numpy as np
    >>> from tsallax import Sparse, problems, solve
    >>> mdp, regularizer = problems.forest(), Sparse(0.5)
    >>> result = q_learning(mdp, regularizer, steps=200_000)
    >>> bool(np.abs(result.q - solve(mdp, regularizer).q).max() < 0.2)
    True
    """
    update = _read_regularizer("regularizer", regularizer)
    acting, share = _read_explore(explore, update, epsilon)
    schedule = read_step_size(step_size)
    steps, seed = _integer("steps", steps, 1), _integer("seed", seed, 0)
    gamma = _read_discount(discount, source)
    clock = time.perf_counter()
    samples = read_source(source, gamma, _read_limit(limit), explore == "pairs")
    try:
        table, before = _read_initial(initial, samples)
        schedule = schedule.rescaled(gamma)
        rule = kernel.Rule(
            float(update.alpha), float(update.q), float(acting.alpha), float(acting.q), share,
            gamma, schedule.scale or 1.0, schedule.omega,
        )  # fmt: skip
        returns, lengths = [np.empty(0)], [np.empty(0, np.int64)]
        if before is not None:
            returns, lengths = [before.returns], [before.lengths]

        def result() -> TabularResult:
            value, policy = np.zeros(samples.n_states), np.zeros(len(table.q))
            kernel.read_out(table, rule, value, policy)
            value[samples.terminal] = 0.0
            return TabularResult(
                source=samples.name,
                regularizer=update,
                explore=acting,
                epsilon=share,
                discount=gamma,
                step_size=schedule,
                seed=seed,
                q=frozen(samples.lay_out(table.q, fill=-np.inf)),
                value=frozen(value),
                policy=frozen(samples.lay_out(policy)),
                visits=frozen(samples.lay_out(table.visits)),
                returns=frozen(np.concatenate(returns)),
                lengths=frozen(np.concatenate(lengths)),
                seconds=time.perf_counter() - clock,
            )

        try:
            with bar("learning", progress) as report:
                for done, some_returns, some_lengths in samples.walk(table, rule, steps, seed):
                    returns.append(some_returns)
                    lengths.append(some_lengths)
                    report(done / steps)
        except KeyboardInterrupt:
            so_far = result()
            message = f"interrupted after {so_far.steps} steps: .result is what was learnt"
            raise Interrupted(message, so_far) from None
        return result()
    finally:
        samples.close()


def _read_discount(given: Any, source: Any) -> float:
    if given is not None:
        return read_discount(given)
    if isinstance(source, MDP):
        return source.discount
    raise InvalidInput("q_learning from an environment needs a discount, such as discount=0.99")


def _read_regularizer(name: str, given: Any) -> Regularizer:
    if not isinstance(given, Regularizer):
        raise InvalidInput(f"{name} must be a regularizer such as Sparse(0.1), not {given!r}")
    if np.ndim(given.alpha) != 0:
        raise InvalidInput(f"{name}: q_learning needs one alpha, not an array of them")
    return given


def _read_explore(given: Any, update: Regularizer, epsilon: Any) -> tuple[Regularizer, float]:
    """The regulariser of the behaviour policy and the share of uniform actions."""
    number = isinstance(epsilon, Real) and not isinstance(epsilon, bool)
    if not (number and 0.0 <= epsilon <= 1.0):
        raise InvalidInput(f"epsilon must be a share from 0 to 1, not {epsilon!r}")
    if given is None:
        return update, float(epsilon)
    if isinstance(given, str) and given in ("uniform", "epsilon", "pairs"):
        return Hard(), float(epsilon) if given == "epsilon" else 1.0
    if isinstance(given, Regularizer):
        return _read_regularizer("explore", given), float(epsilon)
    raise InvalidInput(
        "explore must be a regularizer such as Soft(0.1), 'uniform', 'epsilon' or 'pairs', "
        f"not {given!r}"
    )


def _integer(name: str, given: Any, least: int) -> int:
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if not (whole and given >= least):
        raise InvalidInput(f"{name} must be an integer of at least {least}, not {given!r}")
    return int(given)


def _read_limit(given: Any) -> int | None:
    if given is None:
        return None
    endless = isinstance(given, float) and given == np.inf
    return NEVER if endless else _integer("limit", given, 1)


def _read_initial(given: Any, samples: Source) -> tuple[kernel.Table, TabularResult | None]:
    """The first table of Q and visits, and the result it goes on from."""
    before = given if isinstance(given, TabularResult) else None
    shape = (samples.n_states, samples.n_actions)
    try:
        first = np.array(given if before is None else before.q, np.float64)
    except (TypeError, ValueError):
        first = np.empty((0, 0))
    if first.shape not in ((), shape):
        raise InvalidInput(f"initial must be a number, a table {shape} or a result on this source")
    q = samples.flatten(np.broadcast_to(first, shape)).copy()
    q[q == -np.inf] = 0.0  # a terminal state of an environment, as far as an earlier run knew
    if not np.isfinite(q).all():
        raise InvalidInput("initial must be finite")
    visits = np.zeros(len(q), np.int64)
    if before is not None:
        visits += samples.flatten(before.visits)
        samples.remember(visits, (before.q == -np.inf).all(1))
    width = int(np.diff(samples.pointer).max())
    scratch = np.empty(int(padded_length(width))), np.empty(width, np.uint32)
    return kernel.Table(samples.pointer, q, visits, *scratch), before
