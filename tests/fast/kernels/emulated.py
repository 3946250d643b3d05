"""EmulatedKernels: the CUDA kernels compiled by g++ and run on the CPU, thread by thread (emulated_cuda.h)."""

import ctypes
import subprocess
from pathlib import Path

from torch import Tensor

from expgen.fast.kernels.cuda_module import FILES, SOURCES, packed

HERE = Path(__file__).parent


class EmulatedKernels:
    """A Launcher; tensors are on the CPU."""

    def __init__(self, folder: Path) -> None:
        library = folder / "kernels.so"
        options = ("-std=c++17", "-O2", "-shared", "-fPIC", f"-I{SOURCES}", f"-I{HERE}")
        included = [f"-include{name}" for name in ("emulated_cuda.h", *FILES[1:])]  # in place of tensor_core.cuh
        files = (*included, str(HERE / "emulated_kernels.cpp"))
        subprocess.run(["g++", *options, *files, "-o", str(library)], check=True)
        self.library = ctypes.CDLL(str(library))

    def launch(self, name: str, grid: tuple[int, int], shared_bytes: int, *arguments: Tensor | int | None) -> None:
        """As CudaModule.launch."""
        self.library.launch(name.encode(), *grid, shared_bytes, packed(arguments))
