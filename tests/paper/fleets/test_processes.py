"""Fleets in processes of their own pass on their errors.

That Ctrl-C saves them is tested beside Ray's workers, and that rows are the same with `execution`.
"""

import multiprocessing
from pathlib import Path
from types import SimpleNamespace

import pytest

from refusals import refused
from small_sweeps import plan, small
from tsallax.errors import InvalidInput
from tsallax.paper.fleets import processes
from tsallax.paper.fleets.job_training import train_in_process
from tsallax.paper.fleets.processes import JobProcess, train_side_by_side


@pytest.mark.parametrize(
    ("code", "error"),
    [(0, None), (2, InvalidInput), (-9, InvalidInput), (1, InvalidInput), (130, KeyboardInterrupt)],
)
def test_the_error_of_a_process_is_raised(code, error, tmp_path: Path):
    (job,) = plan(small(), tmp_path)
    receiver, sender = multiprocessing.Pipe(duplex=False)
    sender.send("the text of the error")
    worker = JobProcess(SimpleNamespace(exitcode=code), job.name, receiver)
    if error is None:
        processes._check_exit(worker)
        return
    with pytest.raises(error) as refusal:
        processes._check_exit(worker)
    if code == 2:
        assert str(refusal.value) == "the text of the error"
    elif error is InvalidInput:
        assert job.name in str(refusal.value)


@pytest.mark.slow
def test_an_error_in_a_process_is_raised_in_one_line(tmp_path: Path):
    (job,) = plan(small(), tmp_path)
    job.files.checkpoint.parent.mkdir(parents=True)
    job.files.checkpoint.write_text("not a fleet")
    with refused(job.files.checkpoint.name):
        train_side_by_side([job], 2, lambda: None, train_in_process)
