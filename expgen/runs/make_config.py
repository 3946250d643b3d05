"""make_config and open_run: the config and folder of a new or resumed run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from expgen.agents.consensus import CONSENSUS_SETTINGS, ConsensusConfig
from expgen.agents.quorum import resized_quorum
from expgen.agents.temperature import checked_temperature
from expgen.agents.vote_kinds import changed_consensus
from expgen.algorithms.recipes import recipe_of
from expgen.errors import InputError, show_url_in_errors
from expgen.evaluation.scores import check_can_append
from expgen.runs.agent_files import read_agent
from expgen.runs.config import TrainConfig, default_config, validated, with_values
from expgen.runs.folder import RunFolder
from expgen.runs.plan import LearnerPlan, plans_of
from expgen.runs.presets import (
    agent_values,
    default_algo,
    default_preset,
    game_values,
    playing_values,
    preset_values,
)
from expgen.runs.run_lock import refuse_if_alive
from expgen.settings import apply_overrides, flag_of, flatten
from expgen.storage.location import Location, is_url
from expgen.storage.view import local_copy
from expgen.training.callbacks import Callback, Callbacks
from expgen.training.checkpoint import latest_checkpoint
from expgen.training.origin import check_origin, origin_of

RUNS_FOLDER = Path("runs")  # parent of the default run folders
RESUMABLE = ("steps", "members", "explorer_steps")  # settings that a resumed run may raise; the others are frozen


def make_config(env: str = "minimaze", algo: str = "ppo", preset: str | None = None, **settings: Any) -> TrainConfig:
    """Return the defaults of `algo` with the values of `preset` and `env`, overridden by `settings`."""
    config = replace(default_config(algo), env=env)
    preset = preset or default_preset(env)
    values = {**preset_values(preset, env), **game_values(algo, env, preset)}
    config = apply_overrides(config, values)[0]  # a registered algorithm may lack some of these settings
    changed = with_values(config, settings)
    if changed.network.memory != "none" and config.network.memory == "none":  # memory needs whole sequences
        changed = with_values(config, {"minibatch_order": "columns", **settings})
    return validated(changed)


def make_consensus(
    config: TrainConfig, preset: str | None = None, settings: Mapping[str, Any] | None = None
) -> ConsensusConfig | None:
    """Return how the agent of a new run votes: `preset` overridden by `settings`; None if it has no ensemble."""
    if not plays_together(config.algo):
        return None
    preset = preset or default_preset(config.env)
    members = make_config(config.env, config.algo, preset).members
    consensus = changed_consensus(ConsensusConfig(), agent_values(config.env, preset), members)
    return resized_consensus(consensus, members, config, settings or {})


def plays_together(algo: str) -> bool:
    """Whether the policies of a run form one agent: an ensemble with its explorers, or explorers alone."""
    recipe = recipe_of(algo)
    return recipe.explorer is not None or recipe.takes_turns


def resized_consensus(
    consensus: ConsensusConfig, members: int, config: TrainConfig, settings: Mapping[str, Any]
) -> ConsensusConfig:
    """Adapt `consensus` from `members` members to those of `config`, and apply `settings`.

    Unless `settings` have a quorum, `resized_quorum` adapts it.
    """
    takes_turns = recipe_of(config.algo).takes_turns  # all learners are explorers; no member votes
    changed = changed_consensus(consensus, settings, 0 if takes_turns else config.members)
    if settings.get("min_agree") or takes_turns:
        return changed
    quorum = 0 if "min_agree" in settings else consensus.min_agree
    return replace(changed, min_agree=resized_quorum(quorum, members, config.members, config.env))


def split_settings(algo: str, settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split settings into those of the training and those of the vote; without an ensemble the latter are empty."""
    names = CONSENSUS_SETTINGS if plays_together(algo) else ()
    votes = {name: value for name, value in settings.items() if name in names}
    return {name: value for name, value in settings.items() if name not in votes}, votes


