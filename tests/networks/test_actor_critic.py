"""Policy: parameter counts, initial weights, sequences, and the choice of encoder."""

import pytest
import torch

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, Policy, make_encoder, make_policy
from expgen.networks.impala import ImpalaEncoder
from expgen.networks.small import ConvEncoder, SmallEncoder

PROCGEN = EnvSpec("procgen:maze", (64, 64, 3), "uint8", 15)
MINIMAZE = EnvSpec("minimaze", (11, 11, 3), "uint8", 5)
VECTOR = EnvSpec("gymnasium:CartPole-v1", (4,), "float32", 2)
CPU = torch.device("cpu")


def make(spec: EnvSpec, seed: int = 0, **options: object) -> Policy:
    return make_policy(spec, NetworkConfig(**options), torch.Generator().manual_seed(seed), CPU)  # type: ignore[arg-type]


@pytest.mark.parametrize(("memory", "count"), [("none", 626_256), ("gru", 1_021_008)])
def test_parameter_counts_of_the_papers_networks(memory: str, count: int):
    with torch.device("meta"):
        policy = Policy(PROCGEN, NetworkConfig(memory=memory))  # type: ignore[arg-type]
    assert sum(parameter.numel() for parameter in policy.parameters()) == count


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_initial_policy_has_small_heads_and_zero_biases(memory: str):
    policy = make(PROCGEN, memory=memory)
    head = policy.policy_head.weight
    torch.testing.assert_close(head @ head.T, 1e-4 * torch.eye(15), atol=1e-8, rtol=0)
    torch.testing.assert_close(head.norm(dim=1), torch.full((15,), 0.01))
    assert policy.value_head.weight.norm().item() == pytest.approx(1)
    for name, parameter in policy.named_parameters():
        assert parameter.isfinite().all(), name
        assert parameter.any() != ("bias" in name), name
    if memory == "gru":
        for weight in (policy.memory.gru.weight_ih_l0, policy.memory.gru.weight_hh_l0):
            torch.testing.assert_close(weight.T @ weight, torch.eye(256), atol=1e-4, rtol=0)


def test_convolutions_are_laid_out_channels_last():
    weight = make(EnvSpec("toy", (32, 32, 3), "uint8", 4), features=8).encoder.stages[1].conv.weight
    assert weight.is_contiguous(memory_format=torch.channels_last)


def test_policy_weights_come_from_the_generator_only():
    before = torch.get_rng_state()
    one, two, other = make(MINIMAZE, 1, memory="gru"), make(MINIMAZE, 1, memory="gru"), make(MINIMAZE, 2, memory="gru")
    assert torch.equal(torch.get_rng_state(), before)
    weights = [policy.state_dict() for policy in (one, two, other)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not torch.equal(weights[0]["policy_head.weight"], weights[2]["policy_head.weight"])
    assert not torch.equal(weights[0]["encoder.linear1.weight"], weights[2]["encoder.linear1.weight"])


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_policy_over_a_sequence_equals_step_by_step(memory: str):
    policy = make(MINIMAZE, features=16, memory=memory)
    generator = torch.Generator().manual_seed(1)
    obs = torch.randint(256, (6, 3, 11, 11, 3), dtype=torch.uint8, generator=generator)
    first = torch.rand(6, 3, generator=generator) < 0.3
    state = torch.randn(3, policy.state_size, generator=generator)
    with torch.no_grad():
        whole = policy(obs, first, state)
        assert whole.logits.shape == (6, 3, 5) and whole.value.shape == (6, 3)
        for t in range(6):
            logits, value, state = policy(obs[t : t + 1], first[t : t + 1], state)
            torch.testing.assert_close(whole.logits[t], logits[0])
            torch.testing.assert_close(whole.value[t], value[0])
    torch.testing.assert_close(whole.state, state)
    assert state.shape == (3, 16 if memory == "gru" else 0)


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (PROCGEN, ImpalaEncoder),
        (EnvSpec("toy", (32, 32, 3), "uint8", 4), ImpalaEncoder),
        (EnvSpec("toy", (31, 64, 3), "uint8", 4), ConvEncoder),
        (EnvSpec("minimaze", (11, 11, 3), "uint8", 5), SmallEncoder),
        (MINIMAZE, SmallEncoder),
        (VECTOR, SmallEncoder),
    ],
)
def test_auto_encoder_by_observation_shape(spec: EnvSpec, kind: type):
    with torch.device("meta"):
        assert isinstance(make_encoder(spec, NetworkConfig()), kind)


def test_named_encoder_is_used_if_it_fits():
    assert isinstance(make_encoder(PROCGEN, NetworkConfig(encoder="small", features=2)), SmallEncoder)
    assert isinstance(make_encoder(MINIMAZE, NetworkConfig(encoder="impala", features=2)), ImpalaEncoder)
    with pytest.raises(InputError, match=r"--encoder is impala but gymnasium:CartPole-v1 .*accepted: small"):
        make_encoder(VECTOR, NetworkConfig(encoder="impala"))


def test_pixels_are_scaled_and_vectors_are_not():
    assert make_encoder(MINIMAZE, NetworkConfig(features=2)).is_pixels
    assert not make_encoder(VECTOR, NetworkConfig(features=2)).is_pixels
