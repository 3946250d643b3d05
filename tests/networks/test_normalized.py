"""--normalize-obs: running moments, saved with the network; images are rejected."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import expgen
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, make_policy
from expgen.networks.normalized import NormalizedEncoder, in_half_precision

CPU = torch.device("cpu")
VECTOR = EnvSpec("toy", (3,), "float32", 4)


def encoder() -> NormalizedEncoder:
    policy = make_policy(VECTOR, NetworkConfig(normalize_obs=True, features=8), torch.Generator().manual_seed(0), CPU)
    assert isinstance(policy.encoder, NormalizedEncoder)
    return policy.encoder


def test_moments_equal_those_of_all_observations() -> None:
    normalized = encoder()
    parts = [torch.from_numpy(np.random.default_rng(i).normal(3 * i, i + 1, (i + 2, 4, 3))).float() for i in range(5)]
    for part in parts:
        normalized.update_moments(part)
    rows = torch.cat([part.reshape(-1, 3) for part in parts])
    torch.testing.assert_close(normalized.mean, rows.mean(0))
    torch.testing.assert_close(normalized.var, rows.var(0, correction=0))
    assert normalized.count == len(rows)


def test_normalized_encoder_matches_the_formula() -> None:
    normalized = encoder()
    obs = torch.tensor([[1.0, -2.0, 500.0]])
    torch.testing.assert_close(
        normalized(obs), normalized.encoder(torch.tensor([[1.0, -2.0, 10.0]]))
    )  # before any update
    normalized.update_moments(torch.tensor([[0.0, 2.0, 400.0], [4.0, 2.0, 600.0]]))
    torch.testing.assert_close(normalized(obs), normalized.encoder(torch.tensor([[-0.5, -10.0, 0.0]])))


def test_normalize_obs_rejects_images() -> None:
    with pytest.raises(InputError, match=r"--normalize-obs is True but toy has images \(8, 8, 3\); accepted: False"):
        make_policy(EnvSpec("toy", (8, 8, 3), "uint8", 4), NetworkConfig(normalize_obs=True), torch.Generator(), CPU)


@pytest.mark.parametrize("algo", ["ppo", "idaac", "maxent"])
def test_moments_are_updated_saved_and_used_for_play(algo: str, small: Any, tmp_path: Path, equal: Any) -> None:
    pytest.importorskip("gymnasium")
    settings = {"env": "CartPole-v1", "algo": algo, "normalize_obs": True, "average": 0.5}
    small.train(tmp_path / "run", 2, **settings)
    state = small.state(tmp_path / "run")
    assert state["policy.encoder.count"] == 2 * small.update_steps and state["policy.encoder.mean"].any()
    assert torch.equal(state["average.encoder.mean"], state["policy.encoder.mean"])
    moments = [tensor for name, tensor in state.items() if name.endswith("encoder.mean")]
    assert all(torch.equal(moment, state["policy.encoder.mean"]) for moment in moments)  # the value network's too
    assert len(moments) == (3 if algo == "idaac" else 2)
    agent = expgen.load_agent(tmp_path / "run")
    assert torch.equal(agent.policy.encoder.mean, state["policy.encoder.mean"])  # type: ignore[attr-defined]


def test_half_precision_keeps_moments_that_float16_cannot_hold() -> None:
    """float16 ends at 65504 and has steps of 2 above 2048."""
    obs = torch.tensor([[0.0, 2000.5, 3001.0], [1000.0, 2001.5, 3001.0]])
    normalized = encoder()
    normalized.update_moments(obs)  # means 500, 2001, 3001 and variances 250000, 1/4, 0
    state = normalized.state_dict()
    halved = in_half_precision(state)
    for name in ("mean", "var", "count"):
        assert halved[name] is state[name]
    others = state.keys() - {"mean", "var", "count"}
    assert others and all(torch.equal(halved[name], state[name].half()) for name in others)
