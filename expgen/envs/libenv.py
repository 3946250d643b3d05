"""Direct calls to ProcGen's C library: N games, and their states as bytes.

The C threads write every tensor directly into numpy arrays that we own. The library aborts the process when it is
given an invalid option, index or saved game, so all three are checked here first.

To start a chosen level in a running environment we parse part of a saved game. It is little-endian, as written by
ProcGen 0.10.7: format version; name; 12 options; grid step; first level and end of the level range; game type; game
number; level generator; game generator; reward; done; level complete; action; time limit; level; nine numbers; then the
contents of the level: number of cells; number of entities; the entities; 19 numbers; a generator; width and height in
cells; and more. Strings and generators are preceded by their length.
"""

import ctypes
import os
import struct
import weakref
from collections.abc import Mapping
from ctypes import POINTER, c_float, c_uint8, c_void_p
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from expgen.envs.library import Buffers, Option, Options, TensorType, find_library, load_library
from expgen.errors import InputError, check_choice, check_range

OPTIONS: dict[str, type] = {  # every option that the 16 games read, and its type
    **dict.fromkeys(("env_name", "resource_root"), str),
    **dict.fromkeys(("num_levels", "start_level", "num_actions", "rand_seed", "num_threads"), int),
    **dict.fromkeys(("distribution_mode", "debug_mode"), int),
    **dict.fromkeys(("center_agent", "use_backgrounds", "use_generated_assets", "use_monochrome_assets"), bool),
    **dict.fromkeys(("restrict_themes", "use_sequential_levels", "paint_vel_info", "render_human"), bool),
}
STATE_BYTES = 2**20  # buffer size for a saved game; saved games take 21 to 38 kB
STATE_END = struct.pack("<I", 0xCAFECAFE)  # last bytes of every saved game
DTYPES = {1: np.uint8, 2: np.int32, 3: np.float32}
ENTITY_BYTES = 4 * 31  # an entity starts with its position; the player is the first entity in every game
STEP = struct.Struct("<fii")  # reward, done, level complete
OBSERVATION, ACTION, INFO = 1, 2, 3  # the library's tensor spaces


class LibEnv:
    """N games in C: the arrays they write to, and the calls that step them. Use each object from one thread only.

    `obs`, `info` and `action` map the library's tensor names to arrays `[N, ...]`; `reward` and `first` are `[N]`.
    Between `act` and the end of `observe` the library reads `action` and writes the others: do not access them then.
    """

    def __init__(self, num_envs: int, options: Mapping[str, str | int | bool]) -> None:
        paths = find_library()
        self.library = load_library(paths.code)
        self.num_envs = num_envs
        options = {"resource_root": f"{paths.assets.resolve()}{os.sep}", "render_human": False, **options}
        self._can_save = not options["use_generated_assets"]
        name = str(options["env_name"]).encode()
        self._state_start = struct.pack("<ii", 0, len(name)) + name  # format version, name of the game
        packed, _data = _pack_options(options)  # _data must stay alive until the library has copied it
        self._handle: int | None = self.library.libenv_make(num_envs, packed)
        self.obs, self.action, self.info = (self._tensors(space) for space in (OBSERVATION, ACTION, INFO))
        self.reward = np.zeros(num_envs, np.float32)  # [N]
        self.first = np.zeros(num_envs, np.uint8)  # [N]
        reward, first = self.reward.ctypes.data_as(POINTER(c_float)), self.first.ctypes.data_as(POINTER(c_uint8))
        buffers = Buffers(_pointers(self.obs), reward, first, _pointers(self.info), _pointers(self.action))
        arrays = (self.obs, self.action, self.info, self.reward, self.first)  # must outlive the C threads
        self._finalizer = weakref.finalize(self, _close, self.library, self._handle, os.getpid(), arrays)
        self.library.libenv_set_buffers(self._handle, ctypes.byref(buffers))

    def _tensors(self, space: int) -> dict[str, ndarray]:
        count = self.library.libenv_get_tensortypes(self._handle, space, None)
        types = (TensorType * count)()
        self.library.libenv_get_tensortypes(self._handle, space, types)
        return {t.name.decode(): np.zeros((self.num_envs, *t.shape[: t.ndim]), DTYPES[t.dtype]) for t in types}

    @property
    def handle(self) -> int:
        """The library's pointer; raises ValueError after `close`."""
        if self._handle is None:
            raise ValueError("this environment is closed")
        return self._handle

    def act(self) -> None:
        """Start a step with the actions in `action`. With 0 threads, the step is taken here."""
        self.library.libenv_act(self.handle)

    def observe(self) -> None:
        """Wait for the current step or the first reset."""
        self.library.libenv_observe(self.handle)

    def get_state(self, env: int) -> bytes:
        """Save one game: its options, level range, generators and the contents of the level."""
        self._check_state_call(env)
        state = np.empty(STATE_BYTES, np.uint8)
        return state[: self.library.get_state(self.handle, env, state.ctypes.data, STATE_BYTES)].tobytes()

    def set_state(self, env: int, state: bytes) -> None:
        """Load a saved game and draw it; overwrites the env's obs, reward, first and info."""
        self._check_state_call(env)
        if not (state.startswith(self._state_start) and state.endswith(STATE_END)):
            raise InputError(f"saved state of env {env} is not a saved {self._state_start[8:].decode()} game")
        self.library.set_state(self.handle, env, state, len(state))

    def _check_state_call(self, env: int) -> None:
        if not self._can_save:
            raise InputError("use_generated_assets is True; accepted for saving games and choosing levels: False")
        if not 0 <= env < self.num_envs:
            raise IndexError(f"env is {env}; accepted: 0..{self.num_envs - 1}")

    def close(self) -> None:
        """Stop the threads and free the games; garbage collection does the same."""
        self._handle = None
        self._finalizer()


