"""Tabular Q-learning, hard, soft, sparse or Tsallis, from samples of an MDP or an environment.

The update of the paper, for the regularised maximum `value` of any regulariser,

    Q(s, a) <- Q(s, a) + eta [r + gamma value(Q(s', .)) - Q(s, a)],

converges to the Q* that `tsallax.solve` computes, if every pair is visited infinitely often and the
step sizes satisfy the condition of `tsallax.tabular.step_size`. It runs in float64.

A sparse policy gives some actions probability zero, so a learner that follows it alone may never
visit them again, and the first condition fails. The behaviour policy is therefore

    (1 - epsilon) policy(Q(s, .)) + epsilon uniform,    epsilon = 0.1 by default;

epsilon = 0 is the paper's own exploration. The result counts the visits of every pair.
"""

import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.planning.bellman import check_problem
from tsallax.planning.forms import frozen
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.planning.kernels.vectors import padded_length
from tsallax.planning.mdp import MDP
from tsallax.progress import bar
from tsallax.regularizer import Hard, Regularizer
from tsallax.tabular import kernel
from tsallax.tabular.sampling import NO_LIMIT, Source, read_source
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
    masked: bool | None = None,
    action_mask: Callable[[Any], Any] | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> TabularResult:
    """Learn Q* of a regularised MDP from samples.

    Args:
        source: an `MDP`; or a Gymnasium environment, its id, or a function or class that makes it,
            also as `module:function`, with Discrete observations and actions. `terminated` ends
            the bootstrap there, `truncated` does not.
        regularizer: the regulariser of the update, such as `Hard()`, `Soft(alpha)`,
            `Sparse(alpha)` or `Tsallis(alpha, q)`.
        discount: gamma; default: that of the MDP.
        steps: number of samples.
        explore: the policy that acts: a regulariser's, "uniform", or "epsilon" (greedy, with ties
            broken at random). Default: the update's own, which for `Hard()` is "epsilon".
            "pairs", for an MDP: no episodes, every sample is of a pair drawn uniformly.
        epsilon: the share of actions drawn uniformly instead. With 0 and a sparse or greedy
            policy, some pairs may never be visited again.
        step_size: "rescaled", eta(n) = 1/(1 + (1-gamma) n) after n visits of the pair;
            "polynomial", 1/(1 + n)^0.8; or a `StepSize`. All satisfy the paper's condition.
        limit: number of steps after which an episode is truncated; math.inf: never. Default: an
            environment's own; 3/(1-gamma) for an MDP, at least 100.
        initial: the initial Q: a number, a table (S, A), or an earlier result to continue, whose
            visits and returns are kept.
        masked: whether to use an environment's `info["action_mask"]`, the actions that a state
            allows: no other one is taken, is in the maximum of a target, or has a Q and a
            probability in the result. True: every state must have one. False: ignore it. Default:
            use it if the first state has one.
        action_mask: a function of the environment that gives the mask of its state instead.
        seed: of all random numbers; use another one to continue an earlier result.
        progress: show a progress bar; default: on a terminal, for runs over two seconds.

    Raises:
        InvalidInput: an argument is invalid, raised before any work; or an environment is, such
            as in a state without an allowed action.
        Interrupted: on Ctrl-C, with the result so far; a `KeyboardInterrupt`.

    >>> import numpy as np
    >>> from tsallax import Sparse, problems, solve
    >>> mdp, regularizer = problems.forest(), Sparse(0.5)
    >>> result = q_learning(mdp, regularizer, steps=200_000)
    >>> bool(np.abs(result.q - solve(mdp, regularizer).q).max() < 0.2)
    True
    """
    update = _read_regularizer("regularizer", regularizer)
    if isinstance(source, FunctionalMDP):
        check_problem("q_learning", source, update)
    acting, share = _read_explore(explore, update, epsilon)
    schedule = read_step_size(step_size)
    steps, seed = checks.count("steps", steps), checks.count("seed", seed, at_least=0)
    gamma = _read_discount(discount, source)
    clock = time.perf_counter()
    samples = read_source(
        source, gamma, _read_limit(limit), explore == "pairs", masked, action_mask
    )
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
            kernel.values_and_policy(table, rule, value, policy)
            value[samples.terminal] = 0.0
            return TabularResult(
                source=samples.name,
                regularizer=update,
                explore=acting,
                epsilon=share,
                discount=gamma,
                step_size=schedule,
                seed=seed,
                q=frozen(samples.to_table(table.q, fill=-np.inf)),
                value=frozen(value),
                policy=frozen(samples.to_table(policy)),
                visits=frozen(samples.to_table(table.visits)),
                returns=frozen(np.concatenate(returns)),
                lengths=frozen(np.concatenate(lengths)),
                seconds=time.perf_counter() - clock,
            )

        try:
            with bar("learning", progress) as report:
                for done, some_returns, some_lengths in samples.chunks(table, rule, steps, seed):
                    returns.append(some_returns)
                    lengths.append(some_lengths)
                    report(done / steps)
        except KeyboardInterrupt:
            so_far = result()
            message = f"interrupted after {so_far.steps} steps: .result is the result so far"
            raise Interrupted(message, so_far) from None
        return result()
    finally:
        samples.close()


