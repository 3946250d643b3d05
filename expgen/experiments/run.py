"""train: a config → learners side by side → checkpoints, metrics and scores in a run folder."""

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from expgen.agents.quorum import scaled_quorum
from expgen.errors import InputError
from expgen.evaluation.evaluate import result_of
from expgen.experiments.adopt import adopt as adopt_from
from expgen.experiments.adopt import check_can_go_on, plans_in
from expgen.experiments.config import EXPLORER, TrainConfig, default_config, with_values
from expgen.experiments.config_checks import checked
from expgen.experiments.milestones import open_milestones, refuse_passed
from expgen.experiments.plan import LearnerPlan, build_learner
from expgen.experiments.presets import default_preset, game_values, paper_quorum, preset_values
from expgen.experiments.run_folder import RunFolder
from expgen.experiments.scoring import Scorer
from expgen.experiments.sitting import State, sitting
from expgen.networks.actor_critic import Policy
from expgen.settings import flag_of
from expgen.storage.place import Place, is_url
from expgen.storage.view import View
from expgen.storage.workspace import speaking_of, workspace
from expgen.training.checkpoint import latest_checkpoint
from expgen.training.learner import Learner
from expgen.training.learner_state import resume_learner
from expgen.training.life import Report, Scores, life_of
from expgen.training.metrics import MetricsFile, TensorBoardEvents
from expgen.training.pipeline import Turn, run_side_by_side
from expgen.training.resources import plan_resources

RESUMABLE = ("steps", "members", "explorer_steps")  # what a resumed run may raise; the rest of its config is frozen,
FREE = ("keep_at",)  # save for what decides nothing of the training


@dataclasses.dataclass(frozen=True)
class RunResult:
    """What a sitting of training left behind."""

    folder: RunFolder
    config: TrainConfig
    diverged: tuple[str, ...]
    is_complete: bool


def make_config(env: str = "minimaze", algo: str = "ppo", preset: str | None = None, **settings: Any) -> TrainConfig:
    """The defaults of `algo`, changed by a preset and by what suits `env`, changed by `settings`."""
    config = dataclasses.replace(default_config(algo), env=env)
    preset = preset or default_preset(env)
    config = with_values(config, {**preset_values(preset, env), **game_values(algo, env, preset)})
    if settings.get("memory", "none") != "none":
        config = with_values(config, {"minibatch_order": "columns"})  # memory learns from whole sequences
    return checked(with_quorum(config, with_values(config, settings), settings))


def with_quorum(before: TrainConfig, after: TrainConfig, settings: Mapping[str, Any]) -> TrainConfig:
    """`after`, which `settings` made of `before`, with the quorum that its number of members asks for.

    That is the paper's, unless `before` had one of its own or `settings` name one.
    """
    if before.consensus is None or after.consensus is None or settings.get("min_agree"):
        return after
    known = before.consensus.min_agree
    if "min_agree" in settings or known in (0, paper_quorum(before.env, before.members)):
        return with_values(after, {"min_agree": paper_quorum(after.env, after.members)})
    return with_values(after, {"min_agree": scaled_quorum(known, before.members, after.members)})


