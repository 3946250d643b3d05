"""bundle: the policies of a run, and no more of it, as agents that ship with the package."""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from expgen.algorithms.algorithm import recipe_of
from expgen.errors import InputError
from expgen.evaluation.scores import append_scores, read_scores
from expgen.experiments.adopt import plans_in, read_adopted
from expgen.experiments.config import EXPLORER, TrainConfig
from expgen.experiments.pretrained import CARD, PRETRAINED, bundled_agents
from expgen.experiments.request import EvaluationRequest, score_run
from expgen.experiments.run_folder import RunFolder
from expgen.training.checkpoint import keep_checkpoint, write_whole

DTYPE = torch.float16  # half the size; scores are measured with what ships


def bundle(
    run: RunFolder, command: str, hardware: str, episodes: int = 1000, device: str = "cpu", where: Path = PRETRAINED
) -> RunFolder:
    """The folder `where`/GAME-ALGO, made anew: config, weights, scores of those weights, and the card.

    `command` and `hardware` say how the run came to be; each agent is scored on `episodes` of either split.
    """
    config, spec = run.read_config()
    target = RunFolder(where / f"{config.game}-{config.algo}")
    agents = agents_in(run, config)
    for name, agent in bundled_agents(where).items():
        if name in agents and agent.folder.path != target.path:
            raise InputError(f"{name} is bundled already, in {agent.folder.path}; accepted: that one removed first")
    shutil.rmtree(target.path, ignore_errors=True)
    target.write_config(config, spec)
    if run.tune_file.exists():
        write_whole(target.tune_file, run.tune_file.read_bytes())
    if adopted := read_adopted(run):
        record = {place: known._replace(source="elsewhere")._asdict() for place, known in adopted.items()}
        write_whole(target.adopted_file, json.dumps(record, indent=2).encode())
    together = config.consensus is not None
    shipped = [plan.name for plan in plans_in(run, config)] if together else [who for who, _ in agents.values() if who]
    digests = {learner: _copy_weights(run, target, learner) for learner in shipped}
    facts = {
        name: {"learner": learner, "method": method, "sha256": _digest(digests, learner)}
        for name, (learner, method) in agents.items()
    }
    for learner, _ in agents.values():
        for split in ("train", "test") if config.has_unseen_levels else ("train",):
            request = EvaluationRequest(split, episodes=episodes, learner=learner, device=device)
            append_scores(target.scores_file, [scored.score for scored in score_run(target, request)])
    card = {"agents": facts, "trained": _provenance(run, config, shipped, command, hardware)}
    write_whole(target.path / CARD, (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode())
    return target


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


def _copy_weights(run: RunFolder, target: RunFolder, learner: str) -> str:
    """The policy alone, at half precision; the file's digest."""
    tensors, facts = run.checkpoint(learner)
    policy = {
        name: tensor.to(DTYPE) if tensor.is_floating_point() else tensor
        for name, tensor in tensors.items()
        if name.startswith("policy.")
    }
    kept = {"learner": learner, "env_steps": facts["env_steps"]}
    path = keep_checkpoint(target.checkpoints_of(learner), facts["env_steps"], policy, kept)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(digests: Mapping[str, str], learner: str | None) -> str:
    return digests[learner] if learner else hashlib.sha256("".join(digests.values()).encode()).hexdigest()


def _provenance(
    run: RunFolder, config: TrainConfig, shipped: Sequence[str], command: str, hardware: str
) -> dict[str, Any]:
    facts = [run.checkpoint(name).facts for name in shipped]
    seconds = max(fact.get("seconds", 0.0) for fact in facts)  # side by side: the longest counts
    commits = {row.commit: None for row in read_scores(run.scores_file)} if run.scores_file.exists() else {}
    return {
        "command": command,
        "commit": ", ".join(commits),
        "config": config.digest(),
        "env_steps": sum(fact["env_steps"] for fact in facts),
        "minutes": round(seconds / 60, 1),
        "hardware": hardware,
    }