def _read_discount(given: Any, source: Any) -> float:
    if given is not None:
        return checks.discount(given)
    if isinstance(source, MDP):
        return checks.discount(source.discount)
    raise InvalidInput("q_learning from an environment needs a discount", add=("discount", 0.99))


def _read_regularizer(name: str, given: Any) -> Regularizer:
    if not isinstance(given, Regularizer):
        raise InvalidInput(f"{name} must be a regularizer such as Sparse(0.1), got {given!r}")
    if np.ndim(given.alpha) != 0:
        raise InvalidInput(f"{name}: q_learning needs one alpha, not an array of them")
    return given


def _read_explore(given: Any, update: Regularizer, epsilon: Any) -> tuple[Regularizer, float]:
    """The regulariser of the behaviour policy and the share of uniform actions."""
    epsilon = checks.probability("epsilon", epsilon)
    if given is None:
        return update, epsilon
    if isinstance(given, str) and given in ("uniform", "epsilon", "pairs"):
        return Hard(), epsilon if given == "epsilon" else 1.0
    if isinstance(given, Regularizer):
        return _read_regularizer("explore", given), epsilon
    raise InvalidInput(
        "explore must be a regularizer such as Soft(0.1), 'uniform', 'epsilon' or 'pairs', "
        f"got {given!r}"
    )


def _read_limit(given: Any) -> int | None:
    if given is None:
        return None
    unlimited = isinstance(given, float) and given == np.inf
    return NO_LIMIT if unlimited else checks.count("limit", given)


def _read_initial(given: Any, samples: Source) -> tuple[kernel.QTable, TabularResult | None]:
    """The initial table of Q and visits, and the earlier result that it continues."""
    before = given if isinstance(given, TabularResult) else None
    shape = (samples.n_states, samples.n_actions)
    try:
        first = np.array(given if before is None else before.q, np.float64)
    except (TypeError, ValueError):
        first = np.empty((0, 0))
    if first.shape not in ((), shape):
        raise InvalidInput(f"initial must be a number, a table {shape} or a result on this source")
    q = samples.flatten(np.broadcast_to(first, shape)).copy()
    lacking = q == -np.inf  # pairs of terminal states and masked actions of an earlier run
    q[lacking] = 0.0
    if not np.isfinite(q).all():
        raise InvalidInput("initial must be finite")
    visits = np.zeros(len(q), np.int64)
    width = int(np.diff(samples.pointer).max())
    scratch = np.empty(int(padded_length(width))), np.empty(width, np.uint32)
    table = kernel.QTable(samples.pointer, q, visits, *scratch)
    if before is not None:
        visits += samples.flatten(before.visits)
        samples.restore(table, lacking)
    return table, before
