"""The fused GRU is the module's, restarts and all."""

import pytest
import torch

from expgen.networks.memory import Memory

pytest.importorskip("triton", reason="needs Triton")

from expgen.fast.kernels.gru import FusedGru, can_fuse_gru

HAS_GPU = torch.cuda.is_available()
DEVICE = "cuda" if HAS_GPU else "cpu"
DTYPE = torch.bfloat16 if HAS_GPU else torch.float32
TOLERANCE = 0.02 if HAS_GPU else 1e-5


def memory(features: int = 20, size: int = 64) -> Memory:
    module = Memory(features, size)
    module.initialise(torch.Generator().manual_seed(1))
    for parameter in module.parameters():
        if parameter.dim() == 1:
            parameter.data.uniform_(-0.5, 0.5, generator=torch.Generator().manual_seed(2))
    return module.to(DEVICE)


@pytest.mark.parametrize(("steps", "envs"), [(1, 5), (7, 5), (4, 18)])
def test_output_and_gradients(steps: int, envs: int):
    """Eighteen environments are more than a group of programs takes."""
    module, generator = memory(), torch.Generator().manual_seed(0)
    x = torch.randn(steps, envs, 20, generator=generator).to(DEVICE).requires_grad_()
    first = (torch.rand(steps, envs, generator=generator) < 0.3).to(DEVICE)
    state = torch.randn(envs, 64, generator=generator).to(DEVICE)
    weight = torch.randn(steps, envs, 64, generator=generator).to(DEVICE)
    exact, last = module(x, first, state)
    module.scan = FusedGru(module.gru, DTYPE)
    found, found_last = module(x, first, state)
    inputs = [x, *module.parameters()]
    pairs = [(found, exact), (found_last, last)]
    pairs += zip(
        torch.autograd.grad((found * weight).sum(), inputs),
        torch.autograd.grad((exact * weight).sum(), inputs),
        strict=True,
    )
    for ours, reference in pairs:
        assert ours.shape == reference.shape
        assert (ours - reference).norm() <= TOLERANCE * reference.norm()


def test_which_memories_the_kernel_computes():
    assert can_fuse_gru(torch.nn.GRU(5, 256))
    assert not can_fuse_gru(torch.nn.GRU(5, 48)) and not can_fuse_gru(torch.nn.GRU(5, 64, num_layers=2))
