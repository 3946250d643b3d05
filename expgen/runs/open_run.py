"""open_run: where a run will be and what it will do, be it new or one that goes on."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from expgen.agents.consensus import ConsensusConfig
from expgen.config_tree import flat
from expgen.errors import InputError, naming
from expgen.runs.agent_files import read_agent
from expgen.runs.config import TrainConfig, with_values
from expgen.runs.config_checks import checked
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import make_config, make_consensus, resized_consensus, split_settings
from expgen.runs.run_lock import refuse_if_alive
from expgen.settings import flag_of
from expgen.storage.location import Location, is_url
from expgen.storage.view import View

RESUMABLE = ("steps", "members", "explorer_steps")  # what a resumed run may raise; the rest of its config is frozen


class OpenedRun(NamedTuple):
    """A run that may begin or go on."""

    folder: RunFolder
    config: TrainConfig
    consensus: ConsensusConfig | None  # how its agent votes, where it has an ensemble


def open_run(
    env: str | None = None,
    algo: str | None = None,
    preset: str | None = None,
    run: Location | None = None,
    resume: bool = False,
    take_over: bool = False,
    adopt: Sequence[Location] = (),
    **settings: Any,
) -> OpenedRun:
    """Where a run will be and what it will do, with nothing written yet; the arguments are those of `train`.

    Of a run at a URL the folder tells how far it is, and no more.
    """
    if is_url(run):
        sketch = View(run).refresh()  # type: ignore[arg-type]
        with naming(str(run), sketch):
            return open_run(env, algo, preset, sketch, resume, take_over, adopt, **settings)
    if resume and run and RunFolder(run).exists():
        return _resumed(RunFolder(run), env, algo, settings, take_over)
    trains, votes = split_settings(algo or "ppo", settings)
    config = make_config(env or "minimaze", algo or "ppo", preset, **trains)
    folder = RunFolder(run or default_folder(config))
    if folder.exists():
        if not resume:
            raise InputError(f"--run {folder.path} holds a run already; accepted: --resume, or another folder")
        return _resumed(folder, env, algo, settings, take_over)
    if not take_over:
        refuse_if_alive(folder)
    if folder.learners() and not adopt:
        missing = f"holds checkpoints but no {folder.config_file.name}"
        raise InputError(f"--run {folder.path} {missing}; accepted: a folder without them")
    return OpenedRun(folder, config, make_consensus(config, preset, votes))


def _resumed(
    folder: RunFolder, env: str | None, algo: str | None, settings: Mapping[str, Any], take_over: bool
) -> OpenedRun:
    """What trains is as it was, save for what may be raised; how the agent votes may change."""
    frozen, _ = folder.read_config()
    trains, votes = split_settings(frozen.algo, settings)
    asked = with_values(frozen, {**trains, "env": env or frozen.env, "algo": algo or frozen.algo})
    before, after = flat(frozen), flat(asked)
    for name in RESUMABLE:
        if name in before and after[name] < before[name]:
            raise InputError(f"{flag_of(name)} is {after[name]}; accepted for this run: {before[name]} or more")
    changed = [name for name in before if name not in RESUMABLE and before[name] != after[name]]
    if changed:
        name = changed[0]
        has = f"{folder.path} has {before[name]}"
        raise InputError(f"--resume with {flag_of(name)} {after[name]} but {has}; accepted: more steps or members")
    if not take_over:
        refuse_if_alive(folder)
    config = checked(asked)
    consensus = read_agent(folder.path).consensus if config.explorer is not None else None
    return OpenedRun(folder, config, consensus and resized_consensus(consensus, frozen.members, config, votes))


def default_folder(config: TrainConfig) -> Path:
    """`runs/maze-ppo-seed0`."""
    return Path("runs") / f"{config.game.replace('/', '-')}-{config.algo}-seed{config.seed}"
