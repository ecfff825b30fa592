#!/usr/bin/env python3
"""Tries a wheel as its user would: `tools/try_wheel.py dist/loadstone-….whl`.

It is installed into a new virtual environment outside the checkout, where it must find its scenarios,
schema, templates and styles in itself, and end a small run with a report.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

NEEDED = ("licenses/LICENSE", "sboms/loadstone-py.cyclonedx.json")


def missing(wheel: Path) -> list[str]:
    """Return what the wheel should hold beside the package and does not."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    return [part for part in NEEDED if not any(name.endswith(f".dist-info/{part}") for name in names)]


def main() -> None:
    """Install the wheel and run a scenario with it."""
    wheel = Path(sys.argv[1]).resolve(strict=True)
    if lacks := missing(wheel):
        sys.exit(f"{wheel.name} lacks {', '.join(lacks)}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with tempfile.TemporaryDirectory(prefix="loadstone-wheel-") as scratch:
        folder = Path(scratch)
        venv.create(folder / "venv", with_pip=True)
        programs = folder / "venv" / "bin"
        pip = [str(programs / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
        subprocess.run(pip, cwd=folder, env=environment, check=True)
        run = [str(programs / "loadstone"), "run", "iot-feed", "--size", "tiny", "--out", "result"]
        subprocess.run(run, cwd=folder, env=environment, check=True)
        report = folder / "result" / "report.html"
        if not report.is_file():
            sys.exit("the run has left no report")
        print(f"{wheel.name}: installed, run, reported ({report.stat().st_size:,} bytes)")


if __name__ == "__main__":
    main()
