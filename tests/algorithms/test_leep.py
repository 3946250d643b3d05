"""LEEP: its loss by hand, what each member learns from, equality with PPO for one subset, and the level subsets."""

import dataclasses
from math import log
from typing import Any

import numpy as np
import pytest
import torch

from expgen.algorithms.leep import Leep, LeepConfig, SubsetLevels, leep_loss, level_subsets
from expgen.algorithms.ppo import PPO, PPOConfig, ppo_loss
from expgen.algorithms.recipes import build_algorithm, recipe_of
from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, PolicyOutput, make_policy, policies_in
from expgen.networks.joint import JointPolicy
from expgen.rollout.minibatch import Minibatch
from tests.algorithms.conftest import Toy
from tests.batches import GivenBatch

SPEC = Toy.spec
CPU = torch.device("cpu")
NETWORK = NetworkConfig(features=8)


def make(seed: int = 0, **changes: object) -> Leep:
    config = dataclasses.replace(LeepConfig(), **{"minibatches": 2, "epochs": 2, "subsets": 3, **changes})  # type: ignore[arg-type]
    algorithm = build_algorithm(recipe_of("leep"), SPEC, NETWORK, config, seed, CPU)
    assert isinstance(algorithm, Leep)
    return algorithm


def batch_of(num_actions: int) -> tuple[PolicyOutput, GivenBatch]:
    """Return one transition with a uniform π = π_old and zero advantage."""
    zero, nothing = torch.zeros(1, 1), torch.zeros(1, 0)
    output = PolicyOutput(torch.zeros(1, 1, num_actions, requires_grad=True), zero, nothing)
    action, log_prob = torch.zeros(1, 1, dtype=torch.int64), torch.full((1, 1), -log(num_actions))
    return output, GivenBatch(zero, zero, nothing, action, log_prob, zero, zero, zero)


@pytest.mark.parametrize(
    ("direction", "kl"),
    [  # π = (½, ½), others' maximum (.8, .1): π̄ = (.8, .5) / 1.3
        ("to-joint", 0.5 * log(0.5 * 1.3 / 0.8) + 0.5 * log(0.5 * 1.3 / 0.5)),
        ("from-joint", 0.8 / 1.3 * log(0.8 / 1.3 / 0.5) + 0.5 / 1.3 * log(0.5 / 1.3 / 0.5)),
    ],
)
def test_leep_penalty_by_hand(direction: str, kl: float):
    output, batch = batch_of(2)
    others = torch.tensor([[[0.8, 0.1]]]).log()
    config = LeepConfig(kl_coef=3.0, kl_direction=direction)  # type: ignore[arg-type]
    loss, parts = leep_loss(output, batch, others, config)
    ppo, _ = ppo_loss(output, batch, config)
    assert parts["joint_kl"].item() == pytest.approx(kl) and kl > 0
    assert loss.item() == pytest.approx(ppo.item() + 3 * kl)


@pytest.mark.parametrize("direction", ["to-joint", "from-joint"])
def test_leep_loss_has_no_gradient_through_the_joint_policy(direction: str):
    """∂/∂z of Σ π log π/π̄ with π̄ fixed: π_k (log π_k/π̄_k − KL); of Σ π̄ log π̄/π: π_k − π̄_k. π as above."""
    output, batch = batch_of(2)
    others = torch.tensor([[[0.8, 0.1]]]).log().requires_grad_()
    config = LeepConfig(entropy_coef=0.0, kl_direction=direction)  # type: ignore[arg-type]
    loss, parts = leep_loss(output, batch, others.detach(), config)
    loss.backward()
    joint = torch.tensor([0.8, 0.5]) / 1.3
    if direction == "to-joint":
        expected = 0.5 * ((0.5 / joint).log() - parts["joint_kl"])
    else:
        expected = 0.5 - joint
    torch.testing.assert_close(output.logits.grad.flatten(), expected)


def test_log_max_of_others_by_hand(toy: Any):
    algorithm, rollout = make(), toy.rollout()
    batch = Minibatch(rollout, rollout.advantage, torch.arange(7), "shuffled")
    best = algorithm.log_max_of_others(0, batch)
    probs = [torch.softmax(member(batch.obs, batch.first, batch.state).logits[0], -1) for member in algorithm.members]
    torch.testing.assert_close(best.exp(), torch.maximum(probs[1], probs[2]))
    assert not best.requires_grad
    assert (make(subsets=1).log_max_of_others(0, batch) == -torch.inf).all()


@pytest.mark.parametrize("own", [0, 1, 2])
def test_update_member_uses_only_its_own_environments(toy: Any, own: int):
    rollout = toy.rollout()
    one, other = make(), make()
    list(one.update_member(own, rollout, torch.Generator().manual_seed(0)))
    fresh = make()
    for index, member in enumerate(one.members):
        same = all(torch.equal(a, b) for a, b in zip(member.parameters(), fresh.members[index].parameters()))
        assert same == (index != own)
        assert all((parameter.grad is None) == (index != own) for parameter in member.parameters())
    of_others = torch.arange(toy.num_envs) // 2 != own
    for tensor in (rollout.obs, rollout.advantage, rollout.value_target):
        tensor[:, of_others] = torch.nan
    list(other.update_member(own, rollout, torch.Generator().manual_seed(0)))
    for a, b in zip(one.members[own].parameters(), other.members[own].parameters()):
        assert torch.equal(a, b)


