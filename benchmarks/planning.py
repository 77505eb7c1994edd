"""Solvers side by side: tsallax, QuantEcon.py and mdpsolver to the same true error.

    python benchmarks/planning.py                 the whole table (about ten minutes)
    python benchmarks/planning.py --problem maze  one problem
    python benchmarks/planning.py --floor         one sweep next to one matrix-vector product
    python benchmarks/planning.py --methods       processor time of `auto` next to each method
    python benchmarks/planning.py --million hard  1,000,000 states x 4 actions: time and memory

Every solver runs in a process of its own, one after the other on the same problem, in three rounds,
since a machine's speed drifts; the time is that of the solver's call alone, the best of many,
without building, importing or compiling.
A solver's tolerance is tightened until its value is within 1e-6 of a reference in every state
(tsallax's enclosure at 1e-8, which QuantEcon's and mdpsolver's values then confirm).  Peers get all
their methods, and the best counts.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ERROR = 1e-6
LIMIT = 20
ROUNDS = 3
PROBLEMS = {
    "garnet": "Garnet(10,000 states, 10 actions, 10 successors)",
    "maze": "maze(300 x 300), noisy moves",
    "unicycle": "unicycle(21 x 21 x 12, 25 actions)",
}
QUANTECON = [("mpi", 5), ("mpi", 20), ("mpi", 100), ("pi", 0), ("vi", 0)]
MDPSOLVER = [
    ("mpi", "standard", 20),
    ("mpi", "standard", 100),
    ("mpi", "gs", 100),
    ("vi", "standard", 1),
    ("vi", "gs", 1),
]


def problem(name: str, discount: float) -> Any:
    """The MDP of a benchmark."""
    from tsallax import problems

    if name == "garnet":
        return problems.garnet(10_000, 10, 10, discount=discount)
    if name == "maze":
        return problems.maze(300, 300, discount=discount)
    return problems.unicycle(discount=discount)


def absorbing(mdp: Any) -> Any:
    """(rewards, transitions, state, action) of every pair, terminal states as absorbing ones."""
    import scipy.sparse as sp

    ends = np.flatnonzero(mdp.terminal).astype(np.int32)
    extra = sp.csr_array(
        (np.ones(len(ends)), (np.arange(len(ends)), ends)), shape=(len(ends), mdp.n_states)
    )
    state = np.concatenate([mdp.state_of, ends])
    action = np.concatenate([mdp.action_of, np.zeros(len(ends), np.int32)])
    order = np.lexsort((action, state))
    rows = sp.vstack([mdp.transitions, extra]).tocsr()[order]
    rewards = np.concatenate([mdp.rewards, np.zeros(len(ends))])[order]
    return rewards, rows, state[order], action[order]


def best_time(
    call: Any, seconds: float = 2.0, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    """The shortest of several calls (at least three, or one where that takes long)."""
    times: list[float] = []
    begin = time.perf_counter()
    while True:
        start = clock()
        result = call()
        times.append(clock() - start)
        if time.perf_counter() - begin > seconds and (len(times) >= 3 or times[0] > seconds):
            return min(times), result


def run_tsallax(mdp: Any, tolerance: float, alpha: float) -> tuple[float, np.ndarray, str]:
    import tsallax

    regularizer = tsallax.Sparse(alpha) if alpha else tsallax.Hard()
    tsallax.solve(mdp, regularizer, tolerance)
    seconds, solution = best_time(lambda: tsallax.solve(mdp, regularizer, tolerance))
    return seconds, solution.value, f"auto, {solution.sweeps} sweeps"


def run_quantecon(mdp: Any, tolerance: float, method: str, k: int) -> tuple[float, np.ndarray, str]:
    import quantecon
    import scipy.sparse as sp

    rewards, rows, state, action = absorbing(mdp)
    ddp = quantecon.markov.DiscreteDP(rewards, sp.csr_matrix(rows), mdp.discount, state, action)
    options = {"k": k} if method == "mpi" else {}
    ddp.solve(method="mpi", max_iter=2)
    seconds, result = best_time(
        lambda: ddp.solve(method=method, epsilon=tolerance, max_iter=10**7, **options)
    )
    return seconds, result.v, f"{method}{k or ''}, {result.num_iter} iterations"


def run_mdpsolver(
    mdp: Any, tolerance: float, method: str, update: str, k: int
) -> tuple[float, np.ndarray, str]:
    import mdpsolver

    rewards, rows, state, _ = absorbing(mdp)
    pointer = np.searchsorted(state, np.arange(mdp.n_states + 1))
    probability, column, reward = [], [], []
    for s in range(mdp.n_states):
        pairs = range(pointer[s], pointer[s + 1])
        spans = [slice(rows.indptr[i], rows.indptr[i + 1]) for i in pairs]
        probability.append([rows.data[span].tolist() for span in spans])
        column.append([rows.indices[span].tolist() for span in spans])
        reward.append(rewards[pointer[s] : pointer[s + 1]].tolist())
    times = []
    begin = time.perf_counter()
    while len(times) < 3 and (not times or time.perf_counter() - begin < 6):
        model = mdpsolver.model()  # a model that has been solved starts warm
        model.mdp(
            discount=mdp.discount, rewards=reward, tranMatProbs=probability, tranMatColumns=column
        )
        model.solve(
            algorithm=method, tolerance=tolerance, update=update, parIterLim=k,
            postProcessing=True, parallel=True,
        )  # fmt: skip
        times.append(model.getRuntime() / 1e3)
    return min(times), np.array(model.getValueVector()), f"{method}{k} {update}"


def work(spec: dict[str, Any]) -> None:
    """One solver on one problem: tighten its tolerance until the true error is small enough."""
    mdp = problem(spec["problem"], spec["discount"])
    reference = np.load(spec["reference"]) if spec["reference"] else None
    runs = {"tsallax": run_tsallax, "quantecon": run_quantecon, "mdpsolver": run_mdpsolver}
    for tolerance in (1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11):
        seconds, value, note = runs[spec["solver"]](mdp, tolerance, *spec["options"])
        error = float(np.abs(value - reference).max()) if reference is not None else 0.0
        if error <= ERROR:
            break
    print(json.dumps({"seconds": seconds, "error": error, "tolerance": tolerance, "note": note}))


def call(spec: dict[str, Any]) -> dict[str, Any] | None:
    """The answer of a worker process; None where it fails or takes too long."""
    command = [sys.executable, __file__, "--worker", json.dumps(spec)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        if isinstance(error, subprocess.CalledProcessError):
            print("   ", error.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    return answer if answer["error"] <= ERROR else None


def best(solver: str, variants: list[Any], spec: dict[str, Any]) -> dict[str, Any] | None:
    """The quickest of a solver's variants that is right, with its specification."""
    specs = [{**spec, "solver": solver, "options": list(v)} for v in variants]
    right = [{**answer, "spec": s} for s in specs if (answer := call(s)) is not None]
    return min(right, key=lambda a: a["seconds"]) if right else None


