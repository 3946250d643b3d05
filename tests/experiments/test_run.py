"""Runs end the same however they are interrupted, and refuse what would make them another run."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expgen
from expgen.errors import InputError
from expgen.evaluation.scores import read_scores
from expgen.experiments.request import EvaluationRequest, score_run
from expgen.experiments.run import default_folder, make_config
from expgen.experiments.run_folder import RunFolder

MINUTE = 60


def metrics(run: Path) -> list[dict[str, str]]:
    """The rows of metrics.csv without what depends on the clock; whole lines only, for a run may be under way."""
    if not (run / "metrics.csv").exists():
        return []
    lines = [line for line in (run / "metrics.csv").read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [{name: row[name] for name in row if name != "seconds"} for row in csv.DictReader(lines)]


def by_learner(run: Path) -> list[dict[str, str]]:
    return sorted(metrics(run), key=lambda row: (row["learner"], int(row["env_steps"])))


def wait_for_rows(run: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + MINUTE
    while len(metrics(run)) < count:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.005)


KILLER = """
import json, os, random, signal, sys, time
os.sched_setaffinity(0, {int(sys.argv[3])})  # one core: no threads that a fork would lose
import expgen

folder, settings = sys.argv[1], json.loads(sys.argv[2])
expgen.train(run=f"{folder}/whole", **settings)
kills = lives = 0
while kills < 20:
    run = f"{folder}/killed{lives}"
    child = os.fork()
    if child == 0:
        os._exit(0 if expgen.train(run=run, resume=True, **settings).is_complete else 1)
    time.sleep(random.uniform(0, 0.4))
    os.kill(child, signal.SIGKILL)  # still a zombie of ours if it has ended
    status = os.waitpid(child, 0)[1]
    kills += os.WIFSIGNALED(status)
    assert os.WIFSIGNALED(status) or status == 0, status
    lives += not os.WIFSIGNALED(status)  # it came to its end: go on with another
