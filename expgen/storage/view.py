"""Read runs at a URL as local folders."""

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
    run_name = url.rpartition("/")[2]
    return Mirror(Store(url, seconds), join_inside(scratch_folder(), run_name))


def local_copy(
    location: Location, without_weights: bool = False, max_age: float = 0.0, seconds: float | None = None
) -> Path:
    """Return the folder itself, or a scratch folder with a download of the URL.

    without_weights: download JSON and CSV files only; checkpoints and other files are empty.
    max_age: seconds for which an earlier download is used again.
    seconds: time limit of each request to the storage.
    """
    if not is_url(location):
        return Path(location)
    if is_hub(location):
        return download(str(location))
    mirror = _mirror(str(location).rstrip("/"), without_weights, seconds)
    if time.monotonic() - mirror.download_time >= max_age:
        mirror.download(without_weights)
    return mirror.folder


def check_not_busy(url: str) -> None:
    """Raise InputError if a process works on the run at `url`."""
    _mirror(url.rstrip("/"), False, None).check_not_busy()


def edit_run(url: str, edit: Callable[[Path], None]) -> None:
    """Download a run that no process works on, call `edit` with its folder, and upload it."""
    mirror = _mirror(url.rstrip("/"), False, None)  # shared with `local_copy`, which has downloaded most files
    mirror.check_not_busy()
    mirror.claim()
    mirror.download()
    try:
        edit(mirror.folder)
    finally:
        mirror.upload(is_open=False)


def snapshots_below(url: str) -> list[str]:
    """Return the paths below `url` that have a snapshot, "" for `url` itself; raise InputError for an unsafe path."""
    lists = (name.rpartition(f"{LISTS}/") for name in Store(url).names())
    paths = {path.removesuffix("/") for path, slash, name in lists if LIST_NAME.fullmatch(slash + name)}
    return sorted(path and check_name(path) for path in paths)


def fetch(url: str, folder: Path) -> int:
    """Download all snapshots at and below `url` into `folder`; return the number of files."""
    count = 0
    for path in snapshots_below(url):
        source, target = (join(url, path), join_inside(folder, path)) if path else (url, folder)
        count += len(Mirror(Store(str(source)), target).download().files)
    return count
