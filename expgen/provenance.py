"""Which code made a number."""

import os
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path


@cache
def commit() -> str:
    """The commit of the checkout this package runs from, `+` where it was changed.

    Where it runs from a copy without Git's files, what the variable EXPGEN_COMMIT says, or else the version.
    """
    here = Path(__file__).parent
    try:
        _git("ls-files", "--error-unmatch", Path(__file__).name, cwd=here)  # some other project's checkout will not do
        head = _git("rev-parse", "--short=12", "HEAD", cwd=here)
        return head + ("+" if _git("status", "--porcelain", "--untracked-files=no", cwd=here) else "")
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("EXPGEN_COMMIT") or version()


def version() -> str:
    """The installed version, or `unknown` where the package runs uninstalled."""
    try:
        return "v" + metadata.version("expgen")
    except metadata.PackageNotFoundError:
        return "unknown"


def _git(*words: str, cwd: Path) -> str:
    done = subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()
