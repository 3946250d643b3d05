"""make_config, open_run: what a run will do and where it will be, be it new or one that goes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from expgen.agents.consensus import ConsensusConfig, changed_consensus
from expgen.agents.quorum import resized_quorum
from expgen.algorithms.recipes import recipe_of
from expgen.errors import InputError, show_url_in_errors
from expgen.evaluation.scores import check_can_append
from expgen.runs.agent_files import read_agent
from expgen.runs.config import TrainConfig, checked, default_config, with_values
from expgen.runs.folder import RunFolder
from expgen.runs.plan import LearnerPlan, plans_of
from expgen.runs.presets import agent_values, default_algo, default_preset, game_values, preset_values
from expgen.runs.run_lock import refuse_if_alive
from expgen.settings import apply_overrides, flag_of, flatten
from expgen.storage.location import Location, is_url
from expgen.storage.view import local_copy
from expgen.training.callbacks import Callback, Callbacks
from expgen.training.checkpoint import latest_checkpoint

RUNS_FOLDER = Path("runs")  # where runs are that are given no place
RESUMABLE = ("steps", "members", "explorer_steps")  # what a resumed run may raise; the rest of its config is frozen


def make_config(env: str = "minimaze", algo: str = "ppo", preset: str | None = None, **settings: Any) -> TrainConfig:
    """The defaults of `algo`, changed by a preset and by what suits `env`, changed by `settings`."""
    config = replace(default_config(algo), env=env)
    preset = preset or default_preset(env)
    usual = {**preset_values(preset, env), **game_values(algo, env, preset)}
    config = apply_overrides(config, usual)[0]  # an algorithm of the user's own may lack some of these settings
    asked = with_values(config, settings)
    if asked.network.memory != "none" and config.network.memory == "none":  # memory learns from whole sequences
        asked = with_values(config, {"minibatch_order": "columns", **settings})
    return checked(asked)


def make_consensus(
    config: TrainConfig, preset: str | None = None, settings: Mapping[str, Any] | None = None
) -> ConsensusConfig | None:
    """How the agent of a new run votes: as `preset` says, changed by `settings`; None where it has no ensemble."""
    if not plays_together(config.algo):
        return None
    preset = preset or default_preset(config.env)
    of = make_config(config.env, config.algo, preset).members
    usual = changed_consensus(ConsensusConfig(), agent_values(config.env, preset), of)
    return resized_consensus(usual, of, config, settings or {})


def plays_together(algo: str) -> bool:
    """Whether the policies of a run make one agent: an ensemble with its explorers, or explorers alone."""
    recipe = recipe_of(algo)
    return recipe.explorer is not None or recipe.takes_turns


def resized_consensus(
    consensus: ConsensusConfig, of: int, config: TrainConfig, settings: Mapping[str, Any]
) -> ConsensusConfig:
    """`consensus` of `of` members for as many as `config` has, changed by `settings`.

    Unless `settings` name a quorum, it is what `agents.quorum` makes of the old one.
    """
    takes_turns = recipe_of(config.algo).takes_turns  # its learners are all explorers: no member votes
    changed = changed_consensus(consensus, settings, 0 if takes_turns else config.members)
    if settings.get("min_agree") or takes_turns:
        return changed
    known = 0 if "min_agree" in settings else consensus.min_agree
    return replace(changed, min_agree=resized_quorum(known, of, config.members, config.env))


def split_settings(algo: str, settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings that train, and those of how an ensemble votes; without an ensemble all are taken for the former."""
    names = {each.name for each in fields(ConsensusConfig)} if plays_together(algo) else set()
    votes = {name: value for name, value in settings.items() if name in names}
    return {name: value for name, value in settings.items() if name not in votes}, votes


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

    def check_can_train(self) -> int:
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
        sketch = local_copy(str(request.run), without_weights=True)
        with show_url_in_errors(str(request.run), sketch):
            return open_run(replace(request, run=sketch))
    if request.resume and request.run and RunFolder(request.run).exists():
        return _resumed(RunFolder(request.run), request)
    algo, preset = request.algo or default_algo(request.preset, request.env), request.preset
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
    before, after = flatten(frozen), flatten(asked)
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
    return RUNS_FOLDER / f"{config.game.replace('/', '-')}-{config.algo}-seed{config.seed}"
