"""Milestones: what a run had become at the steps that `--keep-at` names, kept for good as run folders of their own.

A learner is kept at the step where a run of that many would have ended, so the folder is what such a run leaves behind,
and whatever takes a run (evaluate, play, adopt, bundle) takes a milestone. A policy adopted from a run of other
rollouts may never stand at that step: it is kept at the first one after it.
"""

import contextlib
import dataclasses
import sys
from collections.abc import Mapping

from expgen.agents.description import AgentDescription
from expgen.errors import InputError
from expgen.runs.adopt import plans_in
from expgen.runs.agent_files import write_agent
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.plan import plans_of
from expgen.training.checkpoint import has_checkpoint_from, write_whole
from expgen.training.life import Milestone


def refuse_passed(run: RunFolder, config: TrainConfig, env_steps: Mapping[str, int]) -> None:
    """An InputError for a milestone that is new to the run and that a learner of so many `env_steps` is past.

    One that the run was given earlier must not keep it from being resumed, whatever has become of its folder.
    """
    known = run.read_config()[0].milestones if run.exists() else ()
    for at in config.milestones:
        if at not in known and (name := _passed(run, config, at, env_steps)):
            what = f"--keep-at is {config.keep_at} but {name} has {env_steps[name]} steps already"
            raise InputError(f"{what}; accepted: none, or steps that are still ahead")


def open_milestones(
    run: RunFolder, config: TrainConfig, agent: AgentDescription, env_steps: Mapping[str, int]
) -> dict[str, list[Milestone]]:
    """What is still to be kept of each learner, which has so many `env_steps`; config and `agent` of each are written.

    A milestone that is complete is left alone.
    """
    ahead: dict[str, list[Milestone]] = {name: [] for name in env_steps}
    missed: dict[int, str] = {}
    for at in config.milestones:
        kept, shorter = run.milestone(at), config_at(config, at)
        if _is_complete(kept, shorter):
            continue
        if name := _passed(run, config, at, env_steps):
            missed[at] = name
            continue
        for name, end in _wanting(run, config, at).items():
            ahead[name].append(Milestone(end, kept.checkpoints_of(name)))
        kept.write_config(shorter, agent.spec)
        write_agent(dataclasses.replace(agent, folder=kept.path))
        if run.adopted_file.exists():
            write_whole(kept.adopted_file, run.adopted_file.read_bytes())
    if missed:
        why = f"{run.milestone(min(missed)).path} is incomplete, and {missed[min(missed)]} is past it"
        print(f"expgen: --keep-at {','.join(map(str, missed))} can no longer be kept: {why}", file=sys.stderr)
    return ahead


def _is_complete(kept: RunFolder, shorter: TrainConfig) -> bool:
    """Whether every learner that the milestone's own config has is there, so that it is left alone from now on.

    Not while the run has been given more steps since, of which some belong to this milestone too.
    """
    with contextlib.suppress(InputError):  # a damaged config is written anew
        names = [plan.name for plan in plans_of(kept.read_config()[0])]
        ends = {plan.name: plan.steps for plan in plans_of(shorter)}
        return all(has_checkpoint_from(kept.checkpoints_of(name), ends[name]) for name in names if name in ends)
    return False


def _passed(run: RunFolder, config: TrainConfig, at: int, env_steps: Mapping[str, int]) -> str | None:
    """A learner that was to be kept `at` these steps, was not, and has trained on."""
    if _is_complete(run.milestone(at), config_at(config, at)):
        return None
    return next((name for name, end in _wanting(run, config, at).items() if env_steps[name] > end), None)


def _wanting(run: RunFolder, config: TrainConfig, at: int) -> dict[str, int]:
    """Learners not kept yet, with the steps to keep them at."""
    kept = run.milestone(at)
    ends = {plan.name: plan.steps for plan in plans_in(run, config_at(config, at))}
    return {name: end for name, end in ends.items() if not has_checkpoint_from(kept.checkpoints_of(name), end)}


def config_at(config: TrainConfig, steps: int) -> TrainConfig:
    """The same run with at most `steps` of every learner."""
    explorer = config.explorer and dataclasses.replace(config.explorer, steps=min(config.explorer.steps, steps))
    return dataclasses.replace(config, steps=min(config.steps, steps), explorer=explorer, keep_at="none")
