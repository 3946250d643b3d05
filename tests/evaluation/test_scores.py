"""scores.csv: out and in again, and files that are none."""

import contextlib
import dataclasses
import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from expgen.errors import InputError
from expgen.evaluation.scores import COLUMNS, Score, append_scores, check_can_append, read_scores, rows_so_far

NOBODY = 65534  # a user without rights, by number
SCORE = Score(
    algorithm="ppo",
    game="maze",
    env="procgen:maze",
    seed=3,
    split="test",
    levels="3,7,9",
    env_steps=24_985_600,
    episodes=500,
    mean_return=5.25,
    std_return=1.0,
    solved_rate=0.525,
    ci_low=-4.8,
    ci_high=1 / 3,
    agent="runs/a, b",
    commit="0123456789ab",
)


def test_round_trip_over_several_appends(tmp_path: Path):
    path = tmp_path / "deep" / "scores.csv"
    other = dataclasses.replace(SCORE, split="train", seed=4)
    append_scores(path, [SCORE])
    append_scores(path, [other, SCORE])
    rows = read_scores(path)
    assert path.read_text().count("algorithm,game") == 1 and len(rows) == 3
    expected = dataclasses.replace(SCORE, ci_high=0.333333)  # six digits
    assert rows[0] == rows[2] == expected and rows[1] == dataclasses.replace(expected, split="train", seed=4)
    assert isinstance(rows[0].seed, int) and isinstance(rows[0].std_return, float)


def test_rows_appended_at_the_same_time_are_all_there(tmp_path: Path):
    path = tmp_path / "scores.csv"
    rows = [dataclasses.replace(SCORE, seed=seed, ci_high=1.0) for seed in range(200)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda row: append_scores(path, [row]), rows))
    assert sorted(read_scores(path), key=lambda row: row.seed) == rows


def test_processes_that_add_rows_at_the_same_time_lose_none(tmp_path: Path):
    path = tmp_path / "scores.csv"
    with ProcessPoolExecutor(4, get_context("spawn")) as pool:
        list(pool.map(append_some, [path] * 4, range(4)))
    assert sorted(row.seed for row in read_scores(path)) == list(range(80))
    assert [file.name for file in tmp_path.iterdir()] == ["scores.csv"]


def append_some(path: Path, process: int) -> None:
    for index in range(20):
        append_scores(path, [dataclasses.replace(SCORE, seed=20 * process + index)])


