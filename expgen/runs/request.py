"""AgentRequest: which policies of an agent play, and how. EvaluationRequest: on which levels `expgen evaluate` does."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from expgen.agents.build import LoadedAgent, build_agent
from expgen.agents.description import AgentDescription
from expgen.agents.own_agent import OWN_AGENTS
from expgen.agents.policies import check_trained, with_weights_of
from expgen.agents.temperature import checked_temperature
from expgen.envs.levels import LevelSet
from expgen.errors import InputError, check_range
from expgen.evaluation.evaluate import OnEpisode, arena_of, check_play_flags, result_of
from expgen.evaluation.scores import Split
from expgen.plugins import find
from expgen.runs.scoring import ScoredAgent, score_agent
from expgen.settings import LAST_SEED, flag_of
from expgen.training.average import Weights


@dataclass(frozen=True, kw_only=True)
class AgentRequest:
    """How to play an agent; None and empty: as agent.json says."""

    learner: str | None = None  # one policy or registered agent; None: all policies together
    seed: int = 0  # random seed for choosing levels and sampling actions
    device: str = "cpu"
    weights: Weights | None = None  # live or averaged
    temperature: float | None = None  # of the policies
    explorer_temperature: float | None = None  # of explorers beside members
    consensus: Mapping[str, Any] = field(default_factory=dict)  # overrides of the agent's ConsensusConfig

    def __post_init__(self) -> None:
        check_range("--seed", self.seed, 0, LAST_SEED)
        for name in ("temperature", "explorer_temperature"):
            if getattr(self, name) is not None:
                checked_temperature(getattr(self, name), flag_of(name))

    def load(self, agent: AgentDescription, learner: str | None) -> LoadedAgent:
        """Load the policy or registered agent `learner`, or all policies together for None."""
        temperatures = self.temperature, self.explorer_temperature
        agent = with_weights_of(agent, self.weights, learner)
        return build_agent(agent, learner, self.seed, self.device, self.consensus, *temperatures)


@dataclass(frozen=True)
class EvaluationRequest(AgentRequest):
    """The arguments of an evaluation. Without `learner` and without an ensemble each policy is played."""

    split: Split | None = None  # None: the split of `levels`, or test
    levels: str | None = None  # None: all levels of the split
    episodes: int = 500
    envs: int = 64

    def __post_init__(self) -> None:
        check_play_flags(self.episodes, self.envs, self.seed)
        super().__post_init__()


def single_requests(agent: AgentDescription, request: EvaluationRequest) -> list[EvaluationRequest]:
    """Split a request into one for each player; raise InputError for bad input before anything is played."""
    select_levels(agent, request)
    names = select_players(agent, request.learner)
    for name in names:
        with_weights_of(agent, request.weights, name)
    return [replace(request, learner=None if name == agent.algo else name) for name in names]


def score_all(
    agent: AgentDescription, request: EvaluationRequest, on_episode: OnEpisode = lambda episode: None
) -> Iterator[ScoredAgent]:
    """Score each player of a request."""
    select_levels(agent, request)
    arena = arena_of(agent, request.episodes, request.seed, request.envs, request.device)
    for name in select_players(agent, request.learner):
        loaded = request.load(agent, name)
        split, levels = select_levels(agent, request, loaded.name)
        yield result_of(score_agent(loaded, arena, split, levels, on_episode))


def select_players(agent: AgentDescription, learner: str | None) -> list[str]:
    """Return the players that `--learner` selects: one; for None the ensemble, or else each trained policy."""
    trained = check_trained(agent, agent.folder)
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
