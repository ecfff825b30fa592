#!/usr/bin/env python3
"""Draws README's picture: `tools/report_picture.py RUN/report.html docs/images/report.svg`.

Needs Playwright and a browser (see tests/support/browser.py) and pdftocairo, from poppler-utils.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support import browser

WIDTH_PX, HEIGHT_PX = 1180, 1440


def main(report: Path, picture: Path) -> None:
    """Print the top of the report, as the screen shows it, and turn the page into an SVG."""
    with tempfile.TemporaryDirectory() as folder:
        page_file = Path(folder) / "page.pdf"
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser.find(), args=["--no-sandbox"])
            page = chromium.new_page(viewport={"width": WIDTH_PX, "height": HEIGHT_PX})
            page.emulate_media(media="screen", color_scheme="light")
            page.goto(report.resolve().as_uri())
            page.wait_for_timeout(2000)
            # The fading edges of wide tables are for scrolling, which a picture cannot.
            page.add_style_tag(content=".scroll { background-image: none !important }")
            page.pdf(
                path=str(page_file),
                print_background=True,
                page_ranges="1",
                width=f"{WIDTH_PX}px",
                height=f"{HEIGHT_PX}px",
            )
            chromium.close()
        picture.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["pdftocairo", "-svg", "-f", "1", "-l", "1", page_file, picture], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
