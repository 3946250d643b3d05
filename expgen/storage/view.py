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

REFRESH_SECONDS = 10.0  # between two looks at a URL


class View:
    """How far the run at `location` is: rows and names of checkpoints, no weights. `seconds` limits each request."""

    def __init__(self, location: Location, seconds: float | None = None) -> None:
        self.path, self.looked = Path(location), float("-inf")
        self.mirror: Mirror | None = None
        if is_url(location):
            self.path = join_inside(scratch_folder(), str(location).rstrip("/").rpartition("/")[2])  # the run's name
            self.mirror = Mirror(Store(str(location), seconds), self.path)

    def refresh(self) -> Path:
        """The folder, at most REFRESH_SECONDS old."""
        if self.mirror is not None and time.monotonic() - self.looked > REFRESH_SECONDS:
            self.looked = time.monotonic()
            self.mirror.download(is_sketch=True)
        return self.path


@cache
def _copy_of(url: str) -> Mirror:
    return Mirror(Store(url), scratch_folder())


def local_copy(location: Location) -> Path:
    """The folder itself, or all that is at the URL now, in a folder that lasts as long as this process."""
    if not is_url(location):
        return Path(location)
    if is_hub(location):
        return download(str(location))
    _copy_of(str(location)).download()
    return _copy_of(str(location)).folder


def amend(url: str, name: str, change: Callable[[Path], None]) -> None:
    """Let `change` edit the file `name` of a run that no process is working on, and upload it."""
    mirror = _copy_of(url)
    mirror.refuse_if_busy()
    mirror.claim()
    mirror.downloaded.pop(name, None)  # an edit may have failed to be uploaded
    mirror.download()
    try:
        change(join_inside(mirror.folder, name))
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
