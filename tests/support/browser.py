"""Finds a Chromium for the tests; run as a script, it fetches one where there is none.

The one that is fetched is the npm package @sparticuz/chromium, which carries the browser and its libraries in
itself; it is unpacked by the JavaScript runtime inside Playwright's wheel, below the virtual environment.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGE = "@sparticuz/chromium@147.0.0"
SHA256 = "18fe5404ce845594cd7d592fc07f37a19514079ba4d9c27192ad8b908743f16b"
HOME = Path(sys.prefix) / "browser"
NODE = Path(playwright.__file__).parent / "driver" / "node"
UNPACK = """
const fs = require("fs"), zlib = require("zlib"), [from, to] = process.argv.slice(1);
for (const name of fs.readdirSync(from))
{
  const bytes = zlib.brotliDecompressSync(fs.readFileSync(`${from}/${name}`));
  fs.writeFileSync(`${to}/${name.replace(/[.]br$/, "")}`, bytes);
}
"""
ADVICE = (
    "No Chromium was found. Run `python tests/support/browser.py` in the virtual environment "
    "(it takes one from "
    "npm), or install one (Debian: apt-get install chromium), or set LOADSTONE_TEST_BROWSER to its path."
)


def find() -> str | None:
    """Return the browser's path: the one that was named, one of the system, or the one that was fetched."""
    named = os.environ.get("LOADSTONE_TEST_BROWSER")
    installed = next((path for name in NAMES if (path := shutil.which(name))), None)
    fetched = HOME / "chromium"
    return named or installed or (str(fetched) if fetched.exists() else None)


def environment(path: str) -> dict[str, str | float | bool]:
    """Return the variables to start it with: the fetched one brings libraries that a bare system lacks."""
    if not Path(path).is_relative_to(HOME):
        return {**os.environ}
    libraries = [os.environ.get("LD_LIBRARY_PATH", ""), str(HOME / "lib")]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(folder for folder in libraries if folder)}


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack an archive whose checksum is known; Python before 3.11.4 has no filters to ask for."""
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    archive.extractall(folder)


def fetch() -> Path:
    """Download the pinned package, verify it, and unpack the browser whole or not at all."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit(
            ADVICE.replace(
                "Run `python tests/support/browser.py`",
                "Install npm and run `python tests/support/browser.py`",
            )
        )
    HOME.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME.parent) as scratch:
        folder = Path(scratch)
        subprocess.run([npm, "pack", "--silent", PACKAGE], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (archive,) = folder.glob("*.tgz")
        if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
            sys.exit(f"{PACKAGE} is not what was pinned: its checksum differs.")
        with tarfile.open(archive) as package:
            unpack(package, folder)
        unpacked = folder / "browser"
        unpacked.mkdir()
        subprocess.run([NODE, "-e", UNPACK, folder / "package" / "bin", unpacked], check=True)
        for part in unpacked.glob("*.tar"):
            with tarfile.open(part) as files:
                unpack(files, unpacked)
            part.unlink()
        (unpacked / "chromium").chmod(0o755)
        unpacked.replace(HOME)
    return HOME / "chromium"


if __name__ == "__main__":
    print(find() or fetch())
