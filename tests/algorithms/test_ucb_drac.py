"""UCB-DrAC: its two regularisers by hand, their gradients, and equality with PPO without them."""

import dataclasses
from math import e, log
from typing import Any

import pytest
import torch
from torch import Tensor

from expgen.algorithms.ppo import PPO, PPOConfig
from expgen.algorithms.ucb_drac import NAMES, UcbDrac, UcbDracConfig, drac_loss
from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import NetworkConfig, Policy, PolicyOutput, make_policy
from expgen.rollout.rollout import Rollout

SPEC = EnvSpec("toy", (5, 5, 3), "uint8", 4)
CPU = torch.device("cpu")
T, N = 4, 6


def output(prob: list[list[float]], value: list[float]) -> PolicyOutput:
    logits = torch.tensor([prob]).log().requires_grad_()
    return PolicyOutput(logits, torch.tensor([value], requires_grad=True), torch.zeros(len(value), 0))


def test_drac_regularisers_by_hand():
    """The noise forces actions 1 and 0; values are 1 and 4 against 3 and 3."""
    plain = output([[0.5, 0.5], [0.5, 0.5]], [1.0, 4.0])
    augmented = output([[0.75, 0.25], [0.8, 0.2]], [3.0, 3.0])
    noise = torch.tensor([[[0.0, 99.0], [99.0, 0.0]]])
    loss, parts = drac_loss(plain, augmented, noise)
    assert parts["drac_policy"].item() == pytest.approx(-(log(0.25) + log(0.8)) / 2)
    assert parts["drac_value"].item() == pytest.approx(0.5 * (4 + 1) / 2)
    assert loss.item() == pytest.approx(parts["drac_policy"].item() + parts["drac_value"].item())


def test_drac_gradient_reaches_only_the_augmented_output():
    plain, augmented = output([[0.5, 0.5]], [1.0]), output([[0.75, 0.25]], [3.0])
    loss, _ = drac_loss(plain, augmented, torch.tensor([[[0.0, 99.0]]]))
    loss.backward()
    assert plain.logits.grad is None and plain.value.grad is None
    torch.testing.assert_close(augmented.logits.grad, torch.tensor([[[0.75, -0.75]]]))  # π − 1{a}
    assert augmented.value.grad.item() == pytest.approx(2)  # V(f(o)) − V(o)


def test_drac_actions_are_sampled_from_the_policy():
    plain = output([[0.1, 0.9]] * 2000, [0.0] * 2000)
    augmented = output([[0.2, 0.8]] * 2000, [0.0] * 2000)
    noise = torch.empty(1, 2000, 2).exponential_(generator=torch.Generator().manual_seed(0)).log_().neg_()
    _, parts = drac_loss(plain, augmented, noise)
    assert parts["drac_policy"].item() == pytest.approx(-0.1 * log(0.2) - 0.9 * log(0.8), abs=0.03)


def make(seed: int = 0) -> Policy:
    config = NetworkConfig(encoder="small", features=8)
    return make_policy(SPEC, config, torch.Generator().manual_seed(seed), CPU)


def played(seed: int = 0) -> Rollout:
    rollout, generator = Rollout(SPEC, T, N, 0, CPU), torch.Generator().manual_seed(seed)
    rollout.obs.copy_(torch.randint(256, rollout.obs.shape, generator=generator))
    rollout.action.copy_(torch.randint(4, (T + 1, N), generator=generator))
    rollout.log_prob.fill_(log(0.25))
    for tensor in (rollout.value, rollout.advantage, rollout.value_target):
        tensor.normal_(generator=generator)
    return rollout


def updated(algorithm: PPO | UcbDrac, rollout: Rollout) -> dict[str, Tensor]:
    list(algorithm.update(rollout, torch.Generator().manual_seed(7)))
    return algorithm.policy.state_dict()


