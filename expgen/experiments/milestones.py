"""Milestones: what a run had become at the steps that `--keep-at` names, kept for good as run folders of their own.

A learner is kept at the step where a run of that many would have ended, so the folder is what such a run leaves behind,
and whatever takes a run (evaluate, play, adopt, bundle) takes a milestone.
"""

import dataclasses
from collections.abc import Sequence

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.experiments.adopt import plans_in
from expgen.experiments.config import TrainConfig
from expgen.experiments.run_folder import RunFolder
from expgen.training.checkpoint import checkpoint_file, write_whole
from expgen.training.learner import Learner, Milestone


def open_milestones(
    run: RunFolder, config: TrainConfig, spec: EnvSpec, learners: Sequence[Learner]
) -> dict[str, list[Milestone]]:
    """What is still to be kept of each learner; the folders' configs are written."""
    ahead: dict[str, list[Milestone]] = {learner.name: [] for learner in learners}
    parts = [(run.milestone(steps), config_at(config, steps)) for steps in config.milestones]
    for kept, shorter in parts:
        ends = {plan.name: plan.steps for plan in plans_in(run, shorter)}
        for learner in learners:
            folder, end = kept.checkpoints_of(learner.name), ends[learner.name]
            if checkpoint_file(folder, end).exists():
                continue
            if learner.env_steps > end:
                what = f"--keep-at is {config.keep_at} but {learner.name} has {learner.env_steps} steps already"
                raise InputError(f"{what}; accepted: none, or steps that are still ahead")
            ahead[learner.name].append(Milestone(end, folder))
    for kept, shorter in parts:
        kept.write_config(shorter, spec)
        if run.adopted_file.exists():
            write_whole(kept.adopted_file, run.adopted_file.read_bytes())
    return ahead


def config_at(config: TrainConfig, steps: int) -> TrainConfig:
    """The same run with at most `steps` of every learner."""
    explorer = config.explorer and dataclasses.replace(config.explorer, steps=min(config.explorer.steps, steps))
    return dataclasses.replace(config, steps=min(config.steps, steps), explorer=explorer, keep_at="none")
