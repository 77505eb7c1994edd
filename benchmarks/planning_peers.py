"""True and claimed errors of MDP solvers, with their time and memory.

    python benchmarks/planning_peers.py                         the whole table
    python benchmarks/planning_peers.py --problem garnet        one problem, all solvers
    python benchmarks/planning_peers.py --problem maze --solver storm
    python benchmarks/planning_peers.py --problem grid --full   the gridworld with a million states

Every solver is asked for an error of 1e-6 and runs in a process of its own with a limit of time and
of memory.  The columns are

- seconds: the solver's call alone, without imports and building, after a call that compiles; the
  best of three calls where one takes less than a second (mdpsolver, mdpax: one call);
- MiB: the peak of the resident memory above that after the imports and a solve of a small problem;
  the model is included;
- true error: the largest distance to the exact value (`fractions`) of the two chains, otherwise to
  the centre of an enclosure by tsallax at 1e-10; an error within that enclosure's is shown as "<";
- claimed error: the bound that comes with the result ("proven"), or the one that the documentation
  or the theorem behind the stopping rule promises for the tolerance ("rule"), or "no bound".

A solver without a package is shown as "not installed".
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

TOLERANCE = 1e-6
ALPHA = 0.1
REFERENCE_TOLERANCES = (1e-10, 1e-9, 1e-8)
MAX_ORDER, DEMAND = 3, 2.0
SLOW_STAY, SLOW_DISCOUNT = 0.9999, 0.9999
NEVER = -1e30


@dataclass(frozen=True)
class Arrays:
    """A stored MDP without terminal states: what the other libraries are given."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    rewards: np.ndarray
    state: np.ndarray
    action: np.ndarray
    discount: float

    @property
    def n_states(self) -> int:
        return int(self.state[-1]) + 1

    def save(self, path: Path) -> None:
        np.savez(path, **self.__dict__)

    @classmethod
    def load(cls, path: Path) -> Arrays:
        with np.load(path) as file:
            fields = {name: file[name] for name in file.files}
        return cls(**{**fields, "discount": float(fields["discount"])})


def storm_1061(discount: float = 0.99) -> Any:
    """The chain of Storm's issue 1061, discounted: both states cost 10 and end with 0.1."""
    from tsallax import MDP

    transitions = np.array([[[0.0, 0.9, 0.1]], [[0.9, 0.0, 0.1]], [[0.0, 0.0, 1.0]]])
    return MDP(transitions, np.array([[-10.0], [-10.0], [0.0]]), discount)


def slow_chain() -> Any:
    """One state that is left with probability 1e-4, with a discount of 1 - 1e-4."""
    from tsallax import MDP

    transitions = np.array([[[SLOW_STAY, 1.0 - SLOW_STAY]], [[0.0, 1.0]]])
    return MDP(transitions, np.array([[1.0], [0.0]]), SLOW_DISCOUNT)


def problem(name: str, full: bool = False) -> Any:
    """The model of a benchmark, an `MDP` or a model from functions."""
    from tsallax import problems

    side = 1000 if full else 300
    makers: dict[str, Callable[[], Any]] = {
        "garnet": lambda: problems.garnet(10_000, 10, 10, discount=0.99),
        "maze": lambda: problems.maze(300, 300, discount=0.99),
        "unicycle": lambda: problems.unicycle(discount=0.99),
        "grid": lambda: problems.gridworld(side, side, discount=0.99),
        "inventory": lambda: problems.inventory(),
        "savings": lambda: problems.savings(),
        "perishables": lambda: problems.perishables(MAX_ORDER, demand=(DEMAND, DEMAND)),
        "storm1061": storm_1061,
        "slow chain": slow_chain,
    }
    return makers[name]()


PROBLEMS = {
    "garnet": "garnet, 10,000 x 10 x 10, discount 0.99",
    "maze": "maze, 300 x 300, discount 0.99",
    "unicycle": "unicycle, 21 x 21 x 12, 25 actions, discount 0.99",
    "grid": "gridworld, 300 x 300 (1000 x 1000 with --full), discount 0.99",
    "inventory": "inventory with lead time 2, from functions, 6,171 states, discount 0.99",
    "savings": "savings, from functions, 200 assets x 3 incomes, discount 0.95",
    "perishables": f"perishables({MAX_ORDER}), from functions, 4,096 states, discount 0.99",
    "storm1061": "the chain of Storm's issue 1061, discount 0.99",
    "slow chain": "a chain that is left with 1e-4 a step, discount 1 - 1e-4",
}


