"""View: a place to look at, as a folder: itself, or what was fetched of a URL."""

import time
from functools import cache
from pathlib import Path

from expgen.storage.listing import FILES, LISTS
from expgen.storage.mirror import Mirror
from expgen.storage.place import Place, below, is_url
from expgen.storage.scratch import scratch_folder
from expgen.storage.store import Store

REFRESH_SECONDS = 10.0  # between two looks at a URL


class View:
    """How far the run at `place` is: rows, names of checkpoints, and no weights."""

    def __init__(self, place: Place, patience: float | None = None) -> None:
        self.place = place
        self.path = Path(place)
        self.mirror: Mirror | None = None
        if is_url(place):
            self.path = scratch_folder() / str(place).rstrip("/").rpartition("/")[2]  # a run is known by this name
            self.mirror = Mirror(Store(str(place), patience), self.path)
        self.looked = float("-inf")

    def refresh(self) -> Path:
        """The folder, as it is or was a few seconds ago."""
        if self.mirror is not None and time.monotonic() - self.looked > REFRESH_SECONDS:
            self.looked = time.monotonic()
            self.mirror.pull(is_sketch=True)
        return self.path


@cache
def _copy_of(url: str) -> Mirror:
    return Mirror(Store(url), scratch_folder())


def local_copy(place: Place) -> Path:
    """The place itself, or all that is at the URL now, in a folder that lasts as long as this process."""
    if not is_url(place):
        return Path(place)
    mirror = _copy_of(str(place))
    mirror.pull()
    return mirror.folder


def places_below(place: Place) -> list[str]:
    """Names of what lies in the folder `place` of a URL and was pushed there."""
    store = Store(str(place))
    return [name for name in store.folders() if LISTS in store.folders(name)]


def fetch(place: Place, folder: Path) -> int:
    """Everything at `place` and below it as plain files in `folder`; how many they are."""
    mirror = Mirror(Store(str(place)), folder)
    count = len(newest.files) if (newest := mirror.pull()) else 0
    for name in mirror.store.folders():
        if name not in (LISTS, FILES):
            count += fetch(below(place, name), folder / name)
    return count