def test_ucb_drac_without_regularisers_equals_ppo():
    same = {"epochs": 1, "minibatches": 3, "minibatch_order": "shuffled", "advantage_epsilon": 1e-5}
    rollout = played()
    ppo = updated(PPO(make(), PPOConfig(**same)), rollout)
    plain = updated(UcbDrac(make(), UcbDracConfig(**same, drac_coef=0.0)), rollout)
    drac = updated(UcbDrac(make(), UcbDracConfig(**same)), rollout)
    for name in ppo:
        torch.testing.assert_close(plain[name], ppo[name])
    assert not torch.allclose(drac["encoder.linear1.weight"], ppo["encoder.linear1.weight"])


def test_updates_draw_new_gumbel_noise_for_each_minibatch():
    """With E exponential, −log E is Gumbel noise: E = exp(−noise) has mean 1 and P(E > 1) = 1/e."""
    algorithm, drawn = UcbDrac(make(), UcbDracConfig(minibatches=2)), []
    step = algorithm.step
    algorithm.step = lambda batch, obs, noise: drawn.append(noise) or step(batch, obs, noise)  # type: ignore[method-assign]
    updated(algorithm, played())
    assert [noise.shape for noise in drawn] == [(1, T * N // 2, 4)] * 6 and not torch.equal(drawn[0], drawn[1])
    exponential = torch.cat(drawn).neg().exp()  # 288 numbers
    assert exponential.mean().item() == pytest.approx(1, abs=0.15)
    assert (exponential > 1).float().mean().item() == pytest.approx(1 / e, abs=0.07)


def test_ucb_drac_makes_outputs_invariant_to_augmentation():
    """With only the regularisers (no advantage, entropy or value loss) both terms decrease."""
    config = UcbDracConfig(augmentation="rotate", drac_coef=1.0, value_coef=0.0, entropy_coef=0.0, learning_rate=1e-2)
    policy, rollout = make(), played()
    policy.policy_head.weight.data.mul_(300)
    rollout.advantage.zero_()
    algorithm, generator = UcbDrac(policy, config), torch.Generator().manual_seed(0)
    history = [metrics for _ in range(6) for metrics in algorithm.update(rollout, generator)]
    for name in ("drac_policy", "drac_value"):
        values = torch.stack([metrics[name] for metrics in history])
        assert values[-24:].mean() < 0.8 * values[:24].mean(), name


def test_bandit_is_rewarded_with_the_next_mean_return():
    algorithm, rollout = UcbDrac(make(), UcbDracConfig()), played()
    assert algorithm.choose_augmentation(rollout) == NAMES.index("crop")
    assert not algorithm.bandit.returns.any() and algorithm.bandit.total.item() == 1
    rollout.value_target.fill_(-2.0)
    assert algorithm.choose_augmentation(rollout) == NAMES.index("random-conv")
    assert algorithm.bandit.returns[0, -1].item() == pytest.approx(-2.0 * T / (T + 1))
    rollout.value_target.fill_(3.0)
    assert algorithm.choose_augmentation(rollout) == NAMES.index("random-conv")
    assert algorithm.bandit.pulls.tolist() == [2, 2, 1, 1, 1, 1, 1, 1]


def test_named_augmentation_is_always_used():
    algorithm = UcbDrac(make(), UcbDracConfig(augmentation="cutout"))
    metrics = list(algorithm.update(played(), torch.Generator().manual_seed(0)))
    assert {int(row["augmentation"]) for row in metrics} == {NAMES.index("cutout")} and len(metrics) == 24
    assert int(algorithm.bandit.arm) == -1


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_ucb_drac_resumes_exactly(memory: str, check_exact_resume: Any):
    network = NetworkConfig(features=8, memory=memory)  # type: ignore[arg-type]
    config = dataclasses.replace(UcbDracConfig(), epochs=1, minibatches=2, minibatch_order="columns")

    def build(seed: int) -> UcbDrac:
        return UcbDrac(make_policy(SPEC, network, torch.Generator().manual_seed(seed), CPU), config)

    check_exact_resume(build, [Rollout(SPEC, T, N, build(0).policy.state_size, CPU)] * 3)
