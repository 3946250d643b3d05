"""Gumbel-max sampling, and act_in_slot."""

import torch

from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import NetworkConfig, make_policy
from expgen.rollout.collect import act_in_slot, sample
from expgen.rollout.rollout import Rollout

SPEC = EnvSpec("toy", (3,), "float32", 4)
CPU = torch.device("cpu")


def test_sampled_action_by_hand():
    logits = torch.tensor([[0.0, 0.0], [3.0, 0.0]])
    noise = torch.tensor([[0.1, 0.2], [-4.0, 0.0]])
    action, log_prob = sample(logits, noise)
    assert action.tolist() == [1, 1]
    # log ½, and log σ(−3): the log-probability does not include the noise
    torch.testing.assert_close(log_prob, torch.tensor([0.5, 0.0474258732]).log())


def test_sampled_action_frequencies_are_the_softmax():
    rollout = Rollout(SPEC, 1999, 50, 0, CPU)
    rollout.draw_noise(torch.Generator().manual_seed(0))
    noise = rollout.noise.flatten(0, 1)  # 100,000 draws
    wanted = torch.tensor([0.1, 0.2, 0.05, 0.65])
    action, _ = sample(wanted.log().expand(len(noise), -1), noise)
    frequency = torch.bincount(action, minlength=4) / len(action)
    torch.testing.assert_close(frequency, wanted, atol=0.006, rtol=0)  # four standard errors


def test_noise_is_finite_and_redrawn():
    rollout = Rollout(SPEC, 100, 10, 0, CPU)
    generator = torch.Generator().manual_seed(0)
    rollout.draw_noise(generator)
    before = rollout.noise.clone()
    rollout.draw_noise(generator)
    assert rollout.noise.isfinite().all() and not torch.equal(before, rollout.noise)
    assert abs(rollout.noise.mean().item() - 0.5772) < 0.1  # Euler's constant, the mean of a Gumbel


def test_act_in_slot_writes_only_its_slot_and_the_next_state():
    policy = make_policy(SPEC, NetworkConfig(features=8, memory="gru"), torch.Generator().manual_seed(0), CPU)
    rollout = Rollout(SPEC, 4, 5, policy.state_size, CPU)
    generator = torch.Generator().manual_seed(1)
    rollout.draw_noise(generator)
    rollout.obs.normal_(generator=generator)
    rollout.state.normal_(generator=generator)
    rollout.first[2, 3] = True
    for tensor in (rollout.value, rollout.log_prob):
        tensor.fill_(-7)
    rollout.action.fill_(-7)
    state = rollout.state.clone()

    act_in_slot(policy, rollout, torch.tensor([2]))

    with torch.no_grad():
        output = policy(rollout.obs[2:3], rollout.first[2:3], state[2])
    action = (output.logits[0] + rollout.noise[2]).argmax(-1)
    assert torch.equal(rollout.action[2], action)
    assert torch.equal(rollout.value[2], output.value[0])
    expected = output.logits[0].log_softmax(-1)[torch.arange(5), action]
    torch.testing.assert_close(rollout.log_prob[2], expected)
    assert torch.equal(rollout.state[3], output.state)
    others = [0, 1, 3, 4]
    assert all((x[others] == -7).all() for x in (rollout.value, rollout.action, rollout.log_prob))
    untouched = [0, 1, 2, 4, 5]
    assert torch.equal(rollout.state[untouched], state[untouched])
    assert not rollout.value.requires_grad and not rollout.state.requires_grad


def test_act_in_slot_resets_memory_at_episode_start():
    policy = make_policy(SPEC, NetworkConfig(features=8, memory="gru"), torch.Generator().manual_seed(0), CPU)
    rollout = Rollout(SPEC, 1, 2, policy.state_size, CPU)
    rollout.state[0, 1] = 5.0
    rollout.first[0] = True
    act_in_slot(policy, rollout, torch.tensor([0]))
    assert torch.equal(rollout.state[1, 0], rollout.state[1, 1])
