"""load_agent: something that plays, from a run folder."""

from pathlib import Path
from typing import NamedTuple

import torch

from expgen.agents.agent import PolicyAgent
from expgen.errors import InputError
from expgen.experiments.config import TrainConfig
from expgen.experiments.run_folder import RunFolder
from expgen.networks.actor_critic import make_policy
from expgen.networks.state import load_module, under_prefix
from expgen.training.resources import resolve_device


class LoadedAgent(NamedTuple):
    """An agent and where it comes from."""

    agent: PolicyAgent
    learner: str
    env_steps: int


def load_agent(run: Path | str, member: int = 0, seed: int = 0, device: str = "cpu") -> PolicyAgent:
    """The agent that learner `member` of the run folder `run` has become so far."""
    return load_learner(RunFolder(run), f"member{member}", seed, device).agent


def load_learner(folder: RunFolder, learner: str, seed: int = 0, device: str = "cpu") -> LoadedAgent:
    """As `load_agent`, with its provenance. Only the policy's weights are read."""
    config, spec = folder.read_config()
    tensors, facts = folder.checkpoint(learner)
    policy = make_policy(spec, config.network, torch.Generator(), resolve_device(device))
    load_module(policy, under_prefix("policy", tensors), f"{folder.path} {learner}")
    return LoadedAgent(PolicyAgent(policy.eval(), seed), learner, int(facts["env_steps"]))


def members_of(folder: RunFolder, config: TrainConfig, member: int | None) -> list[str]:
    """The learners meant by `--member`: that one, or all that have a checkpoint."""
    learners = folder.learners()
    if member is None:
        if not learners:
            raise InputError(f"{folder.path} has no checkpoint yet; accepted: a run that has trained")
        return learners
    if not 0 <= member < config.members:
        raise InputError(f"--member is {member}; accepted: 0 to {config.members - 1}")
    return [f"member{member}"]
