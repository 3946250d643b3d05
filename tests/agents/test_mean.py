"""MeanAgent: the mean by hand, equal policies, memory, and settings."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import expgen
from expgen.agents.agent import PolicyAgent
from expgen.agents.build import build_agent
from expgen.agents.consensus import CONSENSUS_SETTINGS, ConsensusAgent, ConsensusConfig
from expgen.agents.description import AgentDescription, to_json
from expgen.agents.mean import MeanAgent, MeanPolicy
from expgen.agents.temperature import with_temperature
from expgen.agents.vote_kinds import changed_consensus
from expgen.errors import InputError
from expgen.evaluation.scores import read_scores
from expgen.networks.actor_critic import Policy, PolicyOutput
from expgen.runs.agent_files import read_agent, write_agent
from expgen.runs.push import push
from tests.agents.test_consensus import EXPLORER, MEMBERS_ALL, SPEC, make, play
from tests.agents.test_turns import NUM_ENVS, frames, played


class WithOdds(nn.Module):
    """Always the same odds; its value is their sum."""

    state_size = 0

    def __init__(self, *odds: float) -> None:
        super().__init__()
        self.odds = torch.tensor(odds)

    def forward(self, obs: Tensor, first: Tensor, state: Tensor) -> PolicyOutput:
        return PolicyOutput(self.odds.log().expand(*first.shape, -1), self.odds.sum().expand(first.shape), state)


def mean_output(policies: list[Any], temperature: float = 1) -> PolicyOutput:
    inputs = torch.zeros(1, 2, *SPEC.obs_shape), torch.zeros(1, 2, dtype=torch.bool), torch.zeros(2, 0)
    return with_temperature(MeanPolicy(policies), temperature)(*inputs)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("temperature", "probabilities"), [(1, [4 / 7, 2 / 7, 1 / 7]), (0.5, [16 / 21, 4 / 21, 1 / 21]), (0, [1, 0, 0])]
)
def test_mean_of_two_policies_by_hand(temperature: float, probabilities: list[float]) -> None:
    """Odds 16 : 4 : 1 and 1 : 1 : 1 have the geometric mean 4 : 2 : 1; the scale of a policy's odds has no effect."""
    output = mean_output([WithOdds(16, 4, 1), WithOdds(5, 5, 5)], temperature)
    assert output.logits.shape == (1, 2, 3) and output.logits.dtype == torch.float32
    assert torch.softmax(output.logits, -1)[0, 1].tolist() == pytest.approx(probabilities)
    assert output.value.tolist() == [[18, 18]]  # 21 and 15


def test_greedy_mean_is_the_largest_mean_although_no_policy_prefers_it() -> None:
    """4 : 1 : 3 and 1 : 4 : 3 have the mean 2 : 2 : 3."""
    output = mean_output([WithOdds(4, 1, 3), WithOdds(1, 4, 3)], 0)
    assert torch.softmax(output.logits, -1)[0, 0].tolist() == [0, 0, 1]


@pytest.mark.parametrize("temperature", [1, 0.3, 0])
@pytest.mark.parametrize("policy", [MEMBERS_ALL[1], EXPLORER], ids=["memoryless", "gru"])
def test_mean_of_equal_policies_plays_exactly_like_one(policy: Policy, temperature: float) -> None:
    alone = play(PolicyAgent(with_temperature(policy, temperature), seed=4))
    for count in (1, 3):
        assert np.array_equal(play(MeanAgent([policy] * count, 4, temperature=temperature)), alone)


def test_mean_is_deterministic_and_depends_on_the_seed() -> None:
    one, same, other = (play(MeanAgent(MEMBERS_ALL, seed)) for seed in (4, 4, 5))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_each_policy_keeps_its_own_memory() -> None:
    obs, other = frames(), make(7, "gru")
    mean = MeanAgent([EXPLORER, MEMBERS_ALL[0], other], seed=2)
    played(mean, obs)
    for policy, columns in ((EXPLORER, slice(0, 16)), (other, slice(16, 32))):
        alone = PolicyAgent(policy, 2)
        played(alone, obs)
        assert torch.equal(mean.state[:, columns], alone.state)
    assert mean.state.shape == (NUM_ENVS, 32)


