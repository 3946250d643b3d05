"""open_run: where a run will be and what it will do, be it new or one that goes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from expgen.agents.consensus import ConsensusConfig
from expgen.algorithms.recipes import recipe_of
from expgen.errors import InputError, naming
from expgen.evaluation.scores import check_can_append
from expgen.runs.agent_files import read_agent
from expgen.runs.config import TrainConfig, with_values
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import checked, make_config, make_consensus, resized_consensus, split_settings
from expgen.runs.plan import LearnerPlan, plans_of
from expgen.runs.presets import default_algo
from expgen.runs.run_lock import refuse_if_alive
from expgen.settings import flag_of, flat
from expgen.storage.location import Location, is_url
from expgen.storage.view import View
from expgen.training.callbacks import Callback, Callbacks
from expgen.training.checkpoint import latest_checkpoint

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


@dataclass(frozen=True)
class OpenedRun:
    """A run that may begin or go on."""

    folder: RunFolder
    config: TrainConfig
    consensus: ConsensusConfig | None  # how its agent votes, where it has an ensemble
    name: str = ""  # by which several at once are told apart
    callbacks: Callbacks = field(default_factory=lambda: Callbacks([]))  # that hear of it

    @cached_property
    def plans(self) -> list[LearnerPlan]:
        """Its learners."""
        return plans_of(self.config)

    def check_can_go_on(self) -> int:
        """Refuse bad input before the run is taken over or written to; returns how many learners have steps left.

        Weights alone are refused where learning needs more: a fresh critic would undo what they have learnt.
        """
        check_can_append(self.folder.scores_file)
        unfinished = 0
        for plan in self.plans:
            checkpoint = latest_checkpoint(self.folder.checkpoints_of(plan.name))
            unfinished += checkpoint is None or checkpoint.facts["env_steps"] < plan.steps
            if checkpoint and checkpoint.is_weights_alone and recipe_of(plan.algo).make_networks is not None:
                missing = f"{plan.name}'s policy without the value network that {plan.algo} learns with"
                accepted = "a run folder whose checkpoints have it, as training leaves them"
                raise InputError(f"--run {self.folder.path} has {missing}; accepted: {accepted}")
        return unfinished


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
    trains, votes = split_settings(frozen.algo, request.settings)
    kind = {"env": request.env or frozen.env, "algo": request.algo or frozen.algo}
    asked = with_values(frozen, {**trains, **kind})
    before, after = flat(frozen), flat(asked)
    for name, value in before.items():
        if name in RESUMABLE and after[name] < value:
            raise InputError(f"{flag_of(name)} is {after[name]}; accepted for this run: {value} or more")
        if name not in RESUMABLE and after[name] != value:
            has = f"{folder.path} has {value}"
            raise InputError(f"--resume with {flag_of(name)} {after[name]} but {has}; accepted: more steps or members")
    if not request.take_over:
        refuse_if_alive(folder)
    config = checked(asked)
    consensus = read_agent(folder.path).consensus
    return OpenedRun(folder, config, consensus and resized_consensus(consensus, frozen.members, config, votes))


def default_folder(config: TrainConfig) -> Path:
    """`runs/maze-ppo-seed0`."""
    return Path("runs") / f"{config.game.replace('/', '-')}-{config.algo}-seed{config.seed}"
