"""A run is worked on by one process at a time, and its folder tells what became of it."""

from pathlib import Path

import pytest

from expgen.runs.folder import RunFolder
from expgen.runs.sitting import Sitting, TakenOver, read_sitting, sitting


def test_states(small, tmp_path: Path) -> None:
    run = tmp_path / "run"
    small.train(run, 2)
    assert read_sitting(RunFolder(run))["state"] == "done"
    small.train(run, 4, resume=True, should_stop=lambda: True)
    assert read_sitting(RunFolder(run))["state"] == "stopped"


def test_a_failure_is_told_and_raised(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with pytest.raises(ZeroDivisionError), sitting(folder):
        raise ZeroDivisionError("of a\ndivision")
    facts = read_sitting(folder)
    assert (facts["state"], facts["message"]) == ("failed", "ZeroDivisionError: of a division")


def test_who_comes_later_takes_over_and_the_earlier_one_writes_nothing_more(small, equal, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    later = Sitting(folder)
    written: list[bytes] = []

    def barge_in(learner: str, row: dict[str, float]) -> None:
        if row["env_steps"] == 2 * small.update_steps:
            later.write("running")
            written.append(folder.metrics_file.read_bytes())

    with pytest.raises(TakenOver, match="another process has taken over"):
        small.train(folder.path, 6, on_row=barge_in)
    assert written == [folder.metrics_file.read_bytes()] and small.facts(folder.path)["updates"] == 2
    assert read_sitting(folder)["mark"] == later.mark  # nor does it say that it failed
    small.train(folder.path, 6, resume=True)
    small.train(tmp_path / "whole", 6)
    assert equal(small.state(folder.path), small.state(tmp_path / "whole"))


def test_half_written_files_of_the_dead_are_swept(small, tmp_path: Path) -> None:
    left = tmp_path / "run" / "checkpoints" / "member0" / "000000000128.safetensors.0badcafe.part"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    small.train(tmp_path / "run", 1)
    assert not left.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"state": 3}', "\x00" * 99])
def test_a_damaged_note_hinders_nobody(content: str, small, tmp_path: Path) -> None:
    small.train(tmp_path / "run", 1)
    RunFolder(tmp_path / "run").sitting_file.write_text(content)
    assert small.train(tmp_path / "run", 2, resume=True).is_complete
