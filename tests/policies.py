"""Load policies of a run for comparison."""

from pathlib import Path

from expgen.agents.build import LoadedAgent, build_agent
from expgen.agents.policies import checkpoint_of, policy_from, with_weights
from expgen.networks.actor_critic import Policy
from expgen.runs.agent_files import read_agent
from expgen.runs.folder import RunFolder
from expgen.training.average import Weights
from expgen.training.checkpoint import Checkpoint, latest_checkpoint


def load_policy(run: RunFolder | Path, learner: str, weights: Weights = "live") -> tuple[Policy, int]:
    """Return a learner's policy and its training steps."""
    agent = read_agent(_path(run))
    checkpoint = checkpoint_of(agent, learner)
    policy = policy_from(checkpoint, agent.policies[learner], agent.spec, "cpu", learner, weights)
    return policy, int(checkpoint.facts["env_steps"])


def load_run(run: RunFolder | Path, learner: str | None = None, weights: Weights | None = None) -> LoadedAgent:
    """Return the agent of a run, or one of its policies."""
    return build_agent(with_weights(read_agent(_path(run)), weights), learner)


def newest_checkpoint(run: RunFolder | Path, learner: str) -> Checkpoint:
    """Return the newest checkpoint of a learner."""
    checkpoint = latest_checkpoint(RunFolder(_path(run)).checkpoints_of(learner))
    assert checkpoint is not None
    return checkpoint


def _path(run: RunFolder | Path) -> Path:
    return run.path if isinstance(run, RunFolder) else run
