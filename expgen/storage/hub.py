"""Agents on the Hugging Face Hub: `hf://USER/NAME`, or `hf://USER/NAME@REVISION`.

What lies there is a stranger's: of its files only those that make up an agent are taken, by their names and up to a
size. They are JSON, CSV and safetensors, none of which runs anything.
"""

import contextlib
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from expgen.errors import FailedStorage, InputError, error_line
from expgen.storage.location import Location
from expgen.storage.scratch import scratch_folder

_URL = re.compile(r"hf://(\w[\w.-]{0,95}/\w[\w.-]{0,95})(?:@(\w[\w./-]{0,99}))?/?", re.ASCII)
_TAKEN = re.compile(r"(agent|config|card)\.json|scores\.csv|checkpoints/\w[\w.-]*/\d+\.safetensors", re.ASCII)
MOST_FILES, MAX_BYTES = 200, 2**33  # of an agent
COMMIT = re.compile(r"[0-9a-f]{40}")


def is_hub(location: Location) -> bool:
    return str(location).startswith("hf://")


def parse_hub(url: str) -> tuple[str, str | None]:
    """USER/NAME and the revision, if any, that `url` names; InputError where it is none of a repository."""
    found = _URL.fullmatch(url)
    if found is None or ".." in url or "--" in url:
        raise InputError(f"{url!r} is no repository; accepted: hf://USER/NAME or hf://USER/NAME@REVISION")
    return found[1], found[2]


@cache
def download(url: str) -> Path:
    """The agent at `url`, in a folder that lasts as long as this process."""
    name, revision = parse_hub(url)
    api = _library(url).HfApi()
    with _in_words("read", url):
        info = api.model_info(name, revision=revision, files_metadata=True)
        files = {each.rfilename: each.size or 0 for each in info.siblings or () if _TAKEN.fullmatch(each.rfilename)}
        if "agent.json" not in files or not COMMIT.fullmatch(info.sha or ""):
            raise InputError(f"{url} holds no agent.json; accepted: an agent that expgen push wrote")
        if len(files) > MOST_FILES or sum(files.values()) > MAX_BYTES:
            size = f"{len(files)} files of {sum(files.values()):,} bytes"
            raise InputError(f"{url} holds {size}; accepted: at most {MOST_FILES} files of {MAX_BYTES:,} bytes")
        folder = scratch_folder() / name.rpartition("/")[2]
        for file in files:
            api.hf_hub_download(name, file, revision=info.sha, local_dir=folder)
    return folder


def upload(folder: Path, url: str, is_private: bool = False) -> None:
    """All files of `folder` as one commit of the repository `url`, which is made where there is none."""
    (name, _), api = parse_hub(url), _library(url).HfApi()
    with _in_words("write", url):
        api.create_repo(name, private=is_private, exist_ok=True)
        api.upload_folder(repo_id=name, folder_path=folder, commit_message="Push an agent of expgen")


def _library(url: str) -> ModuleType:
    try:
        return importlib.import_module("huggingface_hub")
    except ImportError:
        raise InputError(f"{url} needs huggingface_hub; accepted: pip install 'expgen[hub]'") from None


@contextlib.contextmanager
def _in_words(verb: str, url: str) -> Iterator[None]:
    """Errors of the library as one line; FailedStorage where the hub did not respond."""
    refusal = importlib.import_module("huggingface_hub.errors").HfHubHTTPError
    outage = refusal.__bases__[0]  # of whichever HTTP library it uses
    try:
        yield
    except refusal as error:
        raise InputError(f"cannot {verb} {url}: {error_line(error)[:200]}") from None
    except InputError:
        raise
    except (outage, OSError, ValueError) as error:
        raise FailedStorage(f"cannot {verb} {url}: {error_line(error)[:200]}") from None
