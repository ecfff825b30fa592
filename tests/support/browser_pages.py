"""Pages in a real browser: what they say and ask for, all their charts drawn, and their contrast."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright

from support.browser import ADVICE, environment, find
from support.sandbox import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

WAIT_MS = 120_000
"""Longest wait for a browser, on a machine that also runs other tests, builds and servers."""
# A browser that looks for its maker's hosts would fail, or hide, a test that forbids requests.
QUIET = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

CONTRAST = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  const words = "h1,h2,h3,p,a,li,th,td,caption,summary,button,strong,span,code,figcaption,svg text";
  for (const element of document.querySelectorAll(words)) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(rgb(element.closest("svg") ? style.fill : style.color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const name = `${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`;
    if (ratio < 4.5) poor.push(`${name}: ${ratio.toFixed(2)}`); // WCAG AA
  }
  return poor;
}"""


@dataclass
class Watched:
    """A page with all that it said and asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@contextmanager
def launched() -> Iterator[Browser]:
    path = find()
    if path is None:
        pytest.fail(ADVICE, pytrace=False)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path, headless=True, args=[*QUIET, *sandbox], env=environment(path),
            timeout=WAIT_MS,
        )  # fmt: skip
        yield started
        started.close()


def show(
    browser: Browser, address: str, *, width: int = 1440, scheme: str = "light", script: bool = True
) -> Watched:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        java_script_enabled=script,
        reduced_motion="reduce",
    )
    context.set_default_timeout(WAIT_MS)
    watched = Watched(context.new_page())
    watched.page.on("console", lambda message: watched.said.append(message.text))
    watched.page.on("pageerror", lambda error: watched.said.append(str(error)))
    watched.page.on("request", lambda request: watched.asked.append(request.url))
    watched.page.goto(address)
    return watched


def draw_all(page: Page) -> None:
    """Scroll through the page: charts are drawn as they come near."""
    for figure in page.locator("figure.chart").all():
        figure.scroll_into_view_if_needed()
    # Playwright's own wait evaluates a text inside the page, which the page's policy forbids.
    wait_until(
        lambda: page.evaluate("!document.querySelector('figure.chart:not([data-drawn])')"), "all is drawn"
    )


def empty_charts(page: Page) -> list[str]:
    """Return the charts in which nothing is drawn."""
    return list(
        page.eval_on_selector_all(
            "figure.chart",
            "all => all.filter(f => !f.querySelector('.live svg .role-mark path')).map(f => f.id)",
        )
    )


def poor_contrast(page: Page) -> list[str]:
    """Draw and open all; return the texts that differ too little from what is behind them."""
    draw_all(page)
    open_details(page)
    return list(page.evaluate(CONTRAST))


def opened_width(page: Page) -> int:
    """Open all that can be opened; return how wide the page then is, in pixels."""
    open_details(page)
    page.wait_for_timeout(100)
    return int(page.evaluate("document.documentElement.scrollWidth"))


def open_details(page: Page) -> None:
    page.eval_on_selector_all("details", "all => all.forEach(d => { d.open = true })")


def drawn(browser: Browser, address: str, width: int) -> Page:
    """Show a page with all its charts: none is empty, nothing is said, and nothing else is asked for."""
    watched = show(browser, address, width=width)
    draw_all(watched.page)
    assert watched.said == []
    assert watched.asked == [address]
    assert empty_charts(watched.page) == []
    return watched.page


def check_landmarks(page: Page) -> None:
    """A screen reader finds its way: each landmark and the title are there once."""
    draw_all(page)
    for role in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(role).count() == 1
    assert page.get_by_role("heading", level=1).count() == 1
