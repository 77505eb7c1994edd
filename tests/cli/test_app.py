"""The command line says what the Python API says, and every error in one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import tsallax
from tsallax import problems
from tsallax.cli import app, paper_commands
from tsallax.errors import InvalidInput
from tsallax.planning.evaluation import evaluate, gap_certificate, performance_bound
from tsallax.planning.mdp import MDP
from tsallax.planning.solver import NotConverged, Solution, solve
from tsallax.regularizer import Hard, Soft, Sparse, Tsallis

COMMAND = [sys.executable, "-m", "tsallax"]


def started(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start the real program."""
    pipe = subprocess.PIPE
    return subprocess.Popen([*COMMAND, *arguments], stdout=pipe, stderr=pipe, text=True, **options)


def ran(*arguments: str) -> tuple[int, str, str]:
    """Run the real program: exit code, standard output and standard error."""
    process = started(*arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the program inside this process, which is quicker."""
    code = app.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def assert_one_line(err: str, *words: str) -> None:
    assert err.startswith("tsallax: error: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    for word in words:
        assert word in err


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A file with an MDP of ragged states, a terminal one and names."""
    path = tmp_path / "mdp.npz"
    problems.gridworld(4, 5, goals={(0, 4): 1.0, (2, 2): -1.0}, step_reward=-0.04).save(path)
    return path


def labels(text: str) -> dict[str, str]:
    """The lines of a summary by their labels."""
    return dict(re.split(r"\s{2,}", line, maxsplit=1) for line in text.splitlines() if line)


def test_the_program_solves_frozen_lake_and_prints_an_aligned_summary():
    code, out, err = ran("solve", "FrozenLake-v1", "--regularizer", "sparse", "--alpha", "0.1")
    assert (code, err) == (0, "")
    rows = labels(out)
    assert rows["problem"] == "FrozenLake-v1, discount 0.99"
    assert rows["size"] == "16 states (5 terminal), 4 actions, 44 pairs, 128 transitions"
    assert rows["regularizer"] == "sparse, alpha 0.1"
    assert re.fullmatch(r"auto: \d+ iterations, \d+ sweeps, [\d.e-]+ s", rows["method"])
    assert {"error", "support ratio", "certified", "expected return", "regularized return"} < {
        *rows
    }
    assert rows["performance bound"].startswith("3.75 ")
    columns = {re.match(r"\w[\w ]*?\s{2,}", line).end() for line in out.splitlines()}  # type: ignore[union-attr]
    assert len(columns) == 1


def test_json_agrees_with_the_python_api(saved: Path, capsys):
    arguments = ("--regularizer", "sparse", "--alpha", "0.3", "--tolerance", "1e-8", "--json")
    code, out, err = called(capsys, "solve", str(saved), *arguments)
    assert (code, err) == (0, "")
    told = json.loads(out)
    mdp, regularizer = MDP.load(saved), Sparse(0.3)
    solution = solve(mdp, regularizer, tolerance=1e-8)
    worth = evaluate(mdp, solution.policy, regularizer)
    exact = {
        "source": str(saved), "states": mdp.n_states, "terminal": 2, "actions": mdp.n_actions,
        "pairs": mdp.n_pairs, "transitions": mdp.transitions.nnz, "discount": mdp.discount,
        "regularizer": "sparse", "alpha": 0.3, "q": 2.0, "method": "auto", "tolerance": 1e-8,
        "iterations": solution.iterations, "sweeps": solution.sweeps, "converged": True,
        "certified_in": np.count_nonzero(solution.certified_support == 1),
        "certified_out": np.count_nonzero(solution.certified_support == -1),
    }  # fmt: skip
    assert {key: told[key] for key in exact} == exact
    close = {
        "error": solution.error,
        "value_min": solution.value.min(),
        "value_max": solution.value.max(),
        "support_ratio": solution.support_ratio,
        "certified_ratio": np.count_nonzero(solution.certified_support) / mdp.n_pairs,
        "expected_return": worth.expected_return,
        "entropy": worth.entropy,
        "regularized_return": worth.regularized_return,
        "performance_bound": performance_bound(mdp, regularizer),
        "gap_certificate": mdp.initial @ gap_certificate(mdp, solution),
    }
    for key, value in close.items():
        assert told[key] == pytest.approx(float(value), rel=1e-12), key
    assert {*told} == {*exact, *close, "seconds"}
    assert told["seconds"] > 0


@pytest.mark.parametrize(
    ("words", "regularizer"),
    [
        ("--regularizer hard", Hard()),
        ("--regularizer soft --alpha 0.2", Soft(0.2)),
        ("--alpha 0.2", Sparse(0.2)),
        ("--regularizer tsallis --alpha 0.2 --q 1.5", Tsallis(0.2, 1.5)),
    ],
)
@pytest.mark.parametrize("method", ["value_iteration", "policy_iteration"])
def test_every_regularizer_and_method_has_its_word(saved: Path, capsys, words, regularizer, method):
    code, out, _ = called(capsys, "solve", str(saved), *words.split(), "--method", method, "--json")
    told = json.loads(out)
    mdp = MDP.load(saved)
    value = solve(mdp, regularizer, tolerance=1e-9).value
    assert code == 0
    assert told["method"] == method
    assert (told["regularizer"], told["alpha"]) == (regularizer.name, float(regularizer.alpha))
    assert told["q"] == (None if regularizer == Hard() else regularizer.q)
    assert told["regularized_return"] == pytest.approx(mdp.initial @ value, abs=2e-6)
    assert told["expected_return"] <= told["regularized_return"] + 1e-9
    assert told["gap_certificate"] <= told["performance_bound"] + 1e-5
    called(capsys, "solve", str(saved), *words.split())


def test_the_solution_written_is_read_in_a_new_process(saved: Path, tmp_path: Path):
    target = tmp_path / "solution.npz"
    code, out, _ = ran("solve", str(saved), "--alpha", "0.3", "--out", str(target))
    assert code == 0
    assert f"The solution is in {target}" in out
    program = (
        "import sys, json; from tsallax.solve import Solution; s = Solution.load(sys.argv[1]);"
        "print(json.dumps([repr(s), s.value.tolist(), s.lower.tolist(), s.upper.tolist(),"
        "s.policy.tolist(), s.certified_support.tolist(), s.mdp.state_names[0]]))"
    )
    command = [sys.executable, "-c", program, str(target)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    told, value, lower, upper, policy, certified, name = json.loads(text)
    solution = solve(MDP.load(saved), Sparse(0.3))
    assert re.sub(r"[\d.e-]+ s,", "", told) == re.sub(r"[\d.e-]+ s,", "", repr(solution))
    assert value == solution.value.tolist()
    assert lower == solution.lower.tolist()
    assert upper == solution.upper.tolist()
    assert policy == solution.policy.tolist()
    assert certified == solution.certified_support.tolist()
    assert name == "0,0"


def rewritten(path: Path, **changes: Any) -> Path:
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    for key, change in changes.items():
        arrays[key] = change(arrays[key]) if callable(change) else change
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "tsallax-mdp"}, "not a file written by Solution.save"),
        ({"version": 9}, "version 9"),
        ({"value": np.zeros(3)}, "value has 3 numbers, not 20"),
        ({"lower": np.full(20, np.nan)}, "lower of a converged solution is not finite"),
        ({"lower": np.full(20, 1e9)}, "outside its enclosure"),
        ({"alpha": -1.0}, "alpha must be positive"),
        ({"regularizer": "other"}, "unknown regularizer 'other'"),
        ({"discount": 1.5}, "discount must be a number"),
        ({"pointer": np.zeros(0, int)}, "pointer does not divide"),
        ({"pair_policy": lambda p: -3 * p}, "the policy's probability of action 0 in state"),
        ({"pair_policy": lambda p: 0.5 * p}, "sums to 0.5, not to 1"),
        ({"lower": lambda v: v - 1000}, "converged is True, but .* an error of 500"),
        ({"converged": False}, "converged is False, but"),
        ({"converged": False, "value": lambda v: v * np.nan}, "value holds NaN"),
        ({"tolerance": -1.0}, "tolerance is -1.0, not a positive number"),
        ({"iterations": -5}, "iterations is -5, not at least 1"),
        ({"sweeps": 0}, "sweeps is 0, not at least 1"),
        ({"seconds": -1.0}, "seconds is -1.0, not a time"),
        ({"method": "bogus"}, "the method 'bogus' is none of auto, value_iteration"),
    ],
)
def test_a_damaged_solution_is_refused_with_its_name(saved: Path, tmp_path, changes, message):
    path = tmp_path / "solution.npz"
    solve(MDP.load(saved), Sparse(0.3)).save(path)
    rewritten(path, **changes)
    with pytest.raises(InvalidInput, match=message) as caught:
        Solution.load(path)
    assert str(caught.value).count(str(path)) == 1
    assert "\n" not in str(caught.value)


