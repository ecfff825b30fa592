"""The live page in a real browser, and what else may ask for it."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect, sync_playwright
from support.browser import ADVICE, environment, find
from support.browser_pages import WAIT_MS
from support.live_runs import PHASE, begun, progress

from loadstone.errors import LoadstoneError
from loadstone.live.figures import INTERVALS_KEPT, LiveFigures
from loadstone.live.page import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow  # a browser
LEAVE_S = 10.0
"""Far above what leaving browsers takes, far below the time that they may stay silent."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find()
    if path is None:
        pytest.fail(ADVICE, pytrace=False)
    options = [
        "--disable-gpu",
        "--disable-background-networking",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
    ]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path, headless=True, args=options, env=environment(path), timeout=WAIT_MS
        )
        yield started
        started.close()


def test_a_phone_shows_each_interval_and_is_told_of_the_end(browser: Browser) -> None:
    figures = begun()
    figures.progressed("pg18", PHASE, progress(1))
    said: list[str] = []
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.set_default_timeout(WAIT_MS)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with serving(0, figures) as url:
        page.goto(url)
        expect(page.locator("#rate")).to_have_text("100", timeout=WAIT_MS)
        figures.progressed("pg18", PHASE, progress(2, done=12345))
        figures.progressed("pg18", PHASE, progress(3, done=23456))
        expect(page.locator("#rate")).to_have_text("23,456", timeout=WAIT_MS)
        page.wait_for_selector("#rates .mark-line path")
        page.wait_for_selector("#latencies .mark-line path", state="attached")  # as flat as its figures
        assert page.text_content("#high") == "4 ms"
        assert page.is_hidden("#joined")
        assert page.text_content("#doing") == "pg18: Insert: index=none"
        assert page.text_content("#state") == "The run goes on."
        wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert not wide, "a phone scrolls in one direction only"
        figures.end("complete (exit code 0)")
    expect(page.locator("#state")).to_contain_text("The run has ended: complete", timeout=WAIT_MS)
    assert all(address.startswith(url) for address in asked), "nothing is fetched from elsewhere"
    assert said == []
    page.close()


def test_intervals_of_several_load_hosts_show_their_mean_and_longest(browser: Browser) -> None:
    figures = begun()
    none = dict.fromkeys(("p50_ns", "p95_ns", "p99_ns"))
    for at in (1, 2):
        several = progress(at)
        several["latest"]["response"] |= none
        figures.progressed("pg18", PHASE, several)
    page = browser.new_page(viewport={"width": 390, "height": 800})
    with serving(0, figures) as url:
        page.goto(url)
        expect(page.locator("#high")).to_have_text("5 ms", timeout=WAIT_MS)
        assert page.text_content("#high-name") == "longest"
        assert (page.text_content("#middle-name"), page.text_content("#middle")) == ("mean", "2 ms")
        expect(page.locator("#joined")).to_be_visible(timeout=WAIT_MS)
        page.wait_for_selector("#latencies .mark-line path", state="attached")
        wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert not wide
    page.close()


def test_without_a_last_word_the_page_says_that_the_run_cannot_be_reached(browser: Browser) -> None:
    figures = begun()
    page = browser.new_page()
    with serving(0, figures) as url:
        page.goto(url)
        expect(page.locator("#state")).to_have_text("The run goes on.", timeout=WAIT_MS)
        page.route("**/events", lambda route: route.abort())
        page.reload()
        expect(page.locator("#state")).to_contain_text("cannot be reached", timeout=WAIT_MS)
    page.close()


def test_other_sites_and_other_paths_get_nothing() -> None:
    with serving(0, LiveFigures()) as url:
        for path, host, status in (
            ("", "evil.example", 403),
            ("events", "evil.example", 403),
            ("x", None, 404),
        ):
            request = Request(url + path, headers={"Host": host} if host else {})
            with pytest.raises(HTTPError) as refused:
                urlopen(request, timeout=10)
            assert refused.value.code == status
            refused.value.close()
        with urlopen(url, timeout=10) as response:
            assert b"vegaEmbed" in response.read()


def test_a_browser_that_stays_open_does_not_keep_the_run() -> None:
    """One takes no events, one keeps its connection for the next request: both are left."""
    figures = begun()
    with serving(0, figures) as url:
        port = int(url.rstrip("/").rpartition(":")[2])
        follows, idles = (socket.create_connection(("127.0.0.1", port), 60) for _ in range(2))
        follows.sendall(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        idles.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        assert follows.recv(12) == idles.recv(12) == b"HTTP/1.1 200"
        figures.end("complete (exit code 0)")
        begin_s = time.monotonic()
    assert time.monotonic() - begin_s < LEAVE_S
    with follows, follows.makefile("rb") as events:
        *_, kind, data, _ = events.read().splitlines()  # to its end
    assert kind == b"event: ended"
    assert b"complete (exit code 0)" in data
    idles.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 10)


def test_a_browser_that_takes_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PHASE, "variant", {"x": "x" * 10_000})  # more than the buffers of a connection hold
    figures = begun()
    for at in range(1, INTERVALS_KEPT):
        figures.progressed("pg18", PHASE, progress(at))
    with socket.socket() as stuck:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with serving(0, figures) as url:
            port = int(url.rstrip("/").rpartition(":")[2])
            stuck.connect(("127.0.0.1", port))
            stuck.sendall(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            assert stuck.recv(12) == b"HTTP/1.1 200"
            begin_s = time.monotonic()
        assert time.monotonic() - begin_s < LEAVE_S


def test_a_port_that_is_taken_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LoadstoneError, match="Address already in use"), serving(port, LiveFigures()):
            pytest.fail("served")
