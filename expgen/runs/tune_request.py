"""TuneRequest: the grid of quorum, α and temperature that `expgen tune` tries, and the levels that it plays."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from expgen.agents.consensus import TABLE_ALPHA
from expgen.agents.description import AgentDescription
from expgen.agents.out_of_bag import panel_levels
from expgen.agents.temperature import checked_temperature
from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.evaluation.evaluate import check_play_flags
from expgen.runs.request import split_of

ALPHAS = (0.2, TABLE_ALPHA, 0.8)  # those that the paper tried


@dataclass(frozen=True)
class TuneRequest:
    """The grid of settings to try, and how to play each."""

    levels: str | None = None  # None: training levels that members left out
    quorums: Sequence[int] = ()  # empty: all from 1 to the number of members
    alphas: Sequence[float] = ()  # empty: ALPHAS
    temperatures: Sequence[float] = ()  # empty: the agent's own
    episodes: int = 400  # per trial; all trials have the same levels and random numbers
    seed: int = 0
    envs: int = 64
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_play_flags(self.episodes, self.envs, self.seed)
        for alpha in self.alphas:
            if not 1e-3 <= alpha <= 1:
                raise InputError(f"--alphas has {alpha}; accepted: numbers from 0.001 to 1")
        temperatures = tuple(checked_temperature(value, "--temperatures") for value in self.temperatures)
        object.__setattr__(self, "temperatures", temperatures)  # without −0.0
        for flag, values in (("quorums", self.quorums), ("alphas", self.alphas), ("temperatures", temperatures)):
            if twice := [value for value in values if list(values).count(value) > 1]:
                raise InputError(f"--{flag} has {twice[0]:g} twice; accepted: distinct values")


class Settings(NamedTuple):
    """One point of the grid; quorum and α are None for an agent that does not vote."""

    min_agree: int | None  # quorum of the whole ensemble
    alpha: float | None
    temperature: float


def grid_of(agent: AgentDescription, request: TuneRequest) -> list[Settings]:
    """Return the points to try; raise InputError if the agent cannot be tuned so."""
    temperatures = request.temperatures or (agent.temperature,)
    if not agent.has_vote:
        for flag, values in (("--quorums", request.quorums), ("--alphas", request.alphas)):
            if values:
                raise InputError(f"{flag} is given but {agent.folder} does not vote; accepted: --temperatures")
        if not request.temperatures:
            raise InputError(f"{agent.folder} does not vote; accepted: --temperatures, such as 0,0.25,0.5,1")
        return [Settings(None, None, temperature) for temperature in temperatures]
    members = len(agent.members)
    for quorum in request.quorums:
        if not 1 <= quorum <= members:
            raise InputError(f"--quorums has {quorum}; accepted: 1 to {members}")
    quorums = request.quorums or range(1, members + 1)
    return [Settings(*point) for point in product(quorums, request.alphas or ALPHAS, temperatures)]


def levels_of(agent: AgentDescription, request: TuneRequest) -> LevelSet:
    """Return the levels that a request plays; raise InputError if there are none."""
    if request.levels is None:
        return tuning_levels(agent)
    if not agent.has_unseen_levels:
        raise InputError(f"--levels is {request.levels} but {agent.env} has no unseen levels")
    split, levels = split_of(agent, request.levels)
    if split == "train":
        raise InputError(f"--levels {request.levels} are training levels; accepted: levels that no policy trained on")
    return levels


def tuning_levels(agent: AgentDescription) -> LevelSet:
    """Return the training levels that two or more members have not seen.

    If there are training levels that no explorer has seen, only those are considered.
    """
    if not agent.has_vote:
        accepted = "--levels that it has not trained on, or an ensemble with --vote leader or majority"
        raise InputError(f"{agent.folder} does not vote; accepted: {accepted}")
    explored = [explorer.levels for explorer in agent.explorers]
    unexplored = tuple(level for level in agent.levels.seeds or () if not any(level in levels for levels in explored))
    levels = panel_levels(
        [member.levels for member in agent.members], LevelSet(unexplored) if unexplored else agent.levels
    )
    if not levels.seeds:
        accepted = "a population trained with --member-levels bootstrap, or --levels that it has not trained on"
        raise InputError(f"{agent.folder} has no training level that two members never saw; accepted: {accepted}")
    return levels
