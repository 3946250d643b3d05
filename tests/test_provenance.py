"""commit() and version()."""

import shutil
import subprocess
from pathlib import Path

import pytest

from expgen import provenance

GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit that contains the package."""
    package = tmp_path / "expgen"
    package.mkdir()
    (package / "provenance.py").write_text("# ours\n")
    (tmp_path / "readme").write_text("theirs\n")
    subprocess.run([*GIT, "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.setattr(provenance, "__file__", str(package / "provenance.py"))
    monkeypatch.setattr(provenance, "commit", provenance.commit.__wrapped__)
    return tmp_path


def commit(checkout: Path, *paths: str) -> str:
    subprocess.run([*GIT, "add", *paths], cwd=checkout, check=True)
    subprocess.run([*GIT, "commit", "-q", "-m", "x"], cwd=checkout, check=True)
    done = subprocess.run([*GIT, "rev-parse", "HEAD"], cwd=checkout, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@needs_git
def test_commit_has_a_plus_when_files_are_changed(checkout: Path) -> None:
    head = commit(checkout, "expgen", "readme")
    assert provenance.commit() == head[:12]
    (checkout / "untracked").write_text("x")
    assert provenance.commit() == head[:12]
    (checkout / "expgen" / "provenance.py").write_text("# changed\n")
    assert provenance.commit() == head[:12] + "+"


@needs_git
def test_expgen_commit_variable_is_used_only_without_a_checkout(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPGEN_COMMIT", "0123456789ab")
    assert provenance.commit() == "0123456789ab"
    assert provenance.commit() != commit(checkout, "expgen")[:12] == provenance.commit()


@needs_git
def test_commit_is_the_version_inside_another_project(checkout: Path) -> None:
    commit(checkout, "readme")
    assert provenance.commit() == provenance.version()


def test_commit_is_the_version_outside_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "provenance.py"))
    assert provenance.commit.__wrapped__() == provenance.version()


def test_commit_is_the_version_without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert provenance.commit.__wrapped__() == provenance.version()


def test_version_is_unknown_when_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert provenance.version().startswith("v")

    def missing(name: str) -> str:
        raise provenance.metadata.PackageNotFoundError

    monkeypatch.setattr(provenance.metadata, "version", missing)
    assert provenance.version() == "unknown"
