"""The IMPALA kernels compared with the module: outputs and gradients, of each kernel and of the whole encoder.

Without a GPU the kernels are emulated on the CPU.
"""

import shutil
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.algorithms.augment import AUGMENTATIONS, augment
from expgen.fast.kernels.cuda_module import cuda_module, kernel_names, read_source
from expgen.fast.kernels.impala_encoder import FusedImpala, can_fuse, is_supported_gpu
from expgen.fast.kernels.impala_kernels import ImpalaKernels, Launcher
from expgen.fast.kernels.impala_weights import Packed, WeightPacking
from expgen.networks.impala import ImpalaEncoder
from tests.fast.kernels.emulated import EmulatedKernels

DEVICE = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
TOLERANCE = 0.006  # of the norm: results are rounded to bfloat16, which has 8 bits


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Launcher:
    if is_supported_gpu(DEVICE):
        return cuda_module(DEVICE)
    if DEVICE.type == "cuda" or shutil.which("g++") is None:
        pytest.skip("needs a GPU with bfloat16 and NVRTC, or g++ to emulate one")
    return EmulatedKernels(tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def kernels(launcher: Launcher) -> ImpalaKernels:
    return ImpalaKernels(launcher)


def encoder(features: int = 32, is_pooled: bool = False) -> ImpalaEncoder:
    module = ImpalaEncoder((64, 64, 3), features, is_pooled=is_pooled)
    module.initialise(torch.Generator().manual_seed(0))
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            part.bias.data.uniform_(-0.2, 0.2, generator=torch.Generator().manual_seed(1))
    return module.to(DEVICE, memory_format=torch.channels_last)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, torch.bfloat16)


def images(batch: int) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randint(0, 256, (batch, 64, 64, 3), dtype=torch.uint8, generator=generator).to(DEVICE)


def convolutions(*sizes: tuple[int, int]) -> tuple[list[nn.Conv2d], tuple[Packed, ...]]:
    """Return convolutions of (inputs, outputs) with bfloat16 weights, and their packed weights.

    Packing treats every five convolutions as a stage, so the first of `sizes` is a pooled convolution.
    """
    convs = []
    for number, (inputs, outputs) in enumerate(sizes):
        conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        conv.weight.data = noise(*conv.weight.shape, seed=10 + number).float() / (9 * inputs) ** 0.5
        conv.weight.data = conv.weight.data.bfloat16().float()
        conv.bias.data = noise(outputs, seed=20 + number).float()  # type: ignore[union-attr]
        convs.append(conv.to(DEVICE))
    return convs, WeightPacking(convs)()


def block(channels: int) -> tuple[nn.Conv2d, nn.Conv2d, Packed, Packed]:
    convs, packed = convolutions((channels, channels), (channels, channels), (channels, channels))
    return convs[1], convs[2], packed[1], packed[2]


def nchw(x: Tensor) -> Tensor:
    return x.permute(0, 3, 1, 2).float().detach().clone()


def nhwc(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1)


def assert_near(found: Tensor, exact: Tensor, tolerance: float = TOLERANCE) -> None:
    assert found.shape == exact.shape
    assert (found.float() - exact.float()).norm() <= tolerance * exact.float().norm()


def assert_weight_gradients(sums: Tensor, convs: list[nn.Conv2d]) -> None:
    """`sums` holds [outputs, 3, 3, inputs] and [outputs] of each convolution, flat and concatenated."""
    for conv in convs:
        weight, bias = conv.weight.grad, conv.bias.grad  # type: ignore[union-attr]
        assert_near(sums[: weight.numel()], nhwc(weight).flatten())
        assert_near(sums[weight.numel() :][: len(bias)], bias)
        sums = sums[weight.numel() + len(bias) :]
    assert len(sums) == 0


SHAPES = [(32, 16, 3), (16, 32, 3), (8, 32, 6), (8, 32, 1)]  # side, channels, batch; 1 does not fill a block


@pytest.mark.parametrize(("side", "channels", "batch"), SHAPES)
def test_residual_block_matches_the_module(kernels: ImpalaKernels, side: int, channels: int, batch: int):
    conv1, conv2, one, two = block(channels)
    x = noise(batch, side, side, channels)
    exact_hidden = F.relu(conv1(F.relu(nchw(x))))
    y, hidden = kernels.block(x, one, two, keep=True)
    assert_near(hidden, nhwc(exact_hidden))
    assert_near(y, nhwc(nchw(x) + conv2(nchw(hidden))))
    without, nothing = kernels.block(x, one, two, keep=False)
    assert torch.equal(without, y) and nothing is None


