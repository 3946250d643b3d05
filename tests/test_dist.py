"""scripts/dist: the source archive and the wheel are complete and small."""

import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "dist"
LEFT_OUT = "expgen/pretrained/maze-expgen/checkpoints/"  # expgen fetch gets these


@pytest.mark.slow
def test_archive_and_wheel_contain_every_package_file(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "expgen"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    if not listed:
        pytest.skip("no checkout to compare with")
    archive, wheel = runpy.run_path(str(SCRIPT))["build"](tmp_path)
    packed = {name for name in listed if not name.startswith(LEFT_OUT)}
    assert len(packed) < len(listed)
    with zipfile.ZipFile(wheel) as file:
        assert {name for name in file.namelist() if ".dist-info" not in name} == packed
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert packed | {"README.md", "LICENSE", "CHANGELOG.md", "constraints.txt", "pyproject.toml"} <= names
    assert not any(name.startswith(("tests", "docs", "results")) for name in names)
    assert wheel.name.endswith("-py3-none-any.whl") and all(each.stat().st_size < 45e6 for each in (archive, wheel))


def test_dist_rejects_flags_in_one_line() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--fast"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "scripts/dist has no flag '--fast'; accepted: names of Python interpreters\n"
