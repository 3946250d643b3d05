"""Store: files below a URL. Failed operations are retried for EXPGEN_STORAGE_SECONDS.

The storage needs to write, read, list and delete whole files only: no rename, append or lock.
"""

import contextlib
import importlib
import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

import tenacity

from expgen.errors import FailedStorage, InputError, error_line
from expgen.files import check_name
from expgen.storage.location import is_url
from expgen.text import notify

SECONDS_VARIABLE = "EXPGEN_STORAGE_SECONDS"  # how long one operation is retried
NOTICE_SECONDS = 10.0  # an operation that takes longer is reported on stderr
PERMANENT_ERRORS = (FileNotFoundError, PermissionError, ImportError, NotImplementedError, TypeError, AttributeError)


class StorageOutage(FailedStorage):
    """The storage did not respond, or only with errors, until the retries ended."""


class Store:
    """Files below `url`, by name. `seconds` limits each operation (default: EXPGEN_STORAGE_SECONDS)."""

    def __init__(self, url: str, seconds: float | None = None) -> None:
        text = os.environ.get(SECONDS_VARIABLE, "300")
        if not re.fullmatch(r"\d{1,9}(\.\d+)?", text, re.ASCII):  # a longer wait overflows
            raise InputError(f"{SECONDS_VARIABLE} is {text!r}; accepted: a number of seconds, such as 300")
        self.url, self.seconds = url.rstrip("/"), float(text) if seconds is None else seconds
        self.is_given_up = threading.Event()  # once set: no more retries or messages
        accepted = "a folder, or a URL whose driver is installed, as by pip install 'expgen[storage]' s3fs"
        if not is_url(self.url):  # fsspec would open a folder `s3:` of this machine
            raise InputError(f"{url} has no path; accepted: a folder, or a URL as s3://BUCKET/RUN")
        try:
            self.files, self.root = importlib.import_module("fsspec.core").url_to_fs(self.url, use_listings_cache=False)
        except (ImportError, ValueError, TypeError, AttributeError) as error:  # the last two: the driver needs options
            raise InputError(f"cannot open {url}: {_line(error)}; accepted: {accepted}") from None
        except OSError as error:  # some drivers connect
            raise StorageOutage(f"cannot open {url}: {_line(error)}") from None

    def read(self, name: str) -> bytes:
        """Return the content of the file `name`; raise FileNotFoundError if it does not exist."""
        return self._retry("read", name, self.files.cat_file)

    def write(self, name: str, content: bytes) -> None:
        """Write the file `name`. On a plain disk the write is not atomic."""
        self._retry("write", name, self._put, content)

    def _put(self, path: str, content: bytes) -> None:
        try:
            self.files.pipe_file(path, content)
        except FileNotFoundError:
            if not self.files.exists(re.sub("(?<=[^/])/.*", "", path)):  # the bucket, which we do not create
                raise
            self.files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self.files.pipe_file(path, content)

    def names(self, folder: str = "") -> list[str]:
        """Return the names of all files in `folder`, recursively, sorted; not trusted, so check_name before use."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(path[len(self.root) :].lstrip("/") for path in self._retry("list", folder, self.files.find))
        return []

    def delete(self, name: str) -> None:
        """Delete the file `name` if it exists."""
        with contextlib.suppress(FileNotFoundError):
            self._retry("delete", name, self.files.rm_file)

    def _retry(self, verb: str, name: str, operation: Callable[..., Any], *values: Any) -> Any:
        """Call `operation` with the path of `name`, in a thread as it may hang; StorageOutage after `seconds`."""
        path = f"{self.root.rstrip('/')}/{check_name(name)}" if name else self.root
        result: Future[Any] = Future()
        errors: list[BaseException | None] = [TimeoutError("no response")]
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_is_transient),
            wait=tenacity.wait_random_exponential(multiplier=0.25, max=15),
            stop=tenacity.stop_before_delay(self.seconds) | tenacity.stop_when_event_set(self.is_given_up),
            sleep=tenacity.sleep_using_event(self.is_given_up),
            before_sleep=lambda state: errors.append(state.outcome.exception() if state.outcome else None),
            reraise=True,
        )

        def call() -> None:
            try:
                result.set_result(retrying(operation, path, *values))
            except BaseException as error:  # raised again below, in the caller's thread
                result.set_exception(error)

        threading.Thread(target=call, daemon=True, name="expgen-storage").start()
        cannot, limit = f"cannot {verb} {self.url}/{name}".rstrip("/"), f"{self.seconds:.0f} s"
        if not wait([result], min(NOTICE_SECONDS, self.seconds)).done and self.seconds > NOTICE_SECONDS:
            self._print(f"{cannot} yet: {_line(errors[-1])}; retrying for {limit}")
            if wait([result], self.seconds - NOTICE_SECONDS).done and not _is_transient(result.exception()):
                self._print(f"{self.url} responds again")
        error = result.exception() if result.done() else errors[-1]
        if _is_transient(error):
            raise StorageOutage(f"{cannot}: {self.url} did not respond within {limit}: {_line(error)}") from None
        if isinstance(error, Exception) and (verb == "write" or not isinstance(error, FileNotFoundError)):
            raise InputError(f"{cannot}: {_line(error)}") from None
        return result.result()

    def _print(self, line: str) -> None:
        if not self.is_given_up.is_set():
            notify(f"expgen: {line}")


def _is_transient(error: BaseException | None) -> bool:
    """Return whether a retry may succeed: not if rights, a driver or credentials are missing."""
    is_permanent = isinstance(error, PERMANENT_ERRORS) or "Credentials" in type(error).__name__
    return isinstance(error, Exception) and not is_permanent


def _line(error: BaseException | None) -> str:
    return error_line(error)[:200] if error else "None"