def repeat(answers: list[dict[str, Any] | None]) -> None:
    """Run all solvers once more, one after the other, and keep each one's shortest time."""
    for answer in answers:
        other = call(answer["spec"]) if answer else None
        if answer and other:
            answer["seconds"] = min(answer["seconds"], other["seconds"])


def compare(name: str, folder: Path) -> None:
    """Two rows of the table: one problem at two discounts."""
    import tsallax

    for discount in (0.99, 0.999):
        mdp = problem(name, discount)
        solution = tsallax.solve(mdp, tsallax.Hard(), 1e-8)
        file = folder / f"{name}-{discount}.npy"
        np.save(file, solution.value)
        spec = {"problem": name, "discount": discount, "reference": str(file)}
        hard = best("tsallax", [(0.0,)], spec)
        sparse = best("tsallax", [(0.1,)], {**spec, "reference": None})
        quantecon = best("quantecon", QUANTECON, spec)
        peer = best("mdpsolver", MDPSOLVER, spec)
        assert hard is not None
        assert sparse is not None
        for _ in range(ROUNDS - 1):
            repeat([hard, sparse, quantecon, peer])
        cells = [f"{name:<9} {discount:<6g}", f"{hard['seconds'] * 1e3:9.2f}"]
        cells.append(f"{sparse['seconds'] * 1e3:9.2f} {sparse['seconds'] / hard['seconds']:5.2f}")
        for other in (quantecon, peer):
            if other is None:
                cells.append(f"{'none':>9} {'':>6}")
            else:
                ratio = other["seconds"] / hard["seconds"]
                cells.append(f"{other['seconds'] * 1e3:9.1f} {ratio:6.1f}")
        notes = [hard["note"], *(o["note"] for o in (quantecon, peer) if o)]
        print("  ".join(cells), " | ", "; ".join(notes), flush=True)


