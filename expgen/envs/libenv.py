"""ProcGen's C library, called directly (its interface is libenv, version 1).

Nothing of ProcGen's Python package is imported (that would pull in gym): we only need the compiled library and its
pictures. The C threads write every tensor straight into numpy arrays that we own. The library aborts the process
when it is handed an option, an index or a saved game it does not like, so all three are checked here first.
"""

import ctypes
import os
import struct
import weakref
from collections.abc import Mapping
from ctypes import POINTER, Structure, c_char, c_char_p, c_float, c_int, c_uint8, c_void_p
from functools import cache
from pathlib import Path

import numpy as np
from numpy import ndarray

from expgen.envs.library import check_known, find_library, load_error
from expgen.errors import InputError, check_choice

OPTIONS: dict[str, type] = {  # every option the 16 games read, with the one type it may have
    **dict.fromkeys(("env_name", "resource_root"), str),
    **dict.fromkeys(("num_levels", "start_level", "num_actions", "rand_seed", "num_threads"), int),
    **dict.fromkeys(("distribution_mode", "debug_mode"), int),
    **dict.fromkeys(("center_agent", "use_backgrounds", "use_generated_assets", "use_monochrome_assets"), bool),
    **dict.fromkeys(("restrict_themes", "use_sequential_levels", "paint_vel_info", "render_human"), bool),
}
STATE_BYTES = 2**20  # room for a saved game; they take 21 to 38 kB
STATE_END = struct.pack("<I", 0xCAFECAFE)  # closes every saved game
DTYPES = {1: np.uint8, 2: np.int32, 3: np.float32}
OBSERVATION, ACTION, INFO = 1, 2, 3  # the spaces a tensor can belong to


class _Option(Structure):
    _fields_ = [("name", c_char * 128), ("dtype", c_int), ("count", c_int), ("data", c_void_p)]


class _Options(Structure):
    _fields_ = [("items", POINTER(_Option)), ("count", c_int)]


class _TensorType(Structure):
    _fields_ = [
        *(("name", c_char * 128), ("scalar_type", c_int), ("dtype", c_int), ("shape", c_int * 16), ("ndim", c_int)),
        *(("low", c_int), ("high", c_int)),
    ]


class _Buffers(Structure):
    _fields_ = [
        *(("obs", POINTER(c_void_p)), ("reward", POINTER(c_float)), ("first", POINTER(c_uint8))),
        *(("info", POINTER(c_void_p)), ("action", POINTER(c_void_p))),
    ]


