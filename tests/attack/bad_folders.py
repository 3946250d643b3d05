"""Attack: run folders that are deleted, full or read-only during training, and reports that cannot be written."""

import os
import random
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import expgen
from expgen.cli.main import main
from tests.attack.kills import SETTINGS
from tests.attack.sandbox import Outcome, flaw_in, run_forked
from tests.policies import newest_checkpoint

LONG = {**SETTINGS, "steps": 120 * 32}
NOBODY = 65534  # a user without rights; root can write to any folder
FLAGS = [word for name, value in LONG.items() for word in (f"--{name.replace('_', '-')}", str(value))]
TRAIN = ["train", "--algo", "ppo", "--resume", "--run", "run", *FLAGS]


def _command(words: list[str], before: Callable[[], None] = lambda: None) -> Callable[[], int]:
    def call() -> int:
        before()
        return main(words)

    return call


def _when_it_trains(run: Path, rng: random.Random, harm: Callable[[], None]) -> Callable[[], bool]:
    """Call `harm` some time after the first new checkpoint; return whether it was called."""
    known = set(run.glob("checkpoints/*/*.safetensors"))

    def meanwhile() -> bool:
        if known >= set(run.glob("checkpoints/*/*.safetensors")):
            return False
        time.sleep(rng.uniform(0, 0.05))
        harm()
        return True

    return meanwhile


def _judge(outcome: Outcome, statuses: tuple[int, ...] = (1,)) -> str:
    if flaw := flaw_in(outcome):
        return flaw
    if outcome.status not in statuses:
        return f"ends with status {outcome.status} where {statuses[0]} is right: {(outcome.out + outcome.err)[-150:]!r}"
    lines = [line for line in outcome.err.splitlines() if line.startswith("expgen: ")]
    return "" if len(lines) == 1 or 0 in statuses else f"says {len(lines)} lines: {lines}"


def deleted(scratch: Path, rng: random.Random) -> str:
    """Delete the run folder: status 1, one line, and nothing is created again."""
    run, endless = scratch / "run", [*TRAIN, "--steps", "10000000"]
    outcome = run_forked(
        _command(endless), scratch, meanwhile=_when_it_trains(run, rng, lambda: shutil.rmtree(run, True))
    )
    flaw = _judge(outcome)
    return flaw or ("creates the folder again" if (run / "config.json").exists() or "done" in outcome.out else "")


def without_checkpoints(scratch: Path, rng: random.Random) -> str:
    """Delete the checkpoints only: they are written again and the run finishes."""
    run = scratch / "run"
    harm = _when_it_trains(run, rng, lambda: shutil.rmtree(run / "checkpoints", True))
    flaw = _judge(run_forked(_command(TRAIN), scratch, meanwhile=harm), (0,))
    return flaw or ("" if newest_checkpoint(run, "member0").facts["env_steps"] == LONG["steps"] else "lacks steps")


def full(scratch: Path, rng: random.Random) -> str:
    """Limit the size of files, as on a full disk: status 1, and with space again the run finishes."""
    limit = rng.choice([500, 2_000, 5_000, 10_000])

    def shrink() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    flaw = _judge(run_forked(_command(TRAIN, shrink), scratch))
    return flaw or _judge(run_forked(_command(TRAIN), scratch), (0,))


def read_only(scratch: Path, rng: random.Random) -> str:
    """Make all folders of the run read-only: status 1, and when they are writable again the run finishes."""
    run = scratch / "run"
    expgen.train(run=run, quiet=True, **{**LONG, "steps": 64})

    def permit(mode: int) -> None:
        for path in (run, *run.rglob("*")):
            if path.is_dir():
                os.chmod(path, mode)

    def drop_rights() -> None:
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    for path in (scratch, *scratch.rglob("*")):
        os.chown(path, NOBODY, NOBODY) if os.geteuid() == 0 else None
    harm = _when_it_trains(run, rng, lambda: permit(0o555))
    outcome = run_forked(_command(TRAIN, drop_rights), scratch, meanwhile=harm)
    permit(0o755)
    return _judge(outcome) or _judge(run_forked(_command(TRAIN), scratch), (0,))


def half_a_report(scratch: Path, rng: random.Random) -> str:
    """A report on a full disk leaves no files."""
    limit = rng.choice([100, 3_000, 10_000, 30_000])
    words = ["report", "minimaze-expgen", "--out", "new/report", "--resamples", "10"]
    shutil.copytree(Path(expgen.__file__).parent / "pretrained" / "minimaze-expgen", scratch / "minimaze-expgen")

    def shrink() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    flaw = _judge(run_forked(_command(words, shrink), scratch))
    return flaw or (f"leaves {os.listdir(scratch / 'new')}" if (scratch / "new").exists() else "")


WAYS: dict[str, Callable[[Path, random.Random], str]] = {
    "folder deleted while training": deleted,
    "checkpoints deleted while training": without_checkpoints,
    "full disk": full,
    "folder turned read-only while training": read_only,
    "report without space": half_a_report,
}
