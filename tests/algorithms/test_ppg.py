"""PPG: both losses by hand, and what policy and auxiliary phases train."""

import copy
from math import log
from typing import Any

import pytest
import torch

from expgen.algorithms.policy_gradient import divergence
from expgen.algorithms.ppg import PPG, PPGConfig, auxiliary_loss, policy_phase_loss
from expgen.networks.actor_critic import PolicyOutput, forward_memoryless

EVEN = torch.zeros(1, 1, 2, dtype=torch.float64)  # logits of π = (½, ½)
SKEWED = torch.tensor([[[log(3), 0.0]]], dtype=torch.float64)  # logits of π = (¾, ¼)
KL = 0.75 * log(1.5) + 0.25 * log(0.5)  # of SKEWED from EVEN


def one(number: float) -> torch.Tensor:
    return torch.full((1, 1), number, dtype=torch.float64, requires_grad=True)


def generator(seed: int = 7) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_policy_phase_loss_by_hand(single: Any):
    """ρ = 1.25 is clipped to 1.2; V − R = 2 − 5 is not clipped; the policy's value head is not used."""
    head, value = one(100.0), one(2.0)
    loss, parts = policy_phase_loss(
        PolicyOutput(EVEN, head, torch.zeros(1, 0)), value, single(value=1.9, target=5.0), PPGConfig()
    )
    assert loss.item() == pytest.approx(-1.2 - 0.01 * log(2) + 0.5 * 9)
    assert parts["value_loss"].item() == pytest.approx(9)
    loss.backward()
    assert value.grad.item() == pytest.approx(-3) and head.grad is None


def test_auxiliary_loss_by_hand():
    config = PPGConfig(clone_coef=2.0, aux_value_coef=3.0)
    head, value, target = one(1.0), one(4.0), one(2.0)
    logits, old = EVEN.clone().requires_grad_(), SKEWED.clone().requires_grad_()
    loss, parts = auxiliary_loss(
        PolicyOutput(logits, head, torch.zeros(1, 0)), value, old.detach(), target.detach(), config
    )
    assert loss.item() == pytest.approx(0.5 * 1 + 2 * KL + 3 * 0.5 * 4)
    assert parts["clone_kl"].item() == pytest.approx(KL)
    loss.backward()
    assert head.grad.item() == pytest.approx(-1) and value.grad.item() == pytest.approx(6)
    assert logits.grad.flatten().tolist() == pytest.approx([2 * (0.5 - 0.75), 2 * (0.5 - 0.25)])  # towards π_old
    assert old.grad is None and target.grad is None


def test_divergence_is_the_mean_kl_from_the_old_policy():
    assert divergence(SKEWED, EVEN).item() == pytest.approx(KL)
    assert divergence(EVEN, SKEWED).item() != pytest.approx(KL)
    assert divergence(torch.cat([SKEWED, EVEN]), torch.cat([EVEN, EVEN])).item() == pytest.approx(KL / 2)


def test_ppg_defaults_are_the_authors():
    c = PPGConfig()
    assert (c.epochs, c.minibatches, c.policy_phases, c.aux_epochs, c.aux_columns) == (1, 8, 32, 6, 4)
    assert (c.learning_rate, c.aux_learning_rate, c.adam_epsilon) == (5e-4, 5e-4, 1e-8)
    assert (c.clip, c.entropy_coef, c.value_coef, c.clone_coef, c.aux_value_coef) == (0.2, 0.01, 0.5, 1.0, 1.0)
    assert (c.gamma, c.gae_lambda, c.minibatch_order) == (0.999, 0.95, "columns")


def test_auxiliary_phases_train_the_value_head_and_policy_phases_do_not(toy: Any, weights: Any):
    ppg = PPG(toy.networks(), PPGConfig(policy_phases=2, aux_epochs=1, minibatches=2))
    parts = (ppg.policy.encoder, ppg.policy.policy_head, ppg.policy.value_head, ppg.value_network)
    before, seen = [weights(part) for part in parts], []
    for seed in (0, 1):
        for metrics in ppg.update(toy.rollout(seed), generator(seed)):
            after = [weights(part) for part in parts]
            moved = [not torch.equal(*pair) for pair in zip(before, after)]
            kind = "policy" if "policy_loss" in metrics else "aux" if metrics else "old policy"
            if kind != "aux" or "aux" in seen:  # π = π_old at the first auxiliary step: its head has no gradient
                assert moved == {"policy": [True, True, False, True], "aux": [True] * 4}.get(kind, [False] * 4)
            seen.append(kind)
            before = after
    assert seen == ["policy"] * 4 + ["old policy"] * 3 + ["aux"] * 3  # 12 columns, 4 at a time


