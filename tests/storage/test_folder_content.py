"""A folder as a snapshot: what is in it, in which order it is read, and what is read again."""

from pathlib import Path

import pytest

from expgen.storage.folder_content import FolderContent, is_weights
from expgen.storage.listing import Kept


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {"a.csv": "1\n2\nhal", "checkpoints/m/7.safetensors": "w", "z.json": "{}", "runs/other": "", "b.part": ""}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_how_far_things_are_is_read_before_weights_and_weights_before_rows(folder: Path) -> None:
    files, contents = FolderContent(folder, leave_out=("runs",)).snapshot(set())
    assert list(files) == ["z.json", "checkpoints/m/7.safetensors", "a.csv"]
    assert [contents[kept.object] for kept in files.values()] == [b"{}", b"w", b"1\n2\n"]  # whole rows


def test_what_is_there_already_has_no_content(folder: Path) -> None:
    content = FolderContent(folder)
    files, contents = content.snapshot(set())
    there = set(contents)
    assert content.snapshot(there) == (files, {})
    assert FolderContent(folder).snapshot(there) == (files, {})  # nor for one that has read nothing before
    (folder / "a.csv").write_text("1\n2\nhalf\n")
    after, changed = content.snapshot(there)
    assert list(changed.values()) == [b"1\n2\nhalf\n"]
    assert {name for name in files if files[name] != after[name]} == {"a.csv"}


def test_a_file_that_is_gone_from_there_is_given_again(folder: Path) -> None:
    content = FolderContent(folder)
    _, contents = content.snapshot(set())
    lost = next(name for name in contents if "safetensors" in name)
    assert content.snapshot(set(contents) - {lost})[1] == {lost: b"w"}


def test_a_checkpoint_that_is_replaced_while_it_is_read(folder: Path) -> None:
    class Busy(FolderContent):
        """Whose folder goes on between looking and reading."""

        def keep(self, name: str, there: set[str], contents: dict[str, bytes]) -> Kept:
            if is_weights(name) and not (folder / "checkpoints" / "m" / "8.safetensors").exists():
                (folder / "checkpoints" / "m" / "7.safetensors").rename(folder / "checkpoints" / "m" / "8.safetensors")
            return super().keep(name, there, contents)

    files, _ = Busy(folder).snapshot(set())
    assert [name for name in files if is_weights(name)] == ["checkpoints/m/8.safetensors"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("checkpoints/a/1.safetensors", True),
        ("milestones/25/checkpoints/a/1.safetensors", True),
        ("checkpoints", False),
    ],
)
def test_weights_are_what_lies_among_checkpoints(name: str, expected: bool) -> None:
    assert is_weights(name) is expected
