"""Policies trained elsewhere join a run: members take free places among its members, an explorer the explorer's."""

import json
from collections.abc import Sequence
from pathlib import Path

from expgen.errors import InputError
from expgen.experiments.config import TrainConfig
from expgen.experiments.plan import LearnerPlan, plans_of
from expgen.experiments.run_folder import RunFolder
from expgen.training.checkpoint import keep_checkpoint, write_whole


def adopt(folder: RunFolder, config: TrainConfig, runs: Sequence[Path | str]) -> None:
    """Copy the newest checkpoint of every learner in `runs` to a free place of the same kind in `folder`.

    What was adopted before is not adopted again, so the same command may be repeated. A copy that has fewer steps than
    this run asks for is trained on from where it stands.
    """
    record = folder.path / "adopted.json"
    adopted: dict[str, str] = json.loads(record.read_text()) if record.exists() else {}
    for run in runs:
        other = RunFolder(run)
        their_config, _ = other.read_config()
        if (their_config.env, dict(their_config.options)) != (config.env, dict(config.options)):
            accepted = f"runs on {config.env} with these options"
            raise InputError(f"--adopt {run} plays {their_config.env}; accepted: {accepted}")
        if any(level not in config.train_set for level in their_config.train_set.seeds or ()):
            accepted = f"levels among --levels {config.levels}, so that test levels are unseen"
            raise InputError(f"--adopt {run} has trained on levels {their_config.levels}; accepted: {accepted}")
        plans = {plan.name: plan for plan in plans_of(their_config)}
        for name in other.learners():
            source = str((other.path / "checkpoints" / name).resolve())
            if source in adopted.values():
                continue
            place = _free_place(folder, config, plans[name], f"--adopt {run} {name}")
            tensors, facts = other.checkpoint(name)
            keep_checkpoint(folder.checkpoints_of(place), facts["env_steps"], tensors, {**facts, "learner": place})
            adopted[place] = source
            write_whole(record, json.dumps(adopted, indent=2).encode())


def _free_place(folder: RunFolder, config: TrainConfig, theirs: LearnerPlan, what: str) -> str:
    kind = [plan for plan in plans_of(config) if plan.algo == theirs.algo]
    if not kind:
        accepted = ", ".join(sorted({plan.algo for plan in plans_of(config)}))
        raise InputError(f"{what} is {theirs.algo}; accepted: {accepted}")
    if kind[0].network != theirs.network:
        raise InputError(f"{what} has network {theirs.network}; accepted: {kind[0].network}")
    if kind[0].reward != theirs.reward:
        raise InputError(f"{what} learnt from {theirs.reward}; accepted: {kind[0].reward}")
    if kind[0].envs != theirs.envs:  # its games come along
        raise InputError(f"{what} has --envs {theirs.envs}; accepted: {kind[0].envs}, as here")
    taken = set(folder.learners())
    for plan in kind:
        if plan.name not in taken:
            return plan.name
    raise InputError(f"{what} finds no free place: all {len(kind)} are taken; accepted: more --members")
