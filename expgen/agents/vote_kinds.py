"""How the policies of an agent act together: for each kind of vote, the settings it uses and the agent it builds.

| vote               | members | agent                                                                   |
|--------------------|---------|-------------------------------------------------------------------------|
| `leader`,`majority`| yes     | `ConsensusAgent`: the members vote, and explorers act where they differ |
| `turns`            | yes     | `TurnsAgent`: members and explorers act in turns                        |
| `mean`             | any     | `MeanAgent`: the mean of the members, or of explorers without members   |
| any but `mean`     | none    | one explorer, or several in turns                                       |

Settings of ConsensusConfig that a kind does not use are refused if given, and ignored in agent.json.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from expgen.agents.agent import Agent, TurnsAgent, explorers_agent
from expgen.agents.consensus import CONSENSUS_SETTINGS, TABLE_ALPHA, ConsensusAgent, ConsensusConfig
from expgen.agents.mean import MeanAgent
from expgen.agents.temperature import with_temperature
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import Policy
from expgen.settings import check_config, flag_of


class Players(NamedTuple):
    """The policies that play, as they were trained, and the temperatures to play them at."""

    members: Sequence[Policy]
    explorers: Sequence[Policy]
    temperature: float
    explorer_temperature: float

    def tempered(self) -> tuple[list[Policy], list[Policy]]:
        """Return members and explorers at their temperatures."""
        members = [with_temperature(policy, self.temperature) for policy in self.members]
        return members, [with_temperature(policy, self.explorer_temperature) for policy in self.explorers]


@dataclass(frozen=True)
class VoteKind:
    """One way of acting together."""

    settings: tuple[str, ...]  # fields of ConsensusConfig that have an effect
    refusal: str  # why the others are refused
    row_settings: tuple[str, ...]  # settings that score rows name if they differ from Algorithm 1
    build: Callable[[Players, EnvSpec, ConsensusConfig, int], Agent]  # from policies, spec, settings and seed
    has_vote: bool = False  # there is a quorum to tune, and a fallback
    members_only: bool = False  # explorers play only if there are no members


def _voting_agent(players: Players, spec: EnvSpec, config: ConsensusConfig, seed: int) -> Agent:
    return ConsensusAgent(*players.tempered(), spec, config, seed)


def _turns_agent(players: Players, spec: EnvSpec, config: ConsensusConfig, seed: int) -> Agent:
    members, explorers = players.tempered()
    return TurnsAgent([*members, *explorers], config.turn, seed, spec, members=len(members), patience=config.patience)


def _explorers_agent(players: Players, spec: EnvSpec, config: ConsensusConfig, seed: int) -> Agent:
    return explorers_agent(players.tempered()[1], config.turn, seed, spec)


def _mean_agent(players: Players, spec: EnvSpec, config: ConsensusConfig, seed: int) -> Agent:
    if players.members:
        return MeanAgent(players.members, seed, spec, players.temperature)
    return MeanAgent(players.explorers, seed, spec, players.explorer_temperature)


VOTING = VoteKind(
    settings=tuple(name for name in CONSENSUS_SETTINGS if name != "patience"),
    refusal="needs --vote turns",
    row_settings=("agreement", "alpha", "stretch", "fallback", "no_op_is_up", "vote", "once", "hedge"),
    build=_voting_agent,
    has_vote=True,
)
TURNS = VoteKind(
    settings=("vote", "turn", "patience", "ensemble_size"),
    refusal="--vote turns has no vote",
    row_settings=("vote", "patience"),
    build=_turns_agent,
)
MEAN = VoteKind(
    settings=("vote", "ensemble_size"),
    refusal="--vote mean has no vote",
    row_settings=("vote",),
    build=_mean_agent,
    members_only=True,
)
EXPLORERS = VoteKind(
    settings=("vote", "turn", "ensemble_size"),
    refusal="there are no members to vote",
    row_settings=(),
    build=_explorers_agent,
)
KINDS = {"leader": VOTING, "majority": VOTING, "turns": TURNS, "mean": MEAN}


def kind_of(config: ConsensusConfig, num_members: int) -> VoteKind:
    """Return how an agent of `num_members` members acts."""
    kind = KINDS[config.vote]
    return kind if num_members or kind is MEAN else EXPLORERS


def changed_consensus(config: ConsensusConfig, values: Mapping[str, Any], num_members: int) -> ConsensusConfig:
    """Return `config` with the settings `values`; raise InputError if they do not fit an ensemble of `num_members`."""
    for name in values:
        if name not in CONSENSUS_SETTINGS:
            raise InputError(f"setting {name!r} of the ensemble is unknown; accepted: {', '.join(CONSENSUS_SETTINGS)}")
    changed = dataclasses.replace(config, **values)
    check_config(changed)
    kind = kind_of(changed, num_members)
    for name in values:
        if name not in kind.settings:
            accepted = ", ".join(map(flag_of, kind.settings))
            raise InputError(f"{flag_of(name)} is given but {kind.refusal}; accepted: {accepted}")
    is_hedged = changed.hedge > 0 and kind.has_vote
    if is_hedged and changed.fallback != "explorer" and {"hedge", "fallback"} & values.keys():
        problem = f"--hedge is {changed.hedge} but --fallback is {changed.fallback}"
        raise InputError(f"{problem}; accepted: 0, or a policy as explorer")
    if changed.leader >= max(num_members, 1):
        raise InputError(f"--leader is {changed.leader}; accepted: 0 to {max(num_members, 1) - 1}")
    if changed.ensemble_size > num_members:
        raise InputError(f"--ensemble-size is {changed.ensemble_size}; accepted: 0 to {num_members}")
    if values.get("stretch") == "table" and changed.is_geometric:
        raise InputError(f"--stretch is table, for α = {TABLE_ALPHA}, but α is {changed.alpha}; accepted: geometric")
    return changed
