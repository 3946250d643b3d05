"""Callbacks hear what metrics.csv and the checkpoints hold, in one process and in several; wrong ones are refused."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import expgen
from expgen.training.callbacks import Callbacks
from tests.runs.rows import metrics


class Recorder(expgen.Callback):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.settings: Mapping[str, Any] = {}
        self.begun: list[tuple[str, int]] = []
        self.rows: dict[tuple[str, int], dict[str, float]] = {}
        self.scores: dict[tuple[str, int], dict[str, float]] = {}
        self.saved: list[tuple[str, int]] = []
        self.ends: list[str] = []

    def on_start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        assert (folder / "config.json").exists()
        self.settings = settings

    def on_learner(self, learner: str, env_steps: int) -> None:
        self.begun.append((learner, env_steps))

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
def test_callbacks_hear_what_the_run_folder_holds(processes: int, small: Any, tmp_path: Path) -> None:
    told = Recorder()
    run = tmp_path / "run"
    settings = {"algo": "expgen", "members": 2, "eval_every": 2 * small.update_steps, **small.explorer}
    small.train(run, 4, callbacks=[told], processes=processes, **settings)
    assert told.settings["members"] == 2 and told.settings["explorer_steps"] == small.update_steps
    assert sorted(told.begun) == [("explorer", 0), ("member0", 0), ("member1", 0)] and told.ends == ["done"]
    held = {(row["learner"], int(row["env_steps"])): row for row in metrics(run)}
    assert told.rows.keys() == held.keys()
    for key, row in held.items():
        both = {**told.rows[key], **told.scores.get(key, {})}
        assert both.pop("seconds") > 0  # left out of `metrics`
        assert {name: float(cell) for name, cell in row.items() if name != "learner" and cell} == pytest.approx(
            both, rel=1e-4
        )
    assert {"explorer": [128], "member0": [256, 512]}.items() <= {
        name: [steps for learner, steps in sorted(told.scores) if learner == name] for name in ("explorer", "member0")
    }.items()
    assert set(told.saved) == set(told.rows)  # checkpointed after every update


def test_a_resumed_run_tells_from_where(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 2)
    told = Recorder()
    small.train(tmp_path, 3, resume=True, callbacks=[told])
    assert told.begun == [("member0", 2 * small.update_steps)] and list(told.rows) == [("member0", 384)]


def test_a_stopped_run_ends_so(small: Any, tmp_path: Path) -> None:
    told = Recorder()
    small.train(tmp_path, 4, callbacks=[told], should_stop=lambda: bool(told.rows))
    assert told.ends == ["stopped"] and len(told.rows) == 1 and set(told.saved) == set(told.rows)


class Broken(expgen.Callback):
    def on_update(self, learner: str, row: Mapping[str, float]) -> None:
        raise OSError("the network is down")


@pytest.mark.parametrize("processes", [1, 2])
def test_a_callback_that_fails_ends_the_run_and_the_others_hear_of_it(
    processes: int, small: Any, tmp_path: Path
) -> None:
    told = Recorder()
    with pytest.raises(OSError, match="the network is down"):
        small.train(tmp_path / "run", 2, members=2, callbacks=[told, Broken()], processes=processes)
    assert told.ends == ["failed"]


def test_the_end_is_told_once() -> None:
    told = Recorder()
    callbacks = Callbacks([told])
    callbacks.on_end("done")
    callbacks.on_end("failed")
    assert told.ends == ["done"]


def test_scores_within_a_row_are_told_for_themselves() -> None:
    told = Recorder()
    row = {"env_steps": 5, "loss": 1.0, "test_return": 2.0, "average_test_return": 3.0}
    Callbacks([told]).on_update("member0", row)
    assert told.rows == {("member0", 5): {"env_steps": 5, "loss": 1.0}}
    assert told.scores == {("member0", 5): {"test_return": 2.0, "average_test_return": 3.0}}


class Half:
    def on_update(self, learner: str, row: Mapping[str, float]) -> None: ...


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a word": ({"callbacks": "wandb"}, "callbacks is 'wandb'; accepted: a list of objects"),
    "one object": ({"callbacks": expgen.Callback()}, "callbacks is <.*Callback object.*; accepted: a list"),
    "one that is used up": ({"callbacks": iter([expgen.Callback()])}, "callbacks is <.*; accepted: a list of objects"),
    "no list of tools": ({"log": None}, "--log is None; accepted: each of wandb, mlflow once"),
    "a list in the list of tools": ({"log": [["wandb"]]}, r"--log is \['wandb'\]; accepted: wandb, mlflow"),
    "a number": ({"callbacks": 3}, "callbacks is 3; accepted: a list of objects"),
    "none": ({"callbacks": None}, "callbacks is None; accepted: a list of objects"),
    "a class": ({"callbacks": [expgen.Callback]}, "is a class; accepted: an object"),
    "a function": ({"callbacks": [print]}, "has no on_start; accepted: an object of"),
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
def test_wrong_callbacks_are_refused_before_anything_is_written(case: str, small: Any, tmp_path: Path) -> None:
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
def test_wrong_tools_are_one_line(
    words: list[str], line: str, small: Any, refused: Callable[..., str], tmp_path: Path
) -> None:
    assert line in refused(*small.flags(tmp_path / "run"), *words)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("tool", ["wandb", "mlflow"])
def test_a_tool_that_is_not_installed_is_one_line(
    tool: str, small: Any, refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    line = refused(*small.flags(tmp_path / "run"), "--log", tool)
    assert line == f"expgen: --log is {tool}, which is not installed; accepted: pip install 'expgen[{tool}]'"
