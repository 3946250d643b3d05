"""EvaluationRequest: which policies of an agent `expgen evaluate` plays, and on which levels."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from expgen.agents.build import build_agent
from expgen.agents.description import AgentDescription
from expgen.agents.own_agent import OWN_AGENTS
from expgen.agents.policies import check_weights, with_weights
from expgen.agents.temperature import check_overrides
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
    """The arguments of an evaluation."""

    split: Split | None = None  # None: the split of `levels`, or test
    levels: str | None = None  # None: all levels of the split
    episodes: int = 500
    seed: int = 0
    learner: str | None = None  # one policy; None: the ensemble, or each policy if there is no ensemble
    envs: int = 64
    device: str = "cpu"
    weights: Weights | None = None  # live or averaged; None: those in agent.json
    temperature: float | None = None  # of the policies; None: as in agent.json
    explorer_temperature: float | None = None  # of explorers beside members; None: as in agent.json
    consensus: Mapping[str, Any] = field(default_factory=dict)  # overrides of the agent's ConsensusConfig

    def __post_init__(self) -> None:
        check_play_flags(self.episodes, self.envs, self.seed)
        check_overrides(self.temperature, self.explorer_temperature)


def single_requests(agent: AgentDescription, request: EvaluationRequest) -> list[EvaluationRequest]:
    """Split a request into one for each player; raise InputError for bad input before anything is played."""
    select_levels(agent, request)
    names, playing = select_players(agent, request.learner), with_weights(agent, request.weights)
    for name in names:
        check_weights(playing, [name] if name in agent.policies else agent.trained())
    return [replace(request, learner=None if name == agent.algo else name) for name in names]


def score_all(
    agent: AgentDescription, request: EvaluationRequest, on_episode: OnEpisode = lambda episode: None
) -> Iterator[ScoredAgent]:
    """Score each player of a request."""
    select_levels(agent, request)
    agent = with_weights(agent, request.weights)
    threads = plan_resources(request.device, 1).env_threads
    arena = Arena(agent.env, agent.options, request.episodes, request.seed, request.envs, threads)
    for name in select_players(agent, request.learner):
        asked = (request.consensus, request.temperature, request.explorer_temperature)
        loaded = build_agent(agent, name, request.seed, request.device, *asked)
        split, levels = select_levels(agent, request, loaded.name)
        yield result_of(score_agent(loaded, arena, split, levels, on_episode))


def select_players(agent: AgentDescription, learner: str | None) -> list[str]:
    """Return the players that `--learner` selects: one; for None the ensemble, or else each trained policy."""
    trained = agent.trained()
    if not trained:
        raise InputError(f"{agent.folder} has no checkpoint yet; accepted: a run that has trained")
    if learner is None:
        return [agent.algo] if agent.consensus is not None else trained
    if learner == "each":
        return trained
    find({"each": None, **dict.fromkeys(trained), **OWN_AGENTS}, "--learner", learner)
    return [learner]


def select_levels(agent: AgentDescription, request: EvaluationRequest, name: str = "") -> tuple[Split, LevelSet]:
    """Return the split and levels of a request; the training levels of the policy `name` may be a bootstrap sample.

    Raise InputError if the levels do not belong to the split, or if the environment has no levels to choose.
    """
    split, levels = request.split, request.levels
    if not agent.has_unseen_levels and (split != "train" or levels is not None):
        raise InputError(f"--split is test but {agent.env} has no unseen levels; accepted: --split train")
    if levels is None:
        split = split or "test"
        return split, agent.levels_of(split, name)
    actual, chosen = split_of(agent, levels)
    if split not in (None, actual):
        kind = {"train": "training levels", "test": "unseen levels"}[actual]
        raise InputError(f"--split is {split} but --levels {levels} are {kind}; accepted: --split {actual}, or none")
    return actual, chosen


def split_of(agent: AgentDescription, levels: str) -> tuple[Split, LevelSet]:
    """Parse levels and return their split; raise InputError if only some of them are training levels."""
    chosen = LevelSet.parse(levels, "--levels")
    if chosen.seeds is None:
        return "test", chosen.without(agent.levels)
    if not chosen.overlaps(agent.levels):
        return "test", chosen
    if len(chosen) <= len(agent.levels) and all(level in agent.levels for level in chosen.seeds):
        return "train", chosen
    raise InputError(f"--levels {levels} overlap the training levels {agent.levels}; accepted: all or none of them")
