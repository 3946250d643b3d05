"""`expgen play`: record one episode of an agent."""

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from expgen.agents.agent import Agent, UniformAgent
from expgen.agents.description import AgentDescription
from expgen.agents.own_agent import OWN_AGENTS
from expgen.agents.temperature import AS_TRAINED, temperature_text
from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.evaluation.scores import Split, settings_text
from expgen.exploration.oracle import WALL_FOLLOWER_ENVS
from expgen.plugins import find
from expgen.runs.request import AgentRequest
from expgen.settings import flag_of
from expgen.training.resources import resolve_device
from expgen.watch.record import Recording, record_episode
from expgen.watch.stage import Stage, open_follower_stage, open_stage

RANDOM, WALL_FOLLOWER = "random", "wall-follower"  # players without training


@dataclass(frozen=True)
class PlayRequest(AgentRequest):
    """The policies of an agent to record, and the level. `learner` may also be RANDOM or WALL_FOLLOWER."""

    level: int | None = None  # None: drawn from the split
    split: Split | None = None  # None: the split of `level`, or test
    name: str = ""  # shown as the agent's name; empty: the algorithm's name


def play_agent(agent: AgentDescription, request: PlayRequest) -> Recording:
    """Record one episode."""
    resolve_device(request.device)  # reject an unknown device even if no policy runs on it
    split, levels = _choose_level(agent, request)
    player, name, stage = _open(agent, request, levels)
    with closing(stage.env):
        return record_episode(player, stage, name, request.seed, split)


def _choose_level(agent: AgentDescription, request: PlayRequest) -> tuple[Split, LevelSet]:
    """Return the split and the level to play, or all levels if the environment cannot choose one."""
    level, split = request.level, request.split
    if not agent.has_unseen_levels:
        if level is not None or split == "test":
            flag = "--split is test" if level is None else f"--level is {level}"
            raise InputError(f"{flag} but {agent.env} has no levels to choose from; accepted: neither flag")
        return "train", agent.levels
    if level is None:
        split = split or "test"
        drawn = agent.levels_of(split).draw(1, np.random.default_rng(request.seed))
        return split, LevelSet(tuple(drawn.tolist()))
    actual: Split = "train" if level in agent.levels else "test"
    if split not in (None, actual):
        kind = {"train": "a training level", "test": "an unseen level"}[actual]
        raise InputError(f"--split is {split} but --level {level} is {kind}; accepted: --split {actual}, or none")
    return actual, LevelSet.parse((level,), "--level")


def _open(agent: AgentDescription, request: PlayRequest, levels: LevelSet) -> tuple[Agent, str, Stage]:
    """Return the agent, its name and the stage."""
    learner = request.learner
    if learner in (RANDOM, WALL_FOLLOWER):
        if request.consensus:
            flag = flag_of(next(iter(request.consensus)))
            raise InputError(f"{flag} is a setting of ensembles and cannot be used with --learner {learner}")
        if request.weights not in (None, "live"):
            raise InputError(f"--weights is {request.weights} but --learner {learner} has no weights; accepted: live")
        for name in ("temperature", "explorer_temperature"):
            if getattr(request, name) not in (None, AS_TRAINED):
                problem = f"{flag_of(name)} is {getattr(request, name)} but --learner {learner} has no policy"
                raise InputError(f"{problem}; accepted: 1")
    if learner == WALL_FOLLOWER:
        follower, stage = open_follower_stage(agent.env, levels, request.seed, **agent.options)
        return follower, "wall follower", stage
    if learner == RANDOM:
        stage = open_stage(agent.env, levels, request.seed, **agent.options)
        return UniformAgent(stage.env.spec.num_actions, request.seed), "random actions", stage
    if learner is not None:
        names = [*([agent.algo] if agent.consensus else []), *agent.policies, RANDOM]
        if agent.env in WALL_FOLLOWER_ENVS:
            names.append(WALL_FOLLOWER)
        find({**dict.fromkeys(names), **OWN_AGENTS}, "--learner", learner)
    loaded = request.load(agent, learner)
    name = f"{loaded.algo} {loaded.name}" if loaded.policy else loaded.name
    temperatures = {name: getattr(request, name) for name in ("temperature", "explorer_temperature")}
    changes: dict[str, Any] = {} if request.weights is None else {"weights": request.weights}
    changes |= {name: temperature_text(value) for name, value in temperatures.items() if value is not None}
    changes |= request.consensus
    stage = open_stage(agent.env, levels, request.seed, **agent.options)
    return loaded.agent, f"{request.name or name} {settings_text(changes)}".strip(), stage
