"""Checkpoints: one safetensors file each, written whole or not at all, carrying its own checksum.

A file holds tensors and a few words of text, never objects, so loading one cannot run code. The newest two of a
learner are kept; a damaged newest one is passed over for the one before it.
"""

import hashlib
import json
import struct
import sys
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
from expgen.training.sessions import sessions_in

KEPT = 2
FORMAT = "expgen-checkpoint-1"
HEADER_BYTES = 2**22  # of the list of tensors and facts: tens of thousands of them


class DamagedCheckpoint(InputError):
    """The file is not a checkpoint of ours, or not all of it is there."""


class Checkpoint(NamedTuple):
    """Tensors by name, and facts about them."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    @property
    def is_weights_alone(self) -> bool:
        """Whether it holds a policy and no more, as agents ship."""
        return all(name.startswith("policy.") for name in self.tensors)


def write_checkpoint(
    path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], new_folders: int | None = None
) -> None:
    """Write `tensors` and `facts` to `path`, whole or not at all; `new_folders` is that of `write_atomic`."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(dict(facts), sort_keys=True)
    metadata = {"format": FORMAT, "facts": text, "sha256": digest_of(contiguous, text)}
    write_atomic(path, save_bytes(contiguous, metadata), new_folders)


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint at `path`; DamagedCheckpoint unless its checksum holds."""
    try:
        content = read_bytes(path)
        (size,) = struct.unpack("<Q", content[:8])
        if size > HEADER_BYTES:
            raise ValueError("a header that lists more than any network has")
        metadata = json.loads(content[8 : 8 + size])["__metadata__"]
        tensors = load_bytes(content)
        if metadata["format"] != FORMAT or metadata["sha256"] != digest_of(tensors, metadata["facts"]):
            raise DamagedCheckpoint(f"{path} is damaged: its checksum does not match; accepted: a file expgen wrote")
        return Checkpoint(tensors, _checked(json.loads(metadata["facts"])))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except UnreadableFile as error:
        raise DamagedCheckpoint(str(error)) from None
    except (SafetensorError, struct.error, KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise DamagedCheckpoint(f"{path} is not a whole expgen checkpoint; accepted: a file expgen wrote") from None


def _checked(facts: dict[str, Any]) -> dict[str, Any]:
    """`facts`; KeyError, TypeError or ValueError unless they say how far the policy is, in numbers that can be."""
    counts = (facts["env_steps"], facts.get("updates", 0), facts.get("seconds", 0.0))
    if not all(type(count) in (int, float) and 0 <= count < 2**53 for count in counts) or type(counts[0]) is not int:
        raise ValueError("steps, updates or seconds that cannot be")
    sessions_in(facts)
    return facts


def latest_checkpoint(folder: Path, is_quiet: bool = False) -> Checkpoint | None:
    """The newest good checkpoint in `folder`; None if there is none at all, an error if all are damaged."""
    paths = sorted(folder.glob("*.safetensors"))
    while paths:
        try:
            return read_checkpoint(paths.pop())
        except DamagedCheckpoint as error:
            if not paths:
                raise
            if not is_quiet:
                print(f"expgen: {error}; trying the one before", file=sys.stderr)
    return None


def checkpoint_file(folder: Path, env_steps: int) -> Path:
    """Where `folder` has the checkpoint of `env_steps`: names sort as steps do."""
    return folder / f"{env_steps:012d}.safetensors"


def add_checkpoint(folder: Path, env_steps: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Path:
    """Write the checkpoint of `env_steps` into `folder`, then drop all but the newest KEPT.

    `folder` is RUN/checkpoints/LEARNER. The last two are created where they are missing; RUN is not, for a run folder
    that is no longer there was deleted.
    """
    path = checkpoint_file(folder, env_steps)
    write_checkpoint(path, tensors, facts, new_folders=2)
    for old in sorted(folder.glob("*.safetensors"))[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


def digest_of(tensors: Mapping[str, Tensor], text: str = "") -> str:
    """Of what tensors are and hold, in the order of their names, and of `text`; not of a file's bytes."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
