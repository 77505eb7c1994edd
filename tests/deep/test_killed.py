"""Training that is killed and resumed ends with the weights of training that was not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from small_agents import assert_same
from tsallax import DeepQ

HERE = Path(__file__).parents[1]


class Runner:
    """Runs `train_and_resume.py` on a file; what is compiled once is compiled for all runs."""

    def __init__(self, folder: Path, env: str, amount: int) -> None:
        self.folder, self.env, self.amount = folder, env, amount

    def start(self, file: str) -> subprocess.Popen[str]:
        variables = {
            "JAX_COMPILATION_CACHE_DIR": str(self.folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)]),
        }
        command = [sys.executable, str(HERE / "train_and_resume.py"), self.env]
        return subprocess.Popen(
            [*command, str(self.folder / file), str(self.amount)],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            text=True,
        )

    def finish(self, file: str) -> int:
        """Run to the end; give the step at which it began."""
        output, _ = (process := self.start(file)).communicate(timeout=120)
        assert process.returncode == 0
        return int(output)

    def kill(self, file: str, after: float) -> int:
        """Kill a run some time after its first file of this run; give the step it began at."""
        path, process = self.folder / file, self.start(file)
        before = path.stat().st_mtime_ns if path.exists() else 0
        begun = int(process.stdout.readline())
        while process.poll() is None and (not path.exists() or path.stat().st_mtime_ns == before):
            time.sleep(0.002)
        time.sleep(after)
        process.kill()
        process.communicate()
        assert process.returncode in (0, -signal.SIGKILL)
        return begun


@pytest.mark.slow
@pytest.mark.parametrize(("env", "amount"), [("MultiGoal-v0", 8000), ("CartPole-v1", 150)])
def test_training_that_is_killed_again_and_again_ends_with_the_same_weights(env, amount, tmp_path):
    runner = Runner(tmp_path, env, amount)
    assert runner.finish("whole") == 0
    moments = random.Random(0)
    begun = [runner.kill("killed", after=moments.uniform(0, 0.3)) for _ in range(3)]
    begun.append(runner.finish("killed"))
    whole, killed = (DeepQ.load(tmp_path / file) for file in ("whole", "killed"))
    assert begun[0] == 0
    assert 0 < begun[1] <= begun[2] <= begun[3]
    assert len(set(begun)) >= 3, "the runs must have been killed on the way"
    assert_same(killed, whole)
