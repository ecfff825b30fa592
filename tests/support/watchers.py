"""Who follows a command that is running: a machine that is watched, and a reader of what is served."""

from __future__ import annotations

import json
import re
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from support.exposition_server import Reply, node_text

if TYPE_CHECKING:
    from collections.abc import Callable

BUSY = r"CPU busy (2\d|30) %"
"""How `moving` is shown."""


def moving() -> Reply:
    """A machine with one core, a quarter of it busy."""
    now = time.monotonic()
    return Reply(body=node_text(idle=now * 0.75, user=now * 0.25, time=time.time()).encode())  # noqa: TID251


class Follower:
    """Takes a command's standard error, and follows the live page and the metrics that it names."""

    def __init__(self) -> None:
        self.err: list[str] = []
        self.documents: list[dict[str, Any]] = []
        self.last: dict[str, Any] = {}
        """What came with the word that all has ended."""
        self.metrics = ""
        """As they were when the first interval was there."""
        self._urls: dict[str, str] = {}
        self._thread: threading.Thread | None = None

    def write(self, text: str) -> None:
        self.err.append(text)
        for name, url in re.findall(r"(in a browser|metrics of this run): (http://\S+)", text):
            self._urls[name] = url
            if name == "in a browser":
                self._thread = threading.Thread(target=self._follow, args=(url,))
                self._thread.start()

    def follow(self, command: Callable[[], int]) -> int:
        """Run a command until it has ended, and with it what it serves."""
        code = command()
        self.wait_for_end()
        return code

    def wait_for_end(self) -> None:
        """Wait until the page has ended, as it does with its command."""
        if self._thread is not None:
            self._thread.join(120)
            assert not self._thread.is_alive(), "the page has ended with the command"

    @property
    def doing(self) -> str:
        """All that the page has shown to be going on."""
        return " | ".join(document["now"]["doing"] for document in self.documents)

    @property
    def intervals(self) -> list[dict[str, Any]]:
        return [interval for document in self.documents for interval in document["fresh"]]

    def _follow(self, url: str) -> None:
        kind = ""
        with urlopen(f"{url}events", timeout=120) as events:
            for line in map(bytes.decode, events):
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ").strip()
                elif line.startswith("data: "):
                    self.last = json.loads(line.removeprefix("data: "))
                    self.documents.append(self.last)
                    if self.intervals and not self.metrics and "metrics of this run" in self._urls:
                        with urlopen(self._urls["metrics of this run"], timeout=60) as answer:
                            self.metrics = answer.read().decode()
                    if kind == "ended":
                        return
