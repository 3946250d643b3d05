"""Compile CUDA C++ on first use by NVRTC, which comes with PyTorch; no CUDA toolkit is needed.

Compiling takes seconds, so the result is cached in the user's cache folder, named by a digest of its dependencies.
"""

import contextlib
import ctypes
import hashlib
import importlib.util
import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from expgen.errors import StorageError
from expgen.files import write_atomic

THREADS = 256  # per thread block
SOURCES = Path(__file__).parent / "cuda"
IMPALA = (  # files, concatenated in this order
    "tensor_core.cuh",
    "images.cuh",
    "convolution.cuh",
    "residual_block.cuh",
    "pooled_convolution.cuh",
    "weight_gradient.cuh",
    "stem.cuh",
    "impala.cu",
)
GRU = ("tensor_core.cuh", "cluster.cuh", "gru.cu")
OPTIONS = ("--std=c++17",)
MAX_DYNAMIC_SHARED_SIZE = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
MAX_SHARED_PER_BLOCK = 97  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN


class CudaModule:
    """Kernels on one device; `launch` starts one on the current stream."""

    def __init__(self, device: torch.device, files: Sequence[str] = IMPALA) -> None:
        """`files`: names in SOURCES, compiled as one source."""
        self.device = device
        self.driver = ctypes.CDLL("libcuda.so.1")
        source = read_source(files)
        cubin = cached_cubin(source, torch.cuda.get_device_capability(device))
        with torch.cuda.device(device):
            torch.cuda.current_stream().synchronize()  # creates the CUDA context
            self.context = ctypes.c_void_p()
            self._check(self.driver.cuCtxGetCurrent(ctypes.byref(self.context)))
            module = ctypes.c_void_p()
            self._check(self.driver.cuModuleLoadData(ctypes.byref(module), cubin))
        self.functions = {name: self._function(module, name) for name in kernel_names(source)}

    def _function(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self._check(self.driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
        size = max_shared_memory(self.device)
        self._check(self.driver.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED_SIZE, size))
        return function

    def __deepcopy__(self, memo: object) -> "CudaModule":
        return self  # a copied network uses the same kernels

    def launch(self, name: str, grid: tuple[int, int], shared_bytes: int, *arguments: Tensor | int | None) -> None:
        """Run `grid` thread blocks; tensors are passed as their addresses, None as a null pointer."""
        stream = ctypes.c_void_p(torch.cuda.current_stream(self.device).cuda_stream)
        self._check(self.driver.cuCtxSetCurrent(self.context))  # backward runs in another thread
        self._check(
            self.driver.cuLaunchKernel(
                self.functions[name], *grid, 1, THREADS, 1, 1, shared_bytes, stream, pack_arguments(arguments), None
            )
        )

    def _check(self, status: int) -> None:
        if status != 0:
            message = ctypes.c_char_p()
            self.driver.cuGetErrorString(status, ctypes.byref(message))
            raise RuntimeError(f"CUDA: {(message.value or b'unknown error').decode()}")


@cache
def cuda_module(device: torch.device, files: Sequence[str] = IMPALA) -> CudaModule:
    """Return the kernels of `files` on `device`, which must have an index; they are loaded once."""
    return CudaModule(device, files)


def max_shared_memory(device: torch.device) -> int:
    """Return the most bytes of shared memory that a thread block on `device` may use."""
    torch.cuda.init()
    size = ctypes.c_int()
    status = ctypes.CDLL("libcuda.so.1").cuDeviceGetAttribute(
        ctypes.byref(size), MAX_SHARED_PER_BLOCK, device.index or 0
    )
    return size.value if status == 0 else 0


def pack_arguments(arguments: Sequence[Tensor | int | None]) -> ctypes.Array[ctypes.c_void_p]:
    """Return the addresses of a kernel's arguments, as cuLaunchKernel requires."""
    values = [
        ctypes.c_int(argument)
        if isinstance(argument, int)
        else ctypes.c_void_p(None if argument is None else argument.data_ptr())
        for argument in arguments
    ]
    addresses = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    addresses._values = values  # type: ignore[attr-defined]  # keeps the values alive
    return addresses


def read_source(files: Sequence[str] = IMPALA) -> str:
    """Return the concatenated source of `files`."""
    return "\n".join(f'#line 1 "{name}"\n{(SOURCES / name).read_text(encoding="utf-8")}' for name in files)


def kernel_names(source: str) -> list[str]:
    """Return the names of the kernels in `source`: each macro that defines kernels, for each of its first arguments."""
    names = []
    for macro in re.findall(r"#define (\w+)\([^)]*\)((?:[^\n]*\\\n)+[^\n]*)", source):
        stems = re.findall(r"KERNEL\([^)]*\) (\w+)##", macro[1])
        suffixes = re.findall(rf"^{macro[0]}\((\w+)", source, re.MULTILINE)
        names += [stem + suffix for suffix in suffixes for stem in stems]
    return names


def has_compiler() -> bool:
    """Return whether NVRTC can be loaded."""
    return torch.version.cuda is not None and bool(_nvrtc_paths())


def cached_cubin(source: str, capability: tuple[int, int]) -> bytes:
    """Return machine code for GPUs of `capability`, from the cache folder if it is there."""
    architecture = "sm_{}{}".format(*capability)
    key = "\n".join((source, architecture, str(torch.version.cuda), *OPTIONS))
    file = cache_folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.cubin"
    if file.is_file():
        return file.read_bytes()
    cubin = compile_source(source, architecture)
    with contextlib.suppress(StorageError):  # without a cache the next process compiles again
        write_atomic(file, cubin)
    return cubin


def cache_folder() -> Path:
    """Return the folder of compiled kernels."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "expgen" / "kernels"


def compile_source(source: str, architecture: str) -> bytes:
    """Compile `source` to machine code for `architecture`, for example "sm_90"."""
    nvrtc = _nvrtc()
    program = ctypes.c_void_p()
    options = [f"--gpu-architecture={architecture}", *OPTIONS]
    _check_nvrtc(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None))
    try:
        arguments = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if nvrtc.nvrtcCompileProgram(program, len(options), arguments) != 0:
            log = _output(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
            raise RuntimeError(f"NVRTC could not compile the kernels:\n{log.decode()}")
        return _output(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _output(program: ctypes.c_void_p, size_of: Callable[..., int], copy: Callable[..., int]) -> bytes:
    size = ctypes.c_size_t()
    _check_nvrtc(size_of(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check_nvrtc(copy(program, buffer))
    return buffer.raw


def _check_nvrtc(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"NVRTC: error {status}")


@cache
def _nvrtc() -> ctypes.CDLL:
    return ctypes.CDLL(_nvrtc_paths()[0])


@cache
def _nvrtc_paths() -> list[str]:
    """Return loadable NVRTC libraries of PyTorch's CUDA version, from the linker's paths or pip's packages."""
    name = f"libnvrtc.so.{(torch.version.cuda or '0').split('.')[0]}"
    package = importlib.util.find_spec("nvidia")
    folders = list(package.submodule_search_locations or []) if package else []
    paths = [name, *(str(path) for folder in folders for path in sorted(Path(folder).glob(f"*/lib/{name}")))]
    found = []
    for path in paths:
        with contextlib.suppress(OSError):
            ctypes.CDLL(path)
            found.append(path)
    return found