def exact_value(name: str) -> list[Fraction] | None:
    """V* as rationals, from the floating-point numbers of the problem, where it has a formula."""
    if name == "storm1061":
        v = Fraction(-10) / (1 - Fraction(0.99) * Fraction(0.9))
        return [v, v, Fraction(0)]
    if name == "slow chain":
        return [1 / (1 - Fraction(SLOW_DISCOUNT) * Fraction(SLOW_STAY)), Fraction(0)]
    return None


def stored(model: Any) -> Arrays:
    """The arrays of a model, with terminal states made absorbing."""
    import scipy.sparse as sp

    mdp = model.to_mdp() if hasattr(model, "to_mdp") else model
    assert mdp.termination is None
    ends = np.flatnonzero(mdp.terminal).astype(np.int32)
    rows, rewards = mdp.transitions, np.asarray(mdp.rewards)
    state, action = np.asarray(mdp.state_of), np.asarray(mdp.action_of)
    if len(ends):
        shape = (len(ends), mdp.n_states)
        loops = sp.csr_array((np.ones(len(ends)), (np.arange(len(ends)), ends)), shape=shape)
        state = np.concatenate([state, ends])
        action = np.concatenate([action, np.zeros(len(ends), np.int32)])
        order = np.lexsort((action, state))
        rows = sp.vstack([rows, loops]).tocsr()[order]
        rewards = np.concatenate([rewards, np.zeros(len(ends))])[order]
        state, action = state[order], action[order]
    return Arrays(
        rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int64),
        rewards, state.astype(np.int32), action.astype(np.int32), mdp.discount,
    )  # fmt: skip