def floor() -> None:
    """One sweep, and two sweeps of its policy, next to SciPy's matrix-vector product."""
    import tsallax
    from tsallax.planning.bellman import Bellman

    for name in ("garnet", "unicycle"):
        mdp = problem(name, 0.99)
        v = np.random.default_rng(0).random(mdp.n_states)
        seconds = best_time(lambda: mdp.transitions @ v, 1.0)[0]  # noqa: B023
        print(f"{name:<8}  csr @ v          {seconds * 1e3:6.3f} ms, one core")
        for regularizer in (
            tsallax.Hard(), tsallax.Sparse(0.1), tsallax.Soft(0.1), tsallax.Tsallis(0.1, 1.5),
        ):  # fmt: skip
            operator = Bellman(mdp, regularizer)
            value = tsallax.solve(mdp, regularizer).value.copy()
            certificate = operator.certify(operator.start(value))
            warm = certificate.iterate(value)
            work = {
                "certify": lambda: operator.certify(warm),  # noqa: B023
                "policy ": lambda: operator.policy_sweeps(certificate, value, 2, -1.0),  # noqa: B023
            }
            for operator.parallel, cores in ((False, "one core"), (True, "all cores")):
                for label, call in work.items():
                    call()
                    seconds = best_time(call, 1.0)[0]
                    shown = f"{regularizer.name:<7} {label}"
                    print(f"{name:<8}  {shown}  {seconds * 1e3:6.3f} ms, {cores}", flush=True)


def methods() -> None:
    """The processor time of `auto` over that of the best method, for many kinds of problems."""
    import tsallax

    kinds = {
        "unicycle": tsallax.problems.unicycle,
        "garnet, 2 successors": lambda **more: tsallax.problems.garnet(3_000, 10, 2, **more),
        "maze": lambda **more: tsallax.problems.maze(100, 100, **more),
        "gridworld": lambda **more: tsallax.problems.gridworld(100, 100, **more),
    }
    regularizers = [
        tsallax.Hard(), tsallax.Sparse(0.1), tsallax.Sparse(10.0), tsallax.Soft(0.1),
        tsallax.Soft(10.0), tsallax.Tsallis(0.1, 1.5), tsallax.Tsallis(1.0, 1.5),
    ]  # fmt: skip
    names = ("auto", "modified_policy_iteration", "policy_iteration", "value_iteration")
    print(f"{'problem':<21} {'gamma':<6} {'regularizer':<26} ", end="")
    print("".join(f"{name.replace('_iteration', ''):>18}" for name in names), "auto/best")
    for kind, make in kinds.items():
        ratios = []
        for discount in (0.9, 0.99, 0.999):
            mdp = make(discount=discount)
            for regularizer in regularizers:
                times = {}
                for name in names:
                    first = tsallax.solve(mdp, regularizer, ERROR, name)  # may compile
                    call = lambda: tsallax.solve(mdp, regularizer, ERROR, name)  # noqa: B023, E731
                    few = first.iterations < 2_000
                    times[name] = (
                        best_time(call, 0.2, time.process_time)[0] if few else first.seconds
                    )
                ratios.append(times["auto"] / min(times.values()))
                row = "".join(f"{1e3 * times[name]:15.2f} ms" for name in names)
                shown = f"{kind:<21} {discount:<6} {regularizer!s:<26}"
                print(f"{shown} {row}{ratios[-1]:10.2f}", flush=True)
        mean = float(np.exp(np.mean(np.log(ratios))))
        print(f"{kind}: auto over the best {mean:.2f} on average, {max(ratios):.2f} at most")


def million(name: str) -> None:
    """Solve 1,000,000 states x 4 actions to 1e-6 and print the peak memory."""
    import tsallax

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    regularizer = tsallax.Sparse(0.1) if name == "sparse" else tsallax.Hard()
    small = tsallax.problems.gridworld(150, 150)
    tsallax.solve(small, regularizer)  # loads the compiled kernels
    before = peak()
    begin = time.perf_counter()
    mdp = tsallax.problems.gridworld(1000, 1000, discount=0.99)
    built, seconds = peak(), time.perf_counter() - begin
    t = mdp.transitions
    csr = (t.data.nbytes + t.indices.nbytes + t.indptr.nbytes) / 2**20
    print(f"{mdp}\nbuilt in {seconds:.1f} s; CSR {csr:.0f} MiB")
    print(f"peak before {before:.0f} MiB (Python and its libraries), after building {built:.0f}")
    print(tsallax.solve(mdp, regularizer, ERROR))
    ratio = (peak() - before) / csr
    print(
        f"peak {peak():.0f} MiB: {ratio:.2f} times the CSR above the interpreter and its libraries"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problem", choices=PROBLEMS, action="append")
    parser.add_argument("--million", choices=["hard", "sparse"])
    parser.add_argument("--floor", action="store_true")
    parser.add_argument("--methods", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(json.loads(arguments.worker))
        return
    if arguments.floor:
        floor()
        return
    if arguments.methods:
        methods()
        return
    if arguments.million:
        million(arguments.million)
        return
    print(f"milliseconds to a true error of {ERROR:g}; ratios to the hard solve of tsallax")
    print(f"{'problem':<9} {'gamma':<6}  {'hard':>9}  {'sparse':>9} {'':>5}  ", end="")
    print(f"{'QuantEcon':>9} {'ratio':>6}  {'mdpsolver':>9} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.problem or PROBLEMS:
            compare(name, Path(folder))


if __name__ == "__main__":
    main()
