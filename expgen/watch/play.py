"""expgen play: one episode of an agent, recorded."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from expgen.agents.agent import Agent, UniformAgent
from expgen.agents.build import build_agent
from expgen.agents.description import AgentDescription
from expgen.agents.own_agent import OWN_AGENTS
from expgen.envs.levels import LevelSet
from expgen.errors import InputError, check_range
from expgen.evaluation.scores import Split, settings_text, variant_settings
from expgen.exploration.oracle import WALL_FOLLOWER_ENVS
from expgen.plugins import find
from expgen.settings import LAST_SEED
from expgen.training.average import Weights
from expgen.training.resources import resolve_device
from expgen.watch.record import Recording, record_episode
from expgen.watch.stage import Stage, open_follower_stage, open_stage

RANDOM, WALL_FOLLOWER = "random", "wall-follower"  # players that no run needs to train


@dataclass(frozen=True)
class PlayRequest:
    """Which policies of an agent to watch, on which level."""

    level: int | None = None  # None: one drawn from the split
    split: Split | None = None  # None: whatever `level` belongs to, else test
    seed: int = 0  # of the level drawn and the actions sampled
    learner: str | None = None  # one policy alone, RANDOM or WALL_FOLLOWER; None: the run's agent
    device: str = "cpu"
    weights: Weights | None = None  # live or averaged ones; None: what the agent plays with
    consensus: Mapping[str, Any] = field(default_factory=dict)  # settings of the agent's ConsensusConfig to change

    def __post_init__(self) -> None:
        check_range("--seed", self.seed, 0, LAST_SEED)


def play_agent(agent: AgentDescription, request: PlayRequest) -> Recording:
    """Play and record."""
    resolve_device(request.device)  # also where nobody computes on it
    split, levels = _choose(agent, request)
    player, name, stage = _enter(agent, request, levels)
    with closing(stage.env):
        return record_episode(player, stage, name, request.seed, split)


def _choose(agent: AgentDescription, request: PlayRequest) -> tuple[Split, LevelSet]:
    """What the levels are to the agent, and those that the episode may be played on."""
    level, split = request.level, request.split
    if not agent.has_unseen_levels:
        if level is not None or split == "test":
            what = "--split is test" if level is None else f"--level is {level}"
            raise InputError(f"{what} but {agent.env} has no levels to choose from; accepted: neither flag")
        return "train", agent.levels
    if level is None:
        split = split or "test"
        of_split = agent.levels if split == "train" else agent.test_set
        drawn = of_split.draw(1, np.random.default_rng(request.seed))
        return split, LevelSet(tuple(drawn.tolist()))
    belongs: Split = "train" if level in agent.levels else "test"
    if split not in (None, belongs):
        kind = {"train": "a training level", "test": "an unseen level"}[belongs]
        raise InputError(f"--split is {split} but --level {level} is {kind}; accepted: --split {belongs}, or none")
    return belongs, LevelSet.parse((level,), "--level")


def _enter(agent: AgentDescription, request: PlayRequest, levels: LevelSet) -> tuple[Agent, str, Stage]:
    """Who plays, what it is called, and where."""
    if request.learner in (RANDOM, WALL_FOLLOWER) and request.consensus:
        raise InputError(f"--learner is {request.learner}; accepted with settings of ensembles: none")
    if request.learner in (RANDOM, WALL_FOLLOWER) and request.weights not in (None, "live"):
        raise InputError(f"--weights is {request.weights} but --learner {request.learner} has none; accepted: live")
    if request.learner == WALL_FOLLOWER:
        follower, stage = open_follower_stage(agent.env, levels, request.seed, **agent.options)
        return follower, "wall follower", stage
    if request.learner == RANDOM:
        stage = open_stage(agent.env, levels, request.seed, **agent.options)
        return UniformAgent(stage.env.spec.num_actions, request.seed), "random actions", stage
    if request.learner is not None:
        ensemble = [] if agent.consensus is None else [agent.algo]
        follower_too = [WALL_FOLLOWER] if agent.env in WALL_FOLLOWER_ENVS else []
        names = (*ensemble, *agent.policies, RANDOM, *follower_too)
        find({**dict.fromkeys(names), **OWN_AGENTS}, "--learner", request.learner)
    loaded = build_agent(agent, request.learner, request.seed, request.device, request.consensus, request.weights)
    words = [loaded.algo] if loaded.policy else []
    name = " ".join((*words, loaded.name, variant_settings(settings_text(loaded.settings)))).strip()
    return loaded.agent, name, open_stage(agent.env, levels, request.seed, **agent.options)