def test_ppg_without_auxiliary_phases_takes_only_policy_steps(toy: Any, equal: Any):
    """Equal without auxiliary phases and with a history that is not yet full."""
    never, not_yet = PPG(toy.networks(), PPGConfig(aux_epochs=0)), PPG(toy.networks(), PPGConfig(policy_phases=9))
    bare = PPG(toy.networks(), PPGConfig())
    for seed in range(3):
        rollout = toy.rollout(seed)
        steps = [len(list(ppg.update(rollout, generator(seed)))) for ppg in (never, not_yet)]
        assert steps == [toy.num_envs] * 2
        advantage = (rollout.advantage - rollout.advantage.mean()) / (rollout.advantage.std() + 1e-8)
        for env in torch.randperm(toy.num_envs, generator=generator(seed)).split(1):
            T, parameters = toy.num_steps, bare.descent.parameters
            logits = bare.policy(rollout.obs[:T, env], rollout.first[:T, env], torch.zeros(1, 0)).logits
            chosen = logits.softmax(-1).gather(-1, rollout.action[:T, env, None])[..., 0]
            ratio, a = chosen / rollout.log_prob[:T, env].exp(), advantage[:, env]
            error = bare.value_network(rollout.obs[:T, env]) - rollout.value_target[:, env]
            bonus = -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean()
            loss = -torch.min(ratio * a, ratio.clip(0.8, 1.2) * a).mean() - 0.01 * bonus + 0.5 * (error**2).mean()
            bare.descent.adam.zero_grad()
            for p, g in zip(parameters, torch.autograd.grad(loss, parameters, allow_unused=True)):
                p.grad = g
            bare.descent.adam.step()
    assert never.history.count == 0 and not_yet.history.count == 3
    states = [{n: t for n, t in ppg.state().items() if not n.startswith("history")} for ppg in (never, not_yet, bare)]
    assert equal(states[0], states[1])
    for name in states[0]:
        torch.testing.assert_close(states[0][name], states[2][name], rtol=1e-3, atol=2e-5)


def test_auxiliary_phase_fits_the_value_head_and_keeps_the_policy(toy: Any):
    ppg = PPG(toy.networks(), PPGConfig(policy_phases=2, aux_epochs=60, aux_learning_rate=3e-3, minibatches=2))
    list(ppg.update(toy.rollout(0), generator(0)))
    metrics = [row for row in ppg.update(toy.rollout(1), generator(1)) if "aux_loss" in row]
    head = [row["aux_head_loss"].item() for row in metrics]
    assert metrics[0]["clone_kl"].item() == pytest.approx(0, abs=1e-6)
    assert sum(head[-9:]) < 0.7 * sum(head[:9])
    assert max(row["clone_kl"].item() for row in metrics[-9:]) < 0.02
    assert ppg.history.count == 0


def test_auxiliary_steps_compare_with_the_policy_before_the_phase(toy: Any):
    ppg, calls = PPG(toy.networks(), PPGConfig(policy_phases=2, aux_epochs=2, aux_learning_rate=0.1)), []
    step = ppg.auxiliary_step
    ppg.auxiliary_step = lambda obs, old, target: calls.append((obs, old)) or step(obs, old, target)  # type: ignore[method-assign]
    list(ppg.update(toy.rollout(0), generator(0)))
    update = ppg.update(toy.rollout(1), generator(1))
    while next(update):  # no metrics while π_old is computed
        pass
    before = copy.deepcopy(ppg.policy)
    list(update)
    assert len(calls) == 6
    for obs, old in calls:
        torch.testing.assert_close(old, forward_memoryless(before, obs).logits)
        assert not torch.allclose(old, forward_memoryless(ppg.policy, obs).logits, atol=1e-3)


def test_auxiliary_epoch_uses_every_column_once(toy: Any):
    ppg, columns = PPG(toy.networks(), PPGConfig(policy_phases=3, aux_epochs=2, aux_columns=5)), []
    step = ppg.auxiliary_step
    ppg.auxiliary_step = lambda obs, old, target: columns.append(target[:, 0].long()) or step(obs, old, target)  # type: ignore[method-assign]
    for seed in range(3):
        rollout = toy.rollout(seed)
        rollout.value_target.copy_(torch.arange(toy.num_envs) + seed * toy.num_envs)  # the column's index
        list(ppg.update(rollout, generator(seed)))
    assert [len(column) for column in columns] == [5, 5, 5, 3] * 2
    for epoch in (columns[:4], columns[4:]):
        assert torch.cat(epoch).sort().values.tolist() == list(range(3 * toy.num_envs))
    assert not torch.equal(torch.cat(columns[:4]), torch.cat(columns[4:]))


def test_auxiliary_targets_are_those_of_collection_time(toy: Any):
    """The rollout is overwritten by the next one; the history keeps a copy."""
    ppg, rollout = PPG(toy.networks(), PPGConfig(policy_phases=2, aux_epochs=1)), toy.rollout(0)
    kept = rollout.value_target.clone(), rollout.obs[: toy.num_steps].clone()
    list(ppg.update(rollout, generator()))
    rollout.value_target.fill_(torch.nan)
    rollout.obs.fill_(torch.nan)
    assert torch.equal(ppg.history.value_target[0], kept[0]) and torch.equal(ppg.history.obs[0], kept[1])
