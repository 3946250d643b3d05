"""A place: where a run or a reproduction is kept, a folder or whatever fsspec opens by a URL."""

import importlib
from pathlib import Path
from typing import Any

from expgen.errors import InputError

Place = Path | str  # a str with :// in it is a URL, which a Path would spoil


def is_url(place: Place | None) -> bool:
    return isinstance(place, str) and "://" in place


def whole(place: Place) -> Place:
    """The same place from any folder and, where it is shared, from any machine."""
    return str(place).rstrip("/") if is_url(place) else Path(place).resolve()


def below(place: Place, *names: str) -> Place:
    """A place inside another."""
    return "/".join((str(place).rstrip("/"), *names)) if is_url(place) else Path(place, *names)


def open_url(url: str) -> tuple[Any, str]:
    """fsspec's file system for `url`, and the path in it; an InputError where something is not installed."""
    try:
        core = importlib.import_module("fsspec.core")
    except ImportError:
        raise InputError(f"{url} needs fsspec; accepted: a folder, or pip install 'expgen[storage]'") from None
    try:
        return core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        line = " ".join(str(error).split())
        raise InputError(f"{url} cannot be opened: {line}; accepted: a folder, or a URL that fsspec opens") from None
