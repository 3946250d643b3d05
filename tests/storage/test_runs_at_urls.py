"""Runs at a URL: the same weights and rows as in a folder, also after kills, takeovers and outages."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from expgen.cli import evaluate
from expgen.errors import InputError
from expgen.reproduce.run_job import run_job, score_files
from expgen.storage import scratch
from expgen.storage.mirror import Mirror, Snapshot
from expgen.storage.store import SECONDS_VARIABLE, Store
from expgen.storage.view import fetch
from expgen.training.loop import Watcher
from tests.cluster.conftest import until
from tests.storage.s3_server import Faults

UPDATES = 60


def rows_in(file: Path) -> list[str]:
    """Return rows without the last column, the commit, which may change during the tests."""
    return [line.rpartition(",")[0] for line in file.read_text().splitlines()]


def fetched(url: str, folder: Path) -> Path:
    fetch(url, folder)
    return folder


@pytest.fixture(scope="module")
def settings(small) -> dict[str, Any]:
    return {"algo": "ppo", "resume": True, "eval_every": UPDATES * small.update_steps}


@pytest.fixture(scope="module")
def undisturbed(small, settings, tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    small.train(run, UPDATES, **settings)
    return run


@pytest.fixture
def assert_same(small, equal, undisturbed: Path, tmp_path: Path) -> Callable[[str], None]:
    def check(url: str) -> None:
        run = fetched(url, tmp_path / "fetched")
        assert equal(small.state(run), small.state(undisturbed))
        assert rows_in(run / "scores.csv") == rows_in(undisturbed / "scores.csv")
        steps = [[line.split(",")[:2] for line in rows_in(path / "metrics.csv")] for path in (run, undisturbed)]
        assert steps[0] == steps[1]
        kept = [sorted(path.name for path in where.rglob("*.safetensors")) for where in (run, undisturbed)]
        assert kept[0] == kept[1]

    return check


def test_train_evaluate_and_play_at_a_url_from_the_command_line(
    bucket: str, command, refused, small, settings, assert_same, tmp_path: Path
) -> None:
    flags = small.flags(bucket, UPDATES, algo="ppo", eval_every=settings["eval_every"])
    status, out, err = command(*flags)
    assert status == 0 and f"done: {bucket}" in out and "member0" in out, err
    assert_same(bucket)
    assert f"--run {bucket} already has a run" in refused(*flags)
    assert command("train", "--run", bucket, "--resume", "--device", "cpu").status == 0
    status, out, _ = command("status", bucket)
    assert status == 0 and bucket.rpartition("/")[2][:32] in out and "1 done" in out
    assert command("evaluate", bucket, "--episodes", 4, "--envs", 2).status == 0
    assert command("evaluate", bucket, "--episodes", 4, "--envs", 2, "--scores", tmp_path / "rows.csv").status == 0
    run = fetched(bucket, tmp_path / "again")
    assert rows_in(run / "scores.csv")[-1] == rows_in(tmp_path / "rows.csv")[-1]
    assert len(rows_in(run / "scores.csv")) == 4
    status, out, _ = command("fetch", bucket, tmp_path / "brought")
    assert status == 0 and (tmp_path / "brought" / "config.json").exists()
    assert command("evaluate", tmp_path / "brought", "--episodes", 4).status == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--run", "nowhere://a/b"], "nowhere"),
        (["train", "--run", "memory://run"], "lost with the process"),
        (["train", "--run", "s3://no-such-bucket/run", "--preset", "smoke"], "bucket does not exist"),
        (["evaluate", "s3://no-such-bucket/run"], "no run folder"),
        (["evaluate", "minimaze/expgen", "--scores", "s3://a/b.csv"], "--scores"),
        (["reproduce", "table-5", "--out", "nowhere://a/b"], "nowhere"),
        (["reproduce", "table-5", "--out", "s3://no-such-bucket/out"], "bucket does not exist"),
        (["status", "s3://no-such-bucket/run"], "accepted: a URL of a run or of a folder of runs"),
        (["fetch", "s3://no-such-bucket/run", "here"], "has no files"),
        (["report", "s3://a/scores.csv", "--out", "page"], "SCORES"),
    ],
)
def test_bad_urls_are_rejected_in_one_line(words: list[str], message: str, s3: Faults, refused) -> None:
    assert message in refused(*words)


def test_missing_storage_driver_is_one_line(refused, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    assert "gcsfs" in refused("train", "--run", "gs://bucket/run")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert "pip install 'expgen[storage]'" in refused("train", "--run", "gs://bucket/run")


def newest_at(url: str) -> Snapshot:
    return Mirror(Store(url), Path("unused")).newest()


@pytest.fixture
def slow_run() -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start a process that trains the run at a URL; return it after its first upload of a checkpoint."""
    started = []

    def start(url: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "tests.storage.slow_run", url, str(UPDATES)]
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # weights depend on the number of threads
        started.append(subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=one_thread))
        until(lambda: any(name.startswith("checkpoints/") for name in newest_at(url).files), "an uploaded checkpoint")
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_killed_run_at_a_url_resumes(bucket: str, slow_run, small, settings, s3, assert_same) -> None:
    s3.delay = 0.05  # most of the time an upload is running
    worker = slow_run(bucket)
    worker.kill()
    worker.wait()
    s3.delay = 0.0
    kept = newest_at(bucket)
    assert kept.is_open and any(name.startswith("checkpoints/") for name in kept.files)
    small.train(bucket, UPDATES, **settings)
    assert_same(bucket)


