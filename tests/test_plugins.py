"""User modules: imports, registered names, and plug-ins of worker processes."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from expgen import plugins
from expgen.errors import InputError


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process without plug-ins, in a folder with one."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "my_part.py").write_text("loaded = True\n")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", list(sys.path))
    for table in ("_TRUSTED", "_FOLDERS", "_ORIGINS"):
        monkeypatch.setattr(plugins, table, {})
    yield
    sys.modules.pop("my_part", None)


@pytest.mark.parametrize("name", ["my_part", "my_part.py", "./my_part.py", "../here/my_part.py", "../link/my_part.py"])
def test_module_may_be_imported_twice_by_name_or_path(name: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "here")
    plugins.import_module("my_part")
    plugins.import_module(name)
    assert sys.modules["my_part"].loaded and plugins.is_trusted("my_part")


def test_import_rejects_another_file_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "my_part.py").touch()
    plugins.import_module("my_part")
    with pytest.raises(
        InputError, match=r"--import is '\.\./my_part\.py', but 'my_part' is .*; accepted: another file"
    ):
        plugins.import_module("../my_part.py")


def test_trusting_a_package_includes_only_its_submodules() -> None:
    plugins.trust("games.mine")
    assert plugins.is_trusted("games.mine.maze") and plugins.is_trusted("games.mine")
    assert not plugins.is_trusted("games") and not plugins.is_trusted("games.mineral")


def test_load_plugins_imports_the_parent_s_modules(tmp_path: Path) -> None:
    plugins.import_module("my_part")
    plugins.trust("only_named")
    known = plugins.known_plugins()
    assert known.modules == {"my_part": True, "only_named": False} and known.folders == [str(tmp_path / "here")]
    del sys.modules["my_part"]
    plugins._TRUSTED.clear()
    plugins.load_plugins(known)
    assert "my_part" in sys.modules and plugins.is_trusted("only_named")


def test_registered_names_belong_to_their_module_and_script_names_are_local() -> None:
    table: dict[str, int] = {}
    plugins.add(table, "game", "theirs", 1, "a_module")
    plugins.add(table, "game", "theirs", 2, "a_module")
    plugins.add(table, "game", "ours", 3, "__main__")
    plugins.add(table, "game", "nobody-s", 4, None)
    with pytest.raises(InputError, match="name of the game is 'theirs', which is taken"):
        plugins.add(table, "game", "theirs", 5, "another_module")
    assert table == {"theirs": 2, "ours": 3, "nobody-s": 4}
    assert [plugins.is_local(name) for name in table] == [False, True, True]
    assert plugins.is_trusted("a_module") and not plugins.is_trusted("__main__")
    plugins.check_known_to_workers({"--env": "theirs"})
    with pytest.raises(InputError, match="--env is 'ours', which other processes do not know"):
        plugins.check_known_to_workers({"--env": "ours"})
    assert plugins.find(table, "--env", "ours") == 3
    with pytest.raises(InputError, match="--env is 'x'; accepted: theirs, ours, nobody-s, or what --import"):
        plugins.find(table, "--env", "x")
