"""CUDA MPS, with a fake of NVIDIA's control program, which only machines with a GPU have."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from expgen.fast.mps import CONTROL, PIPES, cuda_mps
from tests.children import is_running, until

DAEMON = """#!/bin/sh
# Logs its commands; -d starts a background process that keeps inherited files open.
if [ "$1" = -d ]; then
  echo "start ${CUDA_VISIBLE_DEVICES-unset}" >> "$NOTES"
  touch "$CUDA_MPS_PIPE_DIRECTORY/control"
  sleep 30 &
  echo $! > "$CUDA_MPS_PIPE_DIRECTORY/pid"
else
  read word
  [ -e "$CUDA_MPS_PIPE_DIRECTORY/control" ] || exit 1
  echo "$word" >> "$NOTES"
  if [ "$word" = quit ]; then kill "$(cat "$CUDA_MPS_PIPE_DIRECTORY/pid")"; fi
fi
"""


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv(PIPES, raising=False)
    return tmp_path / "notes"


def install(notes: Path, script: str) -> None:
    program = notes.parent / CONTROL
    program.write_text(script)
    program.chmod(0o755)


def test_mps_daemon_runs_inside_the_context(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(notes, DAEMON)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    began = time.monotonic()
    with cuda_mps(timeout=20.0) as variables:
        folder = Path(variables[PIPES])
        assert (folder / "control").exists() and set(variables) == {PIPES, "CUDA_MPS_LOG_DIRECTORY"}
        assert notes.read_text() == "start unset\nget_default_active_thread_percentage\n"
        pid = int((folder / "pid").read_text())
        assert os.getpgid(pid) != os.getpgid(0)  # Ctrl-C and `timeout` signal a whole process group
    assert notes.read_text().endswith("quit\n") and not folder.exists()
    assert time.monotonic() - began < 20  # the process does not end by itself in this time
    until(lambda: not is_running(pid))


@pytest.mark.parametrize("script", [None, "#!/bin/sh\nexit 1\n", "#!/bin/sh\nsleep 30\n", "no program at all\n"])
def test_mps_variables_are_empty_when_the_daemon_does_not_start(script: str | None, notes: Path) -> None:
    if script:
        install(notes, script)
    with cuda_mps(timeout=0.3) as variables:
        assert variables == {}
    until(lambda: not list(notes.parent.glob("expgen-mps-*")))


def test_users_own_mps_daemon_is_used(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(notes, DAEMON)
    monkeypatch.setenv(PIPES, "/elsewhere")
    with cuda_mps() as variables:
        assert variables == {}
    assert not notes.exists()


def test_mps_daemon_is_stopped_when_its_owner_is_killed(notes: Path) -> None:
    install(notes, DAEMON)
    lines = ("import time", "from expgen.fast.mps import cuda_mps", "with cuda_mps(5.0):", " print(flush=True)")
    program = "\n".join((*lines, " time.sleep(60)"))
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    owner.stdout.readline()
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    until(lambda: not list(notes.parent.glob("expgen-mps-*")))
    assert notes.read_text().endswith("quit\n")
