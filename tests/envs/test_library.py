"""Finding ProcGen's library, and the errors when it is missing or cannot be loaded."""

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from expgen.envs.library import find_library, is_installed, load_error
from expgen.errors import InputError


@pytest.mark.parametrize(
    ("missing", "package"),
    [("libGL.so.1", "libgl1"), ("libglib-2.0.so.0", "libglib2.0-0"), ("libgthread-2.0.so.0", "libglib2.0-0")],
)
def test_load_error_names_missing_library_and_debian_package(missing: str, package: str) -> None:
    error = load_error(Path("libenv.so"), f"{missing}: cannot open shared object file: No such file or directory")
    assert missing in str(error) and error.args[0].endswith(f"Debian package {package}")


def test_load_error_keeps_other_messages_of_the_loader() -> None:
    assert "contains libodd.so.3" in str(load_error(Path("a"), "libodd.so.3: cannot open shared object file: no"))
    assert "invalid ELF header" in str(load_error(Path("a"), "a: invalid ELF header"))


def test_find_library_rejects_folder_without_library_or_assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPGEN_PROCGEN", str(tmp_path))
    with pytest.raises(InputError, match=r"^EXPGEN_PROCGEN has no libenv\.so"):
        find_library()
    (tmp_path / "libenv.so").touch()
    with pytest.raises(InputError, match="EXPGEN_PROCGEN has no assets"):
        find_library()
    (tmp_path / "assets").mkdir()
    assert find_library() == (tmp_path / "libenv.so", tmp_path / "assets")


def test_find_library_searches_prefix_and_explains_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EXPGEN_PROCGEN", raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not is_installed()
    with pytest.raises(InputError, match="pip install --no-deps procgen-mirror, or set EXPGEN_PROCGEN"):
        find_library()
    shared = tmp_path / "share" / "expgen" / "procgen"
    (shared / "assets").mkdir(parents=True)
    (shared / "libenv.so").touch()
    assert find_library().code == shared / "libenv.so"


def make_folder(folder: Path) -> Path:
    """Create an empty library and assets in `folder`."""
    (folder / "assets").mkdir(parents=True)
    (folder / "libenv.so").touch()
    return folder


def test_find_library_prefers_environment_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_folder(tmp_path / "share" / "expgen" / "procgen")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("EXPGEN_PROCGEN", str(make_folder(tmp_path / "mine")))
    assert find_library().code == tmp_path / "mine" / "libenv.so"
    monkeypatch.setenv("EXPGEN_PROCGEN", str(tmp_path / "gone"))
    with pytest.raises(InputError, match=r"EXPGEN_PROCGEN has no libenv\.so"):  # no silent fallback to the others
        find_library()
    monkeypatch.setenv("EXPGEN_PROCGEN", "")
    assert find_library().code == tmp_path / "share" / "expgen" / "procgen" / "libenv.so"


def test_find_library_does_not_import_the_procgen_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPGEN_PROCGEN", raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    (tmp_path / "procgen.py").write_text("raise SystemError")  # a module of that name is not the package
    importlib.invalidate_caches()
    assert not is_installed()
    (tmp_path / "procgen.py").unlink()
    data = tmp_path / "procgen" / "data"
    make_folder(data / "prebuilt")
    (tmp_path / "procgen" / "__init__.py").write_text("raise SystemError")
    importlib.invalidate_caches()
    with pytest.raises(InputError, match="the package procgen has no assets"):
        find_library()
    (data / "prebuilt" / "assets").rename(data / "assets")
    assert find_library() == (data / "prebuilt" / "libenv.so", data / "assets")
