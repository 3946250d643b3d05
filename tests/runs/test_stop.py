"""StopSignals: the first signal asks to stop, the second stops at once, and previous handlers are restored."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.runs import stop
from expgen.runs.stop import SIGNALS, StopSignals
from tests.children import PATIENCE, until
from tests.runs.rows import metrics


@pytest.mark.parametrize("number", SIGNALS)
def test_first_signal_asks_and_second_raises_keyboard_interrupt(
    number: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "SAME_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt), StopSignals() as signals:
        assert not signals.arrived()
        signal.raise_signal(number)
        assert signals.arrived() and signals.number == number
        assert capfd.readouterr().err.count("\n") == 1
        signal.raise_signal(signal.SIGINT)
        pytest.fail("the second signal was ignored")
    assert signals.number == number  # the exit status is that of the first signal


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_sent_twice_at_once_counts_once(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    with StopSignals() as signals:
        for _ in range(3):
            signal.raise_signal(number)
        assert signals.number == number
    assert capfd.readouterr().err.count("stopping") == 1


def test_stop_message_says_when_the_command_stops(capfd: pytest.CaptureFixture[str]) -> None:
    with StopSignals(when_stopping=lambda: "in 3 s, with a checkpoint"):
        signal.raise_signal(signal.SIGINT)
    assert capfd.readouterr().err == "expgen: stopping in 3 s, with a checkpoint; a second signal stops at once\n"


@pytest.mark.parametrize("number", SIGNALS)
def test_previous_handlers_are_restored_after_an_error(number: int) -> None:
    heard: list[int] = []
    before = signal.signal(number, lambda number, frame: heard.append(number))
    try:
        with pytest.raises(ZeroDivisionError), StopSignals():
            raise ZeroDivisionError
        signal.raise_signal(number)
    finally:
        signal.signal(number, before)
    assert heard == [number]


def test_nested_stop_signals_use_the_inner_handler() -> None:
    with StopSignals() as outer:
        with StopSignals() as inner:
            signal.raise_signal(signal.SIGTERM)
        assert inner.arrived() and not outer.arrived()
        signal.raise_signal(signal.SIGTERM)
        assert outer.arrived()


def test_training_goes_on_if_nobody_reads_its_progress(
    process: Callable[..., subprocess.Popen[str]], small: Any, tmp_path: Path
) -> None:
    """As in `expgen train 2> >(head -1)`."""
    reader, writer = os.pipe()
    os.close(reader)
    command = process(*small.flags(tmp_path / "run", 3), stderr=writer)
    os.close(writer)
    out, _ = command.communicate(timeout=PATIENCE)
    assert command.returncode == 0 and out.startswith("done: ")
    assert small.facts(tmp_path / "run")["env_steps"] == 3 * small.update_steps


SWALLOWED = """
import os, signal, sys, time
from expgen.runs import stop

stop.UNWIND_SECONDS = 0.2


class Deleted:
    def __del__(self):
        signal.raise_signal(int(sys.argv[2]))  # an exception raised here is swallowed


with stop.StopSignals(sys.argv[1]):
    Deleted()
    time.sleep(60)
"""


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("reaction", ["unwind", "exit"])
def test_signal_ends_the_process_if_its_exception_is_swallowed(reaction: str, number: int) -> None:
    words = [sys.executable, "-c", SWALLOWED, reaction, str(number)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 128 + number and done.stderr.endswith("expgen: interrupted\n")


def test_nohup_keeps_sighup_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals("exit"):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
def test_timeout_stops_a_run_and_the_same_command_resumes_it(
    small: Any, process: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """`timeout` signals the command and then its process group, in which are the command again and its workers."""
    run = tmp_path / "run"
    flags = [*small.flags(run, 10**5, checkpoint_seconds=3600.0, algo="ppo", members=2), "--processes", "2", "--resume"]
    for number in range(2):
        command, before = process(*flags, start_new_session=True), len(metrics(run))
        until(lambda before=before: len(metrics(run)) > before)
        os.kill(command.pid, signal.SIGTERM)
        time.sleep(0.05)  # the command handles the first signal before the second arrives
        os.killpg(command.pid, signal.SIGTERM)
        _, err = command.communicate(timeout=PATIENCE)
        assert command.returncode == 128 + signal.SIGTERM and "expgen: stopped; continue with" in err, (number, err)
        assert sum(small.facts(run, f"member{member}")["updates"] for member in range(2)) == len(metrics(run)) > before


@pytest.mark.slow
def test_ctrl_c_during_startup_ends_the_command(
    small: Any, process: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    for number, seconds in enumerate((0.1, 0.3, 0.6, 1.0, 1.5)):
        command = process(*small.flags(tmp_path / str(number), 10**5, checkpoint_seconds=3600.0))
        time.sleep(seconds)
        command.send_signal(signal.SIGINT)
        _, err = command.communicate(timeout=PATIENCE)
        is_before_our_code = "Fatal Python error: init_import_site" in err
        assert is_before_our_code or command.returncode in (130, -signal.SIGINT), (seconds, command.returncode, err)


@pytest.mark.slow
def test_closed_terminal_stops_a_run_with_a_checkpoint(
    small: Any, process: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    ours, theirs = pty.openpty()
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "start_new_session": True}
    attach = "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
    hear = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)"  # nohup ignores it, and children inherit that
    program = f"{attach}; {hear}; from expgen.cli.main import main; sys.exit(main())"
    words = [sys.executable, "-c", program, *small.flags(tmp_path, 10**5, checkpoint_seconds=3600.0)]
    with subprocess.Popen(list(map(str, words)), **streams) as command:
        os.close(theirs)
        os.set_blocking(ours, False)
        until(lambda: len(metrics(tmp_path)) >= 3)
        os.close(ours)
        try:
            assert command.wait(PATIENCE) == 128 + signal.SIGHUP
        finally:
            command.kill()
    assert small.facts(tmp_path)["updates"] == len(metrics(tmp_path)) >= 3
