"""Checkpoints: one safetensors file each, written atomically, with its own checksum.

A file holds tensors and JSON text, no Python objects, so loading one cannot run code. The newest two checkpoints of a
learner are kept; if the newest is damaged, the one before it is used.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_bytes
from safetensors.torch import save as save_bytes
from torch import Tensor

from expgen.errors import InputError
from expgen.files import UnreadableFile, read_bytes, write_atomic
from expgen.text import notify
from expgen.training.sessions import sessions_in

MAX_KEPT = 2  # checkpoints per learner
FORMAT = "expgen-checkpoint-1"
MAX_HEADER_BYTES = 2**22  # enough for tens of thousands of tensors


class DamagedCheckpoint(InputError):
    """The file is not an expgen checkpoint, or it is incomplete or corrupt."""


class Checkpoint(NamedTuple):
    """Tensors by name, and facts such as `env_steps`."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    @property
    def is_weights_alone(self) -> bool:
        """Whether it holds networks without optimisers and games, as shipped agents and packed runs do."""
        return "generator" not in self.tensors

    @property
    def is_policy_alone(self) -> bool:
        """Whether it holds no network but the policy and its average."""
        return all(name.startswith(("policy.", "average.")) for name in self.tensors)


def write_checkpoint(
    path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], new_folders: int | None = None
) -> None:
    """Write `tensors` and `facts` to `path` atomically; for `new_folders` see `write_atomic`."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(dict(facts), sort_keys=True)
    metadata = {"format": FORMAT, "facts": text, "sha256": digest_of(contiguous, text)}
    write_atomic(path, save_bytes(contiguous, metadata), new_folders)


def read_checkpoint(path: Path) -> Checkpoint:
    """Return the checkpoint at `path`; raise DamagedCheckpoint if it is corrupt."""
    try:
        content = read_bytes(path)
        (size,) = struct.unpack("<Q", content[:8])
        if size > MAX_HEADER_BYTES:
            raise ValueError("header too long")
        metadata = json.loads(content[8 : 8 + size])["__metadata__"]
        tensors = load_bytes(content)
        if metadata["format"] != FORMAT or metadata["sha256"] != digest_of(tensors, metadata["facts"]):
            raise DamagedCheckpoint(f"{path} is damaged: its checksum does not match; accepted: a file expgen wrote")
        return Checkpoint(tensors, _check_facts(json.loads(metadata["facts"])))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except UnreadableFile as error:
        raise DamagedCheckpoint(str(error)) from None
    except DamagedCheckpoint:
        raise
    except (SafetensorError, struct.error, KeyError, TypeError, ValueError, RecursionError):
        raise DamagedCheckpoint(f"{path} is not a complete expgen checkpoint; accepted: a file expgen wrote") from None


def _check_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return `facts`; raise KeyError, TypeError or ValueError if counts or sessions in it are missing or invalid."""
    counts = (facts["env_steps"], facts.get("updates", 0), facts.get("seconds", 0.0))
    if not all(type(count) in (int, float) and 0 <= count < 2**53 for count in counts) or type(counts[0]) is not int:
        raise ValueError("invalid steps, updates or seconds")
    sessions_in(facts)
    return facts


def latest_checkpoint(folder: Path, is_quiet: bool = False) -> Checkpoint | None:
    """Return the newest valid checkpoint in `folder`, None if there are no files; raise if all are damaged."""
    paths = sorted(folder.glob("*.safetensors"))
    while paths:
        try:
            return read_checkpoint(paths.pop())
        except DamagedCheckpoint as error:
            if not paths:
                raise
            if not is_quiet:
                notify(f"expgen: {error}; using the one before it")
    return None


def checkpoint_file(folder: Path, env_steps: int) -> Path:
    """Return the path of the checkpoint at `env_steps`; zero-padded, so that names sort by step."""
    return folder / f"{env_steps:012d}.safetensors"


def add_checkpoint(folder: Path, env_steps: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Path:
    """Write the checkpoint of `env_steps`, delete all but it and the one before it, and return the new file.

    Files of later steps are left alone: they are damaged, as training continues after the newest valid checkpoint.

    `folder` is RUN/checkpoints/LEARNER. Its last two parts are created if missing. RUN is not: if it is missing, the
    user has deleted the run.
    """
    path = checkpoint_file(folder, env_steps)
    write_checkpoint(path, tensors, facts, new_folders=2)
    for old in sorted(file for file in folder.glob("*.safetensors") if file <= path)[:-MAX_KEPT]:
        old.unlink(missing_ok=True)
    return path


def digest_of(tensors: Mapping[str, Tensor], text: str = "") -> str:
    """Return a SHA-256 of `text` and of the tensors' names, dtypes, shapes and values; not of a file's bytes."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