def train(
    env: str | None = None,
    algo: str | None = None,
    preset: str | None = None,
    run: Place | None = None,
    device: str = "auto",
    resume: bool = False,
    adopt: Sequence[Place] = (),
    on_start: Callable[[int, dict[str, int]], None] = lambda total_steps, done: None,
    on_row: Report = lambda learner, row: None,
    should_stop: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> RunResult:
    """Train `algo` (default ppo) on `env` (default minimaze) in the folder `run`, or at that URL.

    `settings` are fields of TrainConfig and of the configs inside it. With `resume` a run that is already in the
    folder goes on: it is read from there, and only what RESUMABLE names may be raised. `adopt` names run folders whose
    trained policies join this one.
    """
    with contextlib.ExitStack() as cleanup:
        if is_url(run):
            open_run(env, algo, preset, run, resume, adopt, **settings)  # what it refuses is taken from nobody
            space = cleanup.enter_context(workspace(str(run)))
            run, should_stop = space.path, space.stop_when_lost(should_stop)
        folder, config = open_run(env, algo, preset, run, resume, adopt, **settings)
        adopt_from(folder, config, adopt)
        return _run(folder, config, device, on_start, on_row, should_stop)


def open_run(
    env: str | None = None,
    algo: str | None = None,
    preset: str | None = None,
    run: Place | None = None,
    resume: bool = False,
    adopt: Sequence[Place] = (),
    **settings: Any,
) -> tuple[RunFolder, TrainConfig]:
    """Where a run will be and what it will do, with nothing written yet; the arguments are those of `train`.

    Of a run at a URL the folder tells how far it is, and no more.
    """
    if is_url(run):
        sketch = View(run).refresh()  # type: ignore[arg-type]
        with speaking_of(str(run), sketch):
            return open_run(env, algo, preset, sketch, resume, adopt, **settings)
    if resume and run and RunFolder(run).exists():
        return RunFolder(run), _resumed_config(RunFolder(run), env, algo, settings)
    config = make_config(env or "minimaze", algo or "ppo", preset, **settings)
    folder = RunFolder(run or default_folder(config))
    if folder.exists():
        if not resume:
            raise InputError(f"--run {folder.path} holds a run already; accepted: --resume, or another folder")
        config = _resumed_config(folder, env, algo, settings)
    elif folder.learners() and not adopt:
        missing = f"holds checkpoints but no {folder.config_file.name}"
        raise InputError(f"--run {folder.path} {missing}; accepted: a folder without them")
    return folder, config


def _resumed_config(folder: RunFolder, env: str | None, algo: str | None, settings: dict[str, Any]) -> TrainConfig:
    frozen, _ = folder.read_config()
    asked = with_values(frozen, {**settings, "env": env or frozen.env, "algo": algo or frozen.algo})
    before, after = _flat(frozen.to_json()), _flat(asked.to_json())
    for name in RESUMABLE:
        if name in before and after[name] < before[name]:
            raise InputError(f"{flag_of(name)} is {after[name]}; accepted for this run: {before[name]} or more")
    changed = [name for name in before if name not in (*RESUMABLE, *FREE) and before[name] != after[name]]
    if changed:
        raise InputError(f"--resume: {changed[0]} differs from {folder.config_file}; accepted: more steps or members")
    return checked(with_quorum(frozen, asked, settings))


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by the names flags have."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        inside = isinstance(value, dict) and name != "options"
        flat |= _flat(value, f"{EXPLORER}_" if name == EXPLORER else prefix) if inside else {prefix + name: value}
    return flat


def default_folder(config: TrainConfig) -> Path:
    """`runs/maze-ppo-seed0`."""
    return Path("runs") / f"{config.game.replace('/', '-')}-{config.algo}-seed{config.seed}"


def _check_can_go_on(folder: RunFolder, config: TrainConfig, plans: Sequence[LearnerPlan]) -> None:
    """Refuse what cannot be asked of a run before it is taken over: it is none the worse for it."""
    env_steps = dict.fromkeys((plan.name for plan in plans), 0)
    for plan in plans:
        if checkpoint := latest_checkpoint(folder.checkpoints_of(plan.name)):
            check_can_go_on(plan, checkpoint, f"--run {folder.path}")
            env_steps[plan.name] = checkpoint.facts["env_steps"]
    refuse_passed(folder, config, env_steps)


def _run(
    folder: RunFolder,
    config: TrainConfig,
    device: str,
    on_start: Callable[[int, dict[str, int]], None],
    on_row: Report,
    should_stop: Callable[[], bool],
) -> RunResult:
    plans = plans_in(folder, config)
    _check_can_go_on(folder, config, plans)
    resources = plan_resources(device, len(plans))
    events = TensorBoardEvents(folder.events_folder)

    def report(learner: str, row: dict[str, float]) -> None:
        seat.check()
        metrics.append(learner, row)
        events.append(learner, row)
        on_row(learner, row)

    with contextlib.ExitStack() as cleanup:
        cleanup.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(resources.torch_threads)
        cleanup.callback(events.close)
        learners = []
        for plan in plans:
            learner = build_learner(config, plan, resources)
            cleanup.callback(learner.close)
            learners.append(learner)
        seat = cleanup.enter_context(sitting(folder))  # before the checkpoints that it goes on from are read
        scorer, metrics = Scorer(config, folder, resources, seat.check), MetricsFile(folder.metrics_file)
        for learner in learners:
            if checkpoint := latest_checkpoint(folder.checkpoints_of(learner.name), is_quiet=True):
                resume_learner(learner, checkpoint)
        milestones = open_milestones(folder, config, learners[0].env.spec, learners)
        folder.write_config(config, learners[0].env.spec)
        for learner in learners:
            metrics.forget_after(learner.name, learner.env_steps)
            events.start(learner.name, learner.env_steps)
        total = sum(learner.schedule.env_steps for learner in learners)
        on_start(total, {learner.name: learner.env_steps for learner in learners})
        turns = []
        for plan, learner in zip(plans, learners, strict=True):

            def score(
                policy: Policy, plan: LearnerPlan = plan, learner: Learner = learner
            ) -> Generator[None, None, Scores]:
                return scorer.score(plan, learner.env_steps, policy)

            checkpoints = folder.checkpoints_of(learner.name)
            life = life_of(learner, score, report, checkpoints, should_stop, milestones[learner.name])
            turns.append(Turn(learner.name, life))
        diverged = run_side_by_side(turns, resources.updates_at_once)
        for plan, learner in zip(plans, learners, strict=True):
            if scorer.is_wanting(plan, learner.env_steps):  # joined complete, so that no sitting here has scored it
                result_of(scorer.score(plan, learner.env_steps, learner.algorithm.policy))
        is_complete = all(learner.env_steps >= learner.schedule.env_steps for learner in learners)
        if is_complete and config.consensus is not None:
            scorer.score_consensus()
        state: State = "diverged" if diverged else "done" if is_complete else "stopped"
        seat.write(state, ", ".join(diverged))
    return RunResult(folder, config, tuple(diverged), is_complete)
