"""Solves over processes and devices prove what one proves; lost processes are clear errors."""

import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy.sparse import csr_array

from command_line import assert_error
from distributed_runs import finish, launch
from tsallax import MDP, InvalidInput, Solution, Sparse, problems, solve
from tsallax.planning import distributed
from tsallax.planning.devices import all_devices
from tsallax.planning.distributed import check_rows, load_part, own_states

DEVICES = """
import numpy as np
from planning.functional_models import stock_mdp, stock_model
from tsallax import MDP, Sparse, problems, solve
from tsallax.planning.devices import all_devices

mesh = all_devices()
assert mesh.size == 4
ragged = problems.gridworld(2, 3, goals={(0, 2): 1.0}, discount=0.8)
for mdp in (problems.garnet(11, 3, 2, discount=0.8, seed=1), ragged, stock_model()):
    one, four = solve(mdp, Sparse(0.5)), solve(mdp, Sparse(0.5), mesh=mesh)
    assert four.error <= 1e-6
    assert np.all(four.lower <= one.upper) and np.all(one.lower <= four.upper)
    if isinstance(mdp, MDP):
        assert np.abs(one.pair_policy - four.pair_policy).max() <= 1e-5
"""


@pytest.fixture(scope="module")
def garnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mdp") / "garnet.npz"
    problems.garnet(31, 3, 4, discount=0.8, seed=1).save(path)
    return path


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose solution by value iteration takes hours: a long cycle."""
    path, n = tmp_path_factory.mktemp("mdp") / "endless.npz", 2000
    cycle = csr_array((np.ones(n), np.roll(np.arange(n), -1), np.arange(n + 1)), shape=(n, n))
    MDP(cycle, np.sin(np.arange(n))[:, None], 0.999999).save(path)
    return path


@pytest.mark.slow
def test_four_devices_of_one_process_prove_the_same_as_one():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, **flags, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", DEVICES], env=environment, check=True, timeout=100)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 4])
def test_several_processes_prove_the_same_as_one(n: int, garnet: Path, tmp_path: Path):
    out = tmp_path / "solution.npz"
    first, *others = finish(launch(n, "solve", garnet, "--alpha", 0.5, "--json", "--out", out))
    assert (first.code, first.err) == (0, "")
    assert others == [(0, "", "")] * (n - 1)
    one = solve(MDP.load(garnet), Sparse(0.5), mesh=all_devices())
    found, summary = Solution.load(out), json.loads(first.out)
    assert summary["sweeps"] == one.sweeps
    assert summary["error"] == pytest.approx(one.error, rel=1e-6)
    for name in ("value", "lower", "upper", "pair_policy"):
        np.testing.assert_allclose(getattr(found, name), getattr(one, name), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_process_is_one_line_on_the_other_within_a_minute(
    victim: int, endless: Path, tmp_path: Path
):
    line = ("solve", endless, "--regularizer", "hard", "--method", "value_iteration")
    processes = launch(2, *line, "--out", tmp_path / "solution.npz")
    time.sleep(15)
    assert all(process.poll() is None for process in processes)
    processes[victim].kill()
    killed = time.monotonic()
    other = finish([processes[1 - victim]])[0]
    assert time.monotonic() - killed < 60
    finish([processes[victim]])
    assert (other.code, other.out) == (1, "")
    assert other.err.startswith("tsallax: error: another process of this solve ended: ")
    assert other.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_tolerance_that_is_not_reached_is_a_line_on_each_process_and_the_first_writes(
    garnet: Path, tmp_path: Path
):
    out = tmp_path / "solution.npz"
    words = ("solve", garnet, "--alpha", "0.2", "--max-sweeps", "2", "--out", out)
    for i, output in enumerate(finish(launch(2, *words))):
        assert_error(output, "not converged: ", "raise max_sweeps", code=1)
        assert output.err.endswith(f"; the solution so far is in {out}\n") == (i == 0)
    assert not Solution.load(out).converged


@pytest.mark.slow
def test_a_process_does_not_read_the_transitions_of_another(tmp_path: Path):
    damaged = tmp_path / "damaged.npz"
    mdp = problems.garnet(500, 3, 4, discount=0.8, seed=1)
    mdp.save(damaged)
    content = bytearray(damaged.read_bytes())
    last = mdp.transitions.data[-4:].tobytes()
    at = content.index(last)
    content[at : at + len(last)] = np.full(4, 0.3).tobytes()
    damaged.write_bytes(content)
    with pytest.raises(InvalidInput, match="checksum"):
        MDP.load(damaged)
    first, second = finish(launch(2, "solve", damaged, "--alpha", 0.5))
    assert second.code == 2
    assert "transitions of state 499, action 2 are not a distribution" in second.err
    assert first.code == 1
    assert "another process of this solve ended" in first.err


@pytest.mark.parametrize(
    "mdp",
    [
        problems.garnet(7, 3, 2, discount=0.8, seed=1),
        problems.gridworld(2, 3, goals={(0, 2): 1.0}, discount=0.8),
        MDP([[0.5], [0.25]], [1.0, 2.0], 0.9, pairs=[(0, 0), (0, 3)], termination=[0.5, 0.75]),
    ],
)
def test_a_mapped_file_holds_the_same_mdp(mdp: MDP, tmp_path: Path):
    mdp.save(tmp_path / "mdp.npz")
    mapped = load_part(tmp_path / "mdp.npz", all_devices())
    whole = MDP.load(tmp_path / "mdp.npz")
    assert repr(mapped) == repr(whole)
    assert (mapped.transitions != whole.transitions).nnz == 0
    for name in ("rewards", "pointer", "action_of", "initial", "termination"):
        np.testing.assert_array_equal(getattr(mapped, name), getattr(whole, name))
    assert mapped.state_names == whole.state_names
    states = np.concatenate([*own_states(mapped, all_devices())])
    np.testing.assert_array_equal(np.sort(states), np.flatnonzero(~whole.terminal))


def test_a_compressed_file_is_read_as_a_whole(garnet: Path, tmp_path: Path):
    packed = tmp_path / "packed.npz"
    with zipfile.ZipFile(garnet) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    mapped = load_part(packed, all_devices())
    assert (mapped.transitions != MDP.load(garnet).transitions).nnz == 0


@pytest.mark.parametrize(
    ("array", "number"), [("data", 0.9), ("data", np.nan), ("indices", -1), ("indices", 31)]
)
def test_rows_that_are_not_distributions_are_refused_with_their_pair(garnet, array, number):
    mdp = load_part(garnet, all_devices())
    changed = getattr(mdp.transitions, array).copy()
    changed[mdp.transitions.indptr[16]] = number
    setattr(mdp.transitions, array, changed)
    check_rows(mdp, np.delete(np.arange(31), 5))
    with pytest.raises(InvalidInput, match=r"state 5, action 1 are not a distribution"):
        check_rows(mdp, np.arange(31))


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, "JAX_COORDINATOR_ADDRESS=HOST:PORT, JAX_NUM_PROCESSES and JAX_PROCESS_ID"),
        ({"JAX_COORDINATOR_ADDRESS": "node"}, "HOST:PORT, not 'node'"),
        ({"JAX_NUM_PROCESSES": "two"}, "JAX_NUM_PROCESSES must be a whole number, not 'two'"),
        ({"JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "2"}, "JAX_PROCESS_ID must be from 0 to"),
    ],
)
def test_a_missing_or_wrong_variable_is_named(monkeypatch, variables, words):
    def refuse(*_: object, **__: object) -> None:
        raise ValueError("coordinator_address should be defined.")

    monkeypatch.setattr(jax.distributed, "initialize", refuse)
    monkeypatch.setattr(jax.config, "update", lambda *_: None)
    for name in ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput) as error:
        distributed.initialize()
    assert words in str(error.value)