def test_a_solution_that_did_not_converge_comes_back(saved: Path, tmp_path: Path):
    with pytest.raises(NotConverged) as caught:
        solve(MDP.load(saved), Sparse(0.3), max_sweeps=2)
    caught.value.solution.save(tmp_path / "solution.npz")
    assert repr(Solution.load(tmp_path / "solution.npz")) == repr(caught.value.solution)


@pytest.mark.parametrize("regularizer", [Hard(), Soft(0.2), Tsallis(0.2, 1.5)])
def test_a_solution_comes_back_bit_by_bit(saved: Path, tmp_path: Path, regularizer):
    solution = solve(MDP.load(saved), regularizer)
    solution.save(tmp_path / "solution.npz")
    loaded = Solution.load(tmp_path / "solution.npz")
    assert loaded.regularizer == regularizer
    assert repr(loaded) == repr(solution)
    for key in ("value", "lower", "upper", "pair_q", "pair_policy"):
        assert np.array_equal(getattr(loaded, key), getattr(solution, key))
    for key in ("converged", "iterations", "sweeps", "seconds", "method", "tolerance"):
        assert getattr(loaded, key) == getattr(solution, key)
        assert type(getattr(loaded, key)) is type(getattr(solution, key))


def test_the_discount_is_that_of_the_file_unless_given(saved: Path, capsys):
    told = [
        json.loads(called(capsys, "solve", str(saved), "--regularizer", "hard", "--json", *more)[1])
        for more in ([], ["--discount", "0.5"])
    ]
    assert [answer["discount"] for answer in told] == [0.99, 0.5]
    half = solve(MDP.load(saved).with_discount(0.5), Hard())
    assert told[1]["value_max"] == pytest.approx(half.value.max(), abs=1e-9)


