"""`tsallax solve` prints what the Python API finds; wrong input writes nothing.

A solve that does not come to its end keeps the best solution so far.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from scipy.sparse import csr_array

from command_line import assert_error, assert_interrupted, call, rows_of
from tsallax import (
    FiniteHorizonSolution,
    FunctionalSolution,
    InvalidInput,
    gap_certificate,
    problems,
)
from tsallax.cli import solve_command, worker_process
from tsallax.planning import (
    finite_horizon,
    finite_horizon_summary,
    policy_table,
    solver,
    summary,
)
from tsallax.planning.devices import all_devices
from tsallax.planning.mdp import MDP
from tsallax.planning.solver import Solution, solve
from tsallax.regularizer import Hard, Soft, Sparse, Tsallis


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with an MDP of ragged states, terminal ones and names."""
    path = tmp_path_factory.mktemp("mdp") / "grid.npz"
    problems.gridworld(4, 5, goals={(0, 4): 1.0, (2, 2): -1.0}, step_reward=-0.04).save(path)
    return path


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose solution by value iteration takes hours: a long cycle."""
    path = tmp_path_factory.mktemp("mdp") / "endless.npz"
    n = 60_000
    cycle = csr_array((np.ones(n), np.roll(np.arange(n), -1), np.arange(n + 1)), shape=(n, n))
    MDP(cycle, np.sin(np.arange(n))[:, None], 0.99999).save(path)
    return path


def test_the_summary_is_aligned_and_names_the_problem_and_the_result(capsys):
    code, out, err = call(capsys, "solve FrozenLake-v1 --alpha 0.1")
    assert (code, err) == (0, "")
    rows = rows_of(out)
    assert rows["problem"] == "FrozenLake-v1, discount 0.99"
    assert rows["size"].startswith("16 states (5 terminal), 4 actions")
    assert rows["regularizer"] == "sparse, alpha 0.1"
    assert rows["performance bound"].startswith("3.75 ")
    assert {"error", "certified", "expected return", "regularized return"} < {*rows}
    lines = out.partition("\n\n")[0].splitlines()
    assert len({re.match(r"\w[\w ]*?\s{2,}", line).end() for line in lines}) == 1  # type: ignore[union-attr]


def test_the_policy_is_printed_state_by_state(grid: Path, capsys):
    line = f"solve {grid} --alpha 0.3"
    solution = solve(MDP.load(grid), Sparse(0.3))
    for option, limit in (("", 10), ("--show 3", 3), ("--all", None)):
        table = call(capsys, line, option).out.partition("\n\n")[2]
        assert table == policy_table.as_text(solution, limit) + "\n"
    assert "\n\n" not in call(capsys, line, "--show 0").out
    assert "0,1" in call(capsys, line, "--show 2").out


def test_the_policy_is_part_of_json_where_it_is_asked_for(grid: Path, capsys):
    line = f"solve {grid} --alpha 0.3 --json"
    rows = policy_table.as_data(policy_table.state_rows(solve(MDP.load(grid), Sparse(0.3))))
    assert json.loads(call(capsys, line, "--all").out)["policy"] == rows
    assert json.loads(call(capsys, line, "--show 2").out)["policy"] == rows[:2]
    assert json.loads(call(capsys, line, "--show 0").out)["policy"] == []
    assert "policy" not in json.loads(call(capsys, line).out)


def test_json_agrees_with_the_python_api(grid: Path, capsys):
    code, out, err = call(capsys, f"solve {grid} --alpha 0.3 --tolerance 1e-8 --json")
    assert (code, err) == (0, "")
    solution = solve(MDP.load(grid), Sparse(0.3), tolerance=1e-8)
    expected = json.loads(summary.as_json(summary.summarize(str(grid), solution)))
    found = json.loads(out)
    assert found.pop("seconds") > 0
    assert found == {key: expected[key] for key in found}
    assert {*expected} - {*found} == {"seconds"}


@pytest.mark.parametrize(
    ("words", "regularizer", "method"),
    [
        ("--regularizer hard", Hard(), "policy_iteration"),
        ("--regularizer soft --alpha 0.2", Soft(0.2), "value_iteration"),
        ("--alpha 0.2", Sparse(0.2), "modified_policy_iteration"),
        ("--regularizer tsallis --alpha 0.2 --q 1.5", Tsallis(0.2, 1.5), "policy_iteration"),
    ],
)
def test_every_regularizer_and_method_has_a_name(grid, capsys, words, regularizer, method):
    code, out, _ = call(capsys, f"solve {grid} {words} --method {method} --json")
    found = json.loads(out)
    mdp = MDP.load(grid)
    value = solve(mdp, regularizer, tolerance=1e-9).value
    assert code == 0
    assert found["method"] == method
    assert (found["regularizer"], found["alpha"]) == (regularizer.name, float(regularizer.alpha))
    assert found["q"] == (None if regularizer == Hard() else regularizer.q)
    assert found["regularized_return"] == pytest.approx(mdp.initial @ value, abs=2e-6)
    assert found["gap_certificate"] <= found["performance_bound"] + 1e-5


def test_the_discount_is_that_of_the_file_unless_given(grid: Path, capsys):
    line = f"solve {grid} --regularizer hard --json"
    found = [json.loads(call(capsys, line, more).out) for more in ("", "--discount 0.5")]
    assert [answer["discount"] for answer in found] == [0.99, 0.5]
    half = solve(MDP.load(grid).with_discount(0.5), Hard())
    assert found[1]["value_max"] == pytest.approx(half.value.max(), abs=1e-9)


def test_options_of_an_environment_are_passed_on(capsys):
    options = "--env-option is_slippery=False --env-option map_name=8x8"
    found = json.loads(call(capsys, f"solve FrozenLake-v1 --regularizer hard --json {options}").out)
    assert found["states"] == 64
    assert found["transitions"] == found["pairs"]
    assert found["expected_return"] == pytest.approx(0.99**13, abs=1e-6)


def test_a_return_beyond_double_precision_does_not_prevent_the_solution(tmp_path: Path, capsys):
    problems.forest().save(tmp_path / "forest.npz")
    words = "--regularizer hard --discount 0.999999999 --tolerance 1000000"
    target = tmp_path / "solution.npz"
    code, out, _ = call(capsys, f"solve {tmp_path / 'forest.npz'} {words} --out {target}")
    assert code == 0
    assert "not known" in rows_of(out)["expected return"]
    assert str(target) in out
    assert Solution.load(target).converged


@pytest.mark.skipif(jax.default_backend() == "gpu", reason="there is a GPU")
def test_a_missing_gpu_is_named_with_the_option_that_asks_for_it(capsys):
    output = call(capsys, "solve forest --regularizer hard --device gpu")
    assert_error(output, "JAX has no gpu here", "leave --device out")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("FILE", ["needs alpha", "--alpha 0.1"]),
        ("FILE --regularizer tsallis --alpha 1", ["needs q", "--q 1.5"]),
        ("FILE --regularizer hard --alpha 1", ["takes no alpha", "leave --alpha out"]),
        ("FILE --alpha 1 --method newton", ["'newton'", "policy_iteration"]),
        ("FILE --alpha 1 --env-option a=1", ["leave --env-option out"]),
        ("FILE --alpha 1 --show -1", ["--show must be an integer of at least 0"]),
        ("FILE --alpha 1 --show 1 --all", ["--all prints", "leave --show out"]),
        ("FILE --alpha 1 --out FOLDER", ["--out", "is a folder"]),
        ("FILE --alpha 1 --out FOLDER/absent/s.npz", ["--out", "no folder"]),
        ("FILE --alpha 1 --out FOLDER/s.umb", ["--out", "s.umb: the name must end in .npz"]),
        ("FOLDER --alpha 1", ["is a folder, give the name of a file"]),
        ("FOLDER/absent.npz --alpha 1", ["absent.npz: no such file"]),
        ("FOLDER/text.npz --alpha 1", ["text.npz", "MDP"]),
        ("FrozenLake-v1 --alpha 1 --env-option ice=1", ["FrozenLake-v1", "ice"]),
        ("FrozenLake-v0 --alpha 1", ["FrozenLake-v0", "FrozenLake-v1"]),
        ("FrozenLke-v1 --alpha 1", ["no such environment: did you mean FrozenLake-v1?"]),
        ("inventry --alpha 1", ["inventry: there is no such problem: did you mean inventory?"]),
        ("inventry --alpha 1", ["(the problems are multigoal, unicycle, gridworld,"]),
        ("chess --alpha 1", ["chess: there is no such environment (the problems are multigoal,"]),
        ("maze --alpha 1 --env-option rws=3", ["maze has no argument rws: did you mean rows?"]),
        ("maze --alpha 1 --env-option rws=3", ["--env-option: ", "(it has rows, "]),
        ("Blackjack-v1 --alpha 1", ["Blackjack-v1: has no table P"]),
        ("FILE --alpha 1 --step 3", ["--step needs a horizon", "--horizon 100"]),
        ("FILE --alpha 1 --horizon 0", ["--horizon must be an integer of at least 1"]),
        ("FILE --alpha 1 --horizon 3 --step 3", ["--step", "at least 0 and below 3"]),
        ("FILE --alpha 1 --horizon 3 --method auto2", ["leave --method out"]),
        ("FILE --alpha 1 --tolerance 0", ["--tolerance must be a number above 0"]),
        ("FILE --alpha 1 --max-sweeps 0", ["--max-sweeps must be an integer of at least 1"]),
        ("FILE --alpha 1 --time-limit 0", ["--time-limit must be a number above 0"]),
        ("FILE --alpha 1 --relative-tolerance 1", ["--relative-tolerance must be a number above"]),
        ("FILE --alpha 1 --horizon 3 --max-sweeps 9", ["leave --max-sweeps out"]),
        ("FILE --alpha 1 --horizon 3 --time-limit 9", ["leave --time-limit out"]),
        ("FILE --alpha 1 --horizon 3 --relative-tolerance 0.1", ["leave --relative-tolerance out"]),
        ("FILE --alpha 1 --horizon 3 --precision float32", ["leave --precision out"]),
        ("FILE --alpha 1 --horizon 3 --distributed", ["one process", "leave --distributed out"]),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(
    grid: Path, tmp_path: Path, capsys, line, words
):
    (tmp_path / "text.npz").write_text("hello")
    line = line.replace("FILE", str(grid)).replace("FOLDER", str(tmp_path))
    assert_error(call(capsys, "solve", line), *words)
    assert [path.name for path in tmp_path.iterdir()] == ["text.npz"]


def test_discount_1_and_several_processes_are_refused_by_their_option(monkeypatch, capsys):
    monkeypatch.setattr(worker_process, "is_worker", lambda: True)
    monkeypatch.setattr(solve_command, "_joined", all_devices)
    output = call(capsys, "solve forest --alpha 1 --discount 1 --distributed")
    assert_error(output, "on the CPU alone: leave --distributed out")


def test_a_finite_horizon_is_solved_printed_and_written(grid: Path, tmp_path: Path, capsys):
    line = f"solve {grid} --alpha 0.3 --discount 1 --horizon 7"
    solution = solve(MDP.load(grid, discount=1.0), Sparse(0.3), horizon=7)
    out = tmp_path / "plan.npz"
    code, text, err = call(capsys, f"{line} --out {out}")
    assert (code, err) == (0, "")
    assert rows_of(text)["problem"] == f"{grid}, discount 1, horizon 7 steps"
    assert policy_table.as_text(solution, 10) in text
    assert text.endswith(f"The solution is in {out}\n")
    found = FiniteHorizonSolution.load(out)
    np.testing.assert_array_equal(found.values, solution.values)
    last = call(capsys, line, "--step 6 --all").out.partition("\n\n")[2]
    assert last == policy_table.as_text(solution, step=6) + "\n"


def test_a_model_from_functions_is_stored_for_a_finite_horizon(capsys):
    options = "--env-option capacity=4 --env-option lead_time=1 --env-option max_order=2"
    line = f"solve inventory {options} --alpha 0.3 --discount 1 --horizon 5 --json --show 1"
    found = json.loads(call(capsys, line)[1])
    model = problems.inventory(capacity=4, lead_time=1, max_order=2).to_mdp(names=True)
    solution = solve(model.with_discount(1.0), Sparse(0.3), horizon=5)
    assert found["regularized_return"] == solution.regularized_return
    assert found["policy"][0]["state"] == "(0, 0)"


def test_json_of_a_finite_horizon_has_the_policy_of_the_step_asked_for(grid: Path, capsys):
    line = f"solve {grid} --alpha 0.3 --horizon 4 --json"
    solution = solve(MDP.load(grid), Sparse(0.3), horizon=4)
    found = json.loads(call(capsys, line).out)
    expected = finite_horizon_summary.summarize_finite_horizon(str(grid), solution)
    expected = json.loads(summary.as_json(expected))
    assert found.pop("seconds") > 0
    assert found == {key: expected[key] for key in found}
    assert {*expected} - {*found} == {"seconds"}
    for words, step, limit in (
        ("--all", 0, None),
        ("--step 3", 3, 10),
        ("--step 2 --show 1", 2, 1),
    ):
        found = json.loads(call(capsys, line, words).out)
        rows = policy_table.state_rows(solution, limit, step)
        assert (found["step"], found["policy"]) == (step, policy_table.as_data(rows))


@pytest.mark.parametrize("words", ["FILE", "inventory --env-option capacity=6", "FILE --horizon 9"])
def test_a_tolerance_that_is_not_reached_is_one_line_exit_code_1_and_the_best_so_far(
    grid: Path, tmp_path: Path, capsys, words
):
    out = tmp_path / "solution.npz"
    limits = "--max-sweeps 3 --method value_iteration"
    line = words.replace("FILE", str(grid))
    line += " --tolerance 1e-300" if "--horizon" in line else f" {limits}"
    output = call(capsys, f"solve {line} --alpha 0.3 --json")
    assert_error(output, "not converged: ", "nothing was written, --out keeps", code=1)
    output = call(capsys, f"solve {line} --alpha 0.3 --json --out {out}")
    assert_error(output, "not converged: ", f"; the solution so far is in {out}", code=1)
    if words == "FILE":
        found: Any = Solution.load(out)
        best = solve(found.mdp, Sparse(0.3))
    elif "--horizon" in words:
        found = FiniteHorizonSolution.load(out)
        best = solve(found.mdp, Sparse(0.3), horizon=9)
    else:
        model = problems.inventory(capacity=6)
        found, best = FunctionalSolution.load(out, model), solve(model, Sparse(0.3))
    assert not found.converged
    assert ((found.lower <= best.upper) & (best.lower <= found.upper)).all()


def test_a_solution_of_which_nothing_is_proven_replaces_no_file(tmp_path: Path, capsys):
    model, out = tmp_path / "large.npz", tmp_path / "solution.npz"
    MDP([[[1.0]]], [[1e307]], 0.99).save(model)
    out.write_text("a previous file")
    output = call(capsys, f"solve {model} --regularizer hard --out {out}")
    assert_error(output, "overflow float64", "; nothing is proven so far", code=1)
    assert out.read_text() == "a previous file"


def test_a_disk_that_is_full_does_not_hide_why_the_solve_ended(
    grid: Path, tmp_path: Path, capsys, monkeypatch
):
    def fail(self: Solution, path: Path) -> None:
        raise InvalidInput("cannot be written: No space left on device", source=path)

    monkeypatch.setattr(Solution, "save", fail)
    out = tmp_path / "solution.npz"
    output = call(capsys, f"solve {grid} --alpha 0.3 --max-sweeps 2 --out {out}")
    assert_error(output, "not converged: ", f"; {out}: cannot be written: No space left", code=1)


def interrupting(after: int) -> Any:
    """A progress bar during which Ctrl-C is pressed, at the report with this number."""

    @contextmanager
    def bar(*_: Any) -> Iterator[Any]:
        reports = iter(range(after))

        def report(share: float) -> None:
            if next(reports, None) is None:
                raise KeyboardInterrupt

        yield report

    return bar


def test_an_interrupted_solve_keeps_the_best_so_far(
    grid: Path, tmp_path: Path, capsys, monkeypatch
):
    monkeypatch.setattr(solver, "bar", interrupting(after=3))
    out = tmp_path / "solution.npz"
    line = f"solve {grid} --alpha 0.3 --method value_iteration"
    code, text, err = call(capsys, line)
    assert (code, text) == (130, "")
    assert err.startswith("tsallax: interrupted: after 4 sweeps, with a proven error of ")
    assert err.endswith("; nothing was written, --out keeps the solution so far\n")
    code, text, err = call(capsys, f"{line} --out {out}")
    assert (code, text) == (130, "")
    assert err.endswith(f"; the solution so far is in {out}\n")
    assert err.count("\n") == 1
    found = Solution.load(out)
    assert (found.converged, found.sweeps) == (False, 4)


def test_an_interrupted_horizon_writes_nothing(grid: Path, tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr(finite_horizon, "bar", interrupting(after=3))
    out = tmp_path / "solution.npz"
    code, _, err = call(capsys, f"solve {grid} --alpha 0.3 --horizon 9 --out {out}")
    assert (code, err.count("\n")) == (130, 1)
    assert not out.exists()


def test_ctrl_c_during_the_summary_says_where_the_solution_is(
    grid: Path, tmp_path: Path, capsys, monkeypatch
):
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(summary, "summarize", interrupt)
    out = tmp_path / "solution.npz"
    code, _, err = call(capsys, f"solve {grid} --alpha 0.3 --out {out}")
    assert (code, err) == (130, f"tsallax: interrupted: the solution is in {out}\n")
    assert Solution.load(out).converged


@pytest.mark.slow
def test_a_solve_that_is_terminated_keeps_the_best_so_far(endless: Path, tmp_path: Path):
    target = tmp_path / "solution.npz"
    target.write_text("a previous file")
    solving = tmp_path / "solving"
    program = (  # announces the first certificate, then runs on
        "import contextlib, pathlib\n"
        "import tsallax.planning.solver as solver\n"
        "from tsallax import __main__\n"
        "@contextlib.contextmanager\n"
        "def bar(*_):\n"
        f"    yield lambda share: pathlib.Path({str(solving)!r}).touch()\n"
        "solver.bar = bar\n"
        "__main__.main()\n"
    )
    arguments = ["solve", str(endless), "--alpha", "0.1", "--method", "value_iteration"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments, "--tolerance", "1e-5", "--out", str(target)],
        stdout=pipe, stderr=pipe, text=True, env=os.environ,
    )  # fmt: skip
    while not solving.exists() and process.poll() is None:
        time.sleep(0.02)
    time.sleep(0.3)
    line = assert_interrupted(process, signal.SIGTERM)
    assert line.endswith(f"; the solution so far is in {target}")
    found = Solution.load(target)
    assert not found.converged
    assert 1e-5 < found.error < np.inf
    assert sorted(path.name for path in tmp_path.iterdir()) == ["solution.npz", "solving"]


def test_a_model_from_functions_is_solved_printed_and_written(tmp_path: Path, capsys):
    source = tmp_path / "warehouse.py"
    source.write_text(
        "from tsallax.problems import inventory\n"
        "def small():\n    return inventory(capacity=4, lead_time=1, max_order=2)\n"
    )
    out = tmp_path / "solution.npz"
    line = f"solve {source}:small --alpha 0.5 --discount 0.9"
    model = problems.inventory(capacity=4, lead_time=1, max_order=2, discount=0.9)
    solution = solve(model, Sparse(0.5))
    code, text, err = call(capsys, f"{line} --device cpu --show 2 --out {out}")
    assert (code, err) == (0, "")
    rows = rows_of(text)
    assert rows["problem"] == f"{source}:small, discount 0.9"
    assert rows["size"] == "15 states, 3 actions, 15 post-decision states, 5 events"
    assert "\n(0, 1)  " in text
    assert "and 13 more states" in text
    with np.load(out) as arrays:
        np.testing.assert_array_equal(arrays["value"], solution.value)
        np.testing.assert_array_equal(arrays["actions"], solution.policy.argmax(1))
        assert ((arrays["lower"] <= solution.value) & (solution.value <= arrays["upper"])).all()
        assert (arrays["alpha"], arrays["discount"]) == (0.5, 0.9)
    code, text, err = call(capsys, f"{line} --json --show 1 --tolerance 1e-3 --precision float32")
    assert (code, err) == (0, "")
    found = json.loads(text)
    assert found["states"] == 15
    assert found["error"] <= 1e-3
    assert abs(found["value_max"] - solution.value.max()) <= found["error"] + solution.error
    assert found["policy"][0]["state"] == "(0, 0)"
    gap = model.initial @ gap_certificate(model, solution)
    assert found["gap_certificate"] == pytest.approx(gap, abs=3e-3)
    assert rows["gap certificate"] == f"{gap:.6g} (the most that J of this policy can lose)"
    code, _, err = call(capsys, f"solve {source}:small --alpha 0.5 --env-option a=1")
    assert code == 2
    assert "env-option" in err
