"""train: a config → learners side by side → checkpoints, metrics and scores in a run folder."""

import contextlib
import dataclasses
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import torch

from expgen.algorithms.algorithm import build_algorithm, recipe_of
from expgen.envs.make import make_env
from expgen.errors import InputError
from expgen.experiments.config import TrainConfig, default_config, with_values
from expgen.experiments.presets import default_preset, game_values, preset_values
from expgen.experiments.run_folder import RunFolder
from expgen.experiments.scoring import Scorer
from expgen.networks.actor_critic import Policy
from expgen.rollout.rollout import Rollout
from expgen.training.checkpoint import latest_checkpoint
from expgen.training.learner import Learner, Report, Schedule, Scores
from expgen.training.metrics import MetricsFile, TensorBoardEvents
from expgen.training.pipeline import Turn, run_side_by_side
from expgen.training.resources import Resources, plan_resources

RESUMABLE = ("steps", "members")  # what a resumed run may raise; all else is frozen in its config.json


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
    return with_values(config, settings).checked()


def train(
    env: str | None = None,
    algo: str | None = None,
    preset: str | None = None,
    run: Path | str | None = None,
    device: str = "auto",
    resume: bool = False,
    on_start: Callable[[int], None] = lambda total_steps: None,
    on_row: Report = lambda learner, row: None,
    should_stop: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> RunResult:
    """Train `algo` (default ppo) on `env` (default minimaze) in the folder `run`.

    `settings` are fields of TrainConfig and of the configs inside it. With `resume` a run that is already in the
    folder goes on: it is read from there, and only what RESUMABLE names may be raised.
    """
    if resume and run and RunFolder(run).exists():
        folder = RunFolder(run)
        config = _resumed_config(folder, env, algo, settings)
    else:
        config = make_config(env or "minimaze", algo or "ppo", preset, **settings)
        folder = RunFolder(run or default_folder(config))
        if folder.exists():
            if not resume:
                raise InputError(f"--run {folder.path} holds a run already; accepted: --resume, or another folder")
            config = _resumed_config(folder, env, algo, settings)
    return _run(folder, config, device, on_start, on_row, should_stop)


def _resumed_config(folder: RunFolder, env: str | None, algo: str | None, settings: dict[str, Any]) -> TrainConfig:
    frozen, _ = folder.read_config()
    asked = with_values(frozen, {**settings, "env": env or frozen.env, "algo": algo or frozen.algo})
    for name in RESUMABLE:
        least = getattr(frozen, name)
        if getattr(asked, name) < least:
            raise InputError(f"--{name} is {getattr(asked, name)}; accepted for this run: {least} or more")
    before, after = frozen.to_json(), asked.to_json()
    changed = [name for name in before if name not in RESUMABLE and before[name] != after[name]]
    if changed:
        raise InputError(f"--resume: {changed[0]} differs from {folder.config_file}; accepted: more steps or members")
    return asked.checked()


def default_folder(config: TrainConfig) -> Path:
    """`runs/maze-ppo-seed0`."""
    return Path("runs") / f"{config.game.replace('/', '-')}-{config.algo}-seed{config.seed}"


def _run(
    folder: RunFolder,
    config: TrainConfig,
    device: str,
    on_start: Callable[[int], None],
    on_row: Report,
    should_stop: Callable[[], bool],
) -> RunResult:
    resources = plan_resources(device, config.members)
    metrics, events = MetricsFile(folder.metrics_file), TensorBoardEvents(folder.events_folder)
    scorer = Scorer(config, folder, resources)

    def report(learner: str, row: dict[str, float]) -> None:
        metrics.append(learner, row)
        events.append(learner, row)
        on_row(learner, row)

    with contextlib.ExitStack() as cleanup:
        cleanup.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(resources.torch_threads)
        cleanup.callback(events.close)
        learners = []
        for index in range(config.members):
            learner = build_learner(config, index, resources)
            cleanup.callback(learner.close)
            learners.append(learner)
            if checkpoint := latest_checkpoint(folder.checkpoints_of(learner.name)):
                learner.resume(checkpoint)
        folder.write_config(config, learners[0].env.spec)
        for learner in learners:
            metrics.forget_after(learner.name, learner.env_steps)
            events.start(learner.name, learner.env_steps)
        on_start(sum(learner.schedule.env_steps for learner in learners))
        turns = []
        for learner in learners:

            def score(policy: Policy, learner: Learner = learner) -> Generator[None, None, Scores]:
                return scorer.score(learner.name, learner.env_steps, policy)

            life = learner.run(score, report, folder.checkpoints_of(learner.name), should_stop)
            turns.append(Turn(learner.name, life))
        diverged = run_side_by_side(turns)
        is_complete = all(learner.env_steps >= learner.schedule.env_steps for learner in learners)
    return RunResult(folder, config, tuple(diverged), is_complete)


def build_learner(config: TrainConfig, index: int, resources: Resources) -> Learner:
    """Learner number `index` of a run, untrained."""
    recipe, seed = recipe_of(config.algo), config.seed + index
    env = make_env(
        config.env, config.train_set, config.envs, seed, resources.env_threads, recipe.needs_full_view, **config.options
    )
    algorithm = build_algorithm(recipe, env.spec, config.network, config.algorithm, seed, resources.device)
    observation = env.observe()
    rollout = Rollout(
        env.spec,
        config.rollout_steps,
        config.envs,
        algorithm.policy.state_size,
        resources.device,
        full_view=observation.full is not observation.obs,
    )
    steps = config.num_updates * config.envs * config.rollout_steps
    schedule = Schedule(steps, config.eval_every, config.checkpoint_seconds)
    reward = recipe.build_reward(config.reward, config.envs)
    return Learner(f"member{index}", env, algorithm, reward, rollout, schedule, seed)