def test_mean_does_not_depend_on_the_batch_and_predict_plays_like_act() -> None:
    obs, policies = frames(), [EXPLORER, *MEMBERS_ALL[:2]]
    whole = played(MeanAgent(policies, seed=5), obs)
    agent = MeanAgent(policies, seed=5)
    one = [agent.act(step[2:3], np.array([t == 0]), np.array([2]))[0] for t, step in enumerate(obs)]
    assert one == whole[:, 2].tolist()
    state, predicted = None, []
    for step in obs:
        action, state = agent.predict(step, state)
        predicted.append(action)
    assert np.array_equal(np.stack(predicted), whole)


@pytest.mark.parametrize("name", sorted({*CONSENSUS_SETTINGS} - {"vote", "ensemble_size"}))
def test_other_settings_are_rejected_with_vote_mean(name: str) -> None:
    settings = {name: getattr(ConsensusConfig(), name)}
    refused = f"--{name.replace('_', '-')} is given but --vote mean has no vote; accepted: --vote, --ensemble-size"
    for num_members in (0, 3):
        with pytest.raises(InputError, match=refused):
            changed_consensus(ConsensusConfig(vote="mean"), settings, num_members)


def test_consensus_agent_rejects_vote_mean() -> None:
    with pytest.raises(InputError, match="--vote is mean; accepted by ConsensusAgent: leader, majority"):
        ConsensusAgent(MEMBERS_ALL, EXPLORER, SPEC, ConsensusConfig(vote="mean"))


def test_vote_mean_plays_the_members_of_a_run_without_explorers(small, tmp_path) -> None:
    run = tmp_path / "run"
    small.train(run, 1, algo="expgen", members=3, **small.explorer)
    before = read_agent(run)
    loaded = build_agent(before, changes={"vote": "mean"}, temperature=0.5)
    assert isinstance(loaded.agent, MeanAgent) and loaded.agent.num_policies == 3
    assert loaded.settings == {"vote": "mean", "members": 3, "temperature": "0.5"}
    assert loaded.env_steps == 3 * small.update_steps
    fewer = expgen.load_agent(run, vote="mean", ensemble_size=2)
    assert isinstance(fewer, MeanAgent) and fewer.num_policies == 2
    consensus = changed_consensus(before.consensus, {"vote": "mean"}, 3)
    stored = AgentDescription.from_json(run, {**to_json(before), "consensus": to_json(consensus), "tuned": ["alpha"]})
    assert stored.consensus == consensus and not stored.has_vote
    write_agent(stored)
    assert build_agent(read_agent(run)).settings == {"members": 3, "vote": "mean"}
    push(run, tmp_path / "pushed")
    obs = np.random.default_rng(0).integers(0, 256, (9, NUM_ENVS, *before.spec.obs_shape)).astype(np.uint8)
    pair = (expgen.load_agent(folder) for folder in (run, tmp_path / "pushed"))
    assert np.array_equal(*(played(agent, obs) for agent in pair))
    voting = build_agent(read_agent(run), changes={"vote": "majority", "min_agree": 2})
    assert isinstance(voting.agent, ConsensusAgent)


def test_vote_mean_averages_explorers_without_members(small, tmp_path) -> None:
    small.train(tmp_path, 1, algo="openend", members=2)
    loaded = build_agent(read_agent(tmp_path), changes={"vote": "mean"})
    assert isinstance(loaded.agent, MeanAgent) and loaded.agent.num_policies == 2
    settings = dict(loaded.settings)
    assert (settings.pop("vote"), settings.pop("explorers")) == ("mean", 2) and not {"turn", "members"} & {*settings}


def test_run_with_vote_mean_is_scored_as_mean(small, tmp_path) -> None:
    small.train(tmp_path, 1, algo="expgen", members=2, eval_every=small.update_steps, vote="mean", **small.explorer)
    settings = {row.settings for row in read_scores(tmp_path / "scores.csv") if row.agent == "expgen"}
    assert settings == {"members=2 vote=mean"}
