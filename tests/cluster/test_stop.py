"""Ctrl-C and SIGTERM: the first is a question, the second an end, and afterwards all is as it was."""

import signal

import pytest

from expgen.cluster.stop import StopSignals

BOTH = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("number", BOTH)
def test_the_first_asks_and_the_second_stops_at_once(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), StopSignals() as signals:
        assert not signals.arrived()
        signal.raise_signal(number)
        assert signals.arrived() and signals.number == number
        assert capsys.readouterr().err.count("\n") == 1
        signal.raise_signal(signal.SIGINT)
        pytest.fail("the second one passed unnoticed")
    assert signals.number == number  # the exit status names what came first


@pytest.mark.parametrize("number", BOTH)
def test_handlers_of_before_are_back_also_after_an_error(number: int) -> None:
    heard: list[int] = []
    before = signal.signal(number, lambda number, frame: heard.append(number))
    try:
        with pytest.raises(ZeroDivisionError), StopSignals():
            raise ZeroDivisionError
        signal.raise_signal(number)
    finally:
        signal.signal(number, before)
    assert heard == [number]


def test_one_within_another_asks_the_inner_one() -> None:
    with StopSignals() as outer:
        with StopSignals() as inner:
            signal.raise_signal(signal.SIGTERM)
        assert inner.arrived() and not outer.arrived()
        signal.raise_signal(signal.SIGTERM)
        assert outer.arrived()
