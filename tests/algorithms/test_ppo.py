"""PPO: its loss by hand, and whole updates against a plain implementation."""

from math import log

import pytest
import torch

from expgen.algorithms.ppo import PPO, PPOConfig, ppo_loss
from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import NetworkConfig, Policy, PolicyOutput, make_policy
from expgen.rollout.rollout import Rollout
from tests.batches import GivenBatch

SPEC = EnvSpec("toy", (3,), "float32", 4)
CPU = torch.device("cpu")
T, N = 5, 6


def one(number: float) -> torch.Tensor:
    return torch.full((1, 1), number, dtype=torch.float64)


def single(value: float, old_value: float, target: float) -> tuple[PolicyOutput, GivenBatch]:
    """One transition with π = (½, ½), π_old(a) = 0.4 and Â = 1."""
    output = PolicyOutput(torch.zeros(1, 1, 2, dtype=torch.float64), one(value), torch.zeros(1, 0))
    action = torch.zeros(1, 1, dtype=torch.int64)
    nothing = torch.zeros(1, 1)
    old = one(log(0.4))
    batch = GivenBatch(nothing, nothing, torch.zeros(1, 0), action, old, one(old_value), one(1.0), one(target))
    return output, batch


def test_ppo_loss_by_hand():
    """ρ = 1.25 is clipped to 1.2; the value error 1.8² counts ½ · ½; the entropy is log 2."""
    loss, parts = ppo_loss(*single(value=2, old_value=1, target=3), PPOConfig())
    assert loss.item() == pytest.approx(-1.2 + 0.5 * 0.5 * 3.24 - 0.01 * log(2))
    assert parts["policy_loss"].item() == pytest.approx(-1.2)
    assert parts["value_loss"].item() == pytest.approx(1.62)
    assert parts["entropy"].item() == pytest.approx(log(2))
    assert parts["approximate_kl"].item() == pytest.approx(0.25 - log(1.25))


def test_ppo_loss_uses_the_config_coefficients():
    config = PPOConfig(clip=0.1, value_coef=2.0, entropy_coef=0.3)
    loss, _ = ppo_loss(*single(value=2, old_value=1, target=3), config)
    assert loss.item() == pytest.approx(-1.1 + 2 * 0.5 * 1.9**2 - 0.3 * log(2))


def test_ppo_defaults_are_the_papers():
    c = PPOConfig()
    assert (c.gamma, c.gae_lambda, c.epochs, c.minibatches, c.learning_rate) == (0.999, 0.95, 3, 8, 5e-4)
    assert (c.clip, c.entropy_coef, c.value_coef, c.max_grad_norm) == (0.2, 0.01, 0.5, 0.5)
    assert (c.adam_epsilon, c.advantage_epsilon, c.minibatch_order) == (1e-5, 1e-8, "columns")


def make(memory: str = "none", seed: int = 0) -> Policy:
    config = NetworkConfig(features=8, memory=memory)  # type: ignore[arg-type]
    return make_policy(SPEC, config, torch.Generator().manual_seed(seed), CPU)


def played_rollout(policy: Policy, target_scale: float) -> Rollout:
    rollout = Rollout(SPEC, T, N, policy.state_size, CPU)
    generator = torch.Generator().manual_seed(3)
    for tensor in (rollout.obs, rollout.value, rollout.advantage, rollout.state):
        tensor.normal_(generator=generator)
    rollout.first.copy_(torch.rand(T + 1, N, generator=generator) < 0.2)
    rollout.action.copy_(torch.randint(4, (T + 1, N), generator=generator))
    rollout.log_prob.copy_(log(0.25) + 0.2 * torch.randn(T + 1, N, generator=generator))
    rollout.value_target.copy_(target_scale * torch.randn(T, N, generator=generator))
    return rollout


