"""scores.csv: writing, reading, concurrent appends and invalid files."""

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

NOBODY = 65534  # user id without permissions
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


def test_appended_rows_round_trip(tmp_path: Path):
    path = tmp_path / "deep" / "scores.csv"
    other = dataclasses.replace(SCORE, split="train", seed=4)
    append_scores(path, [SCORE])
    append_scores(path, [other, SCORE])
    rows = read_scores(path)
    assert path.read_text().count("algorithm,game") == 1 and len(rows) == 3
    expected = dataclasses.replace(SCORE, ci_high=0.333333)  # six digits
    assert rows[0] == rows[2] == expected and rows[1] == dataclasses.replace(expected, split="train", seed=4)
    assert isinstance(rows[0].seed, int) and isinstance(rows[0].std_return, float)


def test_concurrent_appends_of_threads_keep_all_rows(tmp_path: Path):
    path = tmp_path / "scores.csv"
    rows = [dataclasses.replace(SCORE, seed=seed, ci_high=1.0) for seed in range(200)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda row: append_scores(path, [row]), rows))
    assert sorted(read_scores(path), key=lambda row: row.seed) == rows


def test_concurrent_appends_of_processes_keep_all_rows(tmp_path: Path):
    path = tmp_path / "scores.csv"
    with ProcessPoolExecutor(4, get_context("spawn")) as pool:
        list(pool.map(append_some, [path] * 4, range(4)))
    assert sorted(row.seed for row in read_scores(path)) == list(range(80))
    assert [file.name for file in tmp_path.iterdir()] == ["scores.csv"]


def append_some(path: Path, process: int) -> None:
    for index in range(20):
        append_scores(path, [dataclasses.replace(SCORE, seed=20 * process + index)])


def test_append_works_without_file_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(file: object, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    append_scores(tmp_path / "scores.csv", [SCORE])
    assert len(read_scores(tmp_path / "scores.csv")) == 1


@pytest.mark.parametrize("mean", [float("nan"), float("inf")])
def test_invalid_rows_are_not_written(tmp_path: Path, mean: float):
    path = tmp_path / "scores.csv"
    append_scores(path, [SCORE])
    with pytest.raises(InputError, match=r"the mean return of runs/a, b is (nan|inf); accepted: finite rewards"):
        append_scores(path, [SCORE, dataclasses.replace(SCORE, mean_return=mean)])
    assert len(read_scores(path)) == 1


def test_check_can_append_rejects_unwritable_paths(tmp_path: Path):
    check_can_append(tmp_path / "deep" / "scores.csv")
    assert not (tmp_path / "deep").exists()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file/scores\.csv"):
        check_can_append(tmp_path / "file" / "scores.csv")


def test_read_only_score_file_is_rejected():
    with tempfile.TemporaryDirectory() as folder:  # NOBODY cannot enter pytest's folder
        before = Path(folder) / "scores.csv"
        append_scores(before, [SCORE])
        before.chmod(0o444)
        check_rejected_as_nobody(
            Path(folder), before, Path(folder) / "another.csv", Path(folder) / "new" / "scores.csv"
        )


def check_rejected_as_nobody(folder: Path, *paths: Path) -> None:
    with as_nobody(folder):
        for path in paths:
            with pytest.raises(InputError, match="cannot write"):
                check_can_append(path)


def test_append_accepts_dev_null():
    check_can_append(Path(os.devnull))
    append_scores(Path(os.devnull), [SCORE])


def test_check_can_append_rejects_pipes_and_folders(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is not a regular file; accepted: a csv file"):  # reading would block
        check_can_append(tmp_path / "pipe")
    with pytest.raises(InputError, match="Is a directory"):
        check_can_append(tmp_path)


@contextlib.contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """Make `folder` read-only; root, who could still write, becomes user NOBODY."""
    folder.chmod(0o555)
    owner = os.geteuid()
    if owner == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(owner)
        folder.chmod(0o755)


def test_columns_and_one_row_as_text(tmp_path: Path):
    path = tmp_path / "scores.csv"
    append_scores(path, [SCORE])
    assert path.read_text() == (
        "algorithm,game,env,seed,split,levels,env_steps,episodes,mean_return,std_return,solved_rate,ci_low,ci_high,"
        "agent,commit,settings\n"
        'ppo,maze,procgen:maze,3,test,"3,7,9",24985600,500,5.25,1,0.525,-4.8,0.333333,"runs/a, b",0123456789ab,\n'
    )


def test_missing_or_empty_file_has_no_rows(tmp_path: Path):
    assert list(rows_so_far(tmp_path / "scores.csv")) == []
    (tmp_path / "scores.csv").touch()
    assert list(rows_so_far(tmp_path / "scores.csv")) == []


def test_append_writes_header_to_empty_file(tmp_path: Path):
    path = tmp_path / "scores.csv"
    path.touch()
    append_scores(path, [SCORE])
    assert len(read_scores(path)) == 1


OLD = (
    "algorithm,game,env,seed,split,levels,env_steps,episodes,mean_return,std_return,solved_rate,ci_low,ci_high,"
    "agent,commit\n"
)
OLD_ROW = 'ppo,maze,procgen:maze,3,test,"3,7,9",24985600,500,5.25,1,0.525,-4.8,0.3,"runs/a, b",0123456789ab\n'


def test_append_adds_settings_column_to_old_files(tmp_path: Path):
    path = tmp_path / "scores.csv"
    path.write_text(OLD + OLD_ROW)
    (row,) = read_scores(path)
    assert (row.agent, row.settings) == ("runs/a, b", "")
    append_scores(path, [SCORE])
    assert read_scores(path)[0] == row and path.read_text().startswith(",".join(COLUMNS))


def test_append_keeps_last_row_without_newline(tmp_path: Path):
    path = tmp_path / "scores.csv"
    append_scores(path, [SCORE])
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    append_scores(path, [SCORE])
    assert len(read_scores(path)) == 2


def test_append_rejects_files_with_other_content(tmp_path: Path):
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
        ROW.removesuffix(",c=1"),  # truncated in the text columns
        ROW.removesuffix(",6,a,b,c=1"),  # truncated in the number columns
        ROW + ",d",
        ROW.replace("test", "both"),
    ],
)
def test_invalid_line_is_reported_with_its_number(tmp_path: Path, line: str):
    path = tmp_path / "scores.csv"
    path.write_text(f"{','.join(COLUMNS)}\n{ROW}\n{line}\n")
    with pytest.raises(InputError, match=r"scores.csv line 3 is not a score row"):
        read_scores(path)


@pytest.mark.parametrize("text", ["", "a,b,c\n1,2,3\n", ",".join(COLUMNS[1:]) + "\n"])
def test_score_file_with_other_columns_is_rejected(tmp_path: Path, text: str):
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=r"scores.csv is not a file of score rows: it has columns .*accepted: algo"):
        read_scores(path)


def test_binary_file_is_rejected(tmp_path: Path):
    path = tmp_path / "scores.csv"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    with pytest.raises(InputError, match=r"scores.csv is not text"):
        read_scores(path)


def test_unreadable_and_unwritable_files_are_rejected(tmp_path: Path):
    with pytest.raises(InputError, match=r"cannot read .*missing.csv: No such file"):
        read_scores(tmp_path / "missing.csv")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write .*accepted: a writable folder with space"):
        append_scores(tmp_path / "file" / "scores.csv", [SCORE])