def pop_playing(algo: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Remove the agent's temperatures from `settings` and return by name those that are set.

    `explorer_temperature` has a prefix of the explorer's training settings, but is a setting of playing like
    `temperature`; without members and explorers it is left in `settings`, and refused as unknown.
    """
    names = ["temperature"] if recipe_of(algo).explorer is None else ["temperature", "explorer_temperature"]
    given = {name: settings.pop(name, None) for name in names}
    return {name: checked_temperature(value, flag_of(name)) for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class RunRequest:
    """The run to train: arguments of `train`, which describes them."""

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
    """A new or resumed run that has not started yet."""

    folder: RunFolder
    config: TrainConfig
    consensus: ConsensusConfig | None  # how its agent votes; None without an ensemble
    playing: Mapping[str, Any] = field(default_factory=dict)  # `weights` and temperatures to set in agent.json
    name: str = ""  # prefix of its learners if several runs train together
    callbacks: Callbacks = field(default_factory=lambda: Callbacks([]))

    @cached_property
    def plans(self) -> list[LearnerPlan]:
        return plans_of(self.config)

    def check_can_train(self) -> int:
        """Return how many learners have steps left; raise InputError if the run's files are invalid.

        Without the value network a policy is refused: a newly initialised one would undo what the policy has learnt.
        """
        check_can_append(self.folder.scores_file)
        unfinished = 0
        for plan in self.plans:
            checkpoint = latest_checkpoint(self.folder.checkpoints_of(plan.name))
            if checkpoint is not None:
                origin = origin_of(self.config.env, plan.policy.algo, plan.policy.seed, plan.policy.levels)
                check_origin(checkpoint, origin, f"{self.folder.path} {plan.name}")
            unfinished += checkpoint is None or checkpoint.facts["env_steps"] < plan.steps
            if checkpoint and checkpoint.is_policy_alone and recipe_of(plan.policy.algo).make_networks is not None:
                missing = f"no value network for {plan.name}, which {plan.policy.algo} needs"
                raise InputError(f"--run {self.folder.path} has {missing}; accepted: checkpoints written by training")
        return unfinished


def open_run(request: RunRequest) -> OpenedRun:
    """Return the folder and config of a new or resumed run, without writing anything.

    For a run at a URL the folder is a local copy without weights.
    """
    if is_url(request.run):
        copy = local_copy(str(request.run), without_weights=True)
        with show_url_in_errors(str(request.run), copy):
            return open_run(replace(request, run=copy))
    if request.resume and request.run and RunFolder(request.run).exists():
        return _resumed(RunFolder(request.run), request)
    preset = request.preset
    algo = default_algo(preset, request.env) if request.algo is None else request.algo
    settings, votes = split_settings(algo, request.settings)
    playing = {**playing_values(request.env, algo, preset), **pop_playing(algo, settings)}
    config = make_config(request.env or "minimaze", algo, preset, **settings)
    folder = RunFolder(request.run or default_folder(config))
    if folder.exists():
        if not request.resume:
            raise InputError(f"--run {folder.path} already has a run; accepted: --resume, or another folder")
        return _resumed(folder, request)
    if not request.take_over:
        refuse_if_alive(folder)
    if folder.learners():
        missing = f"has checkpoints but no {folder.config_file.name}"
        raise InputError(f"--run {folder.path} {missing}; accepted: a folder without checkpoints")
    return OpenedRun(folder, config, make_consensus(config, preset, votes), playing)


def _resumed(folder: RunFolder, request: RunRequest) -> OpenedRun:
    """Open a run to resume: its config may change only in RESUMABLE; how its agent votes may change too."""
    frozen, _ = folder.read_config()
    settings, votes = split_settings(frozen.algo, request.settings)
    playing = pop_playing(frozen.algo, settings)
    changed = with_values(frozen, {**settings, "env": request.env or frozen.env, "algo": request.algo or frozen.algo})
    before, after = flatten(frozen), flatten(changed)
    for name, value in before.items():
        if name in RESUMABLE and after[name] < value:
            raise InputError(f"{flag_of(name)} is {after[name]}; accepted for this run: {value} or more")
        if name not in RESUMABLE and after[name] != value:
            what = f"{flag_of(name)} is {after[name]} but {folder.path} has {value}"
            raise InputError(f"{what}; accepted with --resume: more steps or members")
    if not request.take_over:
        refuse_if_alive(folder)
    config = validated(changed)
    consensus = read_agent(folder.path).consensus
    consensus = consensus and resized_consensus(consensus, frozen.members, config, votes)
    return OpenedRun(folder, config, consensus, playing)


def default_folder(config: TrainConfig) -> Path:
    """Return the run folder if none is given, such as `runs/maze-ppo-seed0`."""
    return RUNS_FOLDER / f"{config.game.replace('/', '-')}-{config.algo}-seed{config.seed}"
