"""The kernels compute the module: outputs and every gradient, whole encoder and part by part."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.algorithms.augment import AUGMENTATIONS, augment
from expgen.networks.impala import ImpalaEncoder

pytest.importorskip("triton", reason="needs Triton")

from expgen.fast.kernels.conv3x3 import conv3x3, weight_gradient
from expgen.fast.kernels.impala_encoder import FusedImpala, can_fuse
from expgen.fast.kernels.pool import max_pool, max_pool_gradient

HAS_GPU = torch.cuda.is_available()
DEVICE = "cuda" if HAS_GPU else "cpu"
DTYPE = torch.bfloat16 if HAS_GPU else torch.float32
TOLERANCE = 0.05 if HAS_GPU else 1e-5  # of the norm


def encoder(side: int = 16, features: int = 32, is_pooled: bool = False) -> ImpalaEncoder:
    module = ImpalaEncoder((side, side, 3), features, is_pooled=is_pooled)
    module.initialise(torch.Generator().manual_seed(0))
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            part.bias.data.uniform_(-0.2, 0.2, generator=torch.Generator().manual_seed(1))
    return module.to(DEVICE, memory_format=torch.channels_last)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, DTYPE)


def pictures(batch: int, side: int = 16) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randint(0, 256, (batch, side, side, 3), dtype=torch.uint8, generator=generator).to(DEVICE)


def assert_near(found: Tensor, exact: Tensor) -> None:
    assert found.shape == exact.shape
    assert (found.float() - exact.float()).norm() <= TOLERANCE * exact.float().norm()


def nchw(x: Tensor) -> Tensor:
    return x.permute(0, 3, 1, 2).float()


@pytest.mark.parametrize("is_pooled", [False, True])
def test_the_encoder_and_all_its_gradients(is_pooled: bool):
    module, obs = encoder(is_pooled=is_pooled), pictures(3)
    weight = torch.randn(3, 32, generator=torch.Generator().manual_seed(3)).to(DEVICE)
    plain, fused = module(obs), FusedImpala(module, DTYPE)(obs)
    assert_near(fused, plain)
    parameters = dict(module.named_parameters())
    exact = torch.autograd.grad((plain * weight).sum(), list(parameters.values()))
    found = torch.autograd.grad((fused * weight).sum(), list(parameters.values()))
    for name, gradient, reference in zip(parameters, found, exact, strict=True):
        assert reference.norm() > 0, name
        if HAS_GPU:  # a ReLU that bf16 switches moves a gradient by more than rounding does
            assert F.cosine_similarity(gradient.flatten(), reference.flatten(), 0) > 0.97, name
        else:
            assert_near(gradient, reference)


@pytest.mark.parametrize("augmentation", ["random-conv", "color-jitter"])
def test_augmented_pictures_are_read_as_the_floats_they_are(augmentation: str):
    """UCB-DrAC's pictures: fractions between bytes, and numbers outside 0..255."""
    module, generator = encoder(), torch.Generator(DEVICE).manual_seed(4)
    obs = augment(pictures(3), AUGMENTATIONS[augmentation], generator)
    assert obs.dtype == torch.float32 and (obs != obs.round()).any()
    weight, first = noise(3, 32, seed=5).float(), module.stages[0].conv
    plain, fused = module(obs), FusedImpala(module, DTYPE)(obs)
    assert_near(fused, plain)
    exact, found = (torch.autograd.grad((y * weight).sum(), [first.weight, first.bias]) for y in (plain, fused))
    for gradient, reference in zip(found, exact, strict=True):
        assert F.cosine_similarity(gradient.flatten(), reference.flatten(), 0) > (0.97 if HAS_GPU else 0.99999)


def test_the_encoder_follows_its_weights():
    module, obs = encoder(), pictures(2)
    fused = FusedImpala(module, DTYPE)
    before = fused(obs).detach().clone()
    with torch.no_grad():
        module.stages[1].block1.conv1.weight.mul_(-2)
    assert not torch.allclose(fused(obs), before)
    assert_near(fused(obs), module(obs))


@pytest.mark.parametrize("batch", [1, 5])
def test_a_batch_need_not_fill_a_block(batch: int):
    module, obs = encoder(8), pictures(batch, 8)
    assert_near(FusedImpala(module, DTYPE)(obs), module(obs))


def test_a_convolution_with_all_that_can_follow_it():
    x, skip, mask = noise(2, 8, 8, 16), noise(2, 8, 8, 32, seed=1), noise(2, 8, 8, 32, seed=2)
    weight, bias = noise(32, 16, 3, 3, seed=3), noise(32, seed=4).float()
    exact = F.relu(F.conv2d(F.relu(nchw(x)), weight.float(), bias, padding=1)).permute(0, 2, 3, 1)
    exact = exact * (mask > 0) + skip
    packed = weight.permute(2, 3, 1, 0).contiguous()
    assert_near(conv3x3(x, packed, 32, bias, mask, skip, relu_in=True, relu_out=True), exact)


@pytest.mark.parametrize("relu_in", [False, True])
@pytest.mark.parametrize("parts", [1, 3, 100])
def test_a_weight_gradient_does_not_depend_on_its_parts(relu_in: bool, parts: int):
    x, dy = noise(2, 8, 8, 16), noise(2, 8, 8, 32, seed=1)
    weight = torch.zeros(32, 16, 3, 3, device=DEVICE, requires_grad=True)
    bias = torch.zeros(32, device=DEVICE, requires_grad=True)
    seen = F.relu(nchw(x)) if relu_in else nchw(x)
    (F.conv2d(seen, weight, bias, padding=1) * nchw(dy)).sum().backward()
    found = weight_gradient(x, dy, relu_in, parts=parts)
    assert_near(found[:-32].view(32, 3, 3, 16).permute(0, 3, 1, 2), weight.grad)
    assert_near(found[-32:], bias.grad)


def test_max_pool_and_its_gradient():
    x, dy = noise(2, 8, 8, 16), noise(2, 4, 4, 16, seed=1)
    plain = nchw(x).requires_grad_()
    pooled = F.max_pool2d(plain, 3, stride=2, padding=1)
    (pooled * nchw(dy)).sum().backward()
    found, winner = max_pool(x)
    assert_near(found, pooled.permute(0, 2, 3, 1))
    assert int(winner.max()) <= 8
    assert_near(max_pool_gradient(dy, winner), plain.grad.permute(0, 2, 3, 1))


def test_which_encoders_the_kernels_compute():
    assert can_fuse(encoder())
    assert not can_fuse(ImpalaEncoder((16, 16, 3), 8, width=2))
    assert not can_fuse(ImpalaEncoder((12, 12, 3), 8))  # sides that do not halve three times
    assert not can_fuse(ImpalaEncoder((16, 16, 4), 8))  # other colours
    assert not can_fuse(nn.Linear(2, 2))
