"""The logits of an ensemble are those of its members."""

import pytest
import torch
from torch import Tensor

from expgen.agents.ensemble import Ensemble
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.fast.fast_networks import for_play
from expgen.networks.actor_critic import NetworkConfig, Policy, make_policy

PICTURES = EnvSpec("toy", (32, 32, 3), "uint8", 15)
MINIMAZE = EnvSpec("minimaze", (11, 11, 3), "uint8", 5)


def make(spec: EnvSpec, seed: int, features: int = 16, memory: str = "none", device: str = "cpu") -> Policy:
    config = NetworkConfig(features=features, memory=memory)  # type: ignore[arg-type]
    policy = make_policy(spec, config, torch.Generator().manual_seed(seed), torch.device(device))
    policy.policy_head.weight.data *= 100
    return policy


def observations(spec: EnvSpec, num_envs: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(256, (num_envs, *spec.obs_shape), dtype=torch.uint8, generator=generator)


def plain(members: list[Policy], obs: Tensor) -> Tensor:
    first, state = (
        torch.zeros(1, len(obs), dtype=torch.bool, device=obs.device),
        torch.zeros(len(obs), 0).to(obs.device),
    )
    with torch.no_grad():
        return torch.stack([member(obs[None], first, state).logits[0] for member in members])


@pytest.mark.parametrize("spec", [PICTURES, MINIMAZE], ids=["impala", "small"])
@pytest.mark.parametrize("num_members", [1, 3])
def test_ensemble_logits_are_those_of_its_members(spec: EnvSpec, num_members: int):
    members = [make(spec, seed, features=16 + seed) for seed in range(num_members)]
    obs = observations(spec, 5)
    logits = Ensemble(members).logits(obs)
    assert logits.shape == (num_members, 5, spec.num_actions) and not logits.requires_grad
    assert torch.equal(logits, plain(members, obs))
    assert logits.std() > 0.1


def test_inference_networks_give_the_same_logits():
    members = [make(PICTURES, seed) for seed in range(3)]
    ensemble = Ensemble([for_play(member) for member in members])
    for num_envs in (5, 7):  # five of these frames are cached
        obs = observations(PICTURES, num_envs)
        torch.testing.assert_close(ensemble.logits(obs), plain(members, obs), rtol=1e-4, atol=1e-5)


def test_members_must_exist_and_have_no_memory():
    with pytest.raises(InputError, match="members is empty; accepted: 1 policy or more"):
        Ensemble([])
    with pytest.raises(InputError, match="members have memory; accepted: memoryless"):
        Ensemble([make(MINIMAZE, 0, memory="gru")])
