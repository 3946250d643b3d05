"""fast.matmul: oneDNN's products are those of torch.mm, for views too."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from expgen.fast import matmul as module
from expgen.fast.matmul import is_intel, matmul, onednn_linear, onednn_matmul


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def factors(rows: int, inner: int, columns: int, generator: torch.Generator) -> list[tuple[Tensor, Tensor]]:
    """Return `[rows, inner]` and `[inner, columns]` as dense_network multiplies them: whole, transposed and sliced."""
    a, b = torch.randn(rows, inner, generator=generator), torch.randn(inner, columns, generator=generator)
    a_transposed, b_transposed = a.t().contiguous().t(), b.t().contiguous().t()
    b_sliced = torch.randn(inner + 1, columns, generator=generator)[:-1]
    return [(a, b), (a_transposed, b), (a, b_transposed), (a_transposed, b_transposed), (a, b_sliced)]


@pytest.mark.skipif(onednn_linear is None, reason="torch without oneDNN")
@pytest.mark.parametrize("shape", [(64, 364, 256), (1024, 364, 256), (364, 1024, 256), (257, 1024, 256), (3, 5, 2)])
def test_onednn_multiplies_like_torch(shape: tuple[int, int, int], generator: torch.Generator) -> None:
    for a, b in factors(*shape, generator):
        out = torch.full((shape[0], shape[2] + 1), 7.0)
        result = onednn_matmul(a, b, out[:, :-1])
        assert torch.allclose(result, (a.double() @ b.double()).float(), atol=1e-4, rtol=1e-4)
        assert result.data_ptr() == out.data_ptr() and (out[:, -1] == 7).all()


@pytest.mark.parametrize("prefers", [False, True])
def test_one_of_the_libraries_is_used(
    prefers: bool, monkeypatch: pytest.MonkeyPatch, generator: torch.Generator
) -> None:
    a, b = factors(8, 4, 2, generator)[0]
    calls: list[int] = []
    monkeypatch.setattr(module, "prefers_onednn", lambda: prefers)
    monkeypatch.setattr(module, "onednn_matmul", lambda a, b, out: calls.append(1) or torch.mm(a, b, out=out))
    assert torch.equal(matmul(a, b, torch.empty(8, 2)), a @ b) and bool(calls) == prefers


@pytest.mark.parametrize(
    ("text", "expected"), [("vendor_id\t: GenuineIntel\n", True), ("vendor_id\t: AuthenticAMD\n", False)]
)
def test_vendor_of_the_cpu(text: str, expected: bool, tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert is_intel(tmp_path / "cpuinfo") is expected
    assert is_intel(tmp_path / "absent")  # unknown: torch.mm
