"""ProcGen's C library called directly: N games, and their states as bytes.

The C threads write every tensor straight into numpy arrays that we own. The library aborts the process when it is
handed an option, an index or a saved game it does not like, so all three are checked here first.

We know just enough of a saved game to start a chosen level in a running environment. Little-endian, as ProcGen 0.10.7
writes it: format version; name; 12 options; grid step; first level and end of the level range; game type; game number;
level generator; game generator; reward; done; level complete; action; time limit; level; nine numbers; and then the
level's contents: number of cells; number of entities; the entities; 19 numbers; a generator; width and height in cells;
and more. Strings and generators carry their length in front.
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

from expgen.envs.library import Buffers, Option, Options, TensorType, find_library, load
from expgen.errors import InputError, check_choice, check_range

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
ENTITY_BYTES = 4 * 31  # position first; the player is the first entity of every game
STEP = struct.Struct("<fii")  # reward, done, level complete
OBSERVATION, ACTION, INFO = 1, 2, 3  # the spaces a tensor can belong to


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
        buffers = Buffers(
            *(_pointers(self.obs), self.reward.ctypes.data_as(POINTER(c_float))),
            *(self.first.ctypes.data_as(POINTER(c_uint8)), _pointers(self.info), _pointers(self.action)),
        )
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


def _pack_options(options: Mapping[str, str | int | bool]) -> tuple[Options, list[ndarray]]:
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
    """Where each env's part of each tensor begins, all envs of one tensor before the next tensor."""
    starts = [tensor.ctypes.data + env * tensor.strides[0] for tensor in tensors.values() for env in range(len(tensor))]
    return ctypes.cast((c_void_p * len(starts))(*starts), POINTER(c_void_p))


def _close(library: ctypes.CDLL, handle: int, owner: int, arrays: object) -> None:
    if os.getpid() == owner:  # a forked child has no such threads to join
        library.libenv_close(handle)


class SavedLayout(NamedTuple):
    """Byte offsets in one saved game."""

    game: int  # the game generator: everything before it belongs to the environment rather than to the level
    step: int  # reward, done and level complete of the last step
    level: int  # seed of the level being played


class Whereabouts(NamedTuple):
    """Where the player is, in cells, x to the right and y upwards; the centre of the lower left one is at 0.5, 0.5."""

    x: float
    y: float
    width: int
    height: int


def layout(state: bytes) -> SavedLayout:
    """Where things are in `state`."""
    level_generator = 8 + _int(state, 4) + 4 * (12 + 1 + 2 + 2)
    game = _after_generator(state, level_generator)
    step = _after_generator(state, game)
    return SavedLayout(game, step, step + STEP.size + 8)


def _int(state: bytes, offset: int) -> int:
    return int(struct.unpack_from("<i", state, offset)[0])


def _after_generator(state: bytes, offset: int) -> int:
    return offset + 8 + _int(state, offset + 4)  # whether it is seeded, the length of its text, the text


def level_of(state: bytes) -> int:
    """Seed of the level a saved game is in."""
    return _int(state, layout(state).level)


def whereabouts_of(state: bytes) -> Whereabouts:
    """Where the player of a saved game is."""
    num_entities = layout(state).level + 4 * 11
    player = num_entities + 4
    after_entities = player + ENTITY_BYTES * _int(state, num_entities)
    size = _after_generator(state, after_entities + 4 * 19)
    return Whereabouts(*struct.unpack_from("<ff", state, player), *struct.unpack_from("<ii", state, size))


def enter(own: bytes, start: bytes, reward: float, solved: bool) -> bytes:
    """The environment saved as `own`, moved to the beginning of the level saved as `start`.

    It keeps its level range and its level generator, so the next levels it draws are those it would have drawn; the
    step that brought it here paid `reward` and ended an episode that was `solved` or not.
    """
    mine, theirs = layout(own), layout(start)
    step = STEP.pack(reward, 1, solved)
    return own[: mine.game] + start[theirs.game : theirs.step] + step + start[theirs.step + STEP.size :]
