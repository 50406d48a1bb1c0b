"""A headless Chromium, told what to do by its DevTools protocol; `CHROMIUM` is None without one."""

import json
import os
import select
import shutil
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SECONDS = 20
COMPLAINTS = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--remote-debugging-pipe",
)  # fmt: skip
AS_3_AND_4 = (
    "import os, sys\n"
    "read, write, *words = sys.argv[1:]\n"
    "os.dup2(int(read), 3), os.dup2(int(write), 4)\n"
    "os.execv(words[0], words)"
)
"""Chromium reads from the file 3 and writes to 4; those of this process have other numbers."""


class Browser:
    """One tab. Messages are JSON objects that end with a zero byte, on two pipes."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._rest, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], SECONDS)
            assert ready, f"Chromium said nothing for {SECONDS} s"
            data = os.read(self._from, 1 << 16)
            assert data, "Chromium ended"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        read: dict[str, Any] = json.loads(message)
        return read

    def open(self, address: str) -> None:
        """Go to an address and wait until all is there."""
        self.events.clear()
        self.call("Page.navigate", url=address)
        while not any(one["method"] == "Page.loadEventFired" for one in self.events):
            self.events.append(self._read())

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def picture(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        path.write_bytes(b64decode(self.call("Page.captureScreenshot")["data"]))

    def complaints(self) -> list[dict[str, Any]]:
        """Errors and console messages since the page was opened."""
        self.run("0")
        return [one for one in self.events if one["method"] in COMPLAINTS]

    def requests(self) -> list[str]:
        """Addresses that were asked for, the page's own too."""
        self.run("0")
        sent = [one for one in self.events if one["method"] == "Network.requestWillBeSent"]
        return [one["params"]["request"]["url"] for one in sent]


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A running Chromium with a fresh profile in this folder."""
    read_here, write_there = os.pipe()
    read_there, write_here = os.pipe()
    words = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={profile}"]
    process = subprocess.Popen(
        [sys.executable, "-c", AS_3_AND_4, str(read_there), str(write_there), *words],
        pass_fds=(read_there, write_there),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_there)
    os.close(write_there)
    try:
        yield Browser(write_here, read_here)
    finally:
        process.terminate()
        process.wait(10)
        os.close(read_here)
        os.close(write_here)