@pytest.mark.parametrize(("side", "channels", "batch"), SHAPES)
def test_residual_block_gradient_matches_autograd(kernels: ImpalaKernels, side: int, channels: int, batch: int):
    conv1, conv2, one, two = block(channels)
    x, dy = noise(batch, side, side, channels), noise(batch, side, side, channels, seed=1)
    _, hidden = kernels.block(x, one, two, keep=True)
    dx, d_hidden = kernels.block_gradient(dy, x, hidden, one, two)
    before = nchw(hidden).requires_grad_()
    (conv2(before) * nchw(dy)).sum().backward()
    assert_near(d_hidden, nhwc(before.grad) * (hidden > 0))
    seen = nchw(x).requires_grad_()
    (conv1(F.relu(seen)) * nchw(d_hidden)).sum().backward()
    assert_near(dx, dy.float() + nhwc(seen.grad))


@pytest.mark.parametrize("parts", [1, 2, 9])
@pytest.mark.parametrize(("side", "channels", "batch"), SHAPES)
def test_residual_block_weight_gradient_matches_autograd(
    kernels: ImpalaKernels, side: int, channels: int, batch: int, parts: int
):
    conv1, conv2, *_ = block(channels)
    x, d_hidden = noise(batch, side, side, channels), noise(batch, side, side, channels, seed=1)
    hidden, dy = noise(batch, side, side, channels, seed=2).relu(), noise(batch, side, side, channels, seed=3)
    (conv1(F.relu(nchw(x))) * nchw(d_hidden)).sum().backward()
    (conv2(nchw(hidden)) * nchw(dy)).sum().backward()
    partial = torch.full((parts, 2 * (9 * channels + 1) * channels + 5), torch.nan, device=DEVICE)
    kernels.block_weight_gradient(x, d_hidden, hidden, dy, partial)
    assert_weight_gradients(partial[:, :-5].sum(0), [conv1, conv2])
    assert partial[:, -5:].isnan().all()  # another convolution's


