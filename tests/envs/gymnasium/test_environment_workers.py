"""Environments in workers do what they would do here; errors and ended processes are reported."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fleet_environments
from fleet_environments import Drift
from tsallax.envs.gymnasium import environment_workers
from tsallax.envs.gymnasium.environment_workers import (
    EnvironmentWorkers,
    WorkerLost,
    copies,
    default_workers,
    row_type,
)
from tsallax.errors import InvalidInput

ROW = row_type(np.zeros((1, 4), np.float32))


def pool(make: Any, n: int = 3, workers: int = 0) -> EnvironmentWorkers:
    return EnvironmentWorkers("Drift", copies(make), n, ROW, np.int32(0), workers)


def follow(found: EnvironmentWorkers, steps: int = 30) -> None:
    """Compare each row with environments of our own, over the ends of episodes."""
    n = found.environments
    actions = np.random.default_rng(0).integers(0, 2, (steps, n))
    own, slots = [Drift() for _ in range(n)], list(range(n))
    found.reset(slots, [100 + i for i in slots])
    first = [env.reset(seed=100 + i)[0] for i, env in enumerate(own)]
    assert np.array_equal(found.rows["observation"][:n], first)
    episode, ends = [1] * n, 0
    for action in actions:
        found.seed[:n] = [1000 * number + i for i, number in enumerate(episode)]
        found.send(slots[:1], action[:1])
        found.send(slots[1:], action[1:])
        found.wait()
        found.wait()
        for i, env in enumerate(own):
            after, reward, terminated, truncated, _ = env.step(action[i])
            row = found.rows[i]
            assert np.array_equal(row["next_observation"], after)
            assert (row["terminated"], row["truncated"]) == (terminated, truncated)
            assert found.reward[i] == reward
            assert row["reward"] == np.float32(reward)
            if terminated or truncated:
                after, ends = env.reset(seed=1000 * episode[i] + i)[0], ends + 1
                episode[i] += 1
            assert np.array_equal(row["observation"], after)
    assert ends > n
    assert not found.rows["observation"][n:].any(), "nothing was asked of the other slots"


def test_environments_in_this_process_do_what_they_are_told():
    follow(pool(Drift))


def test_environments_in_workers_do_the_same_and_end_with_their_owner():
    found = pool(Drift, workers=2)
    follow(found)
    processes = [worker.process for worker in found._workers]
    assert len(processes) == 2
    assert all(process.is_alive() for process in processes)
    del found
    assert [process.exitcode for process in processes] == [0, 0]


def walk(found: EnvironmentWorkers, slot: int) -> None:
    """Start all environments and make steps in one of them."""
    found.reset(list(range(found.environments)), list(range(found.environments)))
    for _ in range(10):
        found.send([slot], [0])
        found.wait()


PLACE = r"\(fleet_environments\.py, line \d+\)"


@pytest.mark.parametrize(
    ("make", "words", "workers"),
    [
        ("broken_step", f"step raised ValueError: joint 3 is broken {PLACE}", 0),
        ("broken_step", f"step raised ValueError: joint 3 is broken {PLACE}", 1),
        ("broken_reset", rf"reset raised KeyError: 'no such\\nlevel' {PLACE}", 0),
        ("broken_reward", "step returned the reward nan, after 4 steps of an episode", 0),
        ("broken_make", f"make raised RuntimeError: no licence {PLACE}", 0),
    ],
)
def test_errors_are_one_line_with_environment_and_method(make, words, workers):
    found = pool(getattr(fleet_environments, make), n=2, workers=workers)
    with pytest.raises(InvalidInput) as error:
        walk(found, 1)
    number = 0 if make == "broken_make" else 1
    assert re.fullmatch(rf"Drift: {words} \(environment {number}\)", str(error.value))
    assert found.closed
    with pytest.raises(WorkerLost, match="Drift: these environments are closed"):
        found.send([0], [0])


def test_a_killed_worker_ends_the_others(monkeypatch):
    monkeypatch.setattr(environment_workers, "POLL_SECONDS", 0.05)
    found = pool(fleet_environments.killed, workers=3)
    processes = [worker.process for worker in found._workers]
    with pytest.raises(WorkerLost, match="the process of environments 2 to 2 ended with code -9"):
        walk(found, 2)
    assert [process.exitcode for process in processes] == [0, 0, -9]


def test_functions_that_workers_cannot_import_are_refused():
    with pytest.raises(InvalidInput, match=r"cannot be passed to worker processes .*workers=0"):
        pool(lambda: Drift(), workers=1)
    assert pool(lambda: Drift(), workers=0).environments == 3


def test_workers_leave_cores_for_the_agents_and_have_equal_shares():
    assert [default_workers(n, cores=16) for n in (1, 2, 14, 15, 16, 40)] == [0, 2, 14, 8, 8, 14]
    assert [default_workers(4, cores=c) for c in (1, 2, 3, 4, 6, 64)] == [0, 0, 0, 2, 4, 4]


def test_a_row_has_the_type_of_observations_and_masks():
    image = row_type(np.zeros((1, 3, 5, 1), np.uint8), np.ones((1, 7), np.bool_))
    assert image["observation"].shape == image["next_observation"].shape == (3, 5, 1)
    assert image["observation"].base == np.uint8
    assert image["mask"].shape == image["next_mask"].shape == (7,)
    assert row_type(np.zeros(1, np.int32))["observation"] == np.int32
    for kind in (image, ROW):
        assert kind.itemsize % 4 == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "guard", "words"),
    [
        ("fleet_environments:Drift", "if True:", "[5]"),
        ("__main__:Local", 'if __name__ == "__main__":', "[5]"),
        ("__main__:Local", "if True:", "needs: if __name__ =="),
    ],
)
def test_scripts_need_a_guard_only_for_environments_of_their_own(where, guard, words, tmp_path):
    """An id that only the script has registered works in either case."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""
        import sys
        sys.path[:0] = sys.argv[1:]
        import gymnasium
        import numpy as np
        from fleet_environments import Drift
        from tsallax.envs.gymnasium.environment_workers import EnvironmentWorkers, copies, row_type

        class Local(Drift):
            pass

        gymnasium.register("Mine-v0", {where!r})
        {guard}
            row = row_type(np.zeros((1, 4), np.float32))
            found = EnvironmentWorkers("Mine", copies("Mine-v0"), 1, row, np.int32(0), 1)
            found.reset([0], [3])
            print([int(found.rows["observation"][0].size + 1)])
        """)
    )
    command = [sys.executable, script, str(Path(__file__).parents[2])]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert words in result.stdout + result.stderr


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_process_is_left_behind(number, tmp_path: Path):
    script = tmp_path / "owner.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        sys.path[:0] = sys.argv[1:]
        from test_environment_workers import Drift, pool

        if __name__ == "__main__":
            found = pool(Drift, workers=2)
            found.reset([0, 1, 2], [0, 1, 2])
            print(*(worker.process.pid for worker in found._workers), flush=True)
            while True:
                found.send([0, 1, 2], [0, 1, 1])
                found.wait()
        """)
    )
    here = Path(__file__).parent
    command = [sys.executable, script, str(here), str(here.parents[1])]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pids = [int(word) for word in owner.stdout.readline().split()]
    assert len(pids) == 2
    owner.send_signal(number)
    owner.wait(60)
    end = time.monotonic() + 60
    while any(_runs(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(_runs(pid) for pid in pids)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