def test_newer_process_takes_over_a_run_at_a_url(bucket: str, slow_run, small, settings, assert_same) -> None:
    earlier = slow_run(bucket)
    small.train(bucket, UPDATES, take_over=True, **settings)
    _, err = earlier.communicate()
    assert earlier.returncode == 1 and f"TakenOver: another process has taken over {bucket}" in err
    assert_same(bucket)


def test_evaluate_does_not_edit_a_running_run(bucket: str, refused, small, settings) -> None:
    mirror = Mirror(Store(bucket), scratch.scratch_folder())
    small.train(bucket, 2, **settings)
    mirror.claim()
    assert "is in use" in refused("evaluate", bucket, "--episodes", 2)


def test_run_survives_slow_and_failing_storage(bucket: str, s3: Faults, small, settings, assert_same) -> None:
    s3.delay, s3.refused = 0.03, 0.2
    small.train(bucket, UPDATES, **settings)
    assert s3.refusals > 0
    s3.delay = s3.refused = 0.0
    assert_same(bucket)


def test_outage_during_training_loses_nothing(bucket, s3, small, settings, assert_same, monkeypatch) -> None:
    monkeypatch.setenv(SECONDS_VARIABLE, "5")
    outage: list[float] = []

    def at_row(learner: str, row: dict[str, float]) -> None:
        if row["env_steps"] == 10 * small.update_steps:
            s3.refused, s3.refusals = 1.0, 0
        if row["env_steps"] == (UPDATES - 10) * small.update_steps:
            until(lambda: s3.refusals > 0, "a refusal")
            outage.append(s3.refused)
            s3.refused = 0.0

    small.train(bucket, UPDATES, on_row=at_row, **settings)
    assert outage == [1.0]
    assert_same(bucket)


def test_long_outage_is_reported_and_files_are_kept(
    bucket, s3, small, settings, equal, undisturbed, assert_same, monkeypatch
) -> None:
    monkeypatch.setenv(SECONDS_VARIABLE, "5")

    def at_row(learner: str, row: dict[str, float]) -> None:
        s3.refused = 1.0

    with pytest.raises(InputError, match=r"did not respond within 5 s.* are kept in") as raised:
        small.train(bucket, UPDATES, on_row=at_row, **settings)
    kept = Path(str(raised.value).partition("are kept in ")[2].split()[0])
    assert equal(small.state(kept), small.state(undisturbed))
    s3.refused = 0.0
    small.train(bucket, UPDATES, **settings)
    assert_same(bucket)
    scratch.lock_folder(kept.parent)  # delete it with this process, and not before


def test_job_at_a_url_stops_resumes_and_is_then_skipped(bucket: str, small, tmp_path: Path) -> None:
    job = small.job("ppo")
    stop = Watcher(should_stop=lambda: True)
    for out in (bucket, tmp_path / "here"):
        states = [run_job(job, out, "", "cpu", watcher).status for watcher in (stop, None, None)]
        assert states == ["stopped", "done", "skipped"]
    there = fetched(bucket, tmp_path / "there")
    one, other = ([rows_in(file) for file in score_files(job, out)] for out in (there, tmp_path / "here"))
    assert one == other


def test_outage_before_the_row_is_written_is_a_failure(bucket, s3, small, settings, command, monkeypatch) -> None:
    small.train(bucket, UPDATES, **settings)
    monkeypatch.setenv(SECONDS_VARIABLE, "5")
    append = evaluate._append

    def goes_away(*words: Any) -> None:
        s3.refused = 1.0
        append(*words)

    monkeypatch.setattr(evaluate, "_append", goes_away)
    outcome = command("evaluate", bucket, "--episodes", 2)
    assert outcome.status == 1 and "member0" in outcome.out
    assert outcome.err.splitlines()[-1].endswith("the row of member0 was not written")
