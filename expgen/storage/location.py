"""Location: where a run or a reproduction is kept, a folder or a URL that fsspec opens."""

from pathlib import Path

Location = Path | str  # a str with :// in it is a URL; a Path would merge its slashes


def is_url(location: Location | None) -> bool:
    return isinstance(location, str) and "://" in location


def absolute(location: Location) -> Location:
    """The same location from any working directory."""
    return str(location).rstrip("/") if is_url(location) else Path(location).resolve()


def join(location: Location, *names: str) -> Location:
    """A location inside another."""
    return "/".join((str(location).rstrip("/"), *names)) if is_url(location) else Path(location, *names)
