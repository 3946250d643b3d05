"""workspace: a local folder that is uploaded to a URL during the work."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from expgen.errors import FailedStorage, InputError, TakenOver, show_url_in_errors
from expgen.storage.mirror import WEIGHTS, Mirror
from expgen.storage.scratch import keep_scratch, scratch_folder
from expgen.storage.store import StorageOutage, Store
from expgen.text import notify

POLL_SECONDS = 1.0  # between two checks for a new checkpoint
ROWS_SECONDS = 30.0  # between uploads of new rows without a new checkpoint


@contextlib.contextmanager
def workspace(url: str, folder: Path | None = None) -> Iterator[Mirror]:
    """Take ownership of `url`, download it to `folder` (default: a scratch folder), upload during and after the work.

    If the work raises StorageOutage, there is no last upload.
    """
    mirror, ending = Mirror(Store(url), folder or scratch_folder()), threading.Event()
    mirror.folder.mkdir(parents=True, exist_ok=True)
    mirror.claim()  # before reading the state to resume from
    mirror.download()
    thread = threading.Thread(target=_upload_often, args=(mirror, ending), daemon=True, name="expgen-upload")
    thread.start()
    try:
        with show_url_in_errors(url, mirror.folder):
            yield mirror
    except StorageOutage:
        ending.set()  # first, or the thread might say that training continues
        mirror.store.is_given_up.set()
        raise
    except Exception:
        try:
            _finish(mirror, thread, ending)
        except (InputError, TakenOver) as error:
            notify(f"expgen: {error}")
        raise
    finally:
        ending.set()
    _finish(mirror, thread, ending)


def _upload_often(mirror: Mirror, ending: threading.Event) -> None:
    """Upload new checkpoints and rows, in a thread, so that training never waits for the storage."""
    weights, due = set[Path](), 0.0
    while not ending.wait(POLL_SECONDS):
        try:
            found = set(mirror.folder.rglob(f"*{WEIGHTS}"))
            if found <= weights and time.monotonic() < due:
                continue
            mirror.upload()
            weights = found
        except TakenOver:
            return  # mirror.is_taken_over stops the training
        except FileNotFoundError:
            continue  # a folder was deleted during the search
        except (InputError, OSError) as error:
            if not ending.is_set():  # else the last upload reports the error
                notify(f"expgen: {error}; training continues and the upload is retried")
        due = time.monotonic() + ROWS_SECONDS


def _finish(mirror: Mirror, thread: threading.Thread, ending: threading.Event) -> None:
    """Do the last upload; if it fails, keep the folder and raise FailedStorage."""
    ending.set()
    thread.join()
    try:
        mirror.upload(is_open=False)
    except (InputError, OSError) as error:
        keep_scratch()
        kept = f"files that were not uploaded are kept in {mirror.folder} on {socket.gethostname()}"
        raise FailedStorage(f"{error}; {kept}") from None
