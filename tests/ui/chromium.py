"""Headless Chromium, driven by its DevTools protocol through two pipes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE = 60  #: seconds that a condition may take to hold


@dataclass
class Tab:
    """A page of the browser."""

    write: int
    read: Any
    session: str = ""
    number: int = 0

    def call(self, method: str, **parameters: Any) -> Any:
        """Calls a method of the protocol and returns its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def _message(self) -> Any:
        found = bytearray()
        while (byte := self.read.read(1)) != b"\0":
            assert byte, "Chromium has ended"
            found += byte
        return json.loads(found)

    def open(self, address: str) -> None:
        """Opens an address, and waits until the page and its script are loaded."""
        self.call("Page.navigate", url=address)
        self.wait(f"location.href === {json.dumps(address)} && document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """Returns the value of an expression of JavaScript, a promise's when it is kept."""
        done = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, condition: str) -> None:
        """Waits until an expression is true, also across a change of the page."""
        until = time.monotonic() + PATIENCE
        while not self._holds(condition):
            assert time.monotonic() < until, f"it never held: {condition}"
            time.sleep(0.05)

    def _holds(self, condition: str) -> bool:
        try:
            return self.value(condition) is True
        except AssertionError:  # the page is being replaced
            return False

    def press(self, key: str, text: str = "", shift: bool = False) -> None:
        """Presses and releases a key, such as `Tab`."""
        codes = {"Tab": 9, "Enter": 13, "ArrowDown": 40, "ArrowUp": 38, " ": 32}
        text = text or {"Enter": "\r", " ": " "}.get(key, "")
        about = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0), "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text: str) -> None:
        """Types a text into what has the focus."""
        self.call("Input.insertText", text=text)


@contextmanager
def chromium(profile: Path) -> Iterator[Tab]:
    """Starts Chromium with an empty profile; it ends with the block."""
    assert CHROMIUM is not None
    to_browser, write = os.pipe()
    read, from_browser = os.pipe()
    arguments = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"),
        *(f"--user-data-dir={profile}", "--window-size=1200,900", "about:blank"),
    ]
    command = ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", *arguments]
    process = subprocess.Popen(
        command, pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        with os.fdopen(read, "rb") as answers:
            tab = Tab(write, answers)
            target = tab.call("Target.createTarget", url="about:blank")["targetId"]
            tab.session = tab.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            tab.call("Page.enable")
            yield tab
    finally:
        os.close(write)
        process.terminate()
        process.wait(30)
