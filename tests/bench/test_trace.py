"""trace writes a timeline of learners in one pipeline."""

import json
from pathlib import Path

import pytest

from expgen.bench import bench as module
from expgen.bench.trace import trace
from expgen.errors import FailedStorage, InputError
from expgen.runs.config import TrainConfig
from expgen.runs.make_config import make_config
from expgen.runs.plan import LearnerPlan, build_learner
from expgen.training.learner import Learner
from expgen.training.resources import Resources, plan_resources

PHASES = ["collect", "ready", "update"]


def test_trace_has_a_named_span_for_every_phase_of_every_learner(tmp_path: Path) -> None:
    trace(make_config("minimaze", "ppo", "smoke"), 2, "cpu", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = sorted((event["ts"], event["name"]) for event in events if ": " in event.get("name", ""))
    for learner in ("member0", "member1"):
        turns = [name.partition(": ")[2] for _, name in spans if name.startswith(f"{learner}:")]
        assert turns[0] == "collect" and list(dict.fromkeys(turns)) == PHASES


def test_learners_are_closed_when_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    class Failing(Exception):
        pass

    def fails() -> None:
        raise Failing

    def build(*arguments: object) -> Learner:
        learner = build_learner(*arguments)  # type: ignore[arg-type]
        close = learner.close
        monkeypatch.setattr(learner, "iterate", fails)
        monkeypatch.setattr(learner, "close", lambda: (closed.append(learner.name), close()))
        return learner

    monkeypatch.setattr(module, "build_learner", build)
    with pytest.raises(Failing):
        trace(make_config("minimaze", "ppo", "smoke"), 2, "cpu", tmp_path / "trace.json")
    assert {*closed} == {"member0", "member1"} and not (tmp_path / "trace.json").exists()


def test_learners_are_closed_when_the_next_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    def build(config: TrainConfig, plan: LearnerPlan, resources: Resources) -> Learner:
        if plan.name == "member1":
            raise InputError("no memory left")
        learner = build_learner(config, plan, resources)
        monkeypatch.setattr(learner, "close", lambda: closed.append(learner.name))
        return learner

    monkeypatch.setattr(module, "build_learner", build)
    with (
        pytest.raises(InputError),
        module.open_learners(make_config("minimaze", "ppo", "smoke"), 2, plan_resources("cpu", 2)),
    ):
        pass
    assert closed == ["member0"]


def test_trace_fails_when_the_file_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FailedStorage, match=r"cannot write .*gone/trace\.json"):
        trace(make_config("minimaze", "ppo", "smoke"), 1, "cpu", tmp_path / "gone" / "trace.json")