def plain_updates(policy: Policy, rollout: Rollout, config: PPOConfig, generator: torch.Generator) -> list[float]:
    """Update `policy` by a PPO that shares only the network's forward pass; return the gradient norms."""
    parameters = list(policy.parameters())
    first_moment = [torch.zeros_like(p) for p in parameters]
    second_moment = [torch.zeros_like(p) for p in parameters]
    advantage = rollout.advantage - rollout.advantage.sum() / (T * N)
    advantage = advantage / ((advantage.square().sum() / (T * N - 1)).sqrt() + config.advantage_epsilon)
    norms, count = [], 0
    for _ in range(config.epochs):
        order = torch.randperm(N, generator=generator)
        for begin in range(0, N, N // config.minibatches):
            env = order[begin : begin + N // config.minibatches]
            out = policy(rollout.obs[:T, env], rollout.first[:T, env], rollout.state[0, env])
            prob = torch.softmax(out.logits, -1)
            chosen = prob.gather(-1, rollout.action[:T, env, None])[..., 0]
            ratio = chosen / rollout.log_prob[:T, env].exp()
            a = advantage[:, env]
            policy_loss = -torch.min(ratio * a, ratio.clip(0.8, 1.2) * a).mean()
            old, target = rollout.value[:T, env], rollout.value_target[:, env]
            near = old + (out.value - old).clip(-0.2, 0.2)
            value_loss = torch.max((out.value - target) ** 2, (near - target) ** 2).mean()
            bonus = -(prob * prob.log()).sum(-1).mean()
            loss = policy_loss + 0.25 * value_loss - 0.01 * bonus
            gradient = torch.autograd.grad(loss, parameters)
            norm = sum(g.square().sum() for g in gradient) ** 0.5
            norms.append(float(norm))
            count += 1
            with torch.no_grad():
                for p, g, m, v in zip(parameters, gradient, first_moment, second_moment):
                    g = g * min(1.0, config.max_grad_norm / (float(norm) + 1e-6))
                    m.mul_(0.9).add_(0.1 * g)
                    v.mul_(0.999).add_(0.001 * g * g)
                    step = m / (1 - 0.9**count) / ((v / (1 - 0.999**count)).sqrt() + 1e-5)
                    p.sub_(5e-4 * step)
    return norms


@pytest.mark.parametrize("memory", ["none", "gru"])
@pytest.mark.parametrize(("target_scale", "is_clipped"), [(5.0, True), (0.1, False)])
def test_updates_match_a_plain_ppo_implementation(memory: str, target_scale: float, is_clipped: bool):
    config = PPOConfig(epochs=2, minibatches=3, max_grad_norm=0.5 if is_clipped else 50.0)
    policy, plain = make(memory), make(memory)
    rollout = played_rollout(policy, target_scale)
    start = [parameter.detach().clone() for parameter in policy.parameters()]
    ppo = PPO(policy, config)
    metrics = list(ppo.update(rollout, torch.Generator().manual_seed(7)))
    norms = plain_updates(plain, rollout, config, torch.Generator().manual_seed(7))
    assert len(metrics) == 6
    assert all((norm > config.max_grad_norm) == is_clipped for norm in norms)
    torch.testing.assert_close([float(m["grad_norm"]) for m in metrics], norms, rtol=1e-3, atol=1e-5)
    for before, got, expected in zip(start, policy.parameters(), plain.parameters()):
        torch.testing.assert_close(got - before, expected - before, rtol=2e-3, atol=2e-6)
        assert not torch.equal(before, got)


def test_memory_is_unrolled_from_the_state_at_rollout_start():
    """With log-probabilities of the same policy in the rollout, all ratios of the first minibatch are 1."""
    policy = make("gru")
    rollout = played_rollout(policy, 1.0)
    with torch.no_grad():
        output = policy(rollout.obs[:T], rollout.first[:T], rollout.state[0])
        rollout.log_prob[:T] = output.logits.log_softmax(-1).gather(-1, rollout.action[:T, :, None])[..., 0]
    rollout.state[1:].fill_(float("nan"))
    rollout.log_prob[T] = rollout.value[T] = float("nan")  # an update does not read slot T
    metrics = next(PPO(policy, PPOConfig(minibatches=2)).update(rollout, torch.Generator().manual_seed(0)))
    assert metrics["approximate_kl"].item() == pytest.approx(0, abs=1e-6)
    assert metrics["loss"].isfinite()


def test_update_yields_detached_scalar_metrics_per_minibatch():
    policy = make()
    metrics = list(PPO(policy, PPOConfig()).update(played_rollout(policy, 1.0), torch.Generator().manual_seed(0)))
    assert len(metrics) == 3 * N  # never more minibatches than environments
    names = {"loss", "policy_loss", "value_loss", "entropy", "approximate_kl", "grad_norm"}
    for row in metrics:
        assert row.keys() == names
        assert all(value.dim() == 0 and not value.requires_grad for value in row.values())
