"""Sampling temperature: logits divided by T, T = 0 greedy, T = 1 the policy itself."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import expgen
from expgen.agents.agent import PolicyAgent
from expgen.agents.build import build_agent
from expgen.agents.description import AgentDescription, to_json
from expgen.agents.temperature import checked_temperature, divide, temperature_text, with_temperature
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, make_policy
from expgen.runs.shipped import find_agent

LOGITS = torch.log(torch.tensor([[0.5, 0.25, 0.25]]))


def minimaze(weights: str = "minimaze/ppo") -> AgentDescription:
    return find_agent(weights).agent


@pytest.mark.parametrize(
    ("temperature", "probabilities"),
    [(0.5, [4 / 6, 1 / 6, 1 / 6]), (1, [0.5, 0.25, 0.25]), (0, [1, 0, 0])],
)
def test_probabilities_by_hand(temperature: float, probabilities: list[float]) -> None:
    assert torch.softmax(divide(LOGITS, temperature), -1)[0].tolist() == pytest.approx(probabilities)


def test_temperatures_are_written_as_short_as_they_are_exact() -> None:
    assert [temperature_text(value) for value in (0.25, 0, 1, 0.9999999)] == ["0.25", "0", "1", "0.9999999"]
    assert temperature_text(checked_temperature(-0.0)) == temperature_text(-0.0) == "0"


def test_zero_temperature_keeps_ties() -> None:
    assert torch.softmax(divide(torch.tensor([2.0, 2.0, 1.0]), 0), -1).tolist() == [0.5, 0.5, 0]


def test_policy_as_trained_is_not_wrapped_and_others_keep_memory_and_value() -> None:
    spec = minimaze().spec
    policy = make_policy(spec, NetworkConfig(memory="gru"), torch.Generator(), torch.device("cpu"))
    assert with_temperature(policy, 1) is policy
    tempered = with_temperature(policy, 0.25)
    inputs = torch.zeros(2, 3, *spec.obs_shape, dtype=torch.uint8), torch.zeros(2, 3, dtype=torch.bool)
    state = torch.randn(3, policy.state_size)
    with torch.no_grad():
        plain, divided = policy(*inputs, state), tempered(*inputs, state)
    assert tempered.state_size == policy.state_size
    assert torch.equal(divided.logits, plain.logits / 0.25)
    assert torch.equal(divided.value, plain.value) and torch.equal(divided.state, plain.state)


def test_greedy_agent_takes_the_most_likely_action() -> None:
    agent = expgen.load_agent("minimaze/ppo", temperature=0)
    env = expgen.make_env("minimaze", levels=range(1000, 1016), num_envs=16)
    observation = env.observe()
    action = agent.act(observation.obs, observation.first)
    assert isinstance(agent, PolicyAgent)
    assert agent.output is not None and np.array_equal(action, agent.output.logits[0].argmax(-1).numpy())
    again = expgen.load_agent("minimaze/ppo", temperature=0, seed=5)
    assert np.array_equal(action, again.act(observation.obs, observation.first))


def test_temperature_applies_to_every_policy_and_is_in_score_rows() -> None:
    agent = replace(find_agent("minimaze/expgen").agent, temperature=0.5)
    loaded = build_agent(agent)
    assert loaded.settings["temperature"] == "0.5"
    assert [part.temperature for part in loaded.agent.ensemble.members] == [0.5] * 5  # type: ignore[attr-defined]
    assert loaded.agent.fallback.policy.temperature == 0.5  # type: ignore[attr-defined]
    assert "temperature" not in build_agent(agent, temperature=1).settings


def test_agent_json_keeps_the_temperature_and_may_omit_it() -> None:
    agent = replace(minimaze(), temperature=0.7)
    data = to_json(agent)
    assert data["temperature"] == 0.7 and AgentDescription.from_json(agent.folder, data) == agent
    del data["temperature"]
    assert AgentDescription.from_json(agent.folder, data).temperature == 1


@pytest.mark.parametrize("temperature", [-0.1, 1e-300, 101, math.nan, math.inf, True])
def test_bad_temperatures_are_refused(temperature: float) -> None:
    with pytest.raises(InputError, match=r"--temperature is .*; accepted: 0, or 0.001 to 100"):
        expgen.load_agent("minimaze/ppo", temperature=temperature)
    with pytest.raises(InputError, match=r"temperature is .*; accepted: (0, or 0.001 to 100|a value of type float)"):
        AgentDescription.from_json(Path(), {**to_json(minimaze()), "temperature": temperature})


def test_temperature_of_another_type_is_refused() -> None:
    with pytest.raises(InputError, match=r"temperature is 'low'; accepted: 0, or 0\.001 to 100"):
        expgen.load_agent("minimaze/ppo", temperature="low")  # type: ignore[arg-type]
