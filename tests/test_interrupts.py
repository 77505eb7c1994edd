"""Ctrl-C and SIGTERM: one exception, deferred where asked for, handlers restored."""

import gc
import signal
import sys
import threading
import time
from importlib import import_module

import pytest

from tsallax.interrupts import deferred, interruptible, signals_as_interrupts


@pytest.fixture(autouse=True)
def _default_handlers():
    """Ctrl-C raises KeyboardInterrupt, and no test leaves another handler behind."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.getsignal(signal.SIGTERM)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is before
    signal.signal(signal.SIGINT, previous)


def test_the_first_signal_is_deferred_and_the_second_raises():
    with deferred() as interrupted:
        assert not interrupted()
        signal.raise_signal(signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_termination_is_an_interrupt_and_is_deferred_like_one():
    with signals_as_interrupts():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        with deferred() as interrupted:
            signal.raise_signal(signal.SIGTERM)
            assert interrupted()


def test_termination_interrupts_a_background_job_which_ignores_ctrl_c():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals_as_interrupts(), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("kind", [SystemError, ImportError])
def test_an_interrupt_that_a_library_turned_into_another_exception_is_raised_again(kind):
    error = kind("failed")
    error.__cause__ = KeyboardInterrupt("details")
    with pytest.raises(KeyboardInterrupt, match="details"), interruptible():
        raise error


def test_other_exceptions_pass_also_after_an_interrupt_that_was_handled():
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(ImportError), interruptible():
            raise ImportError("no such module")  # noqa: B904


def test_an_interrupt_that_a_callback_discards_is_raised_again():
    def callback(phase, info):
        if phase == "start" and armed:
            armed.clear()
            signal.raise_signal(signal.SIGINT)

    armed = [True]
    hook = sys.unraisablehook
    gc.callbacks.append(callback)
    try:
        with signals_as_interrupts():
            gc.collect()
            assert not armed
            with pytest.raises(KeyboardInterrupt):
                time.sleep(5)
    finally:
        gc.callbacks.remove(callback)
    assert sys.unraisablehook is hook


def test_an_interrupt_during_an_import_is_raised_after_it(tmp_path, monkeypatch):
    (tmp_path / "interrupted_module.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGINT)\ncomplete = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with signals_as_interrupts():
        assert import_module("interrupted_module").complete
        with pytest.raises(KeyboardInterrupt):
            time.sleep(5)


def test_other_threads_leave_the_handlers_alone():
    found = []

    def work() -> None:
        with deferred() as interrupted, signals_as_interrupts():
            found.append(interrupted())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
