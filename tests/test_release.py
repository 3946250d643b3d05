"""scripts/release in a small repository: its changes, commit and tag, and its errors."""

import datetime
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "release"
PROJECT = '[project]\nname = "expgen"\nversion = "0.1.0"\ndescription = "x"\n'
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A part.\n\n## [0.1.0] - 2026-01-01\n\n- All.\n"


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "config", "user.name", "a")
    git(tmp_path, "config", "user.email", "a@b.c")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "Begin")
    return tmp_path


def release(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *words], cwd=folder, capture_output=True, text=True)


def test_release_updates_version_changelog_commit_and_tag(repository: Path) -> None:
    done = release(repository, "0.2.0")
    assert done.returncode == 0 and "tagged v0.2.0" in done.stdout
    assert (repository / "pyproject.toml").read_text() == PROJECT.replace("0.1.0", "0.2.0")
    today = datetime.date.today().isoformat()
    expected = CHANGELOG.replace("## [Unreleased]\n", f"## [Unreleased]\n\n## [0.2.0] - {today}\n")
    assert (repository / "CHANGELOG.md").read_text() == expected
    assert git(repository, "log", "-1", "--format=%s %D").startswith("Release 0.2.0 HEAD -> ")
    assert git(repository, "tag", "--points-at", "HEAD") == "v0.2.0\n" and git(repository, "status", "--short") == ""
    again = release(repository, "0.3.0")
    assert again.returncode == 1 and "nothing under [Unreleased]" in again.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "scripts/release takes one word; accepted: VERSION, as 0.2.0"),
        (("0.2.0", "0.3.0"), "scripts/release takes one word"),
        (("--help",), "VERSION is '--help'; accepted: MAJOR.MINOR.PATCH, as 0.2.0"),
        (("v0.2.0",), "VERSION is 'v0.2.0'; accepted: MAJOR.MINOR.PATCH"),
        (("0.2",), "VERSION is '0.2'; accepted: MAJOR.MINOR.PATCH"),
        (("0.2.0rc1",), "VERSION is '0.2.0rc1'; accepted: MAJOR.MINOR.PATCH"),
        (("",), "VERSION is ''; accepted: MAJOR.MINOR.PATCH"),
        (("0.1.0",), "VERSION is 0.1.0; accepted: later than 0.1.0"),
        (("0.0.9",), "VERSION is 0.0.9; accepted: later than 0.1.0"),
        (("0.4.0",), "VERSION is 0.4.0, which has a tag; accepted: a later one"),
    ],
)
def test_release_rejects_a_wrong_version_without_changes(
    words: tuple[str, ...], message: str, repository: Path
) -> None:
    git(repository, "tag", "v0.4.0")
    done = release(repository, *words)
    assert done.returncode == 1 and done.stderr.startswith(message) and done.stderr.count("\n") == 1
    assert git(repository, "status", "--short") == "" and (repository / "pyproject.toml").read_text() == PROJECT


def test_release_rejects_uncommitted_changes(repository: Path) -> None:
    (repository / "CHANGELOG.md").write_text(CHANGELOG + "more\n")
    done = release(repository, "0.2.0")
    assert done.returncode == 1 and "the checkout has changes (CHANGELOG.md); accepted: none" in done.stderr


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("CHANGELOG.md", "# Changelog\n", "CHANGELOG.md has nothing under [Unreleased]"),
        ("CHANGELOG.md", CHANGELOG.replace("- A part.", ""), "CHANGELOG.md has nothing under [Unreleased]"),
        ("pyproject.toml", "[project]\n", 'pyproject.toml has no line version = "…"; accepted: one'),
        ("pyproject.toml", PROJECT.replace("0.1.0", "0.1.dev1"), "VERSION is '0.1.dev1'; accepted: MAJOR.MINOR.PATCH"),
    ],
)
def test_release_rejects_unreleasable_files(file: str, text: str, message: str, repository: Path) -> None:
    (repository / file).write_text(text)
    git(repository, "commit", "--quiet", "-am", "Change")
    done = release(repository, "0.2.0")
    assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1


def test_release_rejects_a_folder_without_git(tmp_path: Path) -> None:
    done = release(tmp_path, "0.2.0")
    assert done.returncode == 1 and done.stderr.startswith("git rev-parse failed: ") and done.stderr.count("\n") == 1
