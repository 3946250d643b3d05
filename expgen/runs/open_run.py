"""open_run: where a run will be and what it will do, be it new or one that goes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from expgen.agents.consensus import ConsensusConfig
from expgen.errors import InputError, naming
from expgen.runs.agent_files import read_agent
from expgen.runs.config import TrainConfig, with_values
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import checked, make_config, make_consensus, resized_consensus, split_settings
from expgen.runs.presets import default_algo
from expgen.runs.run_lock import refuse_if_alive
from expgen.settings import flag_of, flat
from expgen.storage.location import Location, is_url
from expgen.storage.view import View
from expgen.training.callbacks import Callback

RESUMABLE = ("steps", "members", "explorer_steps")  # what a resumed run may raise; the rest of its config is frozen


@dataclass(frozen=True)
class RunRequest:
    """What to train and where: the arguments of `train` of these names, which says what they are."""

    env: str | None = None
    algo: str | None = None
    preset: str | None = None
    run: Location | None = None
    resume: bool = False
    take_over: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    log: Sequence[str] = ()
    callbacks: Sequence[Callback] = ()


class OpenedRun(NamedTuple):
    """A run that may begin or go on."""

    folder: RunFolder
    config: TrainConfig
    consensus: ConsensusConfig | None  # how its agent votes, where it has an ensemble


def open_run(request: RunRequest) -> OpenedRun:
    """Where a run will be and what it will do, with nothing written yet.

    Of a run at a URL the folder tells how far it is, and no more.
    """
    if is_url(request.run):
        sketch = View(str(request.run)).refresh()
        with naming(str(request.run), sketch):
            return open_run(replace(request, run=sketch))
    if request.resume and request.run and RunFolder(request.run).exists():
        return _resumed(RunFolder(request.run), request)
    algo, preset = request.algo or default_algo(request.preset), request.preset
    trains, votes = split_settings(algo, request.settings)
    config = make_config(request.env or "minimaze", algo, preset, **trains)
    folder = RunFolder(request.run or default_folder(config))
    if folder.exists():
        if not request.resume:
            raise InputError(f"--run {folder.path} holds a run already; accepted: --resume, or another folder")
        return _resumed(folder, request)
    if not request.take_over:
        refuse_if_alive(folder)
    if folder.learners():
        missing = f"holds checkpoints but no {folder.config_file.name}"
        raise InputError(f"--run {folder.path} {missing}; accepted: a folder without them")
    return OpenedRun(folder, config, make_consensus(config, preset, votes))


def _resumed(folder: RunFolder, request: RunRequest) -> OpenedRun:
    """What trains is as it was, save for what may be raised; how the agent votes may change."""
    frozen, _ = folder.read_config()
    if folder.old_adopted_file.exists():
        what = f"{folder.path} has policies that an earlier version took from other runs"
        raise InputError(f"{what} and can only be played; accepted: a run without {folder.old_adopted_file.name}")
    trains, votes = split_settings(frozen.algo, request.settings)
    kind = {"env": request.env or frozen.env, "algo": request.algo or frozen.algo}
    asked = with_values(frozen, {**trains, **kind})
    before, after = flat(frozen), flat(asked)
    for name in RESUMABLE:
        if name in before and after[name] < before[name]:
            raise InputError(f"{flag_of(name)} is {after[name]}; accepted for this run: {before[name]} or more")
    changed = [name for name in before if name not in RESUMABLE and before[name] != after[name]]
    if changed:
        name = changed[0]
        has = f"{folder.path} has {before[name]}"
        raise InputError(f"--resume with {flag_of(name)} {after[name]} but {has}; accepted: more steps or members")
    if not request.take_over:
        refuse_if_alive(folder)
    config = checked(asked)
    consensus = read_agent(folder.path).consensus
    return OpenedRun(folder, config, consensus and resized_consensus(consensus, frozen.members, config, votes))


def default_folder(config: TrainConfig) -> Path:
    """`runs/maze-ppo-seed0`."""
    return Path("runs") / f"{config.game.replace('/', '-')}-{config.algo}-seed{config.seed}"
