"""expgen bench: CSV, JSON, traces and bad input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WORDS = ("bench", "--preset", "smoke", "--learners", "1", "--seconds", "0.01", "--device", "cpu")


def test_bench_prints_lines_for_speed_csv(command: Callable[..., Any]) -> None:
    outcome = command(*WORDS)
    header, *lines = outcome.out.splitlines()
    assert outcome.status == 0 and header == "what,game,learners,steps_per_s,hardware,commit,date"
    parts = ["environment", "rollout", "update", "training", "arithmetic alone", "update's arithmetic alone"]
    assert [line.split(",")[0] for line in lines] == [*parts, *(f"forward of {batch}" for batch in (32, 320, 4096))]
    assert [line.split(":")[0] for line in outcome.err.splitlines()] == [
        *("time of one learner", "training, learners 1", "  bottleneck"),
        *("update", "training, learners 1"),
    ]


def test_bench_prints_json(command: Callable[..., Any]) -> None:
    rows = json.loads(command(*WORDS, "--json").out)
    assert len(rows) == 9 and all(row["steps_per_s"] > 0 for row in rows)


def test_bench_trace_names_the_work_of_each_learner(command: Callable[..., Any], tmp_path: Path) -> None:
    assert command(*WORDS, "--trace", str(tmp_path / "trace.json")).status == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"member0: collect", "member0: ready", "member0: update"} <= {event.get("name") for event in events}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--learners", "0"], "--learners is 0; accepted: 1 or more"),
        (["--learners", "1,x"], "--learners is '1,x'; accepted: whole numbers, as 1,2,3"),
        (["--trace", "nowhere/trace.json"], "--trace is nowhere/trace.json; accepted: a file in a folder that exists"),
        (["--trace", "/"], "cannot write /: Is a directory"),
        (["--seconds", "nan"], "--seconds is nan; accepted: more than 0"),
        (["--seconds", "inf"], "--seconds is inf; accepted: more than 0, at most 86400"),
        (["pong"], "GAME is 'pong'; accepted: bigfish"),
        (["--device", "cuda"], "--device is 'cuda' but this machine has 0 GPUs"),
    ],
)
def test_bench_rejects_bad_input_in_one_line(words: list[str], message: str, refused: Callable[..., str]) -> None:
    assert message in refused(*WORDS, *words)
