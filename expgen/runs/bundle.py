"""bundle: the policies of an agent, and no more, as agents that ship with the package."""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from expgen.agents.build import check_weights, checkpoint_of
from expgen.agents.description import EXPLORER, AgentDescription, with_policy_paths
from expgen.algorithms.recipes import recipe_of
from expgen.errors import InputError
from expgen.evaluation.scores import SPLITS, append_scores
from expgen.files import make_folder, write_atomic
from expgen.networks.state import with_prefix
from expgen.runs.agent_files import read_agent, write_agent
from expgen.runs.folder import RunFolder
from expgen.runs.request import EvaluationRequest, score_all
from expgen.runs.shipped import PRETRAINED, bundled_agents
from expgen.training.average import Weights, has_average, policy_weights
from expgen.training.checkpoint import add_checkpoint, digest_of
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
    names = list(agent.policies) if agent.consensus is not None else [who for who, _ in agents.values() if who]
    weights = weights or agent.weights
    check_weights(agent, names, weights)
    facts = [checkpoint_of(agent, name).facts for name in names]
    is_run = not run.is_file() and source.exists()
    trained = {
        "command": command,
        **_provenance(agent.folder, facts, commit, minutes),
        "config": source.read_config()[0].digest() if is_run else "-",
        "hardware": hardware,
    }
    made = RunFolder(where / BUNDLING / target.path.name)  # two levels down, where nobody looks for agents
    shutil.rmtree(made.path, ignore_errors=True)
    make_folder(made.path)
    if is_run:
        made.write_config(*source.read_config())  # by which it can be trained on
    ours, digests, averaged = copy_policies(agent, names, made, weights, DTYPE)
    if weights == "average":
        trained["averaged"] = averaged
    write_agent(ours)
    for learner, _ in agents.values():
        for split in SPLITS if agent.has_unseen_levels else SPLITS[:1]:
            request = EvaluationRequest(split, episodes=episodes, learner=learner, device=device)
            append_scores(made.scores_file, [scored.score for scored in score_all(ours, request)])
    together = hashlib.sha256("".join(digests.values()).encode()).hexdigest()
    cards = {
        name: {"learner": learner, "method": method, "sha256": digests[learner] if learner else together}
        for name, (learner, method) in agents.items()
    }
    write_card(made, {"agents": cards, "weights": digests, "trained": trained})
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


def copy_policies(
    agent: AgentDescription, names: Sequence[str], target: RunFolder, weights: Weights, dtype: torch.dtype | None = None
) -> tuple[AgentDescription, dict[str, str], list[str]]:
    """Copy the policies `names` alone to `target`, their numbers as `dtype` or, with None, as they are.

    Returns the agent there, the digest of each policy, and the names of those whose `weights` are averaged ones.
    """
    digests, averaged = {}, []
    for name in names:
        checkpoint = checkpoint_of(agent, name)
        env_steps = checkpoint.facts["env_steps"]
        policy = {
            key: tensor.to(dtype) if dtype and tensor.is_floating_point() else tensor
            for key, tensor in with_prefix("policy", policy_weights(checkpoint, weights)).items()
        }
        add_checkpoint(target.checkpoints_of(name), env_steps, policy, {"learner": name, "env_steps": env_steps})
        digests[name] = digest_of(policy)
        averaged += [name] if has_average(checkpoint) else []
    moved = with_policy_paths(agent, target.path, {name: f"checkpoints/{name}" for name in names})
    return replace(moved, weights="live"), digests, averaged


def write_card(folder: RunFolder, card: Mapping[str, Any]) -> None:
    """Write what an agent that ships says of itself."""
    write_atomic(folder.card_file, (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode())


def _provenance(
    run: Path, facts: Sequence[Mapping[str, Any]], commit: str | None, minutes: float | None
) -> dict[str, Any]:
    """Which code trained the policies of these checkpoints' `facts`, for how many steps and how long.

    Side by side counts once. `commit` and `minutes` go before what the checkpoints tell.
    """
    sessions = {session for fact in facts for session in sessions_in(fact)}
    if not (commit or sessions):
        raise InputError(f"{run} does not tell the code that trained it; accepted: --commit with it")
    return {
        "commit": commit or ", ".join(commits_of(sessions)),
        "env_steps": sum(fact["env_steps"] for fact in facts),
        "minutes": round(total_seconds(sessions) / 60 if minutes is None else minutes, 1),
    }
