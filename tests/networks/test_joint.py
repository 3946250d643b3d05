"""JointPolicy: members act in their own environments in training, their normalised maximum in evaluation."""

import pytest
import torch

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, policies_in
from expgen.networks.joint import JointPolicy, log_max_policy
from expgen.networks.plain_copy import plain_copy

SPEC = EnvSpec("toy", (3,), "float32", 4)


def make(num_members: int = 3) -> JointPolicy:
    policy = JointPolicy(SPEC, NetworkConfig(features=8), num_members)
    policy.initialise(torch.Generator().manual_seed(0))
    for member in policies_in(policy):
        member.policy_head.weight.data.mul_(100)  # far from uniform
    return policy


def test_joint_policy_maximum_by_hand():
    """π₁ = (.7, .2, .1), π₂ = (.1, .6, .3): the maximum (.7, .6, .3) sums to 1.6."""
    prob = torch.tensor([[[0.7, 0.2, 0.1]], [[0.1, 0.6, 0.3]]])
    expected = torch.tensor([[0.7, 0.6, 0.3]]) / 1.6
    torch.testing.assert_close(log_max_policy(prob.log() + 5).exp(), expected)  # logits, up to a constant
    torch.testing.assert_close(log_max_policy(prob[:1].log()).exp(), prob[0])


def test_joint_policy_splits_environments_among_members_in_training():
    policy = make()
    obs, first, state = torch.randn(2, 6, 3), torch.zeros(2, 6, dtype=torch.bool), torch.zeros(6, 0)
    output = policy(obs, first, state)
    for index, member in enumerate(policies_in(policy)):
        columns = slice(2 * index, 2 * index + 2)
        alone = member(obs[:, columns], first[:, columns], state[columns])
        torch.testing.assert_close(output.logits[:, columns], alone.logits)
        torch.testing.assert_close(output.value[:, columns], alone.value)


def test_joint_policy_plays_the_maximum_in_evaluation():
    policy = make().eval()
    obs, first, state = torch.randn(2, 5, 3), torch.zeros(2, 5, dtype=torch.bool), torch.zeros(5, 0)
    output = policy(obs, first, state)
    outputs = [member(obs, first, state) for member in policies_in(policy)]
    prob = torch.stack([torch.softmax(one.logits, -1) for one in outputs]).amax(0)
    torch.testing.assert_close(torch.softmax(output.logits, -1), prob / prob.sum(-1, keepdim=True))
    torch.testing.assert_close(output.value, torch.stack([one.value for one in outputs]).mean(0))
    assert not torch.allclose(output.logits, make()(obs[:, :3], first[:, :3], state[:3]).logits.repeat(1, 2, 1)[:, :5])


def test_joint_policy_members_differ_and_plain_copy_is_joint():
    policy = make(2)
    one, two = policies_in(policy)
    assert not torch.equal(one.policy_head.weight, two.policy_head.weight)
    copied = plain_copy(policy)  # type: ignore[arg-type]
    assert not copied.training and policy.training
    assert all(part.encode.__self__ is part.encoder for part in policies_in(copied))  # type: ignore[attr-defined]


def test_joint_policy_rejects_memory():
    with pytest.raises(InputError, match="--memory is gru but joint policies have none; accepted: none"):
        JointPolicy(SPEC, NetworkConfig(memory="gru"), 2)
