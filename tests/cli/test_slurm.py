"""expgen slurm: the script and bad input."""

import subprocess

import pytest


def test_slurm_script_has_allocation_and_command(command) -> None:
    asked = ["reproduce", "table-1", "--out", "/shared/my runs"]
    status, script, _ = command("slurm", "--nodes", 3, "--gpus", 4, "--cpus", 32, "--", *asked)
    assert status == 0
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    assert "#SBATCH --nodes=3" in script and "--num-cpus=32 --num-gpus=4" in script
    assert "words=(reproduce table-1 --out '/shared/my runs' --engine ray)" in script
    assert "--include-dashboard=false" in script


def test_slurm_script_without_gpus_requests_none(command) -> None:
    _, script, _ = command("slurm", "--gpus", 0, "--", "train", "maze")
    assert "gpus-per-node" not in script and "--num-gpus=0" in script


@pytest.mark.parametrize(
    "words", [[], ["--", "rm", "-rf"], ["--nodes", "0", "--", "train"], ["--", "train", "--engine=local"]]
)
def test_slurm_rejects_bad_input(words: list[str], refused) -> None:
    assert "accepted" in refused("slurm", *words)


@pytest.mark.parametrize(("flag", "least"), [("--nodes", 1), ("--gpus", 0), ("--cpus", 1), ("--hours", 1)])
def test_slurm_rejects_too_small_numbers(flag: str, least: int, refused) -> None:
    line = refused("slurm", flag, least - 1, "--", "train")
    assert line == f"expgen: {flag} is {least - 1}; accepted: {least} or more"
