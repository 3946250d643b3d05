"""Where the reproduction with faults writes: a folder on a small disk, or a local S3 server."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chaos.cluster_faults import CLUSTER_FAULTS
from tests.chaos.disk_faults import DISK_FAULTS, small_disk
from tests.chaos.play import play
from tests.chaos.scene import Scene
from tests.chaos.storage_faults import STORAGE_FAULTS
from tests.storage.s3_server import BUCKET, s3_server


def in_a_folder(local: Path, scratch: Path) -> dict[str, Any]:
    """Compare the result with `local`, the reproduction without faults."""
    out = scratch / "out"
    with small_disk(out) as is_mounted:
        faults = CLUSTER_FAULTS + (DISK_FAULTS if is_mounted else [])
        report = play(lambda _: Scene(_emptied(out)), faults, local, lambda _: out)
    if not is_mounted:
        report["left_out"] = "fill disk, refuse writes: no right to mount a file system"
    return report


def in_storage(local: Path, scratch: Path) -> dict[str, Any]:
    """The same at a URL; compares what fetch downloads."""
    with s3_server() as server:
        return play(
            lambda number: Scene(f"s3://{BUCKET}/out{number}", server),
            STORAGE_FAULTS,
            local,
            lambda number: scratch / "fetched" / str(number),
        )


def _emptied(path: Path) -> Path:
    for entry in path.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return path


PLACES: dict[str, Callable[[Path, Path], dict[str, Any]]] = {"folder": in_a_folder, "storage": in_storage}
