"""Location: the folder or fsspec URL of a run or reproduction."""

from pathlib import Path

Location = Path | str  # a str with :// is a URL; a Path would merge the slashes


def is_url(location: Location | None) -> bool:
    return isinstance(location, str) and "://" in location


def absolute(location: Location) -> Location:
    """Return the location independent of the working directory."""
    return str(location).rstrip("/") if is_url(location) else Path(location).resolve()


def join(location: Location, *names: str) -> Location:
    """Return the location of `names` inside `location`."""
    return "/".join((str(location).rstrip("/"), *names)) if is_url(location) else Path(location, *names)
