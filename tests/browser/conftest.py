"""`page`: a page in a real headless Chromium, driven through the DevTools protocol over a pipe.

It knows nothing of expgen. After each test it fails where the page logged an error or asked for anything but the files
it was made of.
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
    "--no-sandbox",  # root, as in containers, has none
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
    "--host-resolver-rules=MAP * ~NOTFOUND",  # the test has no network, whatever the machine has
    "--remote-debugging-pipe",
)
LOCAL = ("file:", "data:", "blob:", "about:")
PATIENCE = 60.0  # seconds that anything may take on a busy machine
FLAWS = Path(__file__).with_name("flaws.js").read_text()
KEYS = {"Space": " ", "Enter": "\r"}  # names of keys that type a character other than their name


class Browser:
    """Chromium as a process, spoken to in messages that end in a zero byte."""

    def __init__(self, program: str, home: Path) -> None:
        commands, self.commands = _pipe()
        self.answers, answers = _pipe()

        def connect() -> None:
            os.dup2(commands, 3)  # where --remote-debugging-pipe listens
            os.dup2(answers, 4)  # and speaks

        words = [program, *FLAGS, f"--user-data-dir={home}", "about:blank"]
        with open(home / "chromium.log", "wb") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log, preexec_fn=connect, close_fds=False)
        os.close(commands)
        os.close(answers)
        self.unread = b""
        self.numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """The result of a protocol method; events that arrive before it are kept."""
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
                raise RuntimeError("Chromium has gone")
            self.unread += part
        message, _, self.unread = self.unread.partition(b"\0")
        return dict(json.loads(message))

    def close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self.call("Browser.close")
        os.close(self.commands)
        os.close(self.answers)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Page:
    """One tab: open a file, look at it, click and type as a person would."""

    def __init__(self, browser: Browser, width: int = 1280, height: int = 900) -> None:
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A method of the DevTools protocol, on this page."""
        return self.browser.call(method, self.session, **params)

    def resize(self, width: int, height: int, scale: float = 1) -> None:
        """Set the size of the window, in CSS pixels; `scale` sharpens screenshots."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)

    def open(self, file: Path) -> None:
        """Show a file and wait until it has loaded."""
        self.call("Page.navigate", url=file.resolve().as_uri())
        self.wait_for(f"document.readyState === 'complete' && location.href.startsWith({json.dumps('file:')})")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression, awaited where it is a promise."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            thrown = result["exceptionDetails"]
            raise AssertionError(f"{script}: {thrown.get('exception', {}).get('description', thrown['text'])}")
        return result["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Until a JavaScript expression is true; while the page is being replaced it is not."""
        deadline = time.monotonic() + PATIENCE
        while not self._holds(condition):
            assert time.monotonic() < deadline, f"never became true: {condition}"
            time.sleep(0.02)

    def _holds(self, condition: str) -> bool:
        try:
            return bool(self.run(f"Boolean({condition})"))
        except RuntimeError:  # of the protocol: "Inspected target navigated or closed"
            return False

    def texts(self, selector: str) -> list[str]:
        """What the elements that match a CSS selector show."""
        found = self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText.trim())")
        return [str(text) for text in found]

    def click(self, selector: str, across: float = 0.5) -> None:
        """Press and release the mouse on an element, `across` of the way from its left edge to its right."""
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
        """A PNG of the window, or of one element and all of its height."""
        extra: dict[str, Any] = {}
        if selector:
            box = self.run(
                f"(b => ({{x: b.left + scrollX, y: b.top + scrollY, width: b.width, height: b.height, scale: 1}}))"
                f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
            )
            extra = {"clip": box, "captureBeyondViewport": True}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", **extra)["data"]))
        return path

    def appear(self, scheme: str) -> None:
        """Ask for the `light` or the `dark` colours."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def flaws(self) -> list[str]:
        """Text too small or faint to read or on top of other text, and whatever scrolls sideways."""
        return [str(flaw) for flaw in self.run(FLAWS)]

    def fetched(self) -> list[str]:
        """What was asked of anything but local files."""
        urls = (event["params"]["request"]["url"] for event in self._events("Network.requestWillBeSent"))
        return [url for url in urls if not url.startswith(LOCAL)]

    def complaints(self) -> list[str]:
        """Errors and warnings: of the page's scripts, on its console, in the browser's log."""
        thrown = [str(event["params"]["exceptionDetails"]) for event in self._events("Runtime.exceptionThrown")]
        logged = [event["params"] for event in self._events("Runtime.consoleAPICalled")]
        entries = [event["params"]["entry"] for event in self._events("Log.entryAdded")]
        printed = [str(call["args"]) for call in logged if call["type"] in ("error", "warning", "assert")]
        return thrown + printed + [entry["text"] for entry in entries if entry["level"] in ("error", "warning")]

    def _events(self, method: str) -> list[dict[str, Any]]:
        self.run("1")  # brings in what has happened so far
        return [e for e in self.browser.events if e.get("sessionId") == self.session and e.get("method") == method]

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)


def _pipe() -> tuple[int, int]:
    """As os.pipe, well above the numbers that Chromium asks for."""
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
    """An empty page; at the end there must have been no error on it and no request to anywhere."""
    opened = Page(browser)
    try:
        yield opened
        assert opened.complaints() == []
        assert opened.fetched() == []
    finally:
        opened.close()