def best_of(call: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest of three calls, or the first where that takes a second or more."""
    times: list[float] = []
    while len(times) < 3 and (not times or times[0] < 1.0):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return min(times), result


Answer = tuple[float, np.ndarray, str, str]  # seconds, value, claimed error, note


class Tsallax:
    """`tsallax.solve` on the CPU; models from functions as they are, or stored."""

    package = "tsallax"

    def __init__(self, regularizer: str) -> None:
        import tsallax

        self.stored = regularizer == "stored"
        self.regularizer = tsallax.Sparse(ALPHA) if regularizer == "sparse" else tsallax.Hard()
        tsallax.solve(tsallax.problems.garnet(300, 3, 3), self.regularizer, device="cpu")
        tsallax.solve(tsallax.problems.gridworld(150, 150), self.regularizer, device="cpu")

    def run(self, spec: dict[str, Any]) -> Answer:
        model = problem(spec["problem"], spec["full"])
        if self.stored:
            model = model.to_mdp()
        elif hasattr(model, "to_mdp"):  # compiles
            self.solve(model)
        seconds, solution = best_of(lambda: self.solve(model))
        note = f"{solution.sweeps} sweeps" + ("" if solution.converged else ", NotConverged")
        return seconds, solution.value, f"{solution.error:.1e} proven", note

    def solve(self, model: Any) -> Any:
        """The solution, or what is proven of it where the tolerance is out of reach."""
        import tsallax

        try:
            return tsallax.solve(model, self.regularizer, TOLERANCE, device="cpu")
        except tsallax.NotConverged as error:
            return error.solution


class QuantEcon:
    """`quantecon.markov.DiscreteDP`."""

    package = "quantecon"

    def __init__(self, method: str) -> None:
        self.method = method
        small = Arrays(
            np.ones(2), np.arange(2, dtype=np.int32), np.arange(3), np.zeros(2),
            np.arange(2, dtype=np.int32), np.zeros(2, np.int32), 0.5,
        )  # fmt: skip
        self.model(small).solve(method="mpi", max_iter=2)
        self.model(small).solve(method="vi", max_iter=2)

    def model(self, arrays: Arrays) -> Any:
        import quantecon
        import scipy.sparse as sp

        shape = (len(arrays.rewards), arrays.n_states)
        rows = sp.csr_matrix((arrays.data, arrays.indices, arrays.indptr), shape=shape)
        return quantecon.markov.DiscreteDP(
            arrays.rewards, rows, arrays.discount, arrays.state, arrays.action
        )

    def run(self, spec: dict[str, Any]) -> Answer:
        model = self.model(Arrays.load(spec["arrays"]))
        seconds, result = best_of(
            lambda: model.solve(method=self.method, epsilon=TOLERANCE, max_iter=10**7)
        )
        claimed = f"{TOLERANCE / 2:.1e} rule"
        return seconds, result.v, claimed, f"{result.num_iter} iterations"


class MDPSolver:
    """`mdpsolver`, modified policy iteration."""

    package = "mdpsolver"

    def __init__(self, method: str) -> None:
        import mdpsolver  # noqa: F401

        self.method = method

    def run(self, spec: dict[str, Any]) -> Answer:
        import mdpsolver

        arrays = Arrays.load(spec["arrays"])
        pointer = np.searchsorted(arrays.state, np.arange(arrays.n_states + 1))
        probability, column, reward = [], [], []
        for s in range(arrays.n_states):
            spans = [
                slice(arrays.indptr[i], arrays.indptr[i + 1])
                for i in range(pointer[s], pointer[s + 1])
            ]
            probability.append([arrays.data[span].tolist() for span in spans])
            column.append([arrays.indices[span].tolist() for span in spans])
            reward.append(arrays.rewards[pointer[s] : pointer[s + 1]].tolist())
        model = mdpsolver.model()
        model.mdp(
            discount=arrays.discount, rewards=reward, tranMatProbs=probability,
            tranMatColumns=column,
        )  # fmt: skip
        model.solve(
            algorithm=self.method, tolerance=TOLERANCE, update="standard",
            parIterLim=20 if self.method == "mpi" else 1, postProcessing=True, parallel=True,
        )  # fmt: skip
        seconds = model.getRuntime() / 1e3
        return seconds, np.array(model.getValueVector()), "no bound", ""


class MDPax:
    """`mdpax.solvers.ValueIteration` in float64, with a table or its own perishables."""

    package = "mdpax"

    def __init__(self, test: str) -> None:
        import mdpax.solvers  # noqa: F401

        self.test = test

    def run(self, spec: dict[str, Any]) -> Answer:
        from mdpax.problems import HendrixTwoProductPerishable
        from mdpax.solvers import ValueIteration

        if spec["problem"] == "perishables":
            discount = 0.99
            model = HendrixTwoProductPerishable(
                max_useful_life=3, max_order_quantity_a=MAX_ORDER, max_order_quantity_b=MAX_ORDER,
                demand_poisson_mean_a=DEMAND, demand_poisson_mean_b=DEMAND,
            )  # fmt: skip
        else:
            arrays = Arrays.load(spec["arrays"])
            discount, model = arrays.discount, mdpax_table(arrays)
        solver = ValueIteration(
            problem=model, gamma=discount, epsilon=TOLERANCE, convergence_test=self.test, verbose=0
        )
        solver.solve(max_iterations=1)  # compiles
        start = time.perf_counter()
        found = solver.solve(max_iterations=10**7)
        seconds = time.perf_counter() - start
        claimed = f"{TOLERANCE:.1e} rule" if self.test == "max_diff" else "no bound"
        return seconds, np.asarray(found.values), claimed, f"{solver.iteration} iterations"


def mdpax_table(arrays: Arrays) -> Any:
    """The stored MDP as functions that look up its arrays, padded to (S, A, K)."""
    import jax
    import jax.numpy as jnp
    from mdpax.core.problem import Problem

    jax.config.update("jax_enable_x64", True)
    n, width = arrays.n_states, int(arrays.action.max()) + 1
    counts = np.diff(arrays.indptr)
    pair = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(arrays.data)) - arrays.indptr[pair]
    where = (arrays.state[pair], arrays.action[pair], place)
    probability = np.zeros((n, width, int(counts.max())))
    probability[where] = arrays.data
    column = np.zeros(probability.shape, np.int32)
    column[where] = arrays.indices
    reward = np.full((n, width), NEVER)
    reward[arrays.state, arrays.action] = arrays.rewards
    probability[..., 0] += reward == NEVER
    tables = [jnp.asarray(table) for table in (probability, column, reward)]

    class Table(Problem):
        name = "table"

        def _construct_state_space(self) -> Any:
            return jnp.arange(n)[:, None]

        def _construct_action_space(self) -> Any:
            return jnp.arange(width)[:, None]

        def _construct_random_event_space(self) -> Any:
            return jnp.arange(probability.shape[2])[:, None]

        def state_to_index(self, state: Any) -> Any:
            return state[0]

        def random_event_probability(self, state: Any, action: Any, event: Any) -> Any:
            return tables[0][state[0], action[0], event[0]]

        def transition(self, state: Any, action: Any, event: Any) -> Any:
            following = tables[1][state[0], action[0], event[0]]
            return following[None], tables[2][state[0], action[0]]

    return Table()


class Storm:
    """`stormpy`: the discounted total reward, or the equivalent reward until a target."""

    package = "stormpy"

    def __init__(self, kind: str) -> None:
        import stormpy  # noqa: F401

        self.kind = kind

    def run(self, spec: dict[str, Any]) -> Answer:
        import stormpy

        arrays = Arrays.load(spec["arrays"])
        environment = stormpy.Environment()
        settings = environment.solver()
        for part in (settings.min_max(), settings.native()):
            part.precision = stormpy.Rational(TOLERANCE)
            part.relative_termination_criterion = False
        if self.kind == "discounted":
            model = storm_model(arrays, chain=False)
            text = f'R{{"reward"}}max=? [Cdiscount={arrays.discount!r}]'
            claimed = f"{TOLERANCE / 2:.1e} rule"
        else:
            model = storm_model(arrays, chain=True)
            text = 'R{"reward"}=? [F "target"]'
            settings.force_soundness = self.kind == "sound"
            claimed = f"{TOLERANCE:.1e} rule" if self.kind == "sound" else "no bound"
        formula = stormpy.parse_properties(text)[0]
        seconds, result = best_of(
            lambda: stormpy.model_checking(model, formula, environment=environment)
        )
        return seconds, np.array(result.get_value_vector())[: arrays.n_states], claimed, ""


def storm_model(arrays: Arrays, chain: bool) -> Any:
    """The model in Storm, through a file in its DRN text.

    As a chain, a model with one action ends with probability 1 - gamma in every step, in "target".
    """
    import stormpy

    n, extra = arrays.n_states, int(chain)
    assert not chain or len(arrays.rewards) == n
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.drn")
        with path.open("w") as file:
            kind = "DTMC" if chain else "MDP"
            file.write(f"@type: {kind}\n@parameters\n\n@reward_models\nreward\n@nr_states\n")
            file.write(f"{n + extra}\n@nr_choices\n{len(arrays.rewards) + extra}\n@model\n")
            previous = -1
            for row, s in enumerate(arrays.state.tolist()):
                if s != previous:
                    file.write(f"state {s} init\n" if s == 0 else f"state {s}\n")
                    previous = s
                file.write(f"\taction {arrays.action[row]} [{float(arrays.rewards[row])!r}]\n")
                span = slice(arrays.indptr[row], arrays.indptr[row + 1])
                targets, chances = arrays.indices[span].tolist(), arrays.data[span].tolist()
                for target, p in sorted(zip(targets, chances)):
                    file.write(f"\t\t{target} : {(p * arrays.discount if chain else p)!r}\n")
                if chain:
                    file.write(f"\t\t{n} : {1.0 - arrays.discount!r}\n")
            if chain:
                file.write(f"state {n} target\n\taction 0 [0.0]\n\t\t{n} : 1.0\n")
        return stormpy.build_model_from_drn(str(path))


SOLVERS: dict[str, tuple[Any, str]] = {
    "tsallax hard": (Tsallax, "hard"),
    "tsallax sparse": (Tsallax, "sparse"),
    "tsallax stored": (Tsallax, "stored"),
    "QuantEcon VI": (QuantEcon, "vi"),
    "QuantEcon MPI": (QuantEcon, "mpi"),
    "mdpsolver MPI": (MDPSolver, "mpi"),
    "mdpsolver VI": (MDPSolver, "vi"),
    "mdpax span": (MDPax, "span"),
    "mdpax max_diff": (MDPax, "max_diff"),
    "storm": (Storm, "discounted"),
    "storm until": (Storm, "until"),
    "storm sound": (Storm, "sound"),
}
CHAINS, FUNCTIONS = ("storm1061", "slow chain"), ("inventory", "savings", "perishables")
ONLY_FOR = {"storm until": CHAINS, "storm sound": CHAINS, "tsallax stored": FUNCTIONS}


def memory() -> float:
    """The peak of the resident memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def work(spec: dict[str, Any]) -> None:
    """Run one solver on one problem and print what it took, the error and the claim as JSON."""
    make, option = SOLVERS[spec["solver"]]
    solver = make(option)
    before = memory()
    seconds, value, claimed, note = solver.run(spec)
    used = memory() - before
    with np.load(spec["references"]) as references:
        kind = "sparse" if option == "sparse" else "hard"
        reference, bound = references[kind], float(references[f"{kind}_error"])
    error = float(np.max(np.abs(value - reference)))
    error = error if np.isfinite(value).all() else float("nan")
    answer = {"seconds": seconds, "mib": used, "error": error, "bound": bound}
    print(json.dumps({**answer, "claimed": claimed, "note": note}))


def resident(pid: int) -> float:
    """The resident memory of a process, in MiB; 0 where it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * resource.getpagesize() / 2**20


def call(spec: dict[str, Any], limit: float, gib: float) -> dict[str, Any]:
    """The answer of a process with a solver, or {"failure": why there is none}."""
    if importlib.util.find_spec(SOLVERS[spec["solver"]][0].package) is None:
        return {"failure": "not installed"}
    command = [sys.executable, __file__, "--worker", json.dumps(spec)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors)
        begin = time.perf_counter()
        failure = ""
        while process.poll() is None and not failure:
            time.sleep(0.05)
            if time.perf_counter() - begin > limit:
                failure = f"did not finish in {limit:g} s"
            elif resident(process.pid) > gib * 1024:
                failure = f"out of memory ({gib:g} GiB)"
        if failure:
            process.kill()
            process.wait()
            return {"failure": failure}
        out.seek(0)
        errors.seek(0)
        lines, trace = out.read().strip().splitlines(), errors.read().strip()
    if process.returncode:
        if "MemoryError" in trace or "bad_alloc" in trace or "RESOURCE_EXHAUSTED" in trace:
            return {"failure": f"out of memory ({gib:g} GiB)"}
        last = trace.splitlines()[-1:] or [f"exit status {process.returncode}"]
        return {"failure": f"failed: {last[0][:80]}"}
    return json.loads(lines[-1])


def references(name: str, full: bool, path: Path) -> None:
    """Write V* of the hard and of the sparse problem, and the errors that are left."""
    import tsallax

    model, found = problem(name, full), {}
    for kind, regularizer in (("hard", tsallax.Hard()), ("sparse", tsallax.Sparse(ALPHA))):
        exact = exact_value(name)
        if exact is not None and model.max_actions == 1:  # no choice: the same for both
            found[kind] = np.array([float(v) for v in exact])
            found[f"{kind}_error"] = np.float64(0.0)
            continue
        for tolerance in REFERENCE_TOLERANCES:
            try:
                solution = tsallax.solve(model, regularizer, tolerance, device="cpu")
                break
            except tsallax.NotConverged as error:
                last = error
        else:
            raise last
        found[kind], found[f"{kind}_error"] = solution.value, np.float64(solution.error)
    np.savez(path, **found)


def shown_error(answer: dict[str, Any]) -> str:
    """The true error, as a bound where it is below what is known of the reference."""
    if answer["error"] < answer["bound"]:
        return f"< {2 * answer['bound']:.1e}"
    return f"{answer['error']:.1e}"


def shown(name: str, solver: str, answer: dict[str, Any]) -> str:
    """One row of the table."""
    start = f"{name:<12}{solver:<16}"
    if "failure" in answer:
        return start + answer["failure"]
    return start + (
        f"{answer['seconds']:>10.4g}{answer['mib']:>8.0f}{shown_error(answer):>12}"
        f"{answer['claimed']:>18}  {answer['note']}"
    )


def compare(name: str, solvers: list[str], full: bool, limit: float, gib: float) -> None:
    """All solvers on one problem."""
    with tempfile.TemporaryDirectory() as folder:
        files = {"arrays": Path(folder, "arrays.npz"), "references": Path(folder, "values.npz")}
        spec = {"problem": name, "full": full, **{key: str(file) for key, file in files.items()}}
        command = [sys.executable, __file__, "--prepare", json.dumps(spec)]
        subprocess.run(command, check=True)
        for solver in solvers:
            if name not in ONLY_FOR.get(solver, PROBLEMS):
                continue
            answer = call({**spec, "solver": solver}, limit, gib)
            print(shown(name, solver, answer), flush=True)


def prepare(spec: dict[str, Any]) -> None:
    """Write the arrays and the reference values of a problem."""
    stored(problem(spec["problem"], spec["full"])).save(Path(spec["arrays"]))
    references(spec["problem"], spec["full"], Path(spec["references"]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problem", choices=PROBLEMS, action="append")
    parser.add_argument("--solver", choices=SOLVERS, action="append")
    parser.add_argument("--full", action="store_true", help="a grid of a million states")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of a process")
    parser.add_argument("--gib", type=float, default=8.0, help="limit of its resident memory")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--prepare", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(json.loads(arguments.worker))
        return
    if arguments.prepare:
        prepare(json.loads(arguments.prepare))
        return
    print(f"every solver is asked for an error of {TOLERANCE:g}")
    head = f"{'seconds':>10}{'MiB':>8}{'true error':>12}{'claimed error':>18}"
    print(f"{'problem':<12}{'solver':<16}{head}", flush=True)
    for name in arguments.problem or PROBLEMS:
        compare(
            name, arguments.solver or list(SOLVERS), arguments.full, arguments.seconds,
            arguments.gib,
        )  # fmt: skip


if __name__ == "__main__":
    main()
