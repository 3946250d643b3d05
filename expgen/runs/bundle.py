"""bundle: the policies of a run, and no more of it, as agents that ship with the package."""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from expgen.algorithms.recipes import recipe_of
from expgen.errors import InputError
from expgen.evaluation.scores import append_scores, read_scores
from expgen.files import read_bytes, write_whole
from expgen.networks.state import with_prefix
from expgen.runs.adopt import plans_in, read_adopted
from expgen.runs.config import EXPLORER, TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.load import check_weights
from expgen.runs.request import EvaluationRequest, score_run
from expgen.runs.shipped import PRETRAINED, bundled_agents
from expgen.training.average import Weights, has_average, policy_weights
from expgen.training.checkpoint import digest_of, keep_checkpoint
from expgen.training.sessions import commits_of, sessions_in, total_seconds

BUNDLING = ".bundling"  # where a bundle lies while it is made
DTYPE = torch.float16  # half the size; scores are measured with what ships


def bundle(
    run: RunFolder,
    command: str,
    hardware: str,
    episodes: int = 1000,
    device: str = "cpu",
    where: Path = PRETRAINED,
    commit: str | None = None,
    minutes: float | None = None,
    weights: Weights = "live",
) -> RunFolder:
    """The folder `where`/GAME-ALGO, made anew: config, weights, scores of those weights, and the card.

    `command` and `hardware` say how the run came to be; each agent is scored on `episodes` of either split. `commit`
    and `minutes` of its training are those that its checkpoints tell, unless given. `weights` of a policy that ship are
    its live ones, or its averaged ones where it has any; they ship as the policy's own, and the card says of whom they
    are averages. An earlier bundle stays until this one is whole.
    """
    config, spec = run.read_config()
    target = RunFolder(where / f"{config.game}-{config.algo}")
    agents = agents_in(run, config)
    for name, agent in bundled_agents(where).items():
        if name in agents and agent.folder.path != target.path:
            raise InputError(f"{name} is bundled already, in {agent.folder.path}; accepted: that one removed first")
    together = config.consensus is not None
    shipped = [plan.name for plan in plans_in(run, config)] if together else [who for who, _ in agents.values() if who]
    told = _provenance(run, shipped, commit, minutes)
    check_weights(run, shipped, weights)
    trained = {"command": command, **told, "config": config.digest(), "hardware": hardware}
    if weights == "average":
        trained["averaged"] = [learner for learner in shipped if has_average(run.checkpoint(learner))]
    made = RunFolder(where / BUNDLING / target.path.name)  # two levels down, where nobody looks for agents
    shutil.rmtree(made.path, ignore_errors=True)
    made.write_config(config, spec)
    if run.tune_file.exists():
        write_whole(made.tune_file, read_bytes(run.tune_file))
    if adopted := read_adopted(run):
        record = {place: known._replace(source="elsewhere")._asdict() for place, known in adopted.items()}
        write_whole(made.adopted_file, json.dumps(record, indent=2).encode())
    digests = {learner: _copy_weights(run, made, learner, weights) for learner in shipped}
    for learner, _ in agents.values():
        for split in ("train", "test") if config.has_unseen_levels else ("train",):
            request = EvaluationRequest(split, episodes=episodes, learner=learner, device=device)
            append_scores(made.scores_file, [scored.score for scored in score_run(made, request)])
    facts = {
        name: {"learner": learner, "method": method, "sha256": _digest(digests, learner)}
        for name, (learner, method) in agents.items()
    }
    card = {"agents": facts, "weights": digests, "trained": trained}
    write_whole(made.card_file, (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode())
    _put_in_place(made.path, target.path)
    return target


def _put_in_place(made: Path, target: Path) -> None:
    """Two renames: at any time one of both bundles is there whole, under its name or beside it."""
    old = made.with_name(f"{made.name}-before")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    made.rename(target)
    shutil.rmtree(old, ignore_errors=True)
    with contextlib.suppress(OSError):  # another bundle is being made
        made.parent.rmdir()


def agents_in(run: RunFolder, config: TrainConfig) -> dict[str, tuple[str | None, str]]:
    """The names a run's agents get, which learner each is, and the method in words."""
    leader = config.consensus.leader if config.consensus else 0
    plans = {plan.name: plan.algo for plan in plans_in(run, config)}
    named: dict[str, tuple[str | None, str]] = {}
    for learner in (f"member{leader}", EXPLORER):
        if learner in plans:
            named[f"{config.game}/{plans[learner]}"] = learner, recipe_of(plans[learner]).summary
    if config.consensus is not None:
        named[f"{config.game}/{config.algo}"] = None, recipe_of(config.algo).summary
    return named


def _copy_weights(run: RunFolder, target: RunFolder, learner: str, weights: Weights) -> str:
    """The policy alone, at half precision; the digest of what it holds."""
    checkpoint = run.checkpoint(learner)
    env_steps = checkpoint.facts["env_steps"]
    policy = {
        name: tensor.to(DTYPE) if tensor.is_floating_point() else tensor
        for name, tensor in with_prefix("policy", policy_weights(checkpoint, weights)).items()
    }
    keep_checkpoint(target.checkpoints_of(learner), env_steps, policy, {"learner": learner, "env_steps": env_steps})
    return digest_of(policy)


def _digest(digests: Mapping[str, str], learner: str | None) -> str:
    return digests[learner] if learner else hashlib.sha256("".join(digests.values()).encode()).hexdigest()


def _provenance(run: RunFolder, shipped: Sequence[str], commit: str | None, minutes: float | None) -> dict[str, Any]:
    """Which code trained what ships, for how many steps and how long; side by side counts once.

    Checkpoints of earlier versions tell seconds alone. Of those the longest count, and the code is that of the scores.
    """
    facts = [run.checkpoint(name).facts for name in shipped]
    sessions = {session for fact in facts for session in sessions_in(fact)}
    untold = max(fact.get("seconds", 0.0) - sum(session.seconds for session in sessions_in(fact)) for fact in facts)
    commits = commits_of(sessions)
    if untold > 1.0 and run.scores_file.exists():
        commits = list(dict.fromkeys([*(row.commit for row in read_scores(run.scores_file)), *commits]))
    if not (commit or commits):
        raise InputError(f"{run.path} does not tell the code that trained it; accepted: --commit with it")
    told = (max(untold, 0.0) + total_seconds(sessions)) / 60
    return {
        "commit": commit or ", ".join(commits),
        "env_steps": sum(fact["env_steps"] for fact in facts),
        "minutes": round(told if minutes is None else minutes, 1),
    }
