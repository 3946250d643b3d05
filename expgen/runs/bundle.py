"""bundle: the policies of an agent, and no more, as agents that ship with the package."""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from expgen.agents.build import check_weights, checkpoint_of
from expgen.agents.description import EXPLORER, AgentDescription, with_policy_paths
from expgen.algorithms.recipes import recipe_of
from expgen.errors import InputError
from expgen.evaluation.scores import SPLITS, append_scores, read_scores
from expgen.files import make_folder, write_whole
from expgen.networks.state import with_prefix
from expgen.runs.agent_files import read_agent, write_agent
from expgen.runs.folder import RunFolder
from expgen.runs.request import EvaluationRequest, score_all
from expgen.runs.shipped import PRETRAINED, bundled_agents
from expgen.training.average import Weights, has_average, policy_weights
from expgen.training.checkpoint import Checkpoint, digest_of, keep_checkpoint
from expgen.training.sessions import commits_of, sessions_in, total_seconds

BUNDLING = ".bundling"  # where a bundle lies while it is made
DTYPE = torch.float16  # half the size; scores are measured with what ships


def bundle(
    run: Path,
    command: str,
    hardware: str,
    episodes: int = 1000,
    device: str = "cpu",
    where: Path = PRETRAINED,
    commit: str | None = None,
    minutes: float | None = None,
    weights: Weights | None = None,
    name: str | None = None,
) -> RunFolder:
    """The folder `where`/GAME-ALGO or GAME-NAME, made anew: agent.json, weights, scores of these, and the card.

    `run` is a run folder or an agent.json. `command` and `hardware` say how it came to be; each agent is scored on
    `episodes` of either split. `commit` and `minutes` of its training are those that its checkpoints tell, unless
    given. `weights` of a policy that ship are those that the agent plays with, unless given: live ones, or averaged
    ones where it has any. They ship as the policy's own, and the card says of whom they are averages. With a `name`
    the agent ships under GAME/NAME alone, without names for its parts. An earlier bundle stays until this one is whole.
    """
    agent = read_agent(run)
    source = RunFolder(agent.folder)
    target = RunFolder(where / f"{agent.game}-{name or agent.algo}")
    agents = agents_in(agent, name)
    for known, bundled in bundled_agents(where).items():
        if known in agents and bundled.folder.path != target.path:
            raise InputError(f"{known} is bundled already, in {bundled.folder.path}; accepted: that one removed first")
    together = agent.consensus is not None
    shipped = list(agent.policies) if together else [who for who, _ in agents.values() if who]
    checkpoints = {name: checkpoint_of(agent, name) for name in shipped}
    rows = source.scores_file
    trained = {"command": command, **_provenance(agent.folder, rows, checkpoints.values(), commit, minutes)}
    weights = weights or agent.weights
    check_weights(agent, shipped, weights)
    is_run = not run.is_file() and source.exists()
    trained |= {"config": source.read_config()[0].digest() if is_run else "-", "hardware": hardware}
    if weights == "average":
        trained["averaged"] = [name for name, checkpoint in checkpoints.items() if has_average(checkpoint)]
    made = RunFolder(where / BUNDLING / target.path.name)  # two levels down, where nobody looks for agents
    shutil.rmtree(made.path, ignore_errors=True)
    make_folder(made.path)
    if is_run:
        made.write_config(*source.read_config())  # by which it can be trained on
    digests = {name: copy_weights(checkpoint, made, name, weights) for name, checkpoint in checkpoints.items()}
    paths = {name: f"checkpoints/{name}" for name in shipped}
    ours = replace(with_policy_paths(agent, made.path, paths), weights="live")
    write_agent(ours)
    for learner, _ in agents.values():
        for split in SPLITS if agent.has_unseen_levels else SPLITS[:1]:
            request = EvaluationRequest(split, episodes=episodes, learner=learner, device=device)
            append_scores(made.scores_file, [scored.score for scored in score_all(ours, request)])
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


def agents_in(agent: AgentDescription, own_name: str | None = None) -> dict[str, tuple[str | None, str]]:
    """The names that agents get which ship, which policy each is, and the method in words.

    With a name of its own the agent as a whole is the only one.
    """
    leader = agent.consensus.leader if agent.consensus else 0
    named: dict[str, tuple[str | None, str]] = {}
    for name in (f"member{leader}", EXPLORER):
        if name in agent.policies:
            algo = agent.policies[name].algo
            named[f"{agent.game}/{algo}"] = name, recipe_of(algo).summary
    if agent.consensus is not None:
        named[f"{agent.game}/{agent.algo}"] = None, recipe_of(agent.algo).summary
    return {f"{agent.game}/{own_name}": list(named.values())[-1]} if own_name else named


def copy_weights(
    checkpoint: Checkpoint, target: RunFolder, name: str, weights: Weights, dtype: torch.dtype | None = DTYPE
) -> str:
    """The policy alone, its numbers as `dtype` or, with None, as they are; the digest of what it holds."""
    env_steps = checkpoint.facts["env_steps"]
    policy = {
        key: tensor.to(dtype) if dtype and tensor.is_floating_point() else tensor
        for key, tensor in with_prefix("policy", policy_weights(checkpoint, weights)).items()
    }
    keep_checkpoint(target.checkpoints_of(name), env_steps, policy, {"learner": name, "env_steps": env_steps})
    return digest_of(policy)


def _digest(digests: Mapping[str, str], learner: str | None) -> str:
    return digests[learner] if learner else hashlib.sha256("".join(digests.values()).encode()).hexdigest()


def _provenance(
    run: Path, scores: Path, checkpoints: Iterable[Checkpoint], commit: str | None, minutes: float | None
) -> dict[str, Any]:
    """Which code trained what ships, for how many steps and how long; side by side counts once.

    Checkpoints of earlier versions tell seconds alone. Of those the longest count, and the code is that of `scores`.
    """
    facts = [checkpoint.facts for checkpoint in checkpoints]
    sessions = {session for fact in facts for session in sessions_in(fact)}
    untold = max(fact.get("seconds", 0.0) - sum(session.seconds for session in sessions_in(fact)) for fact in facts)
    commits = commits_of(sessions)
    if untold > 1.0 and scores.exists():
        commits = list(dict.fromkeys([*(row.commit for row in read_scores(scores)), *commits]))
    if not (commit or commits):
        raise InputError(f"{run} does not tell the code that trained it; accepted: --commit with it")
    told = (max(untold, 0.0) + total_seconds(sessions)) / 60
    return {
        "commit": commit or ", ".join(commits),
        "env_steps": sum(fact["env_steps"] for fact in facts),
        "minutes": round(told if minutes is None else minutes, 1),
    }
