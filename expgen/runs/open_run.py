"""open_run: where a run will be and what it will do, be it new or one that goes on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from expgen.errors import InputError, naming
from expgen.runs.config import TrainConfig, with_values
from expgen.runs.config_checks import checked
from expgen.runs.config_tree import flat
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import make_config, with_quorum
from expgen.runs.run_lock import refuse_if_alive
from expgen.settings import flag_of
from expgen.storage.location import Location, is_url
from expgen.storage.view import View

RESUMABLE = ("steps", "members", "explorer_steps")  # what a resumed run may raise; the rest of its config is frozen


def open_run(
    env: str | None = None,
    algo: str | None = None,
    preset: str | None = None,
    run: Location | None = None,
    resume: bool = False,
    take_over: bool = False,
    adopt: Sequence[Location] = (),
    **settings: Any,
) -> tuple[RunFolder, TrainConfig]:
    """Where a run will be and what it will do, with nothing written yet; the arguments are those of `train`.

    Of a run at a URL the folder tells how far it is, and no more.
    """
    if is_url(run):
        sketch = View(run).refresh()  # type: ignore[arg-type]
        with naming(str(run), sketch):
            return open_run(env, algo, preset, sketch, resume, take_over, adopt, **settings)
    if resume and run and RunFolder(run).exists():
        folder, config = RunFolder(run), _resumed_config(RunFolder(run), env, algo, settings)
    else:
        config = make_config(env or "minimaze", algo or "ppo", preset, **settings)
        folder = RunFolder(run or default_folder(config))
        if folder.exists():
            if not resume:
                raise InputError(f"--run {folder.path} holds a run already; accepted: --resume, or another folder")
            config = _resumed_config(folder, env, algo, settings)
    if not take_over:
        refuse_if_alive(folder)
    if not folder.exists() and folder.learners() and not adopt:
        missing = f"holds checkpoints but no {folder.config_file.name}"
        raise InputError(f"--run {folder.path} {missing}; accepted: a folder without them")
    return folder, config


def _resumed_config(folder: RunFolder, env: str | None, algo: str | None, settings: dict[str, Any]) -> TrainConfig:
    frozen, _ = folder.read_config()
    asked = with_values(frozen, {**settings, "env": env or frozen.env, "algo": algo or frozen.algo})
    before, after = flat(frozen), flat(asked)
    for name in RESUMABLE:
        if name in before and after[name] < before[name]:
            raise InputError(f"{flag_of(name)} is {after[name]}; accepted for this run: {before[name]} or more")
    changed = [name for name in before if name not in RESUMABLE and before[name] != after[name]]
    if changed:
        name = changed[0]
        has = f"{folder.path} has {before[name]}"
        raise InputError(f"--resume with {flag_of(name)} {after[name]} but {has}; accepted: more steps or members")
    return checked(with_quorum(frozen, asked, settings))


def default_folder(config: TrainConfig) -> Path:
    """`runs/maze-ppo-seed0`."""
    return Path("runs") / f"{config.game.replace('/', '-')}-{config.algo}-seed{config.seed}"
