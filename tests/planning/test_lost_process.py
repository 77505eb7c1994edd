"""Errors of JAX that mean a lost process, and those that do not."""

import jax
import pytest

from tsallax.planning.lost_process import ProcessLost, reporting_lost_processes

GLOO = "UNKNOWN: Gloo AllGather failed:\n Connection closed by peer [127.0.0.1]:12176"


@pytest.mark.parametrize(
    ("processes", "message", "kind"),
    [
        (2, GLOO, ProcessLost),
        (1, GLOO, jax.errors.JaxRuntimeError),
        (2, "RESOURCE_EXHAUSTED: Out of memory", jax.errors.JaxRuntimeError),
    ],
)
def test_errors_of_connections_are_lost_processes(monkeypatch, processes, message, kind):
    monkeypatch.setattr(jax, "process_count", lambda: processes)
    with pytest.raises(kind) as error, reporting_lost_processes():
        raise jax.errors.JaxRuntimeError(message)
    if kind is ProcessLost:
        assert str(error.value) == (
            "another process of this solve ended: UNKNOWN: Gloo AllGather failed: "
            "Connection closed by peer [127.0.0.1]:12176"
        )
