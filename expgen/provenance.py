"""The commit and version of the running code."""

import os
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path


@cache
def commit() -> str:
    """Return the Git commit of the package, with a `+` if files were changed.

    Outside a Git checkout: the environment variable EXPGEN_COMMIT, else the version.
    """
    folder = Path(__file__).parent
    try:
        _git("ls-files", "--error-unmatch", Path(__file__).name, cwd=folder)  # fails in another project's checkout
        head = _git("rev-parse", "--short=12", "HEAD", cwd=folder)
        return head + ("+" if _git("status", "--porcelain", "--untracked-files=no", cwd=folder) else "")
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("EXPGEN_COMMIT") or version()


def version() -> str:
    """Return the installed version, or `unknown` if the package is not installed."""
    try:
        return "v" + metadata.version("expgen")
    except metadata.PackageNotFoundError:
        return "unknown"


def _git(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()