@pytest.mark.parametrize(("side", "inputs", "batch"), [(32, 16, 2), (16, 32, 3)])
def test_pooled_convolution_and_gradients_match_the_module(kernels: ImpalaKernels, side: int, inputs: int, batch: int):
    (conv,), (packed,) = convolutions((inputs, 32))
    x, dy = noise(batch, side, side, inputs), noise(batch, side // 2, side // 2, 32, seed=1)
    y, winner = kernels.pooled(x, packed, keep=True)
    before = nchw(x).requires_grad_()
    exact, index = F.max_pool2d(conv(before), 3, stride=2, padding=1, return_indices=True)
    assert_near(y, nhwc(exact))
    assert winner is not None
    assert (winner == nhwc(window_positions(index, side))).float().mean() > 0.9999
    (exact * nchw(dy)).sum().backward()
    assert_near(kernels.pooled_gradient(dy, winner, packed), nhwc(before.grad))
    partial = torch.empty(2, (9 * inputs + 1) * 32, device=DEVICE)
    kernels.pooled_weight_gradient(x, dy, winner, partial)
    assert_weight_gradients(partial.sum(0), [conv])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_stem_and_gradient_match_the_module(kernels: ImpalaKernels, dtype: torch.dtype):
    (conv,), (packed,) = convolutions((3, 16))
    obs, dy = images(2).to(dtype), noise(2, 32, 32, 16, seed=1)
    y, winner = kernels.stem(obs, packed, keep=True)
    exact, index = F.max_pool2d(conv(nchw(obs) / 255), 3, stride=2, padding=1, return_indices=True)
    assert_near(y, nhwc(exact))
    assert winner is not None
    assert (winner == nhwc(window_positions(index, 64))).float().mean() > 0.9999
    (exact * nchw(dy)).sum().backward()
    assert_weight_gradients(kernels.stem_weight_gradient(obs, dy, winner), [conv])


def test_first_of_equal_maxima_wins_as_in_max_pool2d(kernels: ImpalaKernels):
    """With one colour everywhere, all sums away from the border are equal."""
    _, (packed,) = convolutions((3, 16))
    obs = torch.full((1, 64, 64, 3), 100, dtype=torch.uint8, device=DEVICE)
    _, winner = kernels.stem(obs, packed, keep=True)
    assert winner is not None and (winner[:, 1:-1, 1:-1] == 0).all()


def window_positions(index: Tensor, side: int) -> Tensor:
    """Return the position 0 to 8 in its 3×3 window of each maximum, from the index that `max_pool2d` returns."""
    top = 2 * torch.arange(index.shape[2], device=index.device)[:, None] - 1
    left = 2 * torch.arange(index.shape[3], device=index.device) - 1
    return (index // side - top) * 3 + index % side - left


@pytest.mark.parametrize("is_pooled", [False, True])
def test_fused_encoder_and_all_gradients_match_the_module(launcher: Launcher, is_pooled: bool):
    module, obs = encoder(is_pooled=is_pooled), images(3)
    weight = torch.randn(3, 32, generator=torch.Generator().manual_seed(3)).to(DEVICE)
    parameters = dict(module.named_parameters())

    def run(encode: Callable[[Tensor], Tensor], is_bfloat16: bool = False) -> list[Tensor]:
        module.is_bfloat16 = is_bfloat16
        out = encode(obs)
        return [out.detach(), *torch.autograd.grad((out * weight).sum(), list(parameters.values()))]

    exact = run(module.forward)
    library, found = run(module.forward, is_bfloat16=True), run(FusedImpala(module, launcher))
    for name, ours, theirs, reference in zip(["output", *parameters], found, library, exact, strict=True):
        assert ours.shape == reference.shape and reference.norm() > 0, name
        # where bfloat16 switches a ReLU, gradients change by more than rounding, in PyTorch too
        assert (ours - reference).norm() <= 1.5 * (theirs - reference).norm() + 0.001 * reference.norm(), name


@pytest.mark.parametrize("augmentation", ["random-conv", "color-jitter"])
def test_fused_encoder_reads_float_images(launcher: Launcher, augmentation: str):
    """UCB-DrAC's augmented images have fractions and values outside 0 to 255."""
    module, generator = encoder(), torch.Generator(DEVICE).manual_seed(4)
    obs = augment(images(3), AUGMENTATIONS[augmentation], generator)
    assert obs.dtype == torch.float32 and (obs != obs.round()).any()
    weight, first = noise(3, 32, seed=5).float(), module.stages[0].conv
    plain, fused = module(obs), FusedImpala(module, launcher)(obs)
    assert_near(fused, plain, 0.05)
    exact, found = (torch.autograd.grad((y * weight).sum(), [first.weight, first.bias]) for y in (plain, fused))
    for gradient, reference in zip(found, exact, strict=True):
        assert F.cosine_similarity(gradient.flatten(), reference.flatten(), 0) > 0.97


def test_fused_encoder_uses_updated_weights(launcher: Launcher):
    module, obs = encoder(), images(2)
    fused = FusedImpala(module, launcher)
    with torch.no_grad():
        before = fused(obs)
        module.stages[1].block1.conv1.weight.mul_(-2)
        assert not torch.allclose(fused(obs), before)
        assert_near(fused(obs), module(obs), 0.05)


def test_fused_encoder_gives_equal_outputs_with_and_without_gradients(launcher: Launcher):
    module, obs = encoder(), images(1)
    fused = FusedImpala(module, launcher)
    with torch.no_grad():
        played = fused(obs)
    assert torch.equal(played, fused(obs).detach())


def test_prepared_weights_are_used_until_cleared(launcher: Launcher):
    module, obs = encoder(), images(1)
    fused = FusedImpala(module, launcher)
    with torch.no_grad():
        before = fused(obs)
        for form in fused.prepared:
            form.held = form.make()
        for parameter in (module.stages[1].block1.conv1.weight, module.linear.weight):
            parameter.mul_(-2)
        assert torch.equal(fused(obs), before)
        for form in fused.prepared:
            form.held = None
        assert not torch.allclose(fused(obs), before)


def test_can_fuse_accepts_only_standard_encoders():
    assert can_fuse(encoder()) and can_fuse(encoder(is_pooled=True))
    assert not can_fuse(ImpalaEncoder((64, 64, 3), 8, width=2))
    assert not can_fuse(ImpalaEncoder((48, 64, 3), 8))  # other sides
    assert not can_fuse(ImpalaEncoder((64, 64, 4), 8))  # other colours
    assert not can_fuse(nn.Linear(2, 2))
    assert not is_supported_gpu(torch.device("cpu"))


def test_kernel_names_finds_all_impala_kernels():
    names = kernel_names(read_source())
    assert len(names) == len(set(names)) == 19
    assert {"stem_forward_bytes", "block_weight_gradient_8", "pooled_backward_16"} <= set(names)
