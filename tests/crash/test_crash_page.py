"""The page of one crash test: its verdict in words first, and what each verdict looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.report_pages import HOSTILE, Page, without_scripts, words
from support.trust_pages import crashed

from loadstone.crash import texts
from loadstone.crash.page import page
from loadstone.crash.tiles import Tile, headline, tiles
from loadstone.crash.verdict import verdict_of

if TYPE_CHECKING:
    from loadstone.crash.documents import Crash


def tile(document: Crash, question: str) -> Tile:
    return next(one for one in tiles(document) if question in one.question)


def changed(document: Crash, **changes: Any) -> Crash:
    made = msgspec.structs.replace(document, **changes)
    made.verdict = verdict_of(made)
    return made


def test_nothing_lost() -> None:
    found = crashed("power")
    assert headline(found) == "No acknowledged commit was lost in 20 crashes"
    assert [one.level for one in tiles(found)] == ["good", "good", "good", "", ""]
    assert tile(found, "survive").detail == "137,650 acknowledged, 0 lost"
    assert "2,181 acknowledged commits were lost, as they had to be" in tile(found, "seen").detail
    assert tile(found, "disk").answer == "49 % of the rate is left"
    assert tile(found, "back").answer.endswith(" s until the log-in")


def test_the_answer_and_its_tile_name_one_rate() -> None:
    found = crashed("power", 4)
    for cycle, rate in zip(found.cycles, (500.0, 592.0, 618.0, 700.0), strict=True):
        cycle.recovery.rate_before = rate
    assert "the load made 618 commits/s" in texts.answer(found)
    assert tile(found, "disk").detail.startswith("618 commits/s")


def test_killed_processes_show_nothing_of_power() -> None:
    found = crashed("process")
    seen = tile(found, "seen")
    assert (seen.answer, seen.level) == ("Not one of power", "warning")
    assert texts.NOTHING_OF_POWER in seen.detail
    assert not any("disk" in one.question for one in tiles(found))


def test_losses_are_bad() -> None:
    found = crashed("process", lost=12)
    assert headline(found) == "Commits are not safe: 12 acknowledged commits were lost"
    assert tile(found, "survive").level == tile(found, "everything else").level == "bad"
    flawed = crashed("process")
    flawed.cycles[3].restarted = False
    assert headline(changed(flawed)) == "Commits are not safe: the data were wrong after 1 crash"


def test_what_shows_no_loss_or_has_no_crash_is_no_good_news() -> None:
    power = crashed("power")
    assert power.control is not None
    assert power.control.found is not None
    power.control.found.lost = 0
    blind = changed(power)
    assert headline(blind) == "This set-up cannot show a loss"
    assert (tile(blind, "seen").answer, tile(blind, "seen").level) == ("No", "bad")
    missed = changed(crashed("power"), checker=False)
    assert tile(missed, "seen").level == "bad"
    early = changed(crashed("power"), cycles=[], checker=None, control=None, reason="stopped by SIGINT")
    assert headline(early) == "Undecided after 0 crashes"
    assert {one.level for one in tiles(early)} == {"warning"}
    down = changed(crashed("process"), data="/somewhere")
    assert headline(down) == "The server did not come up again after crash 20"


def test_what_asynchronous_commits_may_lose_is_no_loss() -> None:
    found = crashed("process")
    for cycle in found.cycles:
        cycle.allowed_s = 0.6
    seen = found.cycles[0].found
    assert seen is not None
    seen.lost_allowed, seen.loss_window_s = 40, 0.2
    assert headline(changed(found)) == "Only what synchronous_commit = off may lose was lost in 20 crashes"
    assert tile(found, "survive").level == "warning"


@pytest.mark.parametrize("level", ["process", "power"])
def test_the_page_has_every_figure_and_is_well_formed(level: str) -> None:
    found = crashed(level, 3)
    html = page(found, pytest.fail)
    read = Page(html)
    assert read.faults == []
    shown = words(read)
    assert shown.index(headline(found)) < shown.index(texts.answer(found))
    for cycle in found.cycles:
        assert " ".join(texts.line(cycle)) in shown
    assert shown.count("wrong") == 0
    assert ("What the disk forgot" in shown) == (level == "power")
    assert sum("chart" in (one.get("class") or "").split() for one in read.all("figure")) == 2


def test_the_crash_that_went_wrong_is_marked_in_the_table() -> None:
    found = crashed("process", 5, lost=3)
    shown = words(Page(page(found, pytest.fail)))
    assert f"wrong {' '.join(texts.line(found.cycles[3]))}" in shown
    assert shown.count("wrong") == 1


def test_words_from_outside_stay_words() -> None:
    found = crashed("process", 2, scenario=HOSTILE, command=["loadstone", HOSTILE], version=HOSTILE,
                    settings={HOSTILE: HOSTILE}, reason=HOSTILE, data=HOSTILE)  # fmt: skip
    found.cycles[0].moment.note = HOSTILE
    html = page(found, pytest.fail)
    assert Page(html).faults == []
    assert "<img src=x" not in without_scripts(html)
    assert "alert(1)</script>" not in html


def test_without_crashes_there_are_words_and_no_chart() -> None:
    none = changed(crashed("power"), cycles=[], control=None, checker=None, reason="stopped by SIGINT")
    html = page(none, pytest.fail)
    assert "<figure" not in html
    assert "Undecided: stopped by SIGINT." in html
