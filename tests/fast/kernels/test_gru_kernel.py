"""The GRU kernels compared with torch's GRU, with restarts at the starts of episodes.

Without a GPU the CUDA C++ kernels are emulated on the CPU, and the Triton kernel runs in its interpreter.
"""

import importlib.util
import shutil

import pytest
import torch

from expgen.fast.kernels.cluster_gru import ClusterGru, has_clusters
from expgen.fast.kernels.cuda_module import GRU, kernel_names, read_source
from expgen.fast.kernels.gru import FusedGru, GruKernels, fused_gru
from expgen.networks.memory import Memory
from tests.fast.kernels.emulated import EmulatedKernels

HAS_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda", 0) if HAS_GPU else torch.device("cpu")
HAS_TRITON = importlib.util.find_spec("triton") is not None


@pytest.fixture(scope="session")
def cluster_gru(tmp_path_factory: pytest.TempPathFactory) -> GruKernels:
    if has_clusters(DEVICE):
        return ClusterGru.on(DEVICE)
    if HAS_GPU or shutil.which("g++") is None:
        pytest.skip("needs a GPU with clusters and NVRTC, or g++ to emulate one")
    return ClusterGru(EmulatedKernels(tmp_path_factory.mktemp("gru"), GRU, "emulated_gru.cpp"))


def triton_gru() -> GruKernels:
    from expgen.fast.kernels.triton_gru import TritonGru

    return TritonGru(torch.bfloat16 if HAS_GPU else torch.float32)


def memory(features: int, size: int) -> Memory:
    module = Memory(features, size)
    module.initialise(torch.Generator().manual_seed(1))
    for parameter in module.parameters():
        if parameter.dim() == 1:
            parameter.data.uniform_(-0.5, 0.5, generator=torch.Generator().manual_seed(2))
    return module.to(DEVICE)


def assert_same_as_module(kernels: GruKernels, steps: int, envs: int, size: int) -> None:
    """Compare output and every gradient, relative to the norm of the module's."""
    module, generator = memory(20, size), torch.Generator().manual_seed(0)
    x = torch.randn(steps, envs, 20, generator=generator).to(DEVICE).requires_grad_()
    first = (torch.rand(steps, envs, generator=generator) < 0.3).to(DEVICE)
    state = torch.randn(envs, size, generator=generator).to(DEVICE)
    weight = torch.randn(steps, envs, size, generator=generator).to(DEVICE)
    exact, last = module(x, first, state)
    module.scan = FusedGru(module.gru, kernels)
    found, found_last = module(x, first, state)
    inputs = [x, *module.parameters()]
    pairs = [(found, exact), (found_last, last)]
    pairs += zip(
        torch.autograd.grad((found * weight).sum(), inputs),
        torch.autograd.grad((exact * weight).sum(), inputs),
        strict=True,
    )
    tolerance = 1e-5 if kernels.product == torch.float32 else 0.02
    for ours, reference in pairs:
        assert ours.shape == reference.shape
        assert (ours - reference).norm() <= tolerance * reference.norm()


SHAPES = [(1, 5), (7, 5), (4, 18)]  # steps, environments; 18 take two groups of programs or three clusters


@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
@pytest.mark.parametrize(("steps", "envs"), SHAPES)
def test_triton_kernels_match_the_module(steps: int, envs: int) -> None:
    assert_same_as_module(triton_gru(), steps, envs, 64)


@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize(("steps", "envs"), SHAPES)
def test_cluster_kernels_match_the_module(cluster_gru: GruKernels, steps: int, envs: int, size: int) -> None:
    assert_same_as_module(cluster_gru, steps, envs, size)


@pytest.mark.gpu
@pytest.mark.skipif(not has_clusters(DEVICE), reason="needs a GPU with clusters")
@pytest.mark.parametrize(("steps", "envs"), [(512, 4), (512, 32), (1, 32)])
def test_cluster_kernels_match_the_module_at_the_papers_size_on_a_gpu(steps: int, envs: int) -> None:
    assert_same_as_module(ClusterGru.on(DEVICE), steps, envs, 256)


@pytest.mark.gpu
@pytest.mark.skipif(not has_clusters(DEVICE), reason="needs a GPU with clusters")
def test_cluster_kernels_are_deterministic() -> None:
    """Results do not depend on the order in which thread blocks send."""
    torch.manual_seed(0)
    kernels, size = ClusterGru.on(DEVICE), 256
    a, start = torch.randn(512, 4, 3 * size, device=DEVICE), torch.randn(4, size, device=DEVICE)
    keep, weight = (torch.rand(512, 4, device=DEVICE) > 0.01).float(), torch.randn(3, size, size, device=DEVICE) / 16
    runs = [kernels.forward(a, keep, start, kernels.prepare(weight), a[0, 0]) for _ in range(5)]
    back = [kernels.backward(a[..., :size].contiguous(), keep, start, weight, *run) for run in runs]
    for (out, gates), d_gates in zip(runs[1:], back[1:], strict=True):
        assert torch.equal(out, runs[0][0]) and torch.equal(gates, runs[0][1]) and torch.equal(d_gates, back[0])


def test_kernel_names_finds_all_gru_kernels() -> None:
    kinds, sizes = ("gru_step", "gru_forward", "gru_backward"), (64, 128, 256)
    assert sorted(kernel_names(read_source(GRU))) == sorted(f"{kind}_{size}" for kind in kinds for size in sizes)


def test_fused_gru_supports_single_layers_of_power_of_two_size() -> None:
    assert (fused_gru(torch.nn.GRU(5, 256)) is None) is not HAS_TRITON
    assert fused_gru(torch.nn.GRU(5, 48)) is None and fused_gru(torch.nn.GRU(5, 64, num_layers=2)) is None
