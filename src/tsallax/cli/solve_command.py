"""The command `tsallax solve`."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsallax import checks
from tsallax.cli import worker_process
from tsallax.cli.model_source import (
    SOURCES,
    DiscountOption,
    EnvOptions,
    RewardsOption,
    read_model,
    refuse_unused,
)
from tsallax.cli.output import print_line
from tsallax.errors import InvalidInput
from tsallax.planning.methods import METHODS

if TYPE_CHECKING:
    from jax.sharding import Mesh

    from tsallax.planning.finite_horizon import FiniteHorizonSolution
    from tsallax.planning.functional_solution import FunctionalSolution
    from tsallax.planning.solution import Solution

    AnySolution = Solution | FunctionalSolution | FiniteHorizonSolution

DEFAULT_SHOWN = 10
"""The number of states whose policy is printed."""
*_OTHERS, _LAST = METHODS


def solve(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help=f"{SOURCES}.",
        ),
    ],
    regularizer: Annotated[str, typer.Option(help="hard, soft, sparse or tsallis.")] = "sparse",
    alpha: Annotated[
        float | None, typer.Option(help="The regulariser's coefficient; hard has none.")
    ] = None,
    q: Annotated[
        float | None, typer.Option(help="The entropic index, for tsallis: 1 is soft, 2 sparse.")
    ] = None,
    discount: DiscountOption = None,
    tolerance: Annotated[
        float, typer.Option(help="The largest error of the value in any state.")
    ] = 1e-6,
    method: Annotated[str, typer.Option(help=f"{', '.join(_OTHERS)} or {_LAST}.")] = "auto",
    max_sweeps: Annotated[
        int | None, typer.Option(help="Stop after this many sweeps over the states.")
    ] = None,
    relative_tolerance: Annotated[
        float | None, typer.Option(help="The largest error in units of max|V|; the larger counts.")
    ] = None,
    time_limit: Annotated[float | None, typer.Option(help="Stop after this many seconds.")] = None,
    horizon: Annotated[
        int | None,
        typer.Option(
            help="The number of steps after which every episode ends, for backward induction; the "
            "discount may be 1."
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(help="auto, cpu or gpu; auto takes a GPU for large models.")
    ] = "auto",
    precision: Annotated[
        str, typer.Option(help="float64 or float32, which takes half the memory and proves less.")
    ] = "float64",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the solution, or the best so far, to this file, .npz, for Solution.load "
            "(with --horizon for FiniteHorizonSolution.load); of a model from functions value, "
            "lower, upper and actions, for numpy.load."
        ),
    ] = None,
    show: Annotated[
        int | None,
        typer.Option(help=f"Print the policy of this many states.  [default: {DEFAULT_SHOWN}]"),
    ] = None,
    step: Annotated[
        int | None,
        typer.Option(
            help="With --horizon, print the policy of this step.  [default: 0, the first]"
        ),
    ] = None,
    all_states: Annotated[
        bool, typer.Option("--all", help="Print the policy of all states.")
    ] = False,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON; the policy with --show, --all or --step."),
    ] = False,
    env_option: EnvOptions = None,
    rewards: RewardsOption = None,
    distributed: Annotated[
        bool,
        typer.Option("--distributed", help="Divide the states over the processes of a launcher."),
    ] = False,
) -> None:
    """Solve a finite MDP with a proven error bound, and print a summary and the policy.

    \b
    Examples:
      tsallax solve FrozenLake-v1 --regularizer sparse --alpha 0.1
      tsallax solve FrozenLake-v1 --alpha 0.1 --env-option is_slippery=false
      tsallax solve FrozenLake-v1 --alpha 0.1 --all
      tsallax solve Taxi-v4 --regularizer hard --discount 0.999 --json
      tsallax solve mdp.npz --regularizer soft --alpha 0.5 --out solution.npz
      tsallax solve mdp.npz --regularizer tsallis --alpha 0.5 --q 1.5 --tolerance 1e-9
      tsallax solve inventory --alpha 0.1
      tsallax solve FrozenLake-v1 --alpha 0.01 --horizon 100 --discount 1 --step 99
      tsallax solve models.py:warehouse --regularizer hard --device gpu --precision float32
      srun -N 4 tsallax solve mdp.npz --alpha 0.5 --distributed --out solution.npz

    The certificates bound how much return the regulariser costs: `performance bound` holds for
    every MDP of this size (Theorems 4 and 5), `gap certificate` for this one, from its start.
    The policy lists the actions of each state that have a positive probability. With --horizon
    every step has its own, and the numbers of the summary are those of the first.
    If the tolerance is not reached, one line says why and the exit code is 1; after Ctrl-C or
    SIGTERM it is 130. The best solution so far, whose bounds hold, is then in the file of --out.
    With --distributed every process runs this command, each with a part of the states; the first
    prints and writes. Without a launcher, set JAX_COORDINATOR_ADDRESS=HOST:PORT, JAX_NUM_PROCESSES
    and JAX_PROCESS_ID. Certificates that need all transitions in one process are left out.
    """
    if out is not None:
        checks.output_file("--out", out, source, ending=".npz")
    if show is not None:
        checks.count("--show", show, at_least=0)
    if all_states and show is not None:
        raise InvalidInput("--all prints the policy of all states", omit="show")
    _check_horizon(horizon, step, distributed)
    _check_limits(tolerance, max_sweeps, relative_tolerance, time_limit)
    if distributed and not worker_process.is_worker():
        raise typer.Exit(worker_process.watch(sys.argv[1:]))
    from tsallax.regularizer import by_name

    options: dict[str, Any] = {
        "regularizer": by_name(regularizer, alpha, q), "tolerance": tolerance, "method": method,
        "max_sweeps": max_sweeps, "relative_tolerance": relative_tolerance,
        "time_limit": time_limit, "device": device, "precision": precision,
    }  # fmt: skip
    if horizon is not None:
        options["horizon"] = horizon
    solution = _solved(source, discount, env_option, rewards, distributed, out, options)
    if solution is None:
        return
    if out is not None:
        solution.save(out)
    try:
        report, text = _summary(source, solution, evaluated=not distributed)
    except KeyboardInterrupt:
        if out is None:
            raise
        raise KeyboardInterrupt(f"the solution is in {out}") from None
    limit = None if all_states else DEFAULT_SHOWN if show is None else show
    if json:
        with_policy = all_states or show is not None or step is not None
        _print_json(report, solution, limit, step or 0, with_policy)
    else:
        _print_text(text, solution, limit, step or 0, out)


def _solved(
    source: str,
    discount: float | None,
    env_option: list[str] | None,
    rewards: str | None,
    distributed: bool,
    out: Path | None,
    options: dict[str, Any],
) -> AnySolution | None:
    """The solution of a model, or None in a process that is not to print it.

    Where the solve does not come to its end, the solution so far is written to `out`.
    """
    from tsallax.planning.lost_process import ProcessLost
    from tsallax.planning.solution import NotConverged, SolveInterrupted
    from tsallax.planning.solver import solve as solve_mdp

    try:
        mesh = _joined() if distributed else None
        mdp = (
            _read_part(source, discount, env_option, rewards, mesh)
            if mesh is not None and source.endswith(".npz")
            else read_model(source, discount, env_option, rewards, stored="horizon" in options)
        )
        solution = solve_mdp(mdp, mesh=mesh, **options)
        return solution if mesh is None or _separated() else None
    except InvalidInput as error:
        if error.omit == "mesh":
            error.omit = "distributed"
        raise
    except ProcessLost as error:
        print_line("error", f"{error}; nothing was written")
        raise typer.Exit(1) from None
    except NotConverged as error:
        is_first = mesh is None or _separated()
        more = f"; {_kept(error.solution, out)}" if is_first else ""
        print_line("error", f"not converged: {error}{more}")
        raise typer.Exit(1) from None
    except SolveInterrupted as error:
        if mesh is not None:
            raise
        reason = str(error).removeprefix("interrupted ")
        raise KeyboardInterrupt(f"{reason}; {_kept(error.solution, out)}") from None


def _print_json(
    report: Any, solution: AnySolution, limit: int | None, step: int, with_policy: bool
) -> None:
    """Print the summary and, where asked for, the policy of the first `limit` states, or all."""
    from tsallax.planning import policy_table, summary
    from tsallax.planning.finite_horizon import FiniteHorizonSolution

    policy: dict[str, Any] = {}
    if with_policy:
        rows = policy_table.state_rows(solution, limit, step)
        policy = {"step": step} if isinstance(solution, FiniteHorizonSolution) else {}
        policy["policy"] = policy_table.as_data(rows)
    typer.echo(summary.as_json(report, **policy))


def _print_text(
    text: str, solution: AnySolution, limit: int | None, step: int, out: Path | None
) -> None:
    """Print the summary and the policy of the first `limit` states, or all."""
    from tsallax.planning import policy_table

    typer.echo(text)
    if limit != 0:
        typer.echo(f"\n{policy_table.as_text(solution, limit, step)}")
    if out is not None:
        typer.echo(f"\nThe solution is in {out}")


def _check_horizon(horizon: int | None, step: int | None, distributed: bool) -> None:
    """Refuse a horizon or a step that makes no sense."""
    if horizon is None:
        if step is not None:
            raise InvalidInput("--step needs a horizon", add=("horizon", 100))
        return
    checks.count("--horizon", horizon)
    if step is not None:
        checks.count("--step", step, at_least=0, below=horizon)
    if distributed:
        raise InvalidInput("a finite horizon is solved in one process", omit="distributed")


def _check_limits(
    tolerance: float,
    max_sweeps: int | None,
    relative_tolerance: float | None,
    time_limit: float | None,
) -> None:
    """Refuse numbers that `solve` would refuse, by the names of the options."""
    if relative_tolerance is None:
        checks.number("--tolerance", tolerance, above=0)
    else:
        checks.number("--relative-tolerance", relative_tolerance, above=0, below=1)
        checks.number("--tolerance", tolerance, at_least=0)
    if max_sweeps is not None:
        checks.count("--max-sweeps", max_sweeps)
    if time_limit is not None:
        checks.number("--time-limit", time_limit, above=0)


def _kept(solution: AnySolution, out: Path | None) -> str:
    """Write what a solve has reached that did not come to its end; what there is to say of it."""
    if out is None:
        return "nothing was written, --out keeps the solution so far"
    if not math.isfinite(solution.error):
        return "nothing is proven so far, and nothing was written"
    try:
        solution.save(out)
    except InvalidInput as error:
        return str(error)
    return f"the solution so far is in {out}"


def _summary(source: str, solution: AnySolution, evaluated: bool) -> tuple[Any, str]:
    """The summary of a solution, for JSON and as text."""
    from tsallax.planning import finite_horizon_summary, functional_summary, summary
    from tsallax.planning.finite_horizon import FiniteHorizonSolution
    from tsallax.planning.solution import Solution

    if isinstance(solution, Solution):
        stored = summary.summarize(source, solution, evaluated)
        return stored, summary.as_text(stored)
    if isinstance(solution, FiniteHorizonSolution):
        finite = finite_horizon_summary.summarize_finite_horizon(source, solution)
        return finite, finite_horizon_summary.finite_horizon_text(finite)
    functional = functional_summary.summarize_functional(source, solution, evaluated)
    return functional, functional_summary.functional_text(functional)


def _joined() -> Mesh:
    """Join the other processes; all devices of all of them."""
    worker_process.prepare_worker()
    from tsallax.planning import distributed
    from tsallax.planning.devices import all_devices

    distributed.initialize()
    return all_devices()


def _separated() -> bool:
    """Leave the other processes; whether this is the first, which prints and writes."""
    import jax

    from tsallax.planning import distributed

    is_first = jax.process_index() == 0
    distributed.shutdown()
    return is_first


def _read_part(
    source: str,
    discount: float | None,
    env_option: list[str] | None,
    rewards: str | None,
    mesh: Mesh,
) -> Any:
    """This process's part of the model in a file, with the discount asked for."""
    from tsallax.planning.distributed import load_part

    refuse_unused(source, "an .npz file", env_option=env_option, rewards=rewards)
    mdp = load_part(source, mesh)
    return mdp if discount is None else mdp.with_discount(discount)
