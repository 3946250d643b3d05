"""DAAC's actor: the regulariser of --augmentation by hand, what it trains, and DAAC and IDAAC with and without it."""

from math import log
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from expgen.algorithms.augment import AUGMENTATIONS, AugmentationName, augment
from expgen.algorithms.daac import DAAC, Actor, DAACConfig, daac_loss
from expgen.algorithms.idaac import IDAAC, IDAACConfig
from expgen.algorithms.protocol import Algorithm
from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import NetworkConfig, PolicyOutput
from expgen.networks.decoupled import make_decoupled
from expgen.rollout.minibatch import Minibatch, minibatches
from expgen.rollout.rollout import Rollout

SPEC = EnvSpec("toy", (5, 5, 3), "uint8", 4)
CPU = torch.device("cpu")
T, N = 4, 6
KINDS: dict[str, Any] = {"daac": (DAAC, DAACConfig), "idaac": (IDAAC, IDAACConfig)}


def generator(seed: int = 7) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make(kind: str = "daac", seed: int = 0, **settings: Any) -> Any:
    build, config = KINDS[kind]
    networks = make_decoupled(SPEC, NetworkConfig(encoder="small", features=8), generator(seed), CPU)
    return build(networks, config(**{"minibatches": 2, **settings}))


def played(seed: int = 0) -> Rollout:
    rollout, random = Rollout(SPEC, T, N, 0, CPU), generator(seed)
    rollout.obs.copy_(torch.randint(256, rollout.obs.shape, generator=random))
    rollout.action.copy_(torch.randint(4, (T + 1, N), generator=random))
    rollout.level.copy_(torch.randint(2, (T + 1, N), generator=random))
    rollout.log_prob.fill_(log(0.25))
    for tensor in (rollout.value, rollout.advantage, rollout.value_target):
        tensor.normal_(generator=random)
    return rollout


def whole(rollout: Rollout) -> Minibatch:
    return next(minibatches(rollout, rollout.advantage, 1, "shuffled", generator()))


def test_regulariser_and_its_gradient_by_hand(single: Any) -> None:
    """π(·|o) = (½, ½) and π(·|f(o)) = (¾, ¼): KL = ½ log(½ / ¾) + ½ log(½ / ¼) = ½ log(4 / 3)."""
    logits = torch.zeros(1, 1, 2, dtype=torch.float64, requires_grad=True)
    augmented = torch.tensor([[[log(3), 0.0]]], dtype=torch.float64, requires_grad=True)
    value, state, batch = torch.zeros(1, 1, dtype=torch.float64), torch.zeros(1, 0), single()
    actor = make(augmentation="crop", drac_coef=0.3).actor
    actor.policy = lambda obs, first, state: PolicyOutput(augmented, value, state)
    loss, parts = actor.loss(PolicyOutput(logits, value, state), batch, batch.obs)
    loss.backward()
    assert parts["augmentation_kl"].item() == pytest.approx(0.5 * log(4 / 3))
    assert augmented.grad.flatten().tolist() == pytest.approx([0.3 * 0.25, -0.3 * 0.25])  # α_r (π(·|f(o)) − π(·|o))

    alone = logits.detach().clone().requires_grad_()
    expected, _ = daac_loss(alone, actor.advantage_head(value, batch.action), batch, actor.config)
    expected.backward()
    assert loss.item() == pytest.approx(expected.item() + 0.3 * 0.5 * log(4 / 3))
    assert torch.equal(logits.grad, alone.grad)  # π(·|o) has no gradient from the regulariser


def test_regulariser_trains_the_policy_but_no_value() -> None:
    actor: Actor = make(augmentation="crop", drac_coef=1.0).actor
    batch = whole(played())
    output = actor.policy(batch.obs, batch.first, batch.state)
    with_it, _ = actor.loss(output, batch, actor.augmented(batch, generator()))
    without, _ = actor.loss(output, batch, None)
    named = dict(actor.policy.named_parameters()) | {"of_action": actor.advantage_head.of_action}
    gradient = torch.autograd.grad(with_it - without, list(named.values()))
    moved = {name for name, grad in zip(named, gradient, strict=True) if grad.any()}
    assert {name.partition(".")[0] for name in moved} == {"encoder", "policy_head"}


def test_augmented_observations_are_the_named_augmentations() -> None:
    assert get_args(AugmentationName) == tuple(AUGMENTATIONS)
    batch = whole(played())
    for name, augmentation in AUGMENTATIONS.items():
        found = make(augmentation=name).actor.augmented(batch, generator())
        assert torch.equal(found, augment(batch.obs, augmentation, generator())) and found.shape == batch.obs.shape


def test_without_augmentation_nothing_is_drawn_and_the_loss_is_daacs() -> None:
    algorithm, random, batch = make(), generator(), whole(played())
    before = random.get_state()
    assert algorithm.actor.augmented(batch, random) is None and torch.equal(random.get_state(), before)
    assert "augmentation_kl" not in algorithm.step(batch)


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_of_zero_takes_the_step_without_augmentation(kind: str, weights: Any) -> None:
    found: list[Tensor] = []
    for augmentation in ("none", "grayscale"):  # which draws no random numbers
        algorithm = make(kind, augmentation=augmentation, drac_coef=0.0)
        list(algorithm.update(played(), generator()))
        found.append(torch.cat([weights(algorithm.policy), weights(algorithm.value_network)]))
    assert torch.equal(*found)


@pytest.mark.parametrize("kind", KINDS)
def test_policy_learns_to_ignore_the_augmentation(kind: str) -> None:
    settings = {"augmentation": "rotate", "drac_coef": 1.0, "entropy_coef": 0.0, "advantage_coef": 0.0}
    algorithm, rollout, random = make(kind, **settings, learning_rate=1e-2, value_epochs=1), played(), generator()
    algorithm.policy.policy_head.weight.data.mul_(300)
    rollout.advantage.zero_()
    rows = [row for _ in range(30) for row in algorithm.update(rollout, random) if "augmentation_kl" in row]
    kl = torch.stack([row["augmentation_kl"] for row in rows])
    assert len(rows) == 60 and kl[-10:].mean() < 0.3 * kl[:10].mean()


@pytest.mark.parametrize("kind", KINDS)
def test_augmented_training_resumes_exactly(kind: str, check_exact_resume: Any) -> None:
    def build(seed: int) -> Algorithm:
        algorithm: Algorithm = make(kind, seed, augmentation="color-jitter", value_epochs=1)
        return algorithm

    check_exact_resume(build, [played(seed) for seed in range(3)])
