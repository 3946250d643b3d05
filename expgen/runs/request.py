"""What `expgen evaluate` asks for: an agent on levels of the caller's choice."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from expgen.agents.build import build_agent, check_weights
from expgen.agents.description import AgentDescription, PolicyDescription
from expgen.agents.own_agent import OWN_AGENTS
from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.evaluation.evaluate import Arena, OnEpisode, check_play_flags, result_of
from expgen.evaluation.scores import Split
from expgen.plugins import find
from expgen.runs.scoring import ScoredAgent, score_agent
from expgen.training.average import Weights
from expgen.training.resources import plan_resources


@dataclass(frozen=True)
class EvaluationRequest:
    """Which policies of an agent to play, on what."""

    split: Split | None = None  # None: whatever `levels` are, else test
    levels: str | None = None  # others than the split's
    episodes: int = 500
    seed: int = 0
    learner: str | None = None  # one policy alone; None: all that vote, or every member where nobody does
    envs: int = 64
    device: str = "cpu"
    weights: Weights | None = None  # live or averaged ones; None: what the agent plays with
    consensus: Mapping[str, Any] = field(default_factory=dict)  # settings of the agent's ConsensusConfig to change

    def __post_init__(self) -> None:
        check_play_flags(self.episodes, self.envs, self.seed)


def single_requests(agent: AgentDescription, request: EvaluationRequest) -> list[EvaluationRequest]:
    """The same request, one for each player that it means; bad input is refused here, before anyone plays."""
    levels_for(agent, request)
    names = players_meant(agent, request.learner)
    for name in names:
        check_weights(agent, [name] if name in agent.policies else agent.trained(), request.weights)
    return [replace(request, learner=None if name == agent.algo else name) for name in names]


def score_all(
    agent: AgentDescription, request: EvaluationRequest, on_episode: OnEpisode = lambda episode: None
) -> Iterator[ScoredAgent]:
    """Each player asked for."""
    levels_for(agent, request)
    threads = plan_resources(request.device, 1).env_threads
    arena = Arena(agent.env, agent.options, request.episodes, request.seed, request.envs, threads)
    for name in players_meant(agent, request.learner):
        loaded = build_agent(agent, name, request.seed, request.device, request.consensus, request.weights)
        split, levels = levels_for(agent, request, loaded.policy)
        yield result_of(score_agent(loaded, arena, split, levels, on_episode))


def players_meant(agent: AgentDescription, learner: str | None) -> list[str]:
    """Which players `--learner` means: that one; for none all that vote together, or every policy that has trained."""
    trained = agent.trained()
    if not trained:
        raise InputError(f"{agent.folder} has no checkpoint yet; accepted: a run that has trained")
    if learner is None:
        return [agent.algo] if agent.consensus is not None else trained
    if learner == "each":
        return trained
    find({"each": None, **dict.fromkeys(trained), **OWN_AGENTS}, "--learner", learner)
    return [learner]


def levels_for(
    agent: AgentDescription, request: EvaluationRequest, policy: PolicyDescription | None = None
) -> tuple[Split, LevelSet]:
    """What was asked for; one policy's training levels are its own, which a bootstrap makes fewer than the run's.

    InputError for levels that are not what `split` says, and for any choice of them where there is none.
    """
    split, levels = request.split, request.levels
    if not agent.has_unseen_levels and (split != "train" or levels is not None):
        raise InputError(f"--split is test but {agent.env} has no levels to leave unseen; accepted: --split train")
    if levels is None and split == "train":
        return "train", policy.levels if policy else agent.levels
    if levels is None:
        return "test", agent.test_set
    belongs, chosen = split_of(agent, levels)
    if split not in (None, belongs):
        kind = {"train": "training levels", "test": "unseen levels"}[belongs]
        raise InputError(f"--split is {split} but --levels {levels} are {kind}; accepted: --split {belongs}, or none")
    return belongs, chosen


def split_of(agent: AgentDescription, levels: str) -> tuple[Split, LevelSet]:
    """Levels named by hand are train or test levels; a mixture would be neither."""
    chosen = LevelSet.parse(levels, "--levels")
    if chosen.seeds is None:
        return "test", chosen.without(agent.levels)
    if not chosen.overlaps(agent.levels):
        return "test", chosen
    if len(chosen) <= len(agent.levels) and all(level in agent.levels for level in chosen.seeds):
        return "train", chosen
    raise InputError(f"--levels {levels} overlap the training levels {agent.levels}; accepted: all or none of them")
