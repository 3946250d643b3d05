"""Agents on the Hugging Face Hub: `hf://USER/NAME` or `hf://USER/NAME@REVISION`.

Repositories are not trusted: only the files of an agent are downloaded, up to a size limit. They are JSON, CSV and
safetensors, none of which can run code.
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
_FILES = re.compile(r"(agent|config|card)\.json|scores\.csv|checkpoints/\w[\w.-]*/\d+\.safetensors", re.ASCII)
MAX_FILES, MAX_BYTES = 200, 2**33  # of an agent
COMMIT = re.compile(r"[0-9a-f]{40}")


def is_hub(location: Location) -> bool:
    return str(location).startswith("hf://")


def parse_hub(url: str) -> tuple[str, str | None]:
    """Return USER/NAME and the revision, if any, of `url`; raise InputError if it does not name a repository."""
    found = _URL.fullmatch(url)
    if found is None or ".." in url or "--" in url:
        raise InputError(f"{url!r} is not a repository; accepted: hf://USER/NAME or hf://USER/NAME@REVISION")
    return found[1], found[2]


@cache
def download(url: str) -> Path:
    """Download the agent at `url`; return its folder, which is deleted when the process ends."""
    name, revision = parse_hub(url)
    api = _library(url).HfApi()
    with _one_line_errors("read", url):
        info = api.model_info(name, revision=revision, files_metadata=True)
        files = {file.rfilename: file.size or 0 for file in info.siblings or () if _FILES.fullmatch(file.rfilename)}
        if "agent.json" not in files or not COMMIT.fullmatch(info.sha or ""):
            raise InputError(f"{url} holds no agent.json; accepted: an agent that expgen push wrote")
        size = sum(files.values())
        if len(files) > MAX_FILES or size > MAX_BYTES:
            found = f"{len(files)} files of {size:,} bytes"
            raise InputError(f"{url} holds {found}; accepted: at most {MAX_FILES} files of {MAX_BYTES:,} bytes")
        folder = scratch_folder() / name.rpartition("/")[2]
        for file_name in files:
            api.hf_hub_download(name, file_name, revision=info.sha, local_dir=folder)
    return folder


def upload(folder: Path, url: str, is_private: bool = False) -> None:
    """Upload all files of `folder` as one commit to the repository `url`, which is created if it does not exist."""
    (name, _), api = parse_hub(url), _library(url).HfApi()
    with _one_line_errors("write", url):
        api.create_repo(name, private=is_private, exist_ok=True)
        api.upload_folder(repo_id=name, folder_path=folder, commit_message="Push an agent of expgen")


def _library(url: str) -> ModuleType:
    try:
        return importlib.import_module("huggingface_hub")
    except ImportError:
        raise InputError(f"{url} needs huggingface_hub; accepted: pip install 'expgen[hub]'") from None


@contextlib.contextmanager
def _one_line_errors(verb: str, url: str) -> Iterator[None]:
    """Raise errors of the library as InputError, or as FailedStorage if the hub did not respond."""
    refusal = importlib.import_module("huggingface_hub.errors").HfHubHTTPError
    outage = refusal.__bases__[0]  # the base error of its HTTP library
    try:
        yield
    except refusal as error:
        raise InputError(f"cannot {verb} {url}: {error_line(error)[:200]}") from None
    except InputError:
        raise
    except (outage, OSError, ValueError) as error:
        raise FailedStorage(f"cannot {verb} {url}: {error_line(error)[:200]}") from None
