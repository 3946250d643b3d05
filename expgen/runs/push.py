"""push: an agent as a folder for others (weights alone, agent.json, scores, a model card), here or on a hub."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from expgen.agents.build import checkpoint_of
from expgen.agents.description import AgentDescription, with_policy_paths
from expgen.errors import InputError
from expgen.evaluation.scores import Score, agent_name, append_scores, rows_so_far
from expgen.files import make_folder, write_whole
from expgen.provenance import commit
from expgen.runs.agent_files import write_agent
from expgen.runs.bundle import copy_weights
from expgen.runs.folder import RunFolder
from expgen.runs.shipped import FoundAgent, find_agent
from expgen.storage.hub import is_hub, parse_hub, upload
from expgen.storage.location import Location, is_url
from expgen.storage.scratch import scratch_folder
from expgen.text import printable

MODEL_CARD = "README.md"


def push(agent: Location, to: Location, private: bool = False) -> int:
    """Put `agent`, as `load_agent` takes it, to a new folder or to `hf://USER/NAME`; returns how many policies it has.

    private: a repository that is made for it is not public.
    """
    if is_url(to) and not is_hub(to):
        raise InputError(f"TO is {str(to)!r}; accepted: hf://USER/NAME, or a folder that is new or empty")
    if is_hub(to) and parse_hub(str(to)).revision is not None:
        raise InputError(f"TO is {str(to)!r}; accepted: hf://USER/NAME without a revision")
    if not is_hub(to):
        folder = Path(to)
        if private:
            raise InputError("--private is for repositories; accepted: with hf://USER/NAME alone")
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"TO is {str(to)!r}, which is not empty; accepted: hf://USER/NAME, or a new folder")
        return len(pack(find_agent(agent), folder, folder.name).policies)
    folder = scratch_folder()
    packed = pack(find_agent(agent), folder, str(to))
    upload(folder, str(to), private)
    return len(packed.policies)


def pack(found: FoundAgent, folder: Path, name: str) -> AgentDescription:
    """Write what others need to play `found` into `folder`; `name` is what its card calls it."""
    agent = found.agent
    trained = agent.trained()
    if not trained:
        raise InputError(f"{found.place} has no checkpoint yet; accepted: a run that has trained")
    together = agent.consensus is not None and found.learner is None
    shipped = list(agent.policies) if together else [found.learner] if found.learner else trained
    checkpoints = {policy: checkpoint_of(agent, policy) for policy in shipped}
    make_folder(folder)
    target = RunFolder(folder)
    digests = {
        policy: copy_weights(checkpoint, target, policy, agent.weights, None)
        for policy, checkpoint in checkpoints.items()
    }
    packed = with_policy_paths(agent, folder, {policy: f"checkpoints/{policy}" for policy in shipped})
    if not together and len(shipped) == 1 and not packed.members:  # an explorer alone is the agent's one policy
        packed = replace(packed, members=packed.explorers, explorers=())
    if not together:
        packed = replace(packed, consensus=None, algo=packed.members[0].algo, tuned=())
    packed = replace(packed, weights="live")
    write_agent(packed)
    rows = [row for row in rows_so_far(found.folder.scores_file) if together or row.agent in shipped]
    if rows:
        append_scores(target.scores_file, rows)
    steps = sum(int(checkpoint.facts["env_steps"]) for checkpoint in checkpoints.values())
    card = {"agents": {}, "weights": digests, "trained": {"env_steps": steps, "commit": commit()}}
    write_whole(target.card_file, (json.dumps(card, indent=2) + "\n").encode())
    write_whole(folder / MODEL_CARD, model_card(packed, name, rows, steps).encode())
    return packed


def model_card(agent: AgentDescription, name: str, scores: Sequence[Score], env_steps: int) -> str:
    """README.md of a repository: what the agent is, what it scores, how to play it."""
    title = name.removeprefix("hf://")
    last = {(agent_name(row), row.split): row for row in scores}
    head: dict[str, Any] = {
        "library_name": "expgen",
        "pipeline_tag": "reinforcement-learning",
        "tags": ["reinforcement-learning", "expgen", "generalization", agent.env],
    }
    table = ["| agent | levels | episodes | mean return | 95 % interval | solved |", "|---|---|---|---|---|---|"]
    for row in last.values():
        levels = {"train": "trained on", "test": "unseen"}[row.split]
        interval = f"{row.ci_low:.2f} to {row.ci_high:.2f}"
        cells = (agent_name(row), levels, row.episodes, f"{row.mean_return:.2f}", interval, f"{row.solved_rate:.1%}")
        table.append("| " + " | ".join(printable(cell).replace("|", "\\|") for cell in cells) + " |")
    what = f"An agent for `{printable(agent.env)}`, trained with `{printable(agent.algo)}` by"
    play = f'agent = expgen.load_agent("{name if is_hub(name) else title}")'
    return "\n".join(
        [
            "---",
            yaml.safe_dump(head, sort_keys=False, allow_unicode=True).rstrip(),
            "---",
            f"# {printable(title)}",
            "",
            f"{what} expgen, an implementation of *Explore to Generalize in Zero-Shot RL* (NeurIPS 2023).",
            f"Policies: {len(agent.policies)}. Environment steps: {env_steps:,}. Training levels: `{agent.levels}`.",
            "",
            *(table if last else ["Not scored yet."]),
            "",
            "```python",
            "import expgen",
            "",
            play,
            f'env = expgen.make_env("{printable(agent.env)}", levels=range(100_000, 100_200))',
            "print(expgen.evaluate(agent, env, episodes=200))",
            "```",
            "",
            "Weights are `safetensors`; `agent.json` says how policies play together, `scores.csv` has every score.",
            "",
        ]
    )
