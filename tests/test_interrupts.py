"""Ctrl-C and SIGTERM: raised, deferred, and as causes of other exceptions."""

import signal
import threading

import pytest

from tsallax.interrupts import deferred, interruptible, termination_as_interrupt


def interrupted_call():
    """What a compiled function raises when it is interrupted."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        raise SystemError("returned a result with an exception set") from error


def test_an_interrupt_inside_a_compiled_call_is_raised_as_itself():
    with pytest.raises(KeyboardInterrupt), interruptible():
        interrupted_call()


def test_other_errors_are_left_alone_even_while_an_interrupt_is_handled():
    with pytest.raises(SystemError), interruptible():
        raise SystemError
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(SystemError), interruptible():
            raise SystemError  # noqa: B904


def test_the_first_interrupt_is_deferred_and_the_second_raises():
    before = signal.getsignal(signal.SIGINT)
    with deferred() as interrupted:
        assert not interrupted()
        signal.raise_signal(signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_termination_is_an_interrupt():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), termination_as_interrupt():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_other_threads_leave_signals_alone():
    seen = []

    def work():
        with deferred() as interrupted, termination_as_interrupt():
            seen.append(interrupted())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]