@cache
def load(code: Path) -> ctypes.CDLL:
    """The library, with its signatures declared; checked and loaded once per process."""
    check_known(code)
    try:
        library = ctypes.CDLL(str(code.resolve()))
    except OSError as error:
        raise load_error(code, str(error)) from None
    if library.libenv_version() != 1:
        raise InputError(f"{code} speaks libenv version {library.libenv_version()}; accepted: 1 (ProcGen 0.10.7)")
    for name, result, arguments in (
        ("libenv_make", c_void_p, [c_int, _Options]),
        ("libenv_get_tensortypes", c_int, [c_void_p, c_int, POINTER(_TensorType)]),
        ("libenv_set_buffers", None, [c_void_p, POINTER(_Buffers)]),
        ("libenv_observe", None, [c_void_p]),
        ("libenv_act", None, [c_void_p]),
        ("libenv_close", None, [c_void_p]),
        ("get_state", c_int, [c_void_p, c_int, c_void_p, c_int]),
        ("set_state", None, [c_void_p, c_int, c_char_p, c_int]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class LibEnv:
    """N games in C: the arrays they write to, and the calls that move them. Use one from one thread only.

    `obs`, `info` and `action` map the library's tensor names to arrays `[N, ...]`; `reward` and `first` are `[N]`.
    The library reads `action` and writes the others between `act` and the end of `observe`: leave them alone then.
    """

    def __init__(self, num_envs: int, options: Mapping[str, str | int | bool]) -> None:
        found = find_library()
        self.library = load(found.code)
        self.num_envs = num_envs
        options = {"resource_root": f"{found.assets.resolve()}{os.sep}", "render_human": False, **options}
        self._has_states = not options["use_generated_assets"]
        name = str(options["env_name"]).encode()
        self._state_start = struct.pack("<ii", 0, len(name)) + name  # format version, then whose game it is
        packed, _data = _pack_options(options)  # the library copies what it needs of _data
        self._handle: int | None = self.library.libenv_make(num_envs, packed)
        self.obs, self.action, self.info = (self._tensors(space) for space in (OBSERVATION, ACTION, INFO))
        self.reward = np.zeros(num_envs, np.float32)  # [N]
        self.first = np.zeros(num_envs, np.uint8)  # [N]
        buffers = _Buffers(
            *(_pointers(self.obs), self.reward.ctypes.data_as(POINTER(c_float))),
            *(self.first.ctypes.data_as(POINTER(c_uint8)), _pointers(self.info), _pointers(self.action)),
        )
        arrays = (self.obs, self.action, self.info, self.reward, self.first)  # must outlive the C threads
        self._finalizer = weakref.finalize(self, _close, self.library, self._handle, os.getpid(), arrays)
        self.library.libenv_set_buffers(self._handle, ctypes.byref(buffers))

    def _tensors(self, space: int) -> dict[str, ndarray]:
        count = self.library.libenv_get_tensortypes(self._handle, space, None)
        types = (_TensorType * count)()
        self.library.libenv_get_tensortypes(self._handle, space, types)
        return {t.name.decode(): np.zeros((self.num_envs, *t.shape[: t.ndim]), DTYPES[t.dtype]) for t in types}

    @property
    def handle(self) -> int:
        """The library's own pointer; a closed one must never reach it."""
        if self._handle is None:
            raise ValueError("this environment is closed")
        return self._handle

    def act(self) -> None:
        """Start the step that `action` asks for. With no threads, the step happens here."""
        self.library.libenv_act(self.handle)

    def observe(self) -> None:
        """Wait for the step under way, or for the first reset."""
        self.library.libenv_observe(self.handle)

    def get_state(self, env: int) -> bytes:
        """One game, whole: its options, its level range, its generators and all that is in the level."""
        self._check_state_call(env)
        state = np.empty(STATE_BYTES, np.uint8)
        return state[: self.library.get_state(self.handle, env, state.ctypes.data, STATE_BYTES)].tobytes()

    def set_state(self, env: int, state: bytes) -> None:
        """Put a saved game in place and draw it: rewrites the env's obs, reward, first and info."""
        self._check_state_call(env)
        if not (state.startswith(self._state_start) and state.endswith(STATE_END)):
            raise InputError(f"saved state of env {env} is not a saved {self._state_start[8:].decode()} game")
        self.library.set_state(self.handle, env, state, len(state))

    def _check_state_call(self, env: int) -> None:
        if not self._has_states:
            raise InputError("use_generated_assets is True; accepted: False where games are saved or levels chosen")
        if not 0 <= env < self.num_envs:
            raise IndexError(f"env is {env}; accepted: 0..{self.num_envs - 1}")

    def close(self) -> None:
        """Join the threads and free the games; also happens when this object is collected."""
        self._handle = None
        self._finalizer()


def _pack_options(options: Mapping[str, str | int | bool]) -> tuple[_Options, list[ndarray]]:
    data: list[ndarray] = []
    items = (_Option * len(options))()
    for item, (name, value) in zip(items, options.items()):
        if type(value) is not OPTIONS[check_choice("option", name, OPTIONS)]:
            raise InputError(f"option {name} is {value!r}; accepted: a value of type {OPTIONS[name].__name__}")
        if isinstance(value, str):
            data.append(np.frombuffer(value.encode(), np.uint8))
        else:
            data.append(np.array([value], np.uint8 if isinstance(value, bool) else np.int32))
        item.name, item.count, item.data = name.encode(), data[-1].size, data[-1].ctypes.data
        item.dtype = 1 if data[-1].dtype == np.uint8 else 2
    return _Options(items, len(items)), data


def _pointers(tensors: Mapping[str, ndarray]) -> "ctypes._Pointer[c_void_p]":
    """Where each env's part of each tensor begins, all envs of one tensor before the next tensor."""
    starts = [tensor.ctypes.data + env * tensor.strides[0] for tensor in tensors.values() for env in range(len(tensor))]
    return ctypes.cast((c_void_p * len(starts))(*starts), POINTER(c_void_p))


def _close(library: ctypes.CDLL, handle: int, owner: int, arrays: object) -> None:
    if os.getpid() == owner:  # a forked child has no such threads to join
        library.libenv_close(handle)
