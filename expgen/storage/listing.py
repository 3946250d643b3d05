"""Listing: which files at a URL make up a snapshot, who wrote it and when, as a text that carries its own checksum."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from expgen.errors import InputError

FORMAT = "expgen-list-1"
LISTS, FILES = "lists", "files"
SITTING_DIGITS = 6
LIST_NAME = re.compile(rf"{LISTS}/\d{{{SITTING_DIGITS}}}-\d{{9}}-\w+\.json")


class Kept(NamedTuple):
    """One file of a snapshot."""

    object: str  # its name at the URL
    sha256: str
    modified: float


class Listing(NamedTuple):
    """A snapshot: which files count, by their names here."""

    sitting: int
    push: int
    writer: str
    is_open: bool  # its writer is at work
    written: float
    files: dict[str, Kept]

    @property
    def name(self) -> str:
        return f"{LISTS}/{self.sitting:0{SITTING_DIGITS}d}-{self.push:09d}-{self.writer}.json"


def sitting_of(name: str) -> int:
    """Of the list of this name, be it whole or torn."""
    return int(name.removeprefix(f"{LISTS}/")[:SITTING_DIGITS])


def object_name(name: str, digest: str) -> str:
    """What the file `name` of this content is called at the URL; no other content is."""
    path = PurePosixPath(name)
    return f"{FILES}/{path.with_name(f'{path.stem}.{digest[:16]}{path.suffix}')}"


def text_of(listing: Listing) -> bytes:
    """What `parse` reads."""
    body = json.dumps(listing._asdict())
    return json.dumps({"format": FORMAT, "sha256": _digest(body), "body": body}).encode()


def parse(content: bytes, url: str) -> Listing | None:
    """None where it is not whole, since its writer died; InputError where it is whole but not ours."""
    try:
        outer = json.loads(content)
    except ValueError:
        return None
    if not isinstance(outer, dict) or _digest(str(outer.get("body"))) != outer.get("sha256"):
        return None
    try:
        if outer["format"] != FORMAT:
            raise ValueError(outer["format"])
        body: Mapping[str, Any] = json.loads(outer["body"])
        files = {
            _inside(name): Kept(_inside(key), str(sha256), float(at))
            for name, (key, sha256, at) in body["files"].items()
        }
        return Listing(**{**body, "files": files})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{url}/{LISTS} holds a list that is none of ours ({error}); accepted: expgen's") from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _inside(name: str) -> str:
    """A name that leads nowhere but below its folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError(name)
    return name
