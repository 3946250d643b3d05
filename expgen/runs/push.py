"""push: export an agent (weights, agent.json, scores, model card) to a folder or to the Hugging Face Hub."""

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment

from expgen.agents.description import AgentDescription
from expgen.agents.policies import averages_in, check_trained, checkpoint_of
from expgen.errors import InputError
from expgen.evaluation.scores import Score, agent_name, append_scores, rows_so_far
from expgen.files import make_folder, write_atomic
from expgen.provenance import commit
from expgen.runs.agent_files import write_agent
from expgen.runs.bundle import copy_policies, write_card
from expgen.runs.folder import RunFolder
from expgen.runs.shipped import FoundAgent, find_agent
from expgen.storage.hub import is_hub, parse_hub, upload
from expgen.storage.location import Location, is_url
from expgen.storage.scratch import scratch_folder
from expgen.text import printable

MODEL_CARD = "README.md"


def push(agent: Location, to: Location, private: bool = False) -> AgentDescription:
    """Export an agent and return its description at the target.

    agent: a run folder, an agent.json, or the name of a shipped agent.
    to: a new folder or `hf://USER/NAME`.
    private: make a newly created repository private.
    """
    if is_hub(to):
        if parse_hub(str(to))[1] is not None:
            raise InputError(f"TO is {str(to)!r}; accepted: hf://USER/NAME without a revision")
        folder = scratch_folder()
        packed = pack(find_agent(agent), folder, str(to))
        upload(folder, str(to), private)
        return packed
    if is_url(to):
        raise InputError(f"TO is {str(to)!r}; accepted: hf://USER/NAME, or a folder that is new or empty")
    folder = Path(to)
    if private:
        raise InputError(f"TO is {str(to)!r}; accepted with --private: hf://USER/NAME")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"TO is {str(to)!r}, which is not empty; accepted: hf://USER/NAME, or a new folder")
    return pack(find_agent(agent), folder, folder.name)


def pack(found: FoundAgent, folder: Path, card_name: str) -> AgentDescription:
    """Write the policies, agent.json, scores and cards of `found` to `folder`; `card_name` is its name in the card."""
    agent, target = found.agent, RunFolder(folder)
    trained = check_trained(agent, found.location)
    is_ensemble = agent.consensus is not None and found.learner is None
    names = list(agent.policies) if is_ensemble else trained
    if found.learner:
        names = [found.learner]
    steps = sum(int(checkpoint_of(agent, name).facts["env_steps"]) for name in names)
    make_folder(folder)
    averaged = averages_in(agent, names)
    packed, digests = copy_policies(agent, names, target)
    if not is_ensemble:
        if len(names) == 1 and not packed.members:  # a single explorer becomes the agent's only policy
            packed = replace(packed, members=packed.explorers, explorers=())
        packed = replace(packed, consensus=None, algo=packed.members[0].algo, tuned=())
    write_agent(packed)
    rows = [row for row in rows_so_far(found.folder.scores_file) if is_ensemble or row.agent in names]
    if rows:
        append_scores(target.scores_file, rows)
    made: dict[str, Any] = {"env_steps": steps, "commit": commit()}
    if averaged:
        made["averaged"] = [name for name, before in zip(packed.policies, names, strict=True) if before in averaged]
    write_card(target, {"agents": {}, "weights": digests, "trained": made})
    write_atomic(folder / MODEL_CARD, model_card(packed, card_name, rows, steps).encode())
    return packed


def model_card(agent: AgentDescription, name: str, scores: Sequence[Score], env_steps: int) -> str:
    """Return the README.md of a repository: description, scores and usage of the agent."""
    tags = ["reinforcement-learning", "expgen", "generalization", agent.env]
    head = {"library_name": "expgen", "pipeline_tag": "reinforcement-learning", "tags": tags}
    title = name.removeprefix("hf://")
    templates = Environment(trim_blocks=True, keep_trailing_newline=True)
    templates.filters |= {"printable": printable, "cell": lambda text: printable(text).replace("|", "\\|")}
    template = (resources.files("expgen.runs") / "model_card.md").read_text(encoding="utf-8")
    return templates.from_string(template).render(
        head=yaml.safe_dump(head, sort_keys=False, allow_unicode=True).rstrip(),
        title=title,
        address=name if is_hub(name) else title,
        agent=agent,
        env_steps=env_steps,
        rows=[(agent_name(row), row) for row in {(agent_name(row), row.split): row for row in scores}.values()],
    )