def test_a_return_that_float64_cannot_tell_does_not_cost_the_solution(tmp_path: Path, capsys):
    problems.forest().save(tmp_path / "forest.npz")
    words = ["--regularizer", "hard", "--discount", "0.999999999", "--tolerance", "1000000"]
    out = tmp_path / "solution.npz"
    code, text, _ = called(capsys, "solve", str(tmp_path / "forest.npz"), *words, "--out", str(out))
    assert code == 0
    assert "discount 0.999999999" in text
    assert "expected return     not known (J)" in text
    assert Solution.load(out).converged


def test_options_of_an_environment_are_passed_on(capsys):
    options = ("--env-option", "is_slippery=False", "--env-option", "map_name=8x8")
    _, out, _ = called(
        capsys, "solve", "FrozenLake-v1", "--regularizer", "hard", "--json", *options
    )
    told = json.loads(out)
    assert told["states"] == 64
    assert told["transitions"] == told["pairs"]
    assert told["expected_return"] == pytest.approx(0.99**13, abs=1e-6)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("solve FILE", ["needs alpha", "--alpha 0.1"]),
        ("solve FILE --regularizer tsallis --alpha 1", ["needs q", "--q 1.5"]),
        ("solve FILE --regularizer hard --alpha 1", ["takes no alpha", "leave --alpha out"]),
        ("solve FILE --alpha 1 --q 2", ["takes no q"]),
        (
            "solve FILE --regularizer softmax --alpha 1",
            ["'softmax'", "hard, soft, sparse, tsallis"],
        ),
        ("solve FILE --alpha 0", ["alpha must be positive"]),
        ("solve FILE --alpha nan", ["alpha must be positive"]),
        ("solve FILE --alpha 1e-310", ["alpha must be positive and at least 2.2e-308"]),
        ("solve FILE --alpha x", ["--alpha", "tsallax solve --help"]),
        ("solve FILE --alpha", ["--alpha", "--help"]),
        ("solve FILE --alpha 1 --discount 1", ["discount must be a number"]),
        ("solve FILE --alpha 1 --tolerance 0", ["tolerance must be a positive number"]),
        ("solve FILE --alpha 1 --method newton", ["'newton'", "policy_iteration"]),
        ("solve FILE --alpha 1 --max-sweeps 0", ["max_sweeps must be at least 1"]),
        ("solve FILE --alpha 1 --env-option a=1", ["a file takes no --env-option"]),
        ("solve FILE --alpha 1 --speed 9", ["--speed", "tsallax solve --help"]),
        ("solve FILE FILE --alpha 1", ["extra argument", "tsallax solve --help"]),
        ("solve FILE --alpha 1 --out FOLDER", ["is a folder"]),
        ("solve FILE --alpha 1 --out FOLDER/absent/s.npz", ["no folder"]),
        ("solve FOLDER/absent.npz --alpha 1", ["absent.npz: no such file"]),
        ("solve FOLDER/text.npz --alpha 1", ["text.npz", "not a readable MDP file"]),
        ("solve FrozenLake-v1 --alpha 1 --env-option slippery", ["KEY=VALUE"]),
        ("solve FrozenLake-v1 --alpha 1 --env-option ice=1", ["FrozenLake-v1", "ice"]),
        ("solve FrozenLake-v1 --alpha 1 --env-option ice={[]:1}", ["FrozenLake-v1", "ice"]),
        ("solve FrozenLake-v1 --alpha 1 --env-option render_mode=5", ["FrozenLake-v1: Gymnasium"]),
        (
            "solve FrozenLake-v1 --alpha 1 --env-option a=1 --env-option a=2",
            ["--env-option a is given twice"],
        ),
        ("solve FrozenLake-v0 --alpha 1", ["FrozenLake-v0", "FrozenLake-v1"]),
        ("solve Blackjack-v1 --alpha 1", ["Blackjack-v1: has no table P"]),
        ("solve NoSuchThing-v1 --alpha 1", ["NoSuchThing"]),
        ("solve", ["FILE_OR_ENV", "tsallax solve --help"]),
        ("reproduce figure7", ["'figure7'", "figure1, figure2a, figure2b, theorems, reacher, "]),
        ("dance", ["dance", "tsallax --help"]),
        ("--dance", ["--dance", "tsallax --help"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(saved: Path, tmp_path: Path, capsys, line, words):
    (tmp_path / "text.npz").write_text("hello")
    before = sorted(tmp_path.iterdir())
    line = line.replace("FILE", str(saved)).replace("FOLDER", str(tmp_path))
    code, out, err = called(capsys, *line.split())
    assert (code, out) == (2, "")
    assert_one_line(err, *words)
    assert sorted(tmp_path.iterdir()) == before


def test_the_program_itself_exits_with_2_and_one_line():
    code, out, err = ran("solve", "absent.npz", "--alpha", "1")
    assert (code, out) == (2, "")
    assert_one_line(err, "absent.npz: no such file")


def test_not_converging_is_one_line_exit_code_1_and_no_file(saved: Path, tmp_path: Path, capsys):
    target = tmp_path / "solution.npz"
    limits = ("--max-sweeps", "3", "--method", "value_iteration", "--json")
    code, out, err = called(
        capsys, "solve", str(saved), "--alpha", "0.3", "--out", str(target), *limits
    )
    assert (code, out) == (1, "")
    assert_one_line(err, "not converged: error ", " after ", "sweeps", "nothing was written")
    assert not target.exists()


@pytest.fixture(scope="module")
def long_problem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose solution by value iteration takes hours: a round trip, which never mixes."""
    path = tmp_path_factory.mktemp("long") / "long.npz"
    n = 60_000
    trip = csr_array((np.ones(n), np.roll(np.arange(n), -1), np.arange(n + 1)), shape=(n, n))
    MDP(trip, np.sin(np.arange(n))[:, None], 0.99999).save(path)
    return path


@pytest.mark.parametrize("delay", [3.0, 6.0])
def test_ctrl_c_is_one_line_exit_code_130_and_no_file(
    long_problem: Path, tmp_path: Path, delay: float
):
    target = tmp_path / "solution.npz"
    target.write_text("what was there before")
    arguments = ["--alpha", "0.1", "--method", "value_iteration", "--tolerance", "1e-5"]
    process = started("solve", str(long_problem), *arguments, "--out", str(target))
    time.sleep(delay)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - begin < 10
    assert (process.returncode, out) == (130, "")
    assert_one_line(err, "interrupted: files hold only what was finished")
    assert target.read_text() == "what was there before"
    assert [p.name for p in tmp_path.iterdir()] == ["solution.npz"]


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_help_names_the_commands(capsys, arguments):
    code, out, err = called(capsys, *arguments)
    assert (code, err) == (0, "")
    assert "solve" in out
    assert "reproduce" in out


@pytest.mark.parametrize("command", ["solve", "reproduce"])
def test_help_of_a_command_has_examples_that_are_read_without_error(capsys, command):
    _, out, _ = called(capsys, command, "--help")
    examples = [
        line.split() for line in out.splitlines() if line.startswith(f"    tsallax {command}")
    ]
    assert len(examples) >= 3
    for example in examples:
        options = {word for word in example if word.startswith("--")}
        assert all(option in out.split("Options:")[1] for option in options)


def test_version_is_that_of_the_package():
    assert ran("--version") == (0, f"tsallax {tsallax.__version__}\n", "")


def test_help_is_quick_and_imports_nothing_heavy():
    program = (
        "import sys; from tsallax import cli; code = app.run(['solve', '--help']);"
        "heavy = {'jax', 'numba', 'scipy', 'gymnasium', 'matplotlib'} & {*sys.modules};"
        "sys.exit(str(heavy) if heavy else code)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_reproduce_hands_over_names_in_the_papers_order(monkeypatch, tmp_path: Path, capsys):
    from tsallax import paper

    seen: list[Any] = []

    def reproduce(names: list[str], out: Path, *, quick: bool) -> Path:
        seen.append((names, out))
        assert not quick
        return out / "index.html"

    monkeypatch.setattr(paper, "reproduce", reproduce, raising=False)
    for words in (["theorems", "figure1", "figure1"], ["all"], []):
        code, out, err = called(capsys, "reproduce", *words, "--out", str(tmp_path))
        assert (code, err) == (0, "")
        assert out == f"The report is in {tmp_path / 'index.html'}\n"
    assert paper.NAMES == paper_commands.FIGURES
    assert seen == [
        (["figure1", "theorems"], tmp_path),
        ([*paper_commands.FIGURES], tmp_path),
        ([*paper_commands.FIGURES], tmp_path),
    ]


def test_output_into_a_closed_pipe_ends_quietly():
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, "solve", "FrozenLake-v1", "--alpha", "1"]
    with os.fdopen(writer, "w") as pipe:
        result = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert "Traceback" not in result.stderr
