"""InputError and the checks that raise it."""

import errno
import os
from pathlib import Path

import pytest

from expgen.errors import FailedStorage, InputError, check_choice, check_range, check_writable, write_error


def test_check_choice_returns_the_value_or_lists_the_choices():
    assert check_choice("--game", "maze", {"maze": 1, "heist": 2}) == "maze"
    with pytest.raises(InputError, match=r"^--game is 'chess'; accepted: maze, heist$"):
        check_choice("--game", "chess", ["maze", "heist"])
    assert issubclass(InputError, ValueError)


def test_check_range_includes_both_ends_and_rejects_nan():
    for value in (1, 3):
        check_range("--count", value, 1, 3)
    check_range("--count", 10**12, 1)
    for value in (0, 4, float("nan")):
        with pytest.raises(InputError, match=rf"^--count is {value}; accepted: 1 to 3$"):
            check_range("--count", value, 1, 3)
    for value in (0.5, float("nan")):
        with pytest.raises(InputError, match=rf"^--count is {value}; accepted: 1 or more$"):
            check_range("--count", value, 1)
    with pytest.raises(InputError, match=r"^--steps is -2; accepted: 0 to 1000$"):
        check_range("--steps", -2, 0.0, 1000.0)


@pytest.mark.parametrize(
    ("number", "is_failure"), [(errno.ENOSPC, True), (errno.EIO, True), (errno.EACCES, False), (errno.ENOTDIR, False)]
)
def test_full_disk_is_failed_storage_and_wrong_folder_is_input_error(number: int, is_failure: bool):
    error = write_error(Path("runs/a"), OSError(number, os.strerror(number)))
    assert isinstance(error, FailedStorage) == is_failure
    assert str(error) == f"cannot write runs/a: {os.strerror(number)}; accepted: a writable folder with space"


def test_check_writable_rejects_unwritable_paths(tmp_path: Path):
    check_writable(tmp_path / "new" / "file")
    (tmp_path / "file").touch()
    check_writable(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    for path, why in ((tmp_path, "Is a directory"), (tmp_path / "file" / "below", "Not a directory")):
        with pytest.raises(InputError, match=f"^cannot write {path}: {why}; accepted: "):
            check_writable(path)
    if Path("/proc/self").exists():  # where root may write by its permissions, but no file can be created
        for name in ("new.csv", "version"):
            with pytest.raises(InputError, match=f"^cannot write /proc/{name}: .*; accepted: a writable folder"):
                check_writable(Path("/proc") / name)
    check_writable(Path(os.devnull))
    with pytest.raises(InputError, match=r"^cannot write .* File name too long; accepted: "):
        check_writable(tmp_path / ("a" * 256))
