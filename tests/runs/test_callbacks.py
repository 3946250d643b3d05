"""Callbacks get the values of metrics.csv and the checkpoints, in one or more processes; invalid ones are refused."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import expgen
from expgen.training.callbacks import Callbacks
from tests.runs.rows import metrics


class Recorder(expgen.Callback):
    """Records all calls."""

    def __init__(self) -> None:
        self.settings: Mapping[str, Any] = {}
        self.started: list[tuple[str, int]] = []
        self.rows: dict[tuple[str, int], dict[str, float]] = {}
        self.scores: dict[tuple[str, int], dict[str, float]] = {}
        self.saved: list[tuple[str, int]] = []
        self.ends: list[str] = []

    def on_start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        assert (folder / "config.json").exists()
        self.settings = settings

    def on_learner(self, learner: str, env_steps: int) -> None:
        self.started.append((learner, env_steps))

    def on_update(self, learner: str, row: Mapping[str, float]) -> None:
        self.rows[learner, int(row["env_steps"])] = dict(row)

    def on_score(self, learner: str, env_steps: int, scores: Mapping[str, float]) -> None:
        self.scores[learner, env_steps] = dict(scores)

    def on_checkpoint(self, learner: str, env_steps: int, file: Path) -> None:
        assert file.exists() and file.stem.lstrip("0") == str(env_steps)
        self.saved.append((learner, env_steps))

    def on_end(self, state: str) -> None:
        self.ends.append(state)


@pytest.mark.parametrize("processes", [1, 2])
def test_callbacks_get_the_same_values_as_the_run_folder(processes: int, small: Any, tmp_path: Path) -> None:
    recorder = Recorder()
    run = tmp_path / "run"
    settings = {"algo": "expgen", "members": 2, "eval_every": 2 * small.update_steps, **small.explorer}
    small.train(run, 4, callbacks=[recorder], processes=processes, **settings)
    assert recorder.settings["members"] == 2 and recorder.settings["explorer_steps"] == small.update_steps
    assert sorted(recorder.started) == [("explorer", 0), ("member0", 0), ("member1", 0)] and recorder.ends == ["done"]
    written = {(row["learner"], int(row["env_steps"])): row for row in metrics(run)}
    assert recorder.rows.keys() == written.keys()
    for key, row in written.items():
        both = {**recorder.rows[key], **recorder.scores.get(key, {})}
        assert both.pop("seconds") > 0  # left out of `metrics`
        assert {name: float(cell) for name, cell in row.items() if name != "learner" and cell} == pytest.approx(
            both, rel=1e-4
        )
    assert {"explorer": [128], "member0": [256, 512]}.items() <= {
        name: [steps for learner, steps in sorted(recorder.scores) if learner == name]
        for name in ("explorer", "member0")
    }.items()
    assert set(recorder.saved) == set(recorder.rows)  # checkpointed after every update


def test_resumed_run_calls_on_learner_with_its_steps(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 2)
    recorder = Recorder()
    small.train(tmp_path, 3, resume=True, callbacks=[recorder])
    assert recorder.started == [("member0", 2 * small.update_steps)] and list(recorder.rows) == [("member0", 384)]


def test_stopped_run_calls_on_end_with_stopped(small: Any, tmp_path: Path) -> None:
    recorder = Recorder()
    small.train(tmp_path, 4, callbacks=[recorder], should_stop=lambda: bool(recorder.rows))
    assert recorder.ends == ["stopped"] and len(recorder.rows) == 1 and set(recorder.saved) == set(recorder.rows)


class Broken(expgen.Callback):
    def on_update(self, learner: str, row: Mapping[str, float]) -> None:
        raise OSError("the network is down")


@pytest.mark.parametrize("processes", [1, 2])
def test_error_in_a_callback_ends_the_run_and_calls_on_end(processes: int, small: Any, tmp_path: Path) -> None:
    recorder = Recorder()
    with pytest.raises(OSError, match="the network is down"):
        small.train(tmp_path / "run", 2, members=2, callbacks=[recorder, Broken()], processes=processes)
    assert recorder.ends == ["failed"]


def test_on_end_is_called_once() -> None:
    recorder = Recorder()
    callbacks = Callbacks([recorder])
    callbacks.on_end("done")
    callbacks.on_end("failed")
    assert recorder.ends == ["done"]


def test_scores_in_a_row_go_to_on_score() -> None:
    recorder = Recorder()
    row = {"env_steps": 5, "loss": 1.0, "test_return": 2.0, "average_test_return": 3.0}
    Callbacks([recorder]).on_update("member0", row)
    assert recorder.rows == {("member0", 5): {"env_steps": 5, "loss": 1.0}}
    assert recorder.scores == {("member0", 5): {"test_return": 2.0, "average_test_return": 3.0}}


class Half:
    def on_update(self, learner: str, row: Mapping[str, float]) -> None: ...


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a word": ({"callbacks": "wandb"}, "callbacks is 'wandb'; accepted: a list of expgen.Callback"),
    "one object": ({"callbacks": expgen.Callback()}, "callbacks is <.*Callback object.*; accepted: a list"),
    "one that is used up": (
        {"callbacks": iter([expgen.Callback()])},
        "callbacks is <.*; accepted: a list of expgen.Callback",
    ),
    "no list of tools": ({"log": None}, "--log is None; accepted: each of wandb, mlflow once"),
    "a list in the list of tools": ({"log": [["wandb"]]}, r"--log is \['wandb'\]; accepted: wandb, mlflow"),
    "a number": ({"callbacks": 3}, "callbacks is 3; accepted: a list of expgen.Callback"),
    "none": ({"callbacks": None}, "callbacks is None; accepted: a list of expgen.Callback"),
    "a class": ({"callbacks": [expgen.Callback]}, "is a class; accepted: an expgen.Callback"),
    "a function": ({"callbacks": [print]}, "has no on_start; accepted: an expgen.Callback"),
    "a name in the list": ({"callbacks": ["wandb"]}, "callback 'wandb' has no on_start"),
    "none in the list": ({"callbacks": [None]}, "callback None has no on_start"),
    "half of the methods": ({"callbacks": [Half()]}, "has no on_start; accepted"),
    "a good one and a bad one": ({"callbacks": [expgen.Callback(), {}]}, r"callback \{\} has no on_start"),
    "log as a word": ({"log": "wandb"}, "--log is 'wandb'; accepted: each of wandb, mlflow once"),
    "unknown tool": ({"log": ["comet"]}, "--log is 'comet'; accepted: wandb, mlflow"),
    "TensorBoard, which always is": ({"log": ["tensorboard"]}, "--log is 'tensorboard'; accepted: wandb, mlflow"),
    "twice": ({"log": ["mlflow", "mlflow"]}, r"--log is \['mlflow', 'mlflow'\]; accepted: each of"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_callbacks_are_refused_before_anything_is_written(case: str, small: Any, tmp_path: Path) -> None:
    changes, line = WRONG[case]
    with pytest.raises(expgen.InputError, match=line):
        small.train(tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--log"], "--log: expected one argument"),
        (["--log", "comet"], "--log is 'comet'; accepted: wandb, mlflow"),
        (["--log", ""], "--log is ''; accepted: wandb, mlflow"),
        (["--log", "wandb,mlflow"], "--log is 'wandb,mlflow'; accepted: wandb, mlflow"),
        (["--log", "WANDB"], "--log is 'WANDB'; accepted: wandb, mlflow"),
        (["--log", "wandb", "--log", "wandb"], "--log is ['wandb', 'wandb']; accepted: each of wandb, mlflow once"),
    ],
)
def test_invalid_log_flag_is_refused(
    words: list[str], line: str, small: Any, refused: Callable[..., str], tmp_path: Path
) -> None:
    assert line in refused(*small.flags(tmp_path / "run"), *words)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("tool", ["wandb", "mlflow"])
def test_missing_log_tool_is_refused(
    tool: str, small: Any, refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    line = refused(*small.flags(tmp_path / "run"), "--log", tool)
    assert line == f"expgen: --log is {tool}, which is not installed; accepted: pip install 'expgen[{tool}]'"