def _pack_options(options: Mapping[str, str | int | bool]) -> tuple[Options, list[ndarray]]:
    """Return the options as a C structure, and the arrays that it points to."""
    data: list[ndarray] = []
    items = (Option * len(options))()
    for item, (name, value) in zip(items, options.items()):
        if type(value) is not OPTIONS[check_choice("option", name, OPTIONS)]:
            raise InputError(f"option {name} is {value!r}; accepted: a value of type {OPTIONS[name].__name__}")
        if isinstance(value, int):
            check_range(f"option {name}", value, -(2**31), 2**31 - 1)
        if isinstance(value, str):
            data.append(np.frombuffer(value.encode(), np.uint8))
        else:
            data.append(np.array([value], np.uint8 if isinstance(value, bool) else np.int32))
        item.name, item.count, item.data = name.encode(), data[-1].size, data[-1].ctypes.data
        item.dtype = 1 if data[-1].dtype == np.uint8 else 2
    return Options(items, len(items)), data


def _pointers(tensors: Mapping[str, ndarray]) -> "ctypes._Pointer[c_void_p]":
    """Return a pointer to each env's part of each tensor: all envs of the first tensor, then of the next."""
    starts = [tensor.ctypes.data + env * tensor.strides[0] for tensor in tensors.values() for env in range(len(tensor))]
    return ctypes.cast((c_void_p * len(starts))(*starts), POINTER(c_void_p))


def _close(library: ctypes.CDLL, handle: int, owner: int, arrays: object) -> None:
    if os.getpid() == owner:  # a forked child does not have the threads
        library.libenv_close(handle)


class StateOffsets(NamedTuple):
    """Byte offsets in one saved game."""

    game: int  # the game generator; everything before it belongs to the environment, not to the level
    step: int  # reward, done and level complete of the last step
    level: int  # seed of the current level


class PlayerPosition(NamedTuple):
    """Position of the player in cells: x to the right, y up; the centre of the lower left cell is at (0.5, 0.5)."""

    x: float
    y: float
    width: int  # of the level
    height: int


def state_offsets(state: bytes) -> StateOffsets:
    """Parse the offsets in a saved game."""
    level_generator = 8 + _int(state, 4) + 4 * (12 + 1 + 2 + 2)
    game = _skip_generator(state, level_generator)
    step = _skip_generator(state, game)
    return StateOffsets(game, step, step + STEP.size + 8)


def _int(state: bytes, offset: int) -> int:
    return int(struct.unpack_from("<i", state, offset)[0])


def _skip_generator(state: bytes, offset: int) -> int:
    """Return the offset after a generator: whether it is seeded, the length of its text, the text."""
    return offset + 8 + _int(state, offset + 4)


def level_of(state: bytes) -> int:
    """Return the level of a saved game."""
    return _int(state, state_offsets(state).level)


def player_position(state: bytes) -> PlayerPosition:
    """Return the position of the player in a saved game."""
    num_entities = state_offsets(state).level + 4 * 11
    player = num_entities + 4
    after_entities = player + ENTITY_BYTES * _int(state, num_entities)
    size = _skip_generator(state, after_entities + 4 * 19)
    return PlayerPosition(*struct.unpack_from("<ff", state, player), *struct.unpack_from("<ii", state, size))


def move_to_level(own: bytes, start: bytes, reward: float, solved: bool) -> bytes:
    """Return the saved environment `own`, moved to the start of the level saved as `start`.

    It keeps its level range and level generator, so it draws the same levels afterwards. `reward` and `solved` describe
    the step that ended the previous episode.
    """
    mine, theirs = state_offsets(own), state_offsets(start)
    step = STEP.pack(reward, 1, solved)
    return own[: mine.game] + start[theirs.game : theirs.step] + step + start[theirs.step + STEP.size :]
