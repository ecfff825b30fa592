"""The report in a real browser: nothing is fetched, all is drawn, and phone and keyboard can use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.browser_pages import (
    check_landmarks,
    draw_all,
    drawn,
    launched,
    opened_width,
    poor_contrast,
    show,
)
from support.flights_folders import DUCK, HEAVY, PG, Flights, flights
from support.run_folders import Phase, Run, Target, build
from support.sandbox import wait_until
from support.table_load_folders import big_transaction, grid, index_import, storage_types

from loadstone.report import write_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

# The figures of a heat map stand on its cells, not on the page.
CELLS = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const poor = [];
  for (const svg of document.querySelectorAll("[id*=-heat-] .live svg")) {
    const ink = light(rgb(getComputedStyle(svg.querySelector(".role-mark text")).fill));
    for (const cell of svg.querySelectorAll(".mark-rect.role-mark path")) {
      const fill = light(rgb(getComputedStyle(cell).fill));
      const ratio = (Math.max(ink, fill) + 0.05) / (Math.min(ink, fill) + 0.05);
      if (ratio < 4.5) poor.push(ratio.toFixed(2)); // WCAG AA
    }
  }
  return poor;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as started:
        yield started


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    phases = tuple(
        Phase(variant={"index": index}, seconds=8, failed=2 if index == "btree" else 0, tps=2000)
        for index in ("none", "brin", "btree")
    )
    targets = (Target(), Target(id="pg14", label="PostgreSQL 14.20 (embedded)", speed=0.8, fsync="off"))
    folder = build(tmp_path_factory.mktemp("page") / "run", Run(phases=phases, targets=targets))
    return write_report(folder).as_uri()


FLIGHTS = Flights(
    targets=(PG, DUCK, HEAVY),
    gpu=True,
    emptied=False,
    failing=("duckdb", "Sql4"),
    wrong=("duckdb", "Sql3"),
    prices={"pg18": 2.5},
)
BULK: dict[str, Callable[[Path], Path]] = {
    "import": lambda folder: index_import(folder, failed=True, limit=96 * 2**20, verified=True),
    "storage": storage_types,
    "grid": grid,
    "transactions": lambda folder: big_transaction(folder, lost=True),
    "queries": lambda folder: flights(folder, FLIGHTS),
}


@pytest.fixture(scope="module", params=BULK)
def bulk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a report on bulk loads, of each kind in turn."""
    return write_report(BULK[request.param](tmp_path_factory.mktemp("bulk") / "run")).as_uri()


@pytest.mark.parametrize("width", [390, 1440])
def test_all_charts_are_drawn_without_an_error_or_a_request(
    browser: Browser, address: str, width: int
) -> None:
    drawn(browser, address, width).context.close()


@pytest.mark.parametrize("width", [390, 1440])
def test_bulk_loads_are_drawn_whole_on_phone_and_desk(browser: Browser, bulk: str, width: int) -> None:
    page = drawn(browser, bulk, width)
    assert opened_width(page) <= width
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_of_bulk_loads_has_enough_contrast(browser: Browser, bulk: str, scheme: str) -> None:
    page = show(browser, bulk, scheme=scheme).page
    assert poor_contrast(page) == []
    assert page.evaluate(CELLS) == []
    page.context.close()


def test_the_ddl_can_be_copied_with_one_press(browser: Browser, tmp_path: Path) -> None:
    page = show(browser, write_report(index_import(tmp_path / "run")).as_uri()).page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block = page.locator(".advice details").filter(has=page.locator(".copy")).first
    if not block.evaluate("e => e.open"):
        block.locator("summary").click()
    block.get_by_role("button", name="Copy").click()
    # Without a clipboard the page selects what is to be copied.
    said, selected = block.locator(".copier"), "String(window.getSelection())"
    wait_until(lambda: said.text_content() == "Copied" or page.evaluate(selected), "a copy")
    taken = selected if page.evaluate(selected) else "navigator.clipboard.readText()"
    assert str(page.evaluate(taken)).split() == str(block.locator(".copy").text_content()).split()
    page.context.close()


@pytest.mark.parametrize("width", [320, 390, 1440])
def test_the_page_never_scrolls_sideways(browser: Browser, address: str, width: int) -> None:
    page = show(browser, address, width=width).page
    draw_all(page)
    assert opened_width(page) <= width
    page.context.close()


def test_without_javascript_the_pictures_are_there_and_fit(browser: Browser, address: str) -> None:
    page = show(browser, address, width=390, script=False).page
    drawings = page.locator("figure.chart svg").all()
    assert len(drawings) == page.locator("figure.chart").count() > 10
    for drawing in drawings[:6]:
        box = drawing.bounding_box()
        assert box
        assert box["width"] <= 390
    assert not page.locator("#theme").is_visible()
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_and_the_switch(browser: Browser, address: str, scheme: str) -> None:
    page = show(browser, address, scheme=scheme).page
    draw_all(page)
    colours = """() => [getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector("figure.chart .live svg text")).fill]"""
    before = page.evaluate(colours)
    page.get_by_role("button", name="Dark").click()
    after = page.evaluate(colours)
    assert before[0] != after[0]
    assert before[1] != after[1], "the charts change with the page"
    assert (before[0] == "rgb(255, 255, 255)") == (scheme == "light")
    assert (
        page.get_by_role("button", name="Dark").get_attribute("aria-pressed")
        == str(scheme == "light").lower()
    )
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(browser: Browser, address: str, scheme: str) -> None:
    page = show(browser, address, scheme=scheme).page
    assert poor_contrast(page) == []
    page.context.close()


def test_paper_is_white_even_from_a_dark_screen(browser: Browser, address: str) -> None:
    page = show(browser, address, scheme="dark").page
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert len(page.pdf()) > 10_000
    page.context.close()


def test_the_keyboard_reaches_the_switch_the_contents_and_the_data(browser: Browser, address: str) -> None:
    page = show(browser, address).page
    focused = "(() => { const e = document.activeElement; return e.id || e.className || e.tagName })()"
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(focused))
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    assert seen[0] == "skip"
    assert "theme" in seen
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "focus is visible"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('details').open")
    page.context.close()


def test_a_screen_reader_finds_landmarks_and_named_pictures(browser: Browser, address: str) -> None:
    page = show(browser, address).page
    check_landmarks(page)
    assert page.get_by_role("img", name="Throughput over time").count() >= 1
    unnamed = page.eval_on_selector_all(
        "[role=region]:not([aria-label]), a:empty, button:empty", "all => all.length"
    )
    assert unnamed == 0
    page.context.close()


def test_the_pointer_gets_the_figures_of_a_moment(browser: Browser, address: str) -> None:
    page = show(browser, address).page
    draw_all(page)
    drawing = page.locator("figure.chart .live svg").filter(has=page.locator("text")).nth(2)
    drawing.scroll_into_view_if_needed()
    throughput = page.locator("[id$=-throughput] .live svg").first
    throughput.scroll_into_view_if_needed()
    box = throughput.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5)
    page.mouse.move(box["x"] + box["width"] * 0.61, box["y"] + box["height"] * 0.5)
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "index = brin" in page.locator("#vg-tooltip-element").inner_text()
    page.context.close()
