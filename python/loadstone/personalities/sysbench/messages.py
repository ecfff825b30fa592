"""What the driver says while it runs: the script's own output, errors, and where the run has got to."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from loadstone.personalities.sysbench.complaint import PROGRAM
from loadstone.personalities.sysbench.log import explains

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from loadstone.personalities.sysbench.log import Level, Log

    Write = Callable[[str], object]

_LEVELS: dict[str, Level] = {
    "fatal": "fatal",
    "error": "fatal",
    "alert": "alert",
    "warning": "warning",
    "note": "alert",
    "notice": "notice",
    "info": "info",
    "debug": "debug",
    "server": "info",
}
_NOT_SAID = "Run was aborted due to an error"
"""The driver's own summary, which pgbench has and sysbench does not."""
_ALIKE_MAX = 10
"""As often an error is shown before the start: thousands of clients may have the same."""
_CLIENT = re.compile(r"client ([0-9]+): ")


class Messages:
    """Shows the driver's lines in order, and the run's own between them."""

    def __init__(self, log: Log, err: Write, verbosity: int, banner: Iterable[str] = ()) -> None:
        """Show `banner` once `init()` is over."""
        self.has_fatal = False
        """Whether an error was shown; the script may have caught it."""
        self._log = log
        self._err = err
        self._explains = explains(verbosity)
        self._banner: list[str] | None = list(banner) or None
        self._alike: Counter[str] | None = Counter() if self._banner else None

    def write(self, lines: Sequence[Mapping[str, str]]) -> None:
        """Show lines (`kind`, `text`)."""
        for line in lines:
            self._line(line["kind"], line["text"])

    def begin(self) -> None:
        """Show what is said before the clients begin, unless it was."""
        if self._banner is not None:
            for text in (*self._banner, "Initializing worker threads...\n"):
                self._log.text(text)
            self._banner = None

    def started(self) -> None:
        """Show all errors from here on."""
        self.begin()
        self._alike = None

    def _line(self, kind: str, text: str) -> None:
        if text.startswith(_NOT_SAID):
            return
        if kind == "output":
            self._log.plain(text)
            if not text:
                self.begin()  # so the core marks the end of init()
        elif kind == "summary":
            self._err(f"{PROGRAM}: {text}\n")
        elif kind != "detail":
            self._logged(_LEVELS.get(kind, "notice"), text.removesuffix("\n"))
        elif self._explains:
            self._err(f"{text.rstrip()}\n")

    def _logged(self, level: Level, text: str) -> None:
        self.has_fatal |= level == "fatal"
        shown = self.without_client(text)
        if level != "fatal" or not self._is_frequent(shown):
            self._log.text(shown, level)

    def _is_frequent(self, text: str) -> bool:
        if self._alike is None:
            return False
        self._alike[text] += 1
        return self._alike[text] > _ALIKE_MAX

    def without_client(self, text: str) -> str:
        """Return a message as sysbench has it; which client it was may go to standard error."""
        found = _CLIENT.match(text)
        if found is None:
            return text
        if self._explains:
            self._err(f"sysbench: client {found[1]} has failed:\n")
        return text[found.end() :]
