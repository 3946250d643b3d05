"""The expgen command: verbs, exit statuses, one-line errors, lazy imports."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.cli import evaluate
from expgen.cli.main import VERBS, main


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("--debug",)])
def test_usage_names_every_verb(words: tuple[str, ...], command: Callable[..., Any]) -> None:
    outcome = command(*words)
    assert outcome.status == 0 and outcome.err == ""
    assert all(f"expgen {verb}" in outcome.out for verb in VERBS)


def test_version_flag_prints_the_version(command: Callable[..., Any]) -> None:
    outcome = command("--version")
    assert outcome.status == 0 and outcome.out.startswith("expgen v0.")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, command: Callable[..., Any]) -> None:
    outcome = command(verb, "--help")
    assert outcome.status == 0 and outcome.out.startswith(f"usage: expgen {verb}") and outcome.err == ""


def test_unknown_verb_is_rejected(refused: Callable[..., str]) -> None:
    assert refused("fly") == f"expgen: verb is 'fly'; accepted: {', '.join(VERBS)}"
    assert "--steps" in refused("--steps", "3")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["fly"], []])
def test_help_and_errors_do_not_import_torch(words: list[str]) -> None:
    code = "import sys; from expgen.cli.main import main; main(sys.argv[1:]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "expgen.cli.main" in loaded and not {"torch", "numpy", "tensorboard"} & set(loaded)


def test_closed_standard_streams_lose_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ["train", "--preset", "smoke", "--steps", "1024", "--eval-every", "0", "--run", str(run)]
    for given in (words, ["evaluate", str(run), "--episodes", "2"]):
        done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-m", "expgen", *given])
        assert done.returncode == 0
    assert len((run / "scores.csv").read_text().splitlines()) == 2
    assert len(list((run / "checkpoints" / "member0").iterdir())) == 1


def test_score_that_cannot_be_printed_is_kept(tmp_path: Path) -> None:
    words = ["evaluate", "minimaze/ppo", "--episodes", "2", "--scores", str(tmp_path / "scores.csv")]
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "expgen", *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "No space left on device" in done.stderr
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 2


def test_minimaze_trains_without_optional_packages(tmp_path: Path) -> None:
    """Packages are imported only where they are used."""
    code = """
import sys
from expgen.cli.main import main
for name in ("gymnasium", "matplotlib", "pandas", "PIL", "scipy", "tensorboard", "wandb", "mlflow", "ray", "fsspec"):
    sys.modules[name] = None
sys.exit(main(sys.argv[1:]))"""
    run = str(tmp_path / "run")
    for words in (["train", "minimaze", "--preset", "smoke", "--run", run], ["evaluate", run, "--episodes", "4"]):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_failure_prints_one_line_and_debug_raises(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(argv: object) -> int:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(evaluate, "main", fail)
    outcome = command("evaluate")
    assert outcome.status == 1
    assert outcome.err == "expgen: failed: RuntimeError: two lines (--debug shows where)\n"
    with pytest.raises(RuntimeError):
        main(["evaluate", "--debug"])
    with pytest.raises(RuntimeError):
        main(["--debug", "evaluate"])


def test_folder_without_permission_is_bad_input(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(words: object) -> int:
        raise PermissionError(13, "Permission denied", "run/config.json")

    monkeypatch.setattr(evaluate, "main", deny)
    outcome = command("evaluate", "run")
    line = "cannot access run/config.json: Permission denied; accepted: files and folders with permission"
    assert (outcome.status, outcome.err) == (2, f"expgen: {line}\n")


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, 130), (BrokenPipeError, 1)])
def test_interrupt_and_closed_pipe_have_exit_statuses(
    error: type[BaseException], status: int, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(argv: object) -> int:
        raise error

    monkeypatch.setattr(evaluate, "main", fail)
    assert command("evaluate").status == status


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["slurm", "--help"], ["slurm", "--", "train", "maze"]])
def test_closed_stdout_prints_no_error(words: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run([sys.executable, "-m", "expgen", *words], stdout=write_end, stderr=subprocess.PIPE, env=env)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (1, b"")


def test_python_dash_m_expgen_runs_the_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "expgen", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("expgen ")
