"""Control connections behind which links to a server come and go, and the databases that have them.

A link is the driver's own connection. It is dialled when a statement first needs it and again after it was
lost; a statement that takes too long is told to end, and its link is cut when that does not help.
"""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from loadstone.engine import waits
from loadstone.engine.waits import Seen, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

L = TypeVar("L")
T = TypeVar("T")
_CLOSED = "the connection is closed"


class LinkControl(ABC, Generic[L]):
    """A control connection of one link at a time and one statement at a time.

    Statements of several threads wait for each other; `interrupt` and `close` do not wait for them.
    """

    title: ClassVar[str]
    """The engine's name, in what is said of wrong use."""
    errors: ClassVar[type[Exception]]
    """What a link raises when it refuses or is gone."""
    interrupt_s: ClassVar[float] = 2.0
    """How long a statement that was told to end may go on before its link is cut."""
    says_goodbye: ClassVar[bool] = False
    """Whether hanging up exchanges words with the server, which cannot be in the middle of a statement."""

    def __init__(self, name: str) -> None:
        """Dial nothing yet."""
        self.name = name
        self._closed = False
        self._link: L | None = None
        self._busy = threading.Lock()

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return self._closed

    @abstractmethod
    def dial(self) -> L:
        """Make a link, with all that is set for each of ours."""

    @abstractmethod
    def tell(self, link: L, limit_s: float) -> None:
        """Ask that what a link does be ended; raises one of `errors` when nobody can be asked."""

    @abstractmethod
    def cut(self, link: L) -> None:
        """End what a link does at once, whichever thread waits for it."""

    @abstractmethod
    def hang_up(self, link: L) -> None:
        """End a link in order; raises nothing that the server says."""

    @abstractmethod
    def lost(self, words: str) -> Exception:
        """Return the error of a link that is gone."""

    def spoilt(self, link: L, error: BaseException) -> bool:
        """Return whether a link cannot be used any more after an error; the next statement dials another."""
        del link, error
        return True

    def call(self, work: Callable[[L], T]) -> T:
        """Do something with the link. Raises one of `errors`."""
        if self._closed:
            raise self.lost(_CLOSED)
        wait = Wait(self._look, self._cut_off)
        with self._busy:
            try:
                with wait.watched():
                    return work(self._dialled())
            except BaseException as error:
                link = self._link
                if link is not None and self.spoilt(link, error):
                    self.drop()
                if wait.verdict is None:
                    raise
                raise self.lost(wait.verdict.words) from error

    def probe(self) -> None:
        """Ask the server for a sign of life, on another connection; what is in our own process gives none."""

    def _look(self) -> Seen:
        """Tell a server that works from one that is silent: a refusal is a sign of life as well."""

        def probe() -> None:
            with contextlib.suppress(Exception):
                self.probe()

        try:
            waits.at_most(waits.ASK_S, probe)
        except TimeoutError:
            words = f"{self.title} does not answer, not even on another connection"
            return Seen(words, waits.SILENCE_S)
        return Seen()

    def _cut_off(self) -> None:
        link = self._link
        if link is not None:
            self.cut(link)

    def interrupt(self, limit_s: float | None = None) -> None:
        """Make the statement that another thread runs here fail: told to end first, then cut off."""
        link = self._link
        if link is None or not self._busy.locked():
            return
        wait_s = self.interrupt_s if limit_s is None else limit_s
        try:
            self.tell(link, wait_s)
        except self.errors:
            self.cut(link)
            return
        if self._busy.acquire(timeout=wait_s):
            self._busy.release()
        elif self._link is link:
            self.cut(link)

    def close(self) -> None:
        """End it; may be called again."""
        self._closed = True
        link = self._link
        if self.says_goodbye and link is not None and self._busy.locked():
            self.cut(link)
        self.drop()

    def drop(self) -> None:
        """Let go of the link; the next statement dials another."""
        link, self._link = self._link, None
        if link is not None:
            self.hang_up(link)

    def _dialled(self) -> L:
        link = self._link
        if link is None:
            link = self._link = self.dial()
            if self._closed:  # meanwhile, when there was no link yet to end
                self.drop()
                raise self.lost(_CLOSED)
        return link

    def _plain(self, query: str, params: Mapping[str, Any] | None) -> str:
        """Return the text of a statement whose values are written into it."""
        if params:
            raise TypeError(f"statements for {self.title} contain their values in their text")
        return query


C = TypeVar("C", bound=LinkControl[Any])


class LinkDatabase(Generic[C]):
    """The control connections to a database, and the places in it that are one target's alone."""

    _taken: ClassVar[set[Hashable]] = set()
    """Of all databases of this process, whichever target names them."""
    _listing: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._controls: list[C] = []
        self._claims: set[Hashable] = set()

    def enlist(self, control: C) -> C:
        """Add a control connection to those that are known by their names."""
        with self._listing:
            self._controls = [known for known in self._controls if not known.closed] + [control]
        return control

    def named(self, name: str) -> list[C]:
        """Return the open control connections of this name."""
        return [control for control in self.controls() if control.name == name and not control.closed]

    def claim(self, place: Hashable) -> bool:
        """Take a place for this target; False when another target of this process has it."""
        with self._listing:
            if place in self._taken and place not in self._claims:
                return False
            self._taken.add(place)
            self._claims.add(place)
        return True

    def controls(self) -> list[C]:
        """Return the control connections, as far as they are not forgotten after their end."""
        with self._listing:
            return list(self._controls)

    def end_controls(self) -> None:
        """End all connections."""
        for control in self.controls():
            control.close()

    def close(self) -> None:
        """End all connections and give back what was claimed; may be called again."""
        self.end_controls()
        with self._listing:
            self._taken.difference_update(self._claims)
            self._claims.clear()
