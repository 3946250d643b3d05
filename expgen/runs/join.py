"""Policies trained elsewhere join a run: members take free places among its members, an explorer the explorer's."""

import json
from collections.abc import Sequence

from expgen.algorithms.recipes import recipe_of
from expgen.errors import InputError
from expgen.files import write_whole
from expgen.runs.adopt import Adopted, plans_in, read_adopted
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.plan import LearnerPlan, plans_of
from expgen.runs.shipped import find_agent
from expgen.storage.location import Location, join
from expgen.training.checkpoint import Checkpoint, keep_checkpoint


def adopt(folder: RunFolder, config: TrainConfig, runs: Sequence[Location]) -> None:
    """Copy the newest checkpoint of every learner in `runs` to a free place of the same kind in `folder`.

    What was adopted before is not adopted again, so the same command may be repeated. A copy that has fewer steps than
    this run asks for is trained on from where it stands.
    """
    adopted = read_adopted(folder)
    for run in runs:
        found = find_agent(run)
        other = found.folder
        their_config, _ = other.read_config()
        if (their_config.env, dict(their_config.options)) != (config.env, dict(config.options)):
            accepted = f"runs on {config.env} with these options"
            raise InputError(f"--adopt {run} plays {their_config.env}; accepted: {accepted}")
        if any(level not in config.train_set for level in their_config.train_set.seeds or ()):
            accepted = f"levels among --levels {config.levels}, so that test levels are unseen"
            raise InputError(f"--adopt {run} has trained on levels {their_config.levels}; accepted: {accepted}")
        plans = {plan.name: plan for plan in plans_in(other, their_config)}
        for name in other.learners():
            source = str(join(found.place, "checkpoints", name))
            if source in (known.source for known in adopted.values()):
                continue
            tensors, facts = checkpoint = other.checkpoint(name)
            place = _free_place(folder, config, plans[name], checkpoint, f"--adopt {run} {name}")
            check_can_go_on(plans[name], checkpoint, f"--adopt {run}")
            adopted[place] = Adopted(source, plans[name].seed, str(plans[name].levels), their_config.digest())
            record = {taken: known._asdict() for taken, known in adopted.items()}
            write_whole(folder.adopted_file, json.dumps(record, indent=2).encode())  # without its checkpoint it is void
            keep_checkpoint(folder.checkpoints_of(place), facts["env_steps"], tensors, {**facts, "learner": place})


def check_can_go_on(plan: LearnerPlan, checkpoint: Checkpoint, what: str) -> None:
    """An InputError for weights alone where learning needs more: a fresh critic would undo what they have learnt."""
    if checkpoint.is_weights_alone and recipe_of(plan.algo).make_networks is not None:
        missing = f"the value network that {plan.algo} learns with"
        accepted = "a run folder whose checkpoints have it, as training leaves them"
        raise InputError(f"{what} has {plan.name}'s policy without {missing}; accepted: {accepted}")


def _free_place(folder: RunFolder, config: TrainConfig, theirs: LearnerPlan, checkpoint: Checkpoint, what: str) -> str:
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
    has_history = any(name.startswith("history.") for name in checkpoint.tensors)
    if has_history and kind[0].rollout_steps != theirs.rollout_steps:  # its next auxiliary phase learns from both
        theirs_is = f"keeps rollouts of --rollout-steps {theirs.rollout_steps}"
        raise InputError(f"{what} {theirs_is}; accepted: {kind[0].rollout_steps}, as here")
    taken = set(folder.learners())
    for plan in kind:
        if plan.name not in taken:
            return plan.name
    raise InputError(f"{what} finds no free place: all {len(kind)} are taken; accepted: more --members")
