"""bundle: copy the policies of an agent into a folder that ships with the package."""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from expgen.agents.description import EXPLORER, AgentDescription, with_policy_paths
from expgen.agents.policies import averages_in, check_weights, checkpoint_of, with_weights
from expgen.algorithms.recipes import recipe_of
from expgen.errors import InputError
from expgen.evaluation.scores import append_scores
from expgen.files import make_folder, write_atomic
from expgen.networks.normalized import in_half_precision
from expgen.networks.state import with_prefix
from expgen.runs.agent_files import read_agent, write_agent
from expgen.runs.folder import RunFolder
from expgen.runs.request import EvaluationRequest, score_all
from expgen.runs.shipped import PRETRAINED, bundled_agents
from expgen.training.average import Weights, policy_weights
from expgen.training.checkpoint import add_checkpoint, digest_of
from expgen.training.sessions import commits_of, sessions_in, total_seconds

BUNDLING = ".bundling"  # parent of bundles in progress


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
    """Write the folder `where`/GAME-ALGO or GAME-NAME: agent.json, weights, their scores, and the card.

    run: a run folder or an agent.json.
    command, hardware: how it was trained, for the card.
    episodes: number of episodes to score each agent on, per split.
    commit, minutes: of the training; default: those in the checkpoints.
    weights: live or averaged; default: those that the agent plays with. They are stored as the policy's live weights,
        and the card lists the policies whose weights are averages.
    name: ship only the whole agent, as GAME/NAME; by default leader and explorer ship under their own names too.

    An earlier bundle is replaced once this one is complete.
    """
    agent = with_weights(read_agent(run), weights)
    source = RunFolder(agent.folder)
    target = RunFolder(where / f"{agent.game}-{name or agent.algo}")
    agents = agents_in(agent, name)
    for known, bundled in bundled_agents(where).items():
        if known in agents and bundled.folder.path != target.path:
            raise InputError(f"{known} is already bundled in {bundled.folder.path}; remove that folder first")
    names = list(agent.policies)
    if agent.consensus is None:
        names = [learner for learner, _ in agents.values() if learner]
    check_weights(agent, names)
    facts = [checkpoint_of(agent, name).facts for name in names]
    is_run = not run.is_file() and source.exists()
    trained = {
        "command": command,
        **_provenance(agent.folder, facts, commit, minutes),
        "config": source.read_config()[0].digest() if is_run else "-",
        "hardware": hardware,
    }
    made = RunFolder(where / BUNDLING / target.path.name)  # two levels down, where `bundled_agents` does not look
    shutil.rmtree(made.path, ignore_errors=True)
    make_folder(made.path)
    if is_run:
        made.write_config(*source.read_config())  # so that its training can be resumed
    bundled_agent, digests = copy_policies(agent, names, made, is_halved=True)  # and scored as such
    if averaged := averages_in(agent, names):
        trained["averaged"] = averaged
    write_agent(bundled_agent)
    digest_of_all = hashlib.sha256("".join(digests.values()).encode()).hexdigest()
    cards = {
        name: {"learner": learner, "method": method, "sha256": digests[learner] if learner else digest_of_all}
        for name, (learner, method) in agents.items()
    }
    write_card(made, {"agents": cards, "weights": digests, "files": file_checksums(made), "trained": trained})
    for learner, _ in agents.values():
        for split in agent.splits:
            request = EvaluationRequest(split, episodes=episodes, learner=learner, device=device)
            append_scores(made.scores_file, [scored.score for scored in score_all(bundled_agent, request)])
    _replace_folder(target.path, made.path)
    return target


def _replace_folder(target: Path, made: Path) -> None:
    """Replace `target` by `made` with two renames, so that the old or the new bundle is always complete on disk."""
    old = made.with_name(f"{made.name}-before")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    made.rename(target)
    shutil.rmtree(old, ignore_errors=True)
    with contextlib.suppress(OSError):  # not empty: another bundle is in progress
        made.parent.rmdir()


def agents_in(agent: AgentDescription, own_name: str | None = None) -> dict[str, tuple[str | None, str]]:
    """Return {name of a shipped agent: (its policy or None for all, method in words)}.

    With `own_name` only the whole agent ships, under that name.
    """
    named: dict[str, tuple[str | None, str]] = {}
    for name in (agent.leader, EXPLORER):
        if name in agent.policies:
            algo = agent.policies[name].algo
            named[f"{agent.game}/{algo}"] = name, recipe_of(algo).summary
    if agent.consensus is not None:
        named[f"{agent.game}/{agent.algo}"] = None, recipe_of(agent.algo).summary
    return {f"{agent.game}/{own_name}": list(named.values())[-1]} if own_name else named


def copy_policies(
    agent: AgentDescription, names: Sequence[str], target: RunFolder, is_halved: bool = False
) -> tuple[AgentDescription, dict[str, str]]:
    """Copy only the policies `names` to `target`, in half precision if `is_halved`.

    Return the agent in `target` and the digest of each policy.
    """
    digests = {}
    for name in names:
        checkpoint = checkpoint_of(agent, name)
        env_steps = checkpoint.facts["env_steps"]
        policy = with_prefix("policy", policy_weights(checkpoint, agent.weights))
        policy = in_half_precision(policy) if is_halved else policy
        add_checkpoint(target.checkpoints_of(name), env_steps, policy, {"learner": name, "env_steps": env_steps})
        digests[name] = digest_of(policy)
    moved = with_policy_paths(agent, target.path, {name: f"checkpoints/{name}" for name in names})
    return replace(moved, weights="live"), digests


def file_checksums(folder: RunFolder) -> dict[str, str]:
    """Return the SHA-256 of every file of weights, by its path in the folder, for `expgen fetch`."""
    files = sorted(folder.path.glob("checkpoints/*/*.safetensors"))
    return {file.relative_to(folder.path).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def write_card(folder: RunFolder, card: Mapping[str, Any]) -> None:
    """Write the card.json of a shipped agent."""
    write_atomic(folder.card_file, (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode())


def _provenance(
    run: Path, facts: Sequence[Mapping[str, Any]], commit: str | None, minutes: float | None
) -> dict[str, Any]:
    """Return commit, steps and minutes of the training, from the `facts` of the checkpoints.

    Time in which several policies trained counts once. `commit` and `minutes` override those of the checkpoints.
    """
    sessions = {session for fact in facts for session in sessions_in(fact)}
    if not (commit or sessions):
        raise InputError(f"{run} does not record the commit that trained it; give it with --commit")
    return {
        "commit": commit or ", ".join(commits_of(sessions)),
        "env_steps": sum(fact["env_steps"] for fact in facts),
        "minutes": round(total_seconds(sessions) / 60 if minutes is None else minutes, 1),
    }
