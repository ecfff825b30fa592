"""Runs PostgreSQL's own tests of pgbench, from Debian's source packages, with Loadstone as `pgbench`.

The server is one of the same major version: an installed one, or a private one's build. Prints how
many assertions of each file pass, and the names of those that fail. Exit status: 1 when fewer pass than
must, 77 when no major's tests can be had here (a line for each says why), else 0.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.private_server.builds import find_build
from loadstone.private_server.os_user import server_account

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
SUITES = {"15": "bookworm", "17": "trixie", "18": "forky"}
"""Debian's release that has this major's source package."""
MUST_PASS = {
    "15": {"001_pgbench_with_server.pl": 440, "002_pgbench_no_server.pl": 208},
    "17": {"001_pgbench_with_server.pl": 454, "002_pgbench_no_server.pl": 208},
    "18": {"001_pgbench_with_server.pl": 469, "002_pgbench_no_server.pl": 208},
}
"""A lower number is a regression."""
CANNOT = 77
UNPRIVILEGED = "1000"
TESTS = "src/bin/pgbench/t"
MODULES = "src/test/perl"


class CannotError(Exception):
    """Something that the tests need is not here; the text says what."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one file of tests said."""

    passed: int
    failed: tuple[str, ...]
    complete: bool
    """It announced its number of assertions: it did not die halfway."""


def main() -> int:
    """Run what the arguments ask for."""
    arguments = _arguments()
    good = []
    with _folder(arguments.dir) as folder:
        for major in arguments.majors or SUITES:
            try:
                good.append(_major(major, folder, arguments))
            except CannotError as reason:
                print(f"PostgreSQL {major}'s tests of pgbench were not run: {reason}", flush=True)
    if not good:
        return CANNOT
    return 0 if all(good) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("majors", nargs="*", choices=[[], *SUITES], help="majors of PostgreSQL (all)")
    parser.add_argument("--dir", type=Path, help="keep sources and logs in this folder")
    parser.add_argument("--pgbench", type=Path, default=Path(sys.executable).with_name("loadstone"))
    parser.add_argument("--bindir", type=Path, help="folder of initdb, pg_ctl and postgres")
    parser.add_argument("--show", action="store_true", help="show all that is said about failures")
    return parser.parse_args()


@contextmanager
def _folder(wanted: Path | None) -> Iterator[Path]:
    if wanted is not None:
        wanted.mkdir(parents=True, exist_ok=True)
        yield wanted.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="pgbench-tap-") as temporary:
        yield Path(temporary)


def _require_tools() -> None:
    if shutil.which("psql") is None:
        raise CannotError("there is no psql, which they call")
    if shutil.which("apt-get") is None:
        raise CannotError("there is no apt-get, which fetches their source packages")
    if _has_ipc_run():
        return
    if os.geteuid() == 0:
        install = ["apt-get", "install", "--yes", "--quiet", "libipc-run-perl"]
        subprocess.run(
            install, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, check=False
        )
    if not _has_ipc_run():
        raise CannotError("Perl's IPC::Run (Debian's libipc-run-perl) is missing")


def _has_ipc_run() -> bool:
    try:
        return (
            subprocess.run(["perl", "-MIPC::Run", "-e", "1"], capture_output=True, check=False).returncode
            == 0
        )
    except FileNotFoundError:
        return False


def _major(major: str, folder: Path, arguments: argparse.Namespace) -> bool:
    _require_tools()
    sources = _sources(major, folder)
    command, environment = _surroundings(major, folder, arguments)
    good = True
    for test in sorted((sources / TESTS).glob("*.pl")):
        log = folder / f"{major}-{test.stem}.log"
        with log.open("wb") as written:
            perl = ["perl", "-I", str(sources / MODULES), "-I", str(sources / "src/bin/pgbench"), str(test)]
            subprocess.run(
                [*command, *perl],
                cwd=folder / "work",
                env=environment,
                stdout=written,
                stderr=written,
                check=False,
            )
        said = log.read_text(encoding="utf-8", errors="replace")
        outcome = read_tap(said)
        good &= _report(major, test.name, outcome)
        if arguments.show:
            print("\n".join(line for line in said.splitlines() if not line.startswith("ok ")))
    return good


def _report(major: str, name: str, outcome: Outcome) -> bool:
    must = MUST_PASS[major][name]
    total = outcome.passed + len(outcome.failed)
    died = "" if outcome.complete else ", and it ended before its last assertion"
    print(f"PostgreSQL {major}, {name}: {outcome.passed} of {total} pass{died}", flush=True)
    for failed in outcome.failed:
        print(f"  fails: {failed}")
    if outcome.passed < must:
        print(f"  a regression: {must} passed before")
    return outcome.passed >= must


