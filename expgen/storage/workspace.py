"""workspace: a local folder to work in, uploaded to a URL while the work goes on."""

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from expgen.errors import FailedStorage, InputError, TakenOver, show_url_in_errors
from expgen.storage.mirror import WEIGHTS, Mirror
from expgen.storage.scratch import keep_scratch, scratch_folder
from expgen.storage.store import StorageOutage, Store

LOOK_SECONDS = 1.0  # between two looks for a new checkpoint
ROWS_SECONDS = 30.0  # after which rows are uploaded without one


@contextlib.contextmanager
def workspace(url: str, folder: Path | None = None) -> Iterator[Mirror]:
    """Own `url`, download it to `folder` (default: a scratch folder), upload during the work and at its end.

    Work that ends with a StorageOutage does not wait for the storage again.
    """
    mirror, ending = Mirror(Store(url), folder or scratch_folder()), threading.Event()
    mirror.folder.mkdir(parents=True, exist_ok=True)
    mirror.claim()  # before what it resumes from is read
    mirror.download()
    thread = threading.Thread(target=_upload_often, args=(mirror, ending), daemon=True, name="expgen-upload")
    thread.start()
    try:
        with show_url_in_errors(url, mirror.folder):
            yield mirror
    except StorageOutage:
        mirror.store.is_given_up.set()
        raise
    except Exception:
        try:
            _finish(mirror, thread, ending)
        except (InputError, TakenOver) as error:
            print(f"expgen: {error}", file=sys.stderr, flush=True)
        raise  # what ended the work
    finally:
        ending.set()
    _finish(mirror, thread, ending)


def _upload_often(mirror: Mirror, ending: threading.Event) -> None:
    """In a thread: training never waits for the storage, and an outage costs it nothing but safety."""
    weights, due = set[Path](), 0.0
    while not ending.wait(LOOK_SECONDS):
        try:
            found = set(mirror.folder.rglob(f"*{WEIGHTS}"))
            if found <= weights and time.monotonic() < due:
                continue
            mirror.upload()
            weights = found
        except TakenOver:
            return  # mirror.is_taken_over stops the work
        except FileNotFoundError:
            continue  # a folder was deleted while it was looked at
        except (InputError, OSError) as error:
            if not ending.is_set():  # else the last upload reports it
                print(f"expgen: {error}; training continues and the upload is retried", file=sys.stderr, flush=True)
        due = time.monotonic() + ROWS_SECONDS


def _finish(mirror: Mirror, thread: threading.Thread, ending: threading.Event) -> None:
    """Upload what is not there yet; FailedStorage, and the folder is kept, if that fails."""
    ending.set()
    thread.join()
    try:
        mirror.upload(is_open=False)
    except (InputError, OSError) as error:
        keep_scratch()
        kept = f"what could not be uploaded is kept in {mirror.folder} on {socket.gethostname()}"
        raise FailedStorage(f"{error}; {kept}") from None
