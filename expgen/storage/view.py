"""What is at a URL, to look at as a folder."""

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from expgen.files import check_name, join_inside
from expgen.storage.hub import download, is_hub
from expgen.storage.location import Location, is_url, join
from expgen.storage.mirror import LIST_NAME, LISTS, Mirror
from expgen.storage.scratch import scratch_folder
from expgen.storage.store import Store


@cache
def _mirror(url: str, without_weights: bool, seconds: float | None) -> Mirror:
    return Mirror(Store(url, seconds), join_inside(scratch_folder(), url.rpartition("/")[2]))  # called as the run is


def local_copy(
    location: Location, without_weights: bool = False, max_age: float = 0.0, seconds: float | None = None
) -> Path:
    """The folder itself, or what is at the URL, in a folder that lasts as long as this process.

    A sketch tells how far a run is: rows and names of checkpoints, no weights. What is downloaded may be `max_age`
    seconds old; `seconds` limits each request to the storage.
    """
    if not is_url(location):
        return Path(location)
    if is_hub(location):
        return download(str(location))
    mirror = _mirror(str(location).rstrip("/"), without_weights, seconds)
    if time.monotonic() - mirror.looked >= max_age:
        mirror.download(without_weights)
    return mirror.folder


def check_not_busy(url: str) -> None:
    """InputError if a process works on the run at `url`."""
    _mirror(url.rstrip("/"), False, None).check_not_busy()


def edit_run(url: str, edit: Callable[[Path], None]) -> None:
    """Let `edit` change the folder of a run that no process is working on, and upload it."""
    mirror = _mirror(url.rstrip("/"), False, None)  # that of `local_copy`, which has most of it already
    mirror.check_not_busy()
    mirror.claim()
    mirror.download()
    try:
        edit(mirror.folder)
    finally:
        mirror.upload(is_open=False)


def snapshots_below(url: str) -> list[str]:
    """Paths below `url` with a snapshot, "" for `url` itself; InputError for one that leads elsewhere."""
    lists = (name.rpartition(f"{LISTS}/") for name in Store(url).names())
    paths = {path.removesuffix("/") for path, slash, name in lists if LIST_NAME.fullmatch(slash + name)}
    return sorted(path and check_name(path) for path in paths)


def fetch(url: str, folder: Path) -> int:
    """Download what is at `url` and below it as plain files into `folder`; returns how many there are."""
    count = 0
    for path in snapshots_below(url):
        source, target = (join(url, path), join_inside(folder, path)) if path else (url, folder)
        count += len(Mirror(Store(str(source)), target).download().files)
    return count