def test_a_file_system_without_locks_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(file: object, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    append_scores(tmp_path / "scores.csv", [SCORE])
    assert len(read_scores(tmp_path / "scores.csv")) == 1


@pytest.mark.parametrize("mean", [float("nan"), float("inf")])
def test_what_reading_would_refuse_is_not_written(tmp_path: Path, mean: float):
    path = tmp_path / "scores.csv"
    append_scores(path, [SCORE])
    with pytest.raises(InputError, match=r"the mean return of runs/a, b is (nan|inf); accepted: finite rewards"):
        append_scores(path, [SCORE, dataclasses.replace(SCORE, mean_return=mean)])
    assert len(read_scores(path)) == 1


def test_what_cannot_be_appended_to_is_told_beforehand(tmp_path: Path):
    check_can_append(tmp_path / "deep" / "scores.csv")
    assert not (tmp_path / "deep").exists()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file/scores\.csv"):
        check_can_append(tmp_path / "file" / "scores.csv")


def test_score_file_that_may_not_be_written_is_refused():
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to nobody
        before = Path(folder) / "scores.csv"
        append_scores(before, [SCORE])
        before.chmod(0o444)
        refused_to_nobody(Path(folder), before, Path(folder) / "another.csv", Path(folder) / "new" / "scores.csv")


def refused_to_nobody(folder: Path, *paths: Path) -> None:
    with as_nobody(folder):
        for path in paths:
            with pytest.raises(InputError, match="cannot write"):
                check_can_append(path)


def test_scores_may_go_to_dev_null():
    check_can_append(Path(os.devnull))
    append_scores(Path(os.devnull), [SCORE])


def test_what_is_no_file_is_refused_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is not a regular file; accepted: a csv file"):  # reading would block
        check_can_append(tmp_path / "pipe")
    with pytest.raises(InputError, match="Is a directory"):
        check_can_append(tmp_path)


@contextlib.contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """`folder` can be read and not written, by root either: it may write everywhere and so becomes somebody else."""
    folder.chmod(0o555)
    owner = os.geteuid()
    if owner == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(owner)
        folder.chmod(0o755)


def test_the_columns_and_one_row_as_text(tmp_path: Path):
    path = tmp_path / "scores.csv"
    append_scores(path, [SCORE])
    assert path.read_text() == (
        "algorithm,game,env,seed,split,levels,env_steps,episodes,mean_return,std_return,solved_rate,ci_low,ci_high,"
        "agent,commit,settings\n"
        'ppo,maze,procgen:maze,3,test,"3,7,9",24985600,500,5.25,1,0.525,-4.8,0.333333,"runs/a, b",0123456789ab,\n'
    )


def test_a_file_that_was_never_begun_has_no_rows(tmp_path: Path):
    assert list(rows_so_far(tmp_path / "scores.csv")) == []
    (tmp_path / "scores.csv").touch()
    assert list(rows_so_far(tmp_path / "scores.csv")) == []


def test_an_empty_file_gets_its_header(tmp_path: Path):
    path = tmp_path / "scores.csv"
    path.touch()
    append_scores(path, [SCORE])
    assert len(read_scores(path)) == 1


OLD = (
    "algorithm,game,env,seed,split,levels,env_steps,episodes,mean_return,std_return,solved_rate,ci_low,ci_high,"
    "agent,commit\n"
)
OLD_ROW = 'ppo,maze,procgen:maze,3,test,"3,7,9",24985600,500,5.25,1,0.525,-4.8,0.3,"runs/a, b",0123456789ab\n'


def test_a_file_without_the_settings_column_is_read_and_gets_it(tmp_path: Path):
    path = tmp_path / "scores.csv"
    path.write_text(OLD + OLD_ROW)
    (row,) = read_scores(path)
    assert (row.agent, row.settings) == ("runs/a, b", "")
    append_scores(path, [SCORE])
    assert read_scores(path)[0] == row and path.read_text().startswith(",".join(COLUMNS))


def test_a_last_row_without_a_line_end_stays(tmp_path: Path):
    path = tmp_path / "scores.csv"
    append_scores(path, [SCORE])
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    append_scores(path, [SCORE])
    assert len(read_scores(path)) == 2


def test_nothing_is_added_to_a_file_that_holds_something_else(tmp_path: Path):
    path = tmp_path / "notes.md"
    path.write_text("hello\n")
    with pytest.raises(InputError, match=r"notes\.md is not a file of score rows: it has columns .*; accepted: algo"):
        append_scores(path, [SCORE])
    assert path.read_text() == "hello\n"


ROW = "ppo,maze,procgen:maze,3,test,200,10,500,5.25,1,0.5,4,6,a,b,c=1"


@pytest.mark.parametrize(
    "line",
    [
        ROW.replace("5.25", "five"),
        ROW.replace("5.25", "nan"),
        ROW.replace("5.25", "inf"),
        ROW.replace(",3,", ",3.5,"),
        ROW.removesuffix(",c=1"),  # cut short among the words
        ROW.removesuffix(",6,a,b,c=1"),  # cut short among the numbers
        ROW + ",d",
        ROW.replace("test", "both"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str):
    path = tmp_path / "scores.csv"
    path.write_text(f"{','.join(COLUMNS)}\n{ROW}\n{line}\n")
    with pytest.raises(InputError, match=r"scores.csv line 3 is not a score row"):
        read_scores(path)


@pytest.mark.parametrize("text", ["", "a,b,c\n1,2,3\n", ",".join(COLUMNS[1:]) + "\n"])
def test_score_file_with_other_columns_is_refused(tmp_path: Path, text: str):
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=r"scores.csv is not a file of score rows: it has columns .*accepted: algo"):
        read_scores(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path):
    path = tmp_path / "scores.csv"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    with pytest.raises(InputError, match=r"scores.csv is not text"):
        read_scores(path)


def test_files_that_cannot_be_read_or_written(tmp_path: Path):
    with pytest.raises(InputError, match=r"cannot read .*missing.csv: No such file"):
        read_scores(tmp_path / "missing.csv")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write .*accepted: a writable folder with space"):
        append_scores(tmp_path / "file" / "scores.csv", [SCORE])
