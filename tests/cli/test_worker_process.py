"""The watching process passes on lines of the command, and turns an abort into one."""

import sys

import pytest

from tsallax.cli import worker_process

ABORT = """E1118 coordination_service_agent.cc:289] Polled an error from coordination service
F1118 client.h:80] Terminating process because the JAX distributed service detected fatal errors. \
absl::Status: UNAVAILABLE: Failed to send RPC
to coordination service.
*** Check failure stack trace: ***
    @     0x7fa6a8e20634  absl::lts_20260107::log_internal::LogMessage::SendToLog()
"""


@pytest.mark.parametrize(
    ("program", "code", "printed"),
    [
        ("print('[Gloo] connected', file=sys.stderr)", 0, ""),
        ("print('tsallax: error: no', file=sys.stderr); sys.exit(2)", 2, "tsallax: error: no\n"),
        (
            "sys.stderr.write(ABORT); sys.stderr.flush(); os.abort()",
            1,
            "tsallax: error: another process of this solve ended: UNAVAILABLE: Failed to send RPC "
            "to coordination service.\n",
        ),
        ("os.kill(os.getpid(), 9)", 1, "tsallax: error: the process that computes was ended by "
         "signal 9\n"),
        ("print('Traceback: a bug', file=sys.stderr); sys.exit(1)", 1, "Traceback: a bug\n"),
        ("sys.exit(int(os.environ['TSALLAX_WORKER']) < 3)", 0, ""),
    ],
)  # fmt: skip
def test_what_is_printed_and_returned(monkeypatch, tmp_path, capsys, program, code, printed):
    script = tmp_path / "tsallax.py"
    script.write_text(f"import os, sys\nABORT = {ABORT!r}\n{program}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert not worker_process.is_worker()
    assert worker_process.watch([]) == code
    assert capsys.readouterr().err == printed


def test_a_worker_ends_with_the_process_that_watches_it(tmp_path):
    import os
    import subprocess

    alive, held = os.pipe()
    program = (
        "from tsallax.cli.worker_process import prepare_worker; import os, time\n"
        "prepare_worker(); os.write(1, b'gloo'); print('ready', flush=True); time.sleep(100)"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "TSALLAX_WORKER": str(alive)},
        pass_fds=[alive], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(alive)
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"ready\n"
    os.close(held)
    out, err = worker.communicate(timeout=20)
    assert (worker.returncode, out, err) == (1, b"", b"gloo")
