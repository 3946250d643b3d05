"""expgen evaluate: rows, tables, progress and bad input."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from expgen import files
from expgen.cli import evaluate
from expgen.cli.flags import pop_engine
from expgen.cluster.engine import LocalEngine, Task, TaskResult
from expgen.evaluation.scores import agent_name, read_scores
from expgen.runs import progress
from expgen.training.loop import Watcher


@pytest.fixture(scope="module")
def run(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "run"
    small.train(run, 2, members=2)
    return run


def test_evaluate_prints_and_appends_one_row_per_learner(run: Path, command: Callable[..., Any]) -> None:
    for split in ("test", "train"):
        before = len(read_scores(run / "scores.csv")) if (run / "scores.csv").exists() else 0
        outcome = command("evaluate", run, "--split", split, "--episodes", "6")
        rows = read_scores(run / "scores.csv")[before:]
        assert outcome.status == 0 and outcome.err == ""
        assert [(row.agent, row.split, row.episodes, row.env_steps) for row in rows] == [
            *(("member0", split, 6, 256), ("member1", split, 6, 256)),
        ]
        header, *lines = outcome.out.splitlines()
        assert header.split()[:3] == ["agent", "split", "levels"]
        for row, line in zip(rows, lines, strict=True):
            assert row.agent in line and f"{row.mean_return:.2f}" in line and f"{row.solved_rate:.1%}" in line


def test_evaluate_with_another_temperature(
    run: Path, command: Callable[..., Any], refused: Callable[..., str], tmp_path: Path
) -> None:
    scores = ["--episodes", "6", "--learner", "member1", "--scores", tmp_path / "s.csv"]
    assert command("evaluate", run, *scores, "--temperature", "0").status == 0
    assert command("evaluate", run, *scores, "--temperature", "1").status == 0
    assert [row.settings for row in read_scores(tmp_path / "s.csv")] == ["temperature=0", ""]
    assert "--temperature is 200.0; accepted: 0, or 0.001 to 100" in refused(
        "evaluate", run, *scores, "--temperature", "200"
    )


def test_evaluate_accepts_levels_scores_file_and_learner(
    run: Path, command: Callable[..., Any], tmp_path: Path
) -> None:
    words = ("--levels", "500:3", "--learner", "member1", "--episodes", "3", "--seed", "4", "--envs", "2")
    for _ in range(2):
        assert command("evaluate", run, *words, "--scores", tmp_path / "new" / "scores.csv").status == 0
    one, two = read_scores(tmp_path / "new" / "scores.csv")
    assert one == two and (one.agent, one.levels, one.split) == ("member1", "500:3", "test")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--split", "both"], "--split is 'both'; accepted: train, test"),
        (["--levels", "0:40"], "--levels 0:40 overlap the training levels 0:20; accepted: all or none of them"),
        (
            ["--levels", "5", "--split", "test"],
            "--split is test but --levels 5 are training levels; accepted: --split train",
        ),
        (["--levels", "30:5", "--split", "train"], "--split is train but --levels 30:5 are unseen levels"),
        (["--levels", "few"], "--levels is 'few'; accepted: COUNT, START:COUNT"),
        (["--episodes", "0"], "--episodes is 0; accepted: 1 to 10000000"),
        (["--episodes", "-3"], "--episodes is -3; accepted: 1 to 10000000"),
        (["--episodes", "nan"], "--episodes is 'nan'; accepted: a whole number"),
        (["--envs", "0"], "--envs is 0; accepted: 1 to 65536"),
        (["--seed", "-1"], "--seed is -1; accepted: 0 to 2147483647"),
        (["--learner", ""], "--learner is ''; accepted: each, member0, member1"),
        (["--learner", "member2"], "--learner is 'member2'; accepted: each, member0, member1"),
        (["--device", "cuda:99"], "--device is 'cuda:99' but this machine has"),
        (["--depth", "2"], "unrecognized arguments: --depth 2"),
    ],
)
def test_bad_input_is_one_line_and_adds_no_row(
    words: list[str], message: str, run: Path, refused: Callable[..., str], tmp_path: Path
) -> None:
    scores = tmp_path / "scores.csv"
    assert message in refused("evaluate", run, "--episodes", "2", "--scores", scores, *words)
    assert not scores.exists()


def test_evaluate_rejects_a_missing_or_empty_run(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "nowhere is no run folder: config.json: No such file" in refused("evaluate", tmp_path / "nowhere")
    assert "is no run folder" in refused("evaluate", tmp_path)
    assert "the following arguments are required: RUN" in refused("evaluate")


def test_evaluate_rejects_a_run_without_checkpoint(refused: Callable[..., str], run: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((run / "config.json").read_bytes())
    assert "has no checkpoint yet; accepted: a run that has trained" in refused("evaluate", tmp_path)


@pytest.mark.parametrize("folder", ["file", "/proc"])
def test_evaluate_rejects_an_unwritable_scores_file_before_playing(
    folder: str, run: Path, command: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    words = ("--episodes", "2", "--learner", "member0", "--scores", tmp_path / folder / "scores.csv")
    outcome = command("evaluate", run, *words)
    assert outcome.status == 2 and not outcome.out
    assert outcome.err.startswith("expgen: cannot write ") and len(outcome.err.splitlines()) == 1


@pytest.mark.parametrize("content", ["notes of mine\n", "a,b\n1,2\n"])
def test_evaluate_rejects_a_wrong_scores_file_before_playing(
    content: str, run: Path, command: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "notes").write_text(content)
    for scores, message in ((tmp_path / "notes", "is not a file of score rows"), (tmp_path, "Is a directory")):
        outcome = command("evaluate", run, "--episodes", "2", "--scores", scores)
        assert outcome.status == 2 and outcome.out == "" and message in outcome.err
    assert (tmp_path / "notes").read_text() == content


def test_evaluate_shows_progress(
    run: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    words = ("--episodes", "3", "--learner", "member0", "--scores", tmp_path / "scores.csv")
    lines = command("evaluate", run, *words).err.splitlines()
    assert len(lines) == 3 and lines[1].startswith("2/3 episodes") and "return" in lines[1] and "solved" in lines[1]
    lines = command("evaluate", run, "--episodes", "3", "--scores", tmp_path / "scores.csv").err.splitlines()
    assert [line.split()[0] for line in lines] == ["1/6", "2/6", "3/6", "4/6", "5/6", "6/6"]  # both members


class Elsewhere:
    """An engine without progress reports, as on a cluster."""

    def run(self, tasks: Sequence[Task], watcher: Watcher) -> Iterator[TaskResult]:
        return LocalEngine().run(tasks, Watcher())


def test_evaluate_on_a_cluster_shows_finished_agents(
    run: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(evaluate, "pop_engine", lambda arguments: (pop_engine(arguments), Elsewhere())[1])
    lines = command("evaluate", run, "--episodes", "3", "--scores", tmp_path / "scores.csv").err.splitlines()
    assert [line.split()[:2] for line in lines] == [["3/6", "episodes"], ["6/6", "episodes"]]
    assert all("return" in line for line in lines)


def test_evaluate_reports_a_quorum_larger_than_the_ensemble(command: Callable[..., Any]) -> None:
    words = ("evaluate", "minimaze/expgen", "--episodes", "1", "--min-agree")
    assert (
        command(*words, "9")
        .out.splitlines()[-1]
        .startswith("the quorum of 9 is larger than the ensemble of 5; 100% of the steps explored")
    )
    assert command(*words, "5").out.splitlines()[-1].startswith("5 of 5 agreed in ")


def test_evaluate_records_vote_settings_and_counts_votes_set_aside(command: Callable[..., Any], tmp_path: Path) -> None:
    words = ("evaluate", "minimaze/expgen", "--episodes", "4", "--scores", tmp_path / "scores.csv")
    plain, other = (command(*words, *more).out for more in ((), ("--vote", "majority", "--once")))
    assert "set aside" not in plain and "% of these set aside (frames on which the ensemble had acted); " in other
    assert [agent_name(row) for row in read_scores(tmp_path / "scores.csv")] == [
        "expgen members=5",
        "expgen vote=majority once=True members=5",
    ]


def test_evaluate_reports_hedged_steps(command: Callable[..., Any], tmp_path: Path) -> None:
    words = ("evaluate", "minimaze/expgen", "--episodes", "4", "--scores", tmp_path / "scores.csv")
    text = command(*words, "--hedge", "0.5").out
    assert re.search(r" in a row, [1-9]\d*% of these hedged$", text.rstrip()), text
    assert [agent_name(row) for row in read_scores(tmp_path / "scores.csv")] == ["expgen hedge=0.5 members=5"]
    refused = command(*words, "--hedge", "0.5", "--fallback", "random")
    accepted = "accepted: 0, or a policy as explorer"
    assert refused.status == 2 and refused.err == f"expgen: --hedge is 0.5 but --fallback is random; {accepted}\n"


def test_evaluate_rejects_an_unknown_vote(command: Callable[..., Any]) -> None:
    outcome = command("evaluate", "minimaze/expgen", "--vote", "all")
    assert outcome.status == 2 and outcome.err == "expgen: --vote is 'all'; accepted: leader, majority, turns, mean\n"


def test_help_lists_every_flag_of_product_md(command: Callable[..., Any]) -> None:
    text = command("evaluate", "--help").out
    ensemble = ("vote", "once", "hedge", "min-agree", "alpha", "leader", "agreement", "fallback")
    for flag in ("split", "levels", "episodes", "seed", "scores", *ensemble, "learner", "envs", "device"):
        assert f"--{flag}" in text


def test_evaluate_reads_the_agents_description_once(
    run: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = files.open_regular
    monkeypatch.setattr(files, "open_regular", lambda path: read.append(Path(path).name) or original(path))
    assert command("evaluate", run, "--episodes", "2", "--scores", "/dev/null").status == 0
    assert read.count("agent.json") == 1 and "config.json" not in read
