"""The fixture `page`: a tab in headless Chromium, driven through the DevTools protocol over a pipe.

After each test the fixture fails if the page logged an error or requested anything but local files.
"""

import base64
import contextlib
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # not available to root, as in containers
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # no network access
    "--remote-debugging-pipe",
)
LOCAL = ("file:", "data:", "blob:", "about:")
TIMEOUT = 60.0  # seconds to wait for the page or for Chromium, on a busy machine
FLAWS = Path(__file__).with_name("flaws.js").read_text()
KEYS = {"Space": " ", "Enter": "\r"}  # keys by name, with the character they type


class Browser:
    """A Chromium process that exchanges JSON messages terminated by a zero byte."""

    def __init__(self, program: str, home: Path) -> None:
        commands, self.commands = _pipe()
        self.answers, answers = _pipe()

        def connect() -> None:
            os.dup2(commands, 3)  # read by --remote-debugging-pipe
            os.dup2(answers, 4)  # written by it

        command = [program, *FLAGS, f"--user-data-dir={home}", "about:blank"]
        with open(home / "chromium.log", "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=connect, close_fds=False)
        os.close(commands)
        os.close(answers)
        self.unread = b""
        self.numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Call a protocol method and return its result; store events that arrive before it."""
        number = next(self.numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self.unread:
            part = os.read(self.answers, 1 << 20)
            if not part:
                raise RuntimeError("Chromium closed its pipe")
            self.unread += part
        message, _, self.unread = self.unread.partition(b"\0")
        return dict(json.loads(message))

    def close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self.call("Browser.close")
        os.close(self.commands)
        os.close(self.answers)
        try:
            self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Page:
    """One tab: opens files, reads their content, sends clicks and keys."""

    def __init__(self, browser: Browser, width: int = 1280, height: int = 900) -> None:
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol on this page."""
        return self.browser.call(method, self.session, **params)

    def resize(self, width: int, height: int, scale: float = 1) -> None:
        """Set the size of the window in CSS pixels; `scale` is device pixels per CSS pixel."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)

    def open(self, file: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.call("Page.navigate", url=file.resolve().as_uri())
        self.wait_for(f"document.readyState === 'complete' && location.href.startsWith({json.dumps('file:')})")

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression, awaited if it is a promise."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            thrown = result["exceptionDetails"]
            raise AssertionError(f"{script}: {thrown.get('exception', {}).get('description', thrown['text'])}")
        return result["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until a JavaScript expression is true; it counts as false while the page is loading."""
        deadline = time.monotonic() + TIMEOUT
        while not self._holds(condition):
            assert time.monotonic() < deadline, f"never became true: {condition}"
            time.sleep(0.02)

    def _holds(self, condition: str) -> bool:
        try:
            return bool(self.run(f"Boolean({condition})"))
        except RuntimeError:  # protocol error "Inspected target navigated or closed"
            return False

    def texts(self, selector: str) -> list[str]:
        """Return the visible text of all elements that match a CSS selector."""
        found = self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText.trim())")
        return [str(text) for text in found]

    def click(self, selector: str, across: float = 0.5) -> None:
        """Click on an element, at the share `across` of its width from the left."""
        box = self.run(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
            f" return [b.left, b.top, b.width, b.height] }})(document.querySelector({json.dumps(selector)}))"
        )
        at = {"x": box[0] + box[2] * across, "y": box[1] + box[3] / 2, "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **at)

    def press(self, key: str) -> None:
        """Press and release a key by its DOM name: `ArrowRight`, `Home`, `Space`, `a`."""
        text = KEYS.get(key, key if len(key) == 1 else "")
        code = f"Key{key.upper()}" if len(key) == 1 and key.isalpha() else key
        event = {"key": " " if key == "Space" else key, "code": code}
        if text:
            event["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def screenshot(self, path: Path, selector: str | None = None) -> Path:
        """Write a PNG of the window, or of one element at full height."""
        extra: dict[str, Any] = {}
        if selector:
            box = self.run(
                f"(b => ({{x: b.left + scrollX, y: b.top + scrollY, width: b.width, height: b.height, scale: 1}}))"
                f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
            )
            extra = {"clip": box, "captureBeyondViewport": True}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", **extra)["data"]))
        return path

    def set_color_scheme(self, scheme: str) -> None:
        """Emulate the colour scheme `light` or `dark`."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def flaws(self) -> list[str]:
        """Return layout flaws: text that is too small, faint or overlapping, and horizontal scrolling."""
        return [str(flaw) for flaw in self.run(FLAWS)]

    def fetched(self) -> list[str]:
        """Return the URLs requested other than local files."""
        urls = (event["params"]["request"]["url"] for event in self._events("Network.requestWillBeSent"))
        return [url for url in urls if not url.startswith(LOCAL)]

    def complaints(self) -> list[str]:
        """Return errors and warnings of scripts, the console and the browser's log."""
        thrown = [str(event["params"]["exceptionDetails"]) for event in self._events("Runtime.exceptionThrown")]
        logged = [event["params"] for event in self._events("Runtime.consoleAPICalled")]
        entries = [event["params"]["entry"] for event in self._events("Log.entryAdded")]
        printed = [str(call["args"]) for call in logged if call["type"] in ("error", "warning", "assert")]
        return thrown + printed + [entry["text"] for entry in entries if entry["level"] in ("error", "warning")]

    def _events(self, method: str) -> list[dict[str, Any]]:
        self.run("1")  # reads pending events
        return [e for e in self.browser.events if e.get("sessionId") == self.session and e.get("method") == method]

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)


def _pipe() -> tuple[int, int]:
    """Return a pipe like os.pipe, with descriptors above 4, which Chromium uses."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        running = Browser(program, Path(home))
        try:
            yield running
        finally:
            running.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """An empty tab; teardown fails on errors and on requests to the network."""
    opened = Page(browser)
    try:
        yield opened
        assert opened.complaints() == []
        assert opened.fetched() == []
    finally:
        opened.close()
