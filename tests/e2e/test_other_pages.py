"""Pages beside the report in a real browser: a search, crash tests, a history; on a phone and on a desk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.browser_pages import check_landmarks, drawn, launched, opened_width, poor_contrast, show
from support.trust_pages import crashed, long_history, searched

from loadstone.crash.page import page as crash_page
from loadstone.history.page import page as history_page
from loadstone.history.series import blocks_of
from loadstone.slo.page import page as slo_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser


def of_history() -> str:
    lines = long_history()
    return history_page(lines, blocks_of(lines), [], pytest.fail)


PAGES: dict[str, Callable[[], str]] = {
    "search": lambda: slo_page(searched(), pytest.fail),
    "crashes-power": lambda: crash_page(crashed("power"), pytest.fail),
    "crashes-lost": lambda: crash_page(crashed("process", lost=12), pytest.fail),
    "history": of_history,
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as started:
        yield started


@pytest.fixture(scope="module", params=PAGES)
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / f"{request.param}.html"
    path.write_text(PAGES[request.param](), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("width", [320, 390, 1440])
def test_all_is_drawn_and_nothing_scrolls_sideways(browser: Browser, address: str, width: int) -> None:
    page = drawn(browser, address, width)
    assert page.locator("figure.chart").count() >= 2
    assert opened_width(page) <= width
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(browser: Browser, address: str, scheme: str) -> None:
    page = show(browser, address, scheme=scheme).page
    assert poor_contrast(page) == []
    page.context.close()


def test_a_screen_reader_finds_landmarks_and_named_pictures(browser: Browser, address: str) -> None:
    page = show(browser, address).page
    check_landmarks(page)
    assert page.locator("figure.chart .drawing:not([aria-label])").count() == 0
    # Each entry of the contents leads to a heading.
    targets = page.eval_on_selector_all(
        "nav a", "all => all.filter(a => !document.querySelector(a.hash)).length"
    )
    assert targets == 0
    page.context.close()
