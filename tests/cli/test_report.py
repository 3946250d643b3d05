"""expgen report: page, curves and bad input."""

import os
import resource
from dataclasses import replace

import pytest

from expgen.cli.main import main
from expgen.evaluation.scores import COLUMNS, Score, append_scores

ROW = Score(
    "ppo", "maze", "procgen:maze", 0, "test", "all", 25_000_000, 1000, 5.5, 4.9, 0.55, 5.2, 5.8, "member0", "abc"
)


@pytest.fixture
def scores(tmp_path):
    append_scores(tmp_path / "scores.csv", [ROW])
    return tmp_path / "scores.csv"


def run(capsys, *words):
    status = main(["report", *map(str, words)])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_report_writes_page_tables_and_figures(scores, tmp_path, capsys):
    (tmp_path / "provenance.csv").write_text(
        "row,command,config,hardware,minutes\n1,expgen train maze,c0ffee,a GPU,9\n"
    )
    status, out, _ = run(capsys, scores, "--out", tmp_path / "out", "--resamples", 20, "--title", "Mine")
    assert status == 0 and "report.html" in out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<h1>Mine</h1>" in page and "5.6 ± 0.1" in page and "expgen train maze" in page and "c0ffee" in page
    written = {file.name for file in (tmp_path / "out/tables").iterdir()}
    assert {"table-1.md", "table-1.tex", "table-1.csv", "table-1.html"} <= written


def test_report_searches_folders_for_score_files(scores, tmp_path, capsys):
    status, *_ = run(capsys, tmp_path, "--out", tmp_path / "out")
    assert status == 0


def test_report_among_the_runs_is_written_again(scores, tmp_path, capsys):
    append_scores(scores, [replace(ROW, game="minimaze", env="minimaze")])  # in a table named scores, too
    for _ in range(2):
        status, _, err = run(capsys, tmp_path, "--out", tmp_path / "report", "--resamples", 20)
        assert status == 0, err
    assert (tmp_path / "report/tables/scores.csv").exists()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "has columns"),
        (",".join(COLUMNS) + "\n", "no scores in"),
        ("a,b\n1,2\n", "has columns"),
        (",".join(COLUMNS) + "\nppo,maze\n", "line 2 is not a score row"),
        ("\x00\xff", "scores.csv"),
    ],
)
def test_report_rejects_a_wrong_or_empty_file(content, expected, tmp_path, capsys):
    file = tmp_path / "scores.csv"
    file.write_bytes(content.encode("latin-1"))
    status, _, err = run(capsys, file, "--out", tmp_path / "out")
    assert status == 2 and expected in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_report_rejects_missing_scores(tmp_path, capsys):
    status, _, err = run(capsys, tmp_path / "none.csv", "--out", tmp_path / "out")
    assert status == 2 and "none.csv, which does not exist; accepted: a score file, a run folder" in err
    status, _, err = run(capsys, tmp_path, "--out", tmp_path / "out")
    assert status == 2 and "no scores in" in err


@pytest.mark.parametrize("flags", [["--resamples", "0"], ["--constants", "mine"], ["--episodes", "film.avi"]])
def test_report_rejects_bad_flags(scores, tmp_path, capsys, flags):
    (tmp_path / "film.avi").write_bytes(b"")
    words = [tmp_path / word if word == "film.avi" else word for word in flags]
    status, _, err = run(capsys, scores, "--out", tmp_path / "out", *words)
    assert status == 2 and flags[0] in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_report_rejects_an_unwritable_folder(scores, capsys):
    status, _, err = run(capsys, scores, "--out", scores)  # a file
    assert status == 2 and "--out" in err and err.count("\n") == 1


def test_report_on_a_full_disk_leaves_no_files(scores, tmp_path, capsys):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))  # tables fit, figures and the page do not
    try:
        status, _, err = run(capsys, scores, "--out", tmp_path / "new" / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert status == 1 and err.startswith(f"expgen: cannot write --out {tmp_path / 'new' / 'out'}: File too large")
    assert not (tmp_path / "new").exists() and not list(tmp_path.glob(".report-*"))


def test_report_of_a_run_folder_has_its_curves(tmp_path, capsys):
    settings = ["--steps", "3072", "--eval-every", "1024", "--eval-episodes", "4", "--device", "cpu"]
    assert main(["train", "--algo", "ppo", "--preset", "smoke", "--run", str(tmp_path / "run"), *settings]) == 0
    status, *_ = run(capsys, tmp_path / "run", "--out", tmp_path / "out")
    assert status == 0
    assert (tmp_path / "out" / "figures" / "training.svg").exists()
    rows = (tmp_path / "out" / "tables" / "rows.md").read_text()
    assert rows.count("| metrics.csv line") == 6 and rows.count("| scores.csv line") == 2
    page = (tmp_path / "out" / "report.html").read_text()
    for what in ("return of training episodes", "return on unseen levels"):
        assert f'aria-label="{what} on minimaze against steps, by method"' in page


def test_report_draws_curves_beside_a_score_file(scores, tmp_path, capsys):
    (tmp_path / "curves").mkdir()
    lines = [f"member{m},{steps},{4 + m + steps / 1e6}" for m in range(2) for steps in (10**6, 2 * 10**6, 3 * 10**6)]
    file = tmp_path / "curves" / "maze-expgen.csv"
    file.write_text("\n".join(["learner,env_steps,episode_return", *lines, "explorer,1000000,3.5"]) + "\n")
    status, *_ = run(capsys, scores, "--out", tmp_path / "out")
    assert status == 0
    assert "PPO (2)" in (tmp_path / "out" / "figures" / "training.svg").read_text()  # the explorer has only one point
    file.write_text("learner,env_steps,episode_return\nmember0,few,1\n")
    status, _, err = run(capsys, scores, "--out", tmp_path / "other")
    assert status == 2 and "maze-expgen.csv" in err and err.count("\n") == 1
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("name", ["provenance.csv", "curves/maze-ppo.csv", "film.mp4"])
def test_report_rejects_a_pipe(scores, tmp_path, capsys, name):
    (tmp_path / "curves").mkdir()
    os.mkfifo(tmp_path / name)
    films = ["--episodes", tmp_path / name] if name == "film.mp4" else []
    status, _, err = run(capsys, scores, "--out", tmp_path / "out", *films)
    assert status == 2 and f"{name} is a pipe" in err and err.count("\n") == 1


@pytest.mark.parametrize("row", ["x,a,b,c,d", "1", f"1,{'a' * 200_000},b,c,d", "1,a,b,c,d,e"])
def test_report_rejects_damaged_provenance(scores, tmp_path, capsys, row):
    (tmp_path / "provenance.csv").write_text(f"row,command,config,hardware,minutes\n{row}\n")
    status, _, err = run(capsys, scores, "--out", tmp_path / "out")
    assert status == 2 and "provenance.csv" in err and err.count("\n") == 1