def test_kl_penalty_brings_members_closer(toy: Any):
    def spread(coef: float) -> float:
        algorithm, rollout, generator = (
            make(kl_coef=coef, entropy_coef=0.0, learning_rate=5e-3),
            toy.rollout(),
            torch.Generator(),
        )
        for member in algorithm.members:
            member.policy_head.weight.data.mul_(200)
        rollout.advantage.zero_()
        for _ in range(10):
            metrics = list(algorithm.update(rollout, generator))
        return float(torch.stack([row["joint_kl"] for row in metrics]).mean())

    assert spread(10.0) < 0.5 * spread(0.0)


@pytest.mark.parametrize("order", ["shuffled", "columns"])
@pytest.mark.parametrize("direction", ["to-joint", "from-joint"])
def test_leep_with_one_subset_equals_ppo(toy: Any, order: str, direction: str):
    same = {"minibatches": 3, "epochs": 2, "minibatch_order": order}
    ppo = PPO(make_policy(SPEC, NETWORK, torch.Generator().manual_seed(0), CPU), PPOConfig(**same))  # type: ignore[arg-type]
    leep = make(**same, subsets=1, kl_direction=direction)
    rollout = toy.rollout()
    metrics = [
        [row["loss"].item() for row in one.update(rollout, torch.Generator().manual_seed(5))] for one in (ppo, leep)
    ]
    assert metrics[1] == pytest.approx(metrics[0], rel=1e-4, abs=1e-6) and len(metrics[0]) == 6
    for a, b in zip(ppo.policy.parameters(), leep.members[0].parameters(), strict=True):
        torch.testing.assert_close(b, a, atol=1e-5, rtol=1e-4)


def test_leep_resumes_exactly(toy: Any, check_exact_resume: Any):
    saved = check_exact_resume(make, [toy.rollout(seed) for seed in range(3)]).state()
    for of_the_last in ("adam.2.", "policy.members.2."):
        assert any(name.startswith(of_the_last) for name in saved)


def test_leep_updates_a_joint_policy_once_per_minibatch(toy: Any):
    algorithm = make()
    assert isinstance(algorithm.policy, JointPolicy) and len(policies_in(algorithm.policy)) == 3
    assert len(list(algorithm.update(toy.rollout(), torch.Generator().manual_seed(0)))) == 3 * 2 * 2


LEVELS = LevelSet.parse("50:200")


def test_bootstrap_subsets_have_as_many_levels_as_the_set():
    config = LeepConfig()
    subsets = level_subsets(config, LEVELS, seed=0)
    assert len(subsets) == 4 and all(len(subset) == 200 for subset in subsets)
    assert all(set(subset) <= set(range(50, 250)) for subset in subsets)
    share = [len(set(subset)) / 200 for subset in subsets]  # 1 − 1/e on average
    assert all(0.55 < one < 0.72 for one in share)
    assert len(set(subsets)) == 4 and subsets == level_subsets(config, LEVELS, 0) != level_subsets(config, LEVELS, 1)


def test_leep_level_subsets_disjoint_or_all():
    parts = level_subsets(LeepConfig(subset_levels="disjoint"), LEVELS, 0)
    assert [len(part) for part in parts] == [50] * 4 and sorted(sum(parts, ())) == list(range(50, 250))
    assert level_subsets(LeepConfig(subset_levels="all"), LEVELS, 0) == [tuple(range(50, 250))] * 4


def test_environments_play_levels_in_proportion_to_their_member_subset():
    config = LeepConfig(subsets=2)
    chooser = SubsetLevels(config, LevelSet.parse(6), num_envs=4, seed=1)
    drawn = np.stack([chooser.choose(np.arange(4)) for _ in range(1500)])  # [1500, N]
    for env, member in enumerate([0, 0, 1, 1]):
        expected = np.bincount(chooser.subset[member], minlength=6) / 6
        np.testing.assert_allclose(np.bincount(drawn[:, env], minlength=6) / 1500, expected, atol=0.05)
    assert not np.array_equal(drawn[:, 0], drawn[:, 1])
    other = SubsetLevels(config, LevelSet.parse(6), num_envs=4, seed=1)
    other.load_state(chooser.state())
    env = np.array([1, 3])
    assert other.choose(env).tolist() == chooser.choose(env).tolist()


def test_leep_rejects_indivisible_envs_and_too_few_levels():
    with pytest.raises(InputError, match=r"--envs is 6; accepted: a multiple of --subsets \(4\)"):
        SubsetLevels(LeepConfig(), LEVELS, 6, 0)
    with pytest.raises(InputError, match=r"accepted for --algo leep: a finite set of at least --subsets \(4\)"):
        SubsetLevels(LeepConfig(), LevelSet.parse(3), 8, 0)
    with pytest.raises(InputError, match="accepted for --algo leep: a finite set"):
        SubsetLevels(LeepConfig(), LevelSet.parse("all"), 8, 0)
