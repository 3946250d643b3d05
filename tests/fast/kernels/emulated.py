"""EmulatedKernels: the CUDA kernels compiled with g++ and run on the CPU, thread by thread (emulated_cuda.h)."""

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from expgen.fast.kernels.cuda_module import IMPALA, SOURCES, pack_arguments

HERE = Path(__file__).parent
REPLACEMENTS = {"tensor_core.cuh": "emulated_cuda.h", "cluster.cuh": "emulated_cluster.h"}  # of GPU-only files


class EmulatedKernels:
    """A Launcher for tensors on the CPU."""

    def __init__(self, folder: Path, files: Sequence[str] = IMPALA, program: str = "emulated_kernels.cpp") -> None:
        library = folder / "kernels.so"
        options = ("-std=c++17", "-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas", f"-I{SOURCES}", f"-I{HERE}")
        included = [f"-include{REPLACEMENTS.get(name, name)}" for name in files]
        subprocess.run(["g++", *options, *included, str(HERE / program), "-o", str(library)], check=True)
        self.library = ctypes.CDLL(str(library))

    def launch(self, name: str, grid: tuple[int, int], shared_bytes: int, *arguments: Tensor | int | None) -> None:
        """Run a kernel, as CudaModule.launch does."""
        self.library.launch(name.encode(), *grid, shared_bytes, pack_arguments(arguments))
