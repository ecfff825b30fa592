"""All that watches the machines of a run's targets: tried before anything is touched, closed at the end."""

from __future__ import annotations

import contextlib
import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.host.environment import read_clocks
from loadstone.results.redact import redact, remember
from loadstone.watch.exporter import Exporter
from loadstone.watch.spec import TOKEN_VARIABLE, specs_of
from loadstone.watch.ssh import OverSsh

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from loadstone.target import Target
    from loadstone.watch.source import Source
    from loadstone.watch.spec import Spec

_CHECK_S = 30.0
"""Longest wait for a source before the run: connecting, its answer, and the clock."""
_TOKEN_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """`--watch` and its helpers, as given."""

    urls: Sequence[str] = ()
    token_file: Path | None = None
    ca: Path | None = None


class Watcher:
    """One source of one target."""

    def __init__(self, target: str, source: Source, wall_lead_ns: int) -> None:
        """`wall_lead_ns` is our wall clock minus our monotonic one."""
        self.target = target
        self.source = source
        self._wall_lead_ns = wall_lead_ns
        self._about = ""

    @property
    def shown(self) -> str:
        """Its URL without secrets."""
        return self.source.shown

    def check(self) -> str:
        """Try it; returns a line for the user. Raises LoadstoneError within half a minute."""
        self._about = redact(_within(_CHECK_S, self.source.check, self.shown))
        offset_s, error_s = self._clock()
        clock = "" if offset_s is None else f"; its clock is {_lead(offset_s, error_s)}"
        return f"{self.target}: watched by {self.shown}: {self._about}{clock}"

    def served_by(self, backend: int | None) -> None:
        """Look once with a process that serves us: it leads to the server, or shows what is missing."""
        self.source.served_by(backend)
        with contextlib.suppress(LoadstoneError):  # the monitor asks again, and says what is wrong
            self.source.ask()

    def ask(self) -> dict[str, Any]:
        """Return an entry of `watch` of monitor.jsonl. Raises LoadstoneError."""
        try:
            answer = self.source.ask()
        except LoadstoneError as error:
            # The monitor says this of the source that it names: once is enough.
            reason = error.message.removeprefix(f"{self.source.shown} cannot be read: ")
            raise LoadstoneError(redact(reason)) from error
        offset_s, error_s = self._clock()
        return {
            "source": self.shown,
            "t_ns": answer.t_ns,
            "clock_offset_s": offset_s,
            "clock_error_s": error_s,
            "host": answer.host,
            "server": answer.server,
            "counters": answer.counters,
            "gauges": answer.gauges,
        }

    def describe(self) -> dict[str, Any]:
        """Return an entry of `watched_by` of target.json."""
        offset_s, error_s = self._clock()
        return {
            "source": self.shown,
            "about": self._about,
            "clock_offset_s": offset_s,
            "clock_error_s": error_s,
            "not_observed": [redact(words) for words in self.source.not_observed],
        }

    def _clock(self) -> tuple[float | None, float | None]:
        clock = self.source.clock
        return clock.wall_offset_s(self._wall_lead_ns), clock.error_s


class Watchers:
    """Those of all targets."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        """Open nothing yet."""
        self._watchers = list(watchers)

    def check(self, say: Callable[[str], None]) -> None:
        """Try all of them. Raises LoadstoneError for the first that does not work."""
        for watcher in self._watchers:
            say(watcher.check())

    def of(self, target: str) -> list[Watcher]:
        """Return those of one target, by its id."""
        return [watcher for watcher in self._watchers if watcher.target == target]

    def close(self) -> None:
        """Leave nothing behind."""
        for watcher in self._watchers:
            watcher.source.close()


def watchers_of(
    options: WatchOptions,
    asked: Sequence[str],
    targets: Sequence[Target],
    process_names: Mapping[str, Collection[str]],
    variables: Mapping[str, str],
) -> Watchers:
    """Understand the options; `process_names` are those of the server's processes, by the target's id.

    Raises LoadstoneError for what cannot be understood, before anything is opened.
    """
    specs = specs_of(options.urls, asked, targets, variables)
    if specs and options.ca is not None and not options.ca.is_file():
        raise LoadstoneError(f"--watch-ca '{options.ca}' is not a file", "Name a file of certificates (PEM).")
    token = _token(options.token_file, variables)
    lead_ns = _wall_lead_ns()
    return Watchers(
        [
            Watcher(spec.target, _source(spec, token, options.ca, process_names, variables), lead_ns)
            for spec in specs
        ]
    )


def _source(
    spec: Spec,
    token: str | None,
    ca: Path | None,
    process_names: Mapping[str, Collection[str]],
    variables: Mapping[str, str],
) -> Source:
    if spec.scheme == "ssh":
        return OverSsh(spec, process_names.get(spec.target, ()), variables)
    return Exporter(spec, token, ca)


def _token(path: Path | None, variables: Mapping[str, str]) -> str | None:
    """Return the bearer token, from the file that was named or from the environment."""
    if path is None:
        token = variables.get(TOKEN_VARIABLE)
    else:
        try:
            token = path.read_text(encoding="utf-8")[:_TOKEN_BYTES_MAX].strip()
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise LoadstoneError(f"--watch-token-file '{path}' cannot be read: {reason}") from error
        if not token:
            raise LoadstoneError(f"--watch-token-file '{path}' is empty")
    remember(token)
    if token is not None and not token.isprintable():
        raise LoadstoneError("the token for --watch contains control characters")
    return token or None


def _wall_lead_ns() -> int:
    from datetime import datetime  # noqa: PLC0415 - here only

    origin = read_clocks()
    return round(datetime.fromisoformat(origin.started_at).timestamp() * 1e9) - origin.origin_ns


def _lead(offset_s: float, error_s: float | None) -> str:
    way = "ahead of" if offset_s >= 0 else "behind"
    return f"{abs(offset_s):.3f} s {way} ours (± {(error_s or 0) * 1e3:.1f} ms)"


def _within(limit_s: float, work: Callable[[], str], shown: str) -> str:
    """Do it in a thread that is left behind when it takes too long: a server may drip for ever."""
    results: queue.SimpleQueue[str | BaseException] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put(work())
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            results.put(error)

    threading.Thread(target=run, name="loadstone-watch", daemon=True).start()
    try:
        found = results.get(timeout=limit_s)
    except queue.Empty:
        raise LoadstoneError(f"{shown} did not answer within {limit_s:.0f} s") from None
    if isinstance(found, BaseException):
        raise found
    return found