expgen.train(run=f"{folder}/killed{lives}", resume=True, **settings)
print(lives + 1)
"""


@pytest.mark.slow
def test_killed_twenty_times_a_run_ends_the_same(small: Any, equal: Callable[..., bool], tmp_path: Path) -> None:
    settings = {**small.settings, "steps": 30 * small.update_steps, "members": 2, "algo": "ppo-gru"}
    settings["eval_every"] = 10 * small.update_steps
    core = min(os.sched_getaffinity(0))
    program = [sys.executable, "-c", KILLER, str(tmp_path), json.dumps(settings), str(core)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=2 * MINUTE)
    assert done.returncode == 0, done.stderr
    whole = tmp_path / "whole"
    for number in range(int(done.stdout)):
        killed = tmp_path / f"killed{number}"
        for learner in ("member0", "member1"):
            assert small.facts(killed, learner)["updates"] == 30
            assert equal(small.state(whole, learner), small.state(killed, learner))
        assert by_learner(killed) == by_learner(whole) and len(by_learner(whole)) == 60
        scores, expected = (sorted(map(str, read_scores(run / "scores.csv"))) for run in (killed, whole))
        assert scores == expected and len(scores) == 4


UPDATES = 60


@pytest.fixture(scope="module")
def whole(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody interrupted."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    small.train(run, UPDATES, eval_every=10**9, checkpoint_seconds=3600.0)
    return run


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_command_that_is_stopped_goes_on_where_it_was(
    number: signal.Signals,
    small: Any,
    whole: Path,
    equal: Callable[..., bool],
    process: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    run, updates = tmp_path / "run", UPDATES
    # only the checkpoint that a stop asks for saves a run whose next one is an hour away
    changes = {"eval_every": 10**9, "checkpoint_seconds": 0.0 if number == signal.SIGKILL else 3600.0}
    command = process(*small.flags(run, updates, **changes))
    wait_for_rows(run, random.randint(2, 10), command)
    command.send_signal(number)
    out, err = command.communicate(timeout=MINUTE)
    rows = len(metrics(run))
    assert 2 <= rows < updates
    if number == signal.SIGKILL:
        assert command.returncode == -number
        assert small.facts(run)["updates"] in (rows - 1, rows)
    else:
        assert command.returncode == 128 + number
        assert err.splitlines()[-1] == f"expgen: stopped; go on with: expgen train --resume --run {run}"
        assert small.facts(run)["updates"] == rows
    resumed = process("train", "--resume", "--run", run, "--device", "cpu")
    out, err = resumed.communicate(timeout=MINUTE)
    assert resumed.returncode == 0 and out.startswith(f"done: {run}"), err
    assert equal(small.state(whole), small.state(run))
    assert metrics(run) == metrics(whole) and len(read_scores(run / "scores.csv")) == 2


def test_a_run_that_is_done_stays_as_it_is(small: Any, equal: Callable[..., bool], tmp_path: Path) -> None:
    small.train(tmp_path, eval_every=10**9)
    state, rows, scores = small.state(tmp_path), metrics(tmp_path), read_scores(tmp_path / "scores.csv")
    assert small.train(tmp_path, eval_every=10**9, resume=True).is_complete
    assert equal(state, small.state(tmp_path)) and rows == metrics(tmp_path)
    assert scores == read_scores(tmp_path / "scores.csv")


def test_more_steps_and_members_may_be_asked_of_a_resumed_run(
    small: Any, equal: Callable[..., bool], tmp_path: Path
) -> None:
    small.train(tmp_path / "long", 6, members=2)
    small.train(tmp_path / "grown", 3)
    result = small.train(tmp_path / "grown", 6, members=2, resume=True)
    assert result.is_complete and result.config.members == 2
    for learner in ("member0", "member1"):
        assert equal(small.state(tmp_path / "long", learner), small.state(tmp_path / "grown", learner))
    assert by_learner(tmp_path / "grown") == by_learner(tmp_path / "long")
    config, _ = RunFolder(tmp_path / "grown").read_config()
    assert (config.members, config.steps) == (2, 6 * small.update_steps)


def test_where_nothing_is_yet_resume_begins(small: Any, tmp_path: Path) -> None:
    assert small.train(tmp_path / "new", 1, resume=True).is_complete


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resume": False}, "--run .* holds a run already; accepted: --resume, or another folder"),
        ({"steps": 128}, "--steps is 128; accepted for this run: 256 or more"),
        ({"members": 1}, "--members is 1; accepted for this run: 2 or more"),
        ({"seed": 1}, "--resume: seed differs from .*config.json; accepted: more steps or members"),
        ({"gamma": 0.5}, "--resume: gamma differs"),
        ({"algo": "ppo-gru"}, "--resume: algo differs"),
        ({"env": "gymnasium:CartPole-v1"}, "--resume: env differs"),
        ({"options": {"texture": 0}}, "--resume: options differs"),
        ({"levels": "0:20"}, "--resume: levels differs"),
        ({"gama": 0.5}, "setting 'gama' is unknown"),
    ],
)
def test_another_run_is_refused_and_the_old_one_kept(
    changes: dict[str, Any], message: str, two: Path, small: Any, equal: Callable[..., bool]
) -> None:
    config, before = (two / "config.json").read_bytes(), small.state(two)
    with pytest.raises(InputError, match=message):
        small.train(two, **{"updates": 2, "members": 2, "resume": True, **changes})
    assert (two / "config.json").read_bytes() == config and equal(before, small.state(two))


@pytest.fixture(scope="module")
def two(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "two"
    small.train(run, 2, members=2)
    return run


@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign", "empty"])
def test_a_damaged_checkpoint_costs_one_update_and_no_more(
    damage: str, small: Any, equal: Callable[..., bool], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    small.train(run, 3)
    whole, path = small.state(run), small.newest(run)
    good = path.read_bytes()
    flipped = good[:-9] + bytes([good[-9] ^ 1]) + good[-8:]
    contents = {"truncated": good[: len(good) // 2], "flipped": flipped, "foreign": b"PK\x03\x04 zip", "empty": b""}
    path.write_bytes(contents[damage])
    rows = metrics(run)
    assert small.train(run, 3, resume=True).is_complete
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"expgen: {path} is ") and line.endswith("trying the one before")
    assert equal(whole, small.state(run)) and path.read_bytes() != contents[damage]
    assert metrics(run) == rows


def test_no_good_checkpoint_left_is_bad_input_and_touches_nothing(
    small: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    small.train(run, 3)
    for path in run.rglob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    rows = metrics(run)
    for words in (("train", "--resume", "--run", run, "--device", "cpu"), ("evaluate", run, "--episodes", "1")):
        outcome = command(*words)
        lines = outcome.err.splitlines()
        assert outcome.status == 2 and len(lines) == 2
        assert lines[0].endswith("trying the one before") and all(line.startswith("expgen: ") for line in lines)
        assert f"{min(run.rglob('*.safetensors'))} is not a whole expgen checkpoint; accepted:" in lines[1]
    assert metrics(run) == rows


def test_checkpoint_of_another_network_is_refused_by_the_command(
    small: Any, refused: Callable[..., str], tmp_path: Path
) -> None:
    small.train(tmp_path / "run", 1)
    data = json.loads((tmp_path / "run" / "config.json").read_text())
    data["train"]["network"]["features"] = 24
    (tmp_path / "run" / "config.json").write_text(json.dumps(data))
    for words in (("train", "--resume", "--run", tmp_path / "run", "--device", "cpu"), ("evaluate", tmp_path / "run")):
        assert "another network: encoder.linear1.bias is (16,); accepted: (24,)" in refused(*words)


FULL_DISK = """
import resource, sys
from expgen.cli.main import main
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("what", ["checkpoint", "metrics"])
def test_a_full_disk_is_one_line_and_loses_nothing(what: str, small: Any, tmp_path: Path) -> None:
    whole, run = tmp_path / "whole", tmp_path / "run"
    small.train(whole, 40)
    small.train(run, 2)
    if what == "metrics":  # checkpoints an hour away, so that the metrics are what fills the disk
        data = json.loads((run / "config.json").read_text())
        data["train"]["checkpoint_seconds"] = 3600.0
        (run / "config.json").write_text(json.dumps(data, indent=2))
    config, checkpoint = (run / "config.json").stat().st_size, small.newest(run).stat().st_size
    limit = {"checkpoint": checkpoint // 2, "metrics": config + 200}[what]
    words = ["train", "--resume", "--run", str(run), "--steps", str(40 * small.update_steps), "--device", "cpu"]
    program = [sys.executable, "-c", FULL_DISK, str(limit), *words]
    done = subprocess.run(program, capture_output=True, text=True, timeout=MINUTE)
    (line,) = [line for line in done.stderr.splitlines() if "steps/s" not in line]  # less the lines of progress
    assert done.returncode == 1 and line.startswith("expgen: cannot write ") and "File too large; accepted: " in line
    assert ("checkpoints" in line) == (what == "checkpoint")
    assert small.facts(run)["updates"] == 2 and not list(run.rglob("*.part"))
    assert expgen.train(run=run, resume=True, device="cpu").is_complete  # with space again
    assert small.facts(run)["updates"] == 40
    assert metrics(run) == metrics(whole)


def test_a_folder_that_cannot_be_written_is_one_line(small: Any, refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    line = refused(*small.flags(tmp_path / "file" / "run"))
    assert line.startswith(f"expgen: cannot write {tmp_path}/file/run/sitting.json: ")
    assert line.endswith("accepted: a writable folder with space")
    assert (tmp_path / "file").read_text() == "mine"


def test_the_default_folder_names_game_algorithm_and_seed() -> None:
    assert default_folder(make_config("procgen:maze", "ppo-gru", seed=3)) == Path("runs/maze-ppo-gru-seed3")
    assert default_folder(make_config("gymnasium:ALE/Pong-v5")) == Path("runs/ALE-Pong-v5-ppo-seed0")


def test_the_default_folder_resumes_too(small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {**small.settings, "steps": 2 * small.update_steps}
    assert expgen.train(**settings).folder.path == Path("runs/minimaze-ppo-seed0")
    with pytest.raises(InputError, match="holds a run already"):
        expgen.train(**settings)
    assert expgen.train(**settings, resume=True).is_complete


def test_levels_from_python_survive_the_run_folder(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1, levels=range(10, 20), test_levels=[3])
    assert small.train(tmp_path, 2, levels=range(10, 20), test_levels=[3], resume=True).config.levels == "10:10"
    expgen.load_agent(tmp_path)


def test_checkpoints_without_a_config_are_not_taken_for_a_new_run(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1)
    (tmp_path / "config.json").unlink()
    with pytest.raises(InputError, match=r"holds checkpoints but no config\.json; accepted: a folder without them"):
        small.train(tmp_path, 2)


def test_a_task_without_levels_trains_and_is_scored_on_what_it_plays(small: Any, tmp_path: Path) -> None:
    pytest.importorskip("envpool", reason="EnvPool is an optional extra")
    changes = {"env": "envpool:CartPole-v1", "levels": "all", "eval_every": small.update_steps}
    assert small.train(tmp_path / "run", 1, **changes).is_complete
    assert [row.split for row in read_scores(tmp_path / "run" / "scores.csv")] == ["train"]
    with pytest.raises(InputError, match="has no levels to leave unseen; accepted: --split train"):
        next(score_run(RunFolder(tmp_path / "run"), EvaluationRequest()))