def read_tap(said: str) -> Outcome:
    """Count what a file of tests printed in the Test Anything Protocol."""
    passed = re.findall(r"^ok |^not ok .* # TODO", said, re.MULTILINE)
    failed = tuple(re.findall(r"^not ok \d+ - (?!.* # TODO)(.*)$", said, re.MULTILINE))
    return Outcome(len(passed), failed, re.search(r"^1\.\.\d+", said, re.MULTILINE) is not None)


def _sources(major: str, folder: Path) -> Path:
    """Return the unpacked tests of this major; they are fetched unless they are there."""
    unpacked = folder / f"postgresql-{major}"
    if not unpacked.is_dir():
        archive = _archive(major, folder)
        with tarfile.open(archive) as packed:
            members = [m for m in packed.getmembers() if f"/{TESTS}/" in m.name or f"/{MODULES}/" in m.name]
            for member in members:
                member.name = member.name.partition("/")[2]
            # Python before 3.11.4, Debian 12's among them, has no filters.
            packed.extraction_filter = getattr(tarfile, "data_filter", None)
            packed.extractall(unpacked, members)
    return unpacked


def _archive(major: str, folder: Path) -> Path:
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    listed = folder / "sources.list"
    listed.write_text(f"deb-src {_debian()} {SUITES[major]} main\n", encoding="utf-8")
    # Lists of our own: those of the machine stay as they are.
    places = {"Etc::sourcelist": listed, "Etc::sourceparts": "/dev/null", "State::lists": lists}
    apt = ["apt-get", "--quiet", *(f"-oDir::{name}={place}" for name, place in places.items())]
    for words in (["update"], ["source", "--download-only", f"postgresql-{major}"]):
        try:
            ran = subprocess.run(
                [*apt, *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False
            )
        except subprocess.TimeoutExpired:
            raise CannotError(f"apt-get {words[0]} took more than five minutes") from None
        if ran.returncode != 0:
            raise CannotError(f"apt-get {' '.join(words)}: {_complaint(ran.stderr or ran.stdout)}")
    found = sorted(folder.glob(f"postgresql-{major}_*.orig.tar.*"))
    found = [path for path in found if not path.name.endswith(".asc")]
    if not found:
        raise CannotError(f"the source package of PostgreSQL {major} has no archive")
    return found[-1]


def _debian() -> str:
    """Return where the machine has its Debian packages from."""
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian"]
    found = subprocess.run(words, capture_output=True, text=True, check=False).stdout.split()
    if not found:
        raise CannotError("apt-get knows no repository of Debian (was 'apt-get update' run?)")
    return found[0]


def _complaint(said: str) -> str:
    """Return the first error of apt: the last one is often that there were some."""
    errors = [line for line in said.splitlines() if line.startswith("E: ")]
    return (errors or said.splitlines() or ["it failed without a word"])[0]


def _surroundings(
    major: str, folder: Path, arguments: argparse.Namespace
) -> tuple[list[str], dict[str, str]]:
    """Return the command before Perl's, and the environment: our pgbench first on PATH."""
    links = folder / "bin"
    links.mkdir(exist_ok=True)
    link = links / "pgbench"
    link.unlink(missing_ok=True)
    link.symlink_to(arguments.pgbench.absolute())
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    environment = os.environ | {
        "PATH": f"{links}:{arguments.bindir or _bindir(major)}:{os.environ['PATH']}",
        # It only changes the log-in on Windows.
        "PG_REGRESS": shutil.which("true") or "/bin/true",
        "TESTDIR": str(work),
        "TESTDATADIR": str(work / "data"),
        "TESTLOGDIR": str(work / "log"),
        "LOADSTONE_PGBENCH_EMULATE": major,
    }
    return _as_user(), environment


def _as_user() -> list[str]:
    """Return what makes us look like a user other than root, as whom no PostgreSQL server starts."""
    if os.geteuid() != 0:
        return []
    command = ["unshare", "--user", f"--map-user={UNPRIVILEGED}"]
    if (
        shutil.which("unshare")
        and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    ):
        return command
    raise CannotError("PostgreSQL does not run as root, and there are no user namespaces here")


def _bindir(major: str) -> Path:
    installed = Path(f"/usr/lib/postgresql/{major}/bin")
    if all((installed / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
        return installed
    try:
        return find_build(f"pg{major}", server_account()).bin
    except LoadstoneError as error:
        raise CannotError(error.message) from None


if __name__ == "__main__":
    sys.exit(main())
