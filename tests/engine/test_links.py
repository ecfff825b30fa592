"""Links that come and go behind control connections: dialled, spoilt, told to end, cut; claims of places."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

import pytest

from loadstone.engine import waits
from loadstone.engine.library.links import LinkControl, LinkDatabase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONG_S = 60.0


class LinkError(Exception):
    def __init__(self, words: str, *, lost: bool = False) -> None:
        super().__init__(words)
        self.lost = lost


class Link:
    """What was done to one link; its statement lasts until somebody ends it."""

    def __init__(self) -> None:
        self.begun, self.ended = threading.Event(), threading.Event()
        self.done: list[str] = []

    def work(self) -> str:
        self.begun.set()
        assert self.ended.wait(LONG_S)
        raise LinkError("ended", lost="cut" in self.done)


class Control(LinkControl[Link]):
    title = "Anything"
    errors = LinkError
    says_goodbye: ClassVar[bool] = True

    def __init__(self, told: Callable[[Link], None] = lambda link: link.ended.set()) -> None:
        super().__init__("worker")
        self.links: list[Link] = []
        self.told = told
        self.while_dialling: Callable[[], None] = lambda: None

    def dial(self) -> Link:
        self.while_dialling()
        self.links.append(Link())
        return self.links[-1]

    def tell(self, link: Link, limit_s: float) -> None:
        del limit_s
        link.done.append("told")
        self.told(link)

    def cut(self, link: Link) -> None:
        link.done.append("cut")
        link.ended.set()

    def hang_up(self, link: Link) -> None:
        link.done.append("hung up")

    def lost(self, words: str) -> LinkError:
        return LinkError(words, lost=True)

    def spoilt(self, link: Link, error: BaseException) -> bool:
        del link
        return not isinstance(error, LinkError) or error.lost


def refuse(error: BaseException) -> Callable[[Link], None]:
    def work(link: Link) -> None:
        del link
        raise error

    return work


@contextmanager
def busy(control: Control) -> Iterator[Link]:
    """Have a statement run that ends with an error before the context does."""
    control.call(lambda _: None)
    link = control.links[-1]
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(control.call, Link.work)
        assert link.begun.wait(LONG_S)
        yield link
        with pytest.raises(LinkError, match="ended"):
            running.result(LONG_S)


def test_a_link_is_dialled_when_it_is_first_needed_and_then_kept() -> None:
    control = Control()
    assert control.links == []
    assert control.call(lambda link: link) is control.call(lambda link: link) is control.links[0]
    assert len(control.links) == 1


def test_a_refusal_keeps_the_link_and_anything_worse_brings_another() -> None:
    control = Control()
    for error, links in ((LinkError("no"), 1), (LinkError("gone", lost=True), 2), (KeyboardInterrupt(), 3)):
        with pytest.raises(type(error)):
            control.call(refuse(error))
        control.call(lambda _: None)
        assert len(control.links) == links
    assert [link.done for link in control.links] == [["hung up"], ["hung up"], []]


def test_a_dial_that_fails_is_tried_again_by_the_next_statement() -> None:
    control = Control()

    def engaged() -> None:
        raise LinkError("engaged", lost=True)

    control.while_dialling = engaged
    with pytest.raises(LinkError, match="engaged"):
        control.call(lambda _: None)
    control.while_dialling = lambda: None
    control.call(lambda _: None)
    assert len(control.links) == 1


def test_a_statement_that_ends_when_told_keeps_its_link() -> None:
    control = Control()
    with busy(control) as link:
        control.interrupt(LONG_S)
        assert link.done == ["told"]
    assert control.call(lambda kept: kept) is link


def test_a_statement_that_takes_no_notice_is_cut() -> None:
    control = Control(told=lambda _: None)
    with busy(control) as link:
        control.interrupt(0.01)
    assert link.done == ["told", "cut", "hung up"]
    assert control.call(lambda other: other) is not link


def test_what_nobody_can_be_told_of_is_cut_at_once() -> None:
    control = Control(told=refuse(LinkError("gone", lost=True)))
    with busy(control) as link:
        control.interrupt(LONG_S)
    assert link.done == ["told", "cut", "hung up"]


def test_nothing_is_said_where_nothing_runs() -> None:
    control = Control()
    control.interrupt()
    control.call(lambda _: None)
    control.interrupt()
    assert [link.done for link in control.links] == [[]]


@pytest.mark.parametrize("says_goodbye", [True, False])
def test_a_link_in_the_middle_of_a_statement_is_cut_if_its_end_needs_words(
    monkeypatch: pytest.MonkeyPatch, *, says_goodbye: bool
) -> None:
    monkeypatch.setattr(Control, "says_goodbye", says_goodbye)
    control = Control()
    with busy(control) as link:
        control.close()
        link.ended.set()
    assert link.done == (["cut", "hung up"] if says_goodbye else ["hung up"])
    assert control.closed
    control.close()
    with pytest.raises(LinkError, match="the connection is closed"):
        control.call(lambda _: None)


def test_a_link_that_was_dialled_while_its_connection_was_closed_does_not_stay() -> None:
    control = Control()
    control.while_dialling = control.close
    with pytest.raises(LinkError, match="the connection is closed"):
        control.call(lambda _: None)
    assert [link.done for link in control.links] == [["hung up"]]


def test_statements_carry_their_values_in_their_text() -> None:
    control = Control()
    assert control._plain("select 1", None) == control._plain("select 1", {}) == "select 1"
    with pytest.raises(TypeError, match="statements for Anything contain"):
        control._plain("select %(a)s", {"a": 1})


def test_open_connections_are_known_by_their_names_and_end_with_their_database() -> None:
    database: LinkDatabase[Control] = LinkDatabase()
    first, second = database.enlist(Control()), database.enlist(Control())
    assert database.named("worker") == [first, second]
    assert database.named("somebody") == []
    first.close()
    assert database.named("worker") == [second]
    database.enlist(second)
    assert first not in database.controls()
    database.close()
    database.close()
    assert second.closed


def test_a_place_is_one_targets_until_its_database_is_closed() -> None:
    ours: LinkDatabase[Control] = LinkDatabase()
    theirs: LinkDatabase[Control] = LinkDatabase()
    assert ours.claim(("host", 1, "a"))
    assert ours.claim(("host", 1, "a"))
    assert not theirs.claim(("host", 1, "a"))
    assert theirs.claim(("host", 1, "b"))
    assert not ours.claim(("host", 1, "b")), "one claim is no claim of all"
    ours.close()
    assert not ours.claim(("host", 1, "b")), "what others hold is not given back"
    assert theirs.claim(("host", 1, "a"))
    theirs.close()


class Remote(Control):
    """To a server that may be silent on every connection."""

    def __init__(self, *, silent: bool) -> None:
        super().__init__()
        self.silent = silent
        self.probes = threading.Semaphore(0)
        self.wakes = threading.Event()

    def probe(self) -> None:
        self.probes.release()
        if self.silent:
            self.wakes.wait(LONG_S)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SAY_S", "LOOK_S", "ASK_S", "SILENCE_S"):
        monkeypatch.setattr(waits, name, 0.05)


@pytest.mark.usefixtures("soon")
def test_a_link_to_a_silent_server_is_cut() -> None:
    control = Remote(silent=True)
    with pytest.raises(LinkError, match=r"gave up after .* Anything does not answer") as caught:
        control.call(Link.work)
    assert caught.value.lost
    assert control.links[0].done == ["cut", "hung up"]
    control.wakes.set()


@pytest.mark.usefixtures("soon")
def test_a_link_to_a_server_that_works_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "ASK_S", LONG_S)  # its answer may be late on a busy machine
    control = Remote(silent=False)
    with busy(control) as link:
        assert all(control.probes.acquire(timeout=LONG_S) for _ in range(10))
        assert link.done == []
        link.ended.set()
