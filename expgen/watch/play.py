"""expgen play: one episode of a run's agent, recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from expgen.agents.agent import Agent, UniformAgent
from expgen.envs.levels import LevelSet
from expgen.errors import InputError, check_choice, check_range
from expgen.evaluation.scores import Split, without_asides
from expgen.exploration.oracle import FOLLOWED
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.load import load_run
from expgen.runs.plan import plans_of
from expgen.settings import LAST_SEED
from expgen.training.average import Weights
from expgen.training.resources import resolve_device
from expgen.watch.record import record_episode
from expgen.watch.recording import Recording
from expgen.watch.stage import Stage, open_follower_stage, open_stage

RANDOM, WALL_FOLLOWER = "random", "wall-follower"  # players that no run needs to train


@dataclass(frozen=True)
class PlayRequest:
    """Which of a run's agents to watch, on which level."""

    level: int | None = None  # None: one drawn from the split
    split: Split | None = None  # None: whatever `level` belongs to, else test
    seed: int = 0  # of the level drawn and the actions sampled
    learner: str | None = None  # one policy alone, RANDOM or WALL_FOLLOWER; None: the run's agent
    device: str = "cpu"
    weights: Weights = "live"  # those of the policies, or their averages where the run keeps them
    consensus: Mapping[str, Any] = field(default_factory=dict)  # settings of the run's ConsensusConfig to change

    def __post_init__(self) -> None:
        check_range("--seed", self.seed, 0, LAST_SEED)


class _Choice(NamedTuple):
    """The levels an episode may be played on, and what they are to the run."""

    levels: LevelSet
    split: Split


def play_run(folder: RunFolder, request: PlayRequest) -> Recording:
    """Play and record."""
    config, _ = folder.read_config()
    resolve_device(request.device)  # also where nobody computes on it
    choice = _choose(config, request)
    agent, name, stage = _enter(folder, config, request, choice.levels)
    try:
        return record_episode(agent, stage, name, request.seed, choice.split)
    finally:
        stage.env.close()


def _choose(config: TrainConfig, request: PlayRequest) -> _Choice:
    level, split = request.level, request.split
    if not config.has_unseen_levels:
        if level is not None or split == "test":
            what = "--split is test" if level is None else f"--level is {level}"
            raise InputError(f"{what} but {config.env} has no levels to choose from; accepted: neither flag")
        return _Choice(config.train_set, "train")
    if level is None:
        split = split or "test"
        of_split = config.train_set if split == "train" else config.test_set
        drawn = of_split.draw(1, np.random.default_rng(request.seed))
        return _Choice(LevelSet(tuple(drawn.tolist())), split)
    levels = LevelSet.parse((level,), "--level")
    belongs: Split = "train" if level in config.train_set else "test"
    if split not in (None, belongs):
        kind = {"train": "a training level", "test": "an unseen level"}[belongs]
        raise InputError(f"--split is {split} but --level {level} is {kind}; accepted: --split {belongs}, or none")
    return _Choice(levels, belongs)


def _enter(folder: RunFolder, config: TrainConfig, request: PlayRequest, levels: LevelSet) -> tuple[Agent, str, Stage]:
    """Who plays, what it is called, and where."""
    if request.learner in (RANDOM, WALL_FOLLOWER) and request.consensus:
        raise InputError(f"--learner is {request.learner}; accepted with settings of ensembles: none")
    if request.learner in (RANDOM, WALL_FOLLOWER) and request.weights != "live":
        raise InputError(f"--weights is {request.weights} but --learner {request.learner} has none; accepted: live")
    if request.learner == WALL_FOLLOWER:
        follower, stage = open_follower_stage(config.env, levels, request.seed, **config.options)
        return follower, "wall follower", stage
    if request.learner == RANDOM:
        stage = open_stage(config.env, levels, request.seed, **config.options)
        return UniformAgent(stage.env.spec.num_actions, request.seed), "random actions", stage
    algo_of = {plan.name: plan.algo for plan in plans_of(config)}
    if request.learner is not None:
        ensemble = [] if config.consensus is None else [config.algo]
        follower_too = [WALL_FOLLOWER] if config.env in FOLLOWED else []
        check_choice("--learner", request.learner, [*ensemble, *algo_of, RANDOM, *follower_too])
    loaded = load_run(folder, request.learner, request.seed, request.device, request.consensus, request.weights)
    learner = loaded.name.split()[0]
    name = f"{algo_of[learner]} {loaded.name}" if learner in algo_of else without_asides(loaded.name)
    return loaded.agent, name, open_stage(config.env, levels, request.seed, **config.options)
