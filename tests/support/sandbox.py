"""A place of its own for each end-to-end test: home, caches and working folder, with the real command."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import psutil
import psycopg
import pytest
from click.testing import CliRunner

import loadstone
from loadstone.cli.group import loadstone as command
from loadstone.private_server.server import DATABASE, USER
from loadstone.results.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from loadstone.private_server import EmbeddedServer

NOBODY = 65534
COMMAND = Path(sys.executable).with_name("loadstone")
TIMEOUT_S = 240.0
"""Longest wait for a command, of which none takes 30 s alone: only what hangs may reach it, on a machine that
also runs other tests, builds and servers."""

SCENARIO = """
id = "{name}"
title = "{name}"
version = "1"
why = "A test."

[[phase]]
id = "prepare"
kind = "sql"
title = "prepare"
setup = ["create table if not exists t (id int)", "truncate t"]

{phases}
"""
PHASE = """
[[phase]]
id = "{id}"
kind = "script"
title = "{id}"
scripts = ["{script}"]
clients = 2
{settings}
"""
INSERT = "\\sleep 2 ms\ninsert into t values (1);\n"
"""Clients that pause leave the cores to other tests."""
COUNTED = (
    'rows_per_transaction = 1\nrow_check = {{ count = "select count(*) from t" }}\nduration_s = {seconds}'
)


def comes_about(condition: Callable[[], object], limit_s: float) -> bool:
    """Wait until something holds; returns whether it did within the limit."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)  # between two looks: the one place of the tests that waits so
    return True


def wait_until(condition: Callable[[], object], what: str, limit_s: float = 120.0) -> None:
    """Wait until something holds; fail the test when it never does."""
    assert comes_about(condition, limit_s), f"it did not come about in {limit_s:g} s: {what}"


def change_plan(folder: Path, old: str, new: str) -> None:
    """Change a run's plan as if the run had planned so."""
    replace_plan(folder, (folder / "plan.json").read_text().replace(old, new))


def replace_plan(folder: Path, text: str) -> None:
    """Give a run another plan as if the run had planned so: its manifest agrees."""
    path = folder / "plan.json"
    manifest = Manifest(folder)
    manifest.document(path, text)
    path.write_text(text)
    run = folder / "run.json"
    if read_json(run)["state"] != "running":
        manifest.close(run, run.read_text())
    manifest.release()


@dataclass
class Ended:
    """A command that has ended, and what it left."""

    code: int
    out: str
    err: str
    folder: Path
    seconds: float

    @cached_property
    def run(self) -> dict[str, Any]:
        return read_json(self.folder / "run.json")

    @cached_property
    def summary(self) -> dict[str, Any]:
        return read_json(self.folder / "summary.json")

    @property
    def report(self) -> str:
        return (self.folder / "report.html").read_text()

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "events.jsonl").read_text().splitlines()]

    def phases(self, target: str = "*") -> dict[str, dict[str, Any]]:
        """Give phase.json by the phase's id, in order."""
        paths = sorted(self.folder.glob(f"targets/{target}/phases/*/phase.json"), key=lambda p: p.parent.name)
        return {document["id"]: document for document in map(read_json, paths)}

    def drive(self, phase: str) -> dict[str, Any]:
        (path,) = self.folder.glob(f"targets/*/phases/*-{phase}/drive.json")
        return read_json(path)

    def told(self, kind: str) -> list[str]:
        return [event["message"] for event in self.events if event["kind"] == kind]


def read_json(path: Path) -> dict[str, Any]:
    document = json.loads(path.read_text())
    assert isinstance(document, dict)
    return document


@dataclass
class Running:
    """A command that is running, in a session of its own as a terminal's job is."""

    process: subprocess.Popen[bytes]
    folder: Path
    stem: Path
    begun_s: float = field(default_factory=time.monotonic)

    @property
    def err(self) -> str:
        return self.stem.with_suffix(".err").read_text()

    @property
    def out(self) -> str:
        return self.stem.with_suffix(".out").read_text()

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        def come() -> bool:
            assert self.process.poll() is None, f"it ended while we waited for: {what}\n{self.err}"
            return bool(condition())

        wait_until(come, what)

    def wait_for_words(self, words: str) -> None:
        self.wait_for(lambda: words in self.err, f"“{words}” on the terminal")

    def wait_for_drive(self, phase: str) -> None:
        """Wait until a drive has recorded its first second."""
        pattern = f"targets/*/phases/*-{phase}/series.jsonl"
        self.wait_for(lambda: any(p.stat().st_size for p in self.folder.glob(pattern)), f"drive {phase}")

    def send(self, signum: int) -> None:
        self.process.send_signal(signum)

    def send_group(self, signum: int) -> None:
        """Do as a terminal does at Ctrl-C: all of the job's processes get the signal."""
        os.killpg(self.process.pid, signum)

    def finish(self, limit_s: float = TIMEOUT_S) -> Ended:
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait()
            raise AssertionError(f"it hangs:\n{self.err}") from None
        out = self.stem.with_suffix(".out").read_text()
        seconds = time.monotonic() - self.begun_s
        return Ended(self.process.returncode, out, self.err, self.folder, seconds)


class Sandbox:
    """Everything that one test's commands may touch lies below `base`."""

    def __init__(self, base: Path, builds: Path) -> None:
        self.base = base
        self.home, self.work, self.storage = base / "home", base / "work", base / "storage"
        self.tmp, self.cache = base / "tmp", base / "cache"
        for folder in (self.home, self.work, self.storage, self.tmp, self.cache / "loadstone"):
            folder.mkdir(parents=True)
        # Servers of a test are in a registry of the test's own; downloads and the chart library are shared.
        (self.cache / "loadstone" / "postgresql").symlink_to(builds)
        charts = builds.parent / "charts"
        charts.mkdir(exist_ok=True)
        (self.cache / "loadstone" / "charts").symlink_to(charts)
        self.running: list[Running] = []
        self.may_leave = False

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.cache),
            "TMPDIR": str(self.tmp),
            "LC_ALL": "C.UTF-8",
            "PYTHONFAULTHANDLER": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def start(
        self,
        *arguments: object,
        out: str = "out",
        env: Mapping[str, str] | None = None,
        prefix: tuple[str, ...] = (),
    ) -> Running:
        """Start `loadstone` as a user would, with signals as a terminal's job has them."""
        stem = self.base / f"command-{len(self.running)}"
        command = ["env", "--default-signal=INT,TERM,HUP", *prefix, str(COMMAND), *map(str, arguments)]
        with stem.with_suffix(".out").open("wb") as stdout, stem.with_suffix(".err").open("wb") as stderr:
            process = subprocess.Popen(
                command,
                cwd=self.work,
                env=self.environment | dict(env or {}),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        running = Running(process, self.work / out, stem)
        self.running.append(running)
        return running

    def as_ordinary_user(self) -> tuple[str, ...]:
        """Give what goes before a command that root wants to have run by nobody.

        Folders of root's that are closed to others, and hold what the command needs, are opened by mounts
        that only the command sees.
        """
        for folder in (self.home, self.work, self.storage, self.tmp, self.cache, self.cache / "loadstone"):
            os.chown(folder, NOBODY, NOBODY)
        needed = {Path(sys.prefix), Path(sys.base_prefix), Path(loadstone.__file__).parents[1]}
        script = ["set -e"]
        closed: dict[Path, list[Path]] = {}
        for path in sorted(needed):
            ancestors = [folder for folder in reversed(path.parents) if not folder.stat().st_mode & 0o001]
            if ancestors:
                closed.setdefault(ancestors[0], []).append(path)
        for folder, paths in closed.items():
            held = [(path, self.base / f"held-{path.name}") for path in paths]
            script += [f"mkdir '{hold}'; mount --bind '{path}' '{hold}'" for path, hold in held]
            script += [f"mount -t tmpfs -o mode=755 tmpfs '{folder}'"]
            script += [f"mkdir -p '{path}'; mount --bind '{hold}' '{path}'" for path, hold in held]
        change = f"exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"
        script += [f'{change} "$@"']
        return ("unshare", "--mount", "sh", "-c", "\n".join(script), "sh")

    def run(self, *arguments: object, **more: Any) -> Ended:
        return self.start(*arguments, **more).finish()

    def quick(self, *arguments: object, out: str = "out") -> Ended:
        """Call the command in this process, for what is refused before anything begins."""
        begun = time.monotonic()
        with contextlib.chdir(self.work):
            given = [str(argument) for argument in ("run", *arguments, "--no-calibrate", "--out", out)]
            shown = CliRunner(env=self.environment).invoke(command, given)
        return Ended(shown.exit_code, shown.stdout, shown.stderr, self.work / out, time.monotonic() - begun)

    def begin(self, *arguments: object, out: str = "out", **more: Any) -> Running:
        """Start a quick run into the folder `out`."""
        given = ("run", *arguments, "--size", "tiny", "--out", out)
        return self.start(
            *given, *(() if "--calibrate" in arguments else ("--no-calibrate",)), out=out, **more
        )

    def measure(self, *arguments: object, **more: Any) -> Ended:
        """Do a quick run into the folder `out`."""
        return self.begin(*arguments, **more).finish()

    def scenario(self, *phases: tuple[str, str, str], name: str = "own") -> Path:
        """Write a scenario of a user's own: (id, script, settings in TOML) for each phase."""
        folder = self.work / name
        folder.mkdir()
        texts = []
        for phase, script, settings in phases:
            (folder / f"{phase}.pgbench").write_text(script)
            texts.append(PHASE.format(id=phase, script=f"{phase}.pgbench", settings=settings))
        (folder / "scenario.toml").write_text(SCENARIO.format(name=name, phases="".join(texts)))
        return folder

    def inserts(self, seconds: float = 1, settings: str = "") -> Path:
        """Write a scenario that inserts rows, and counts them."""
        return self.scenario(("insert", INSERT, COUNTED.format(seconds=seconds) + "\n" + settings))

    def holding(self, secret: str) -> list[Path]:
        """List the files that hold a text."""
        files = [path for path in self.base.rglob("*") if path.is_file() and not path.is_symlink()]
        return [path for path in files if secret.encode() in path.read_bytes()]

    def servers(self) -> list[Path]:
        """List the data folders and records of private servers."""
        places = (self.tmp, self.storage, self.cache / "loadstone" / "servers")
        return [entry for place in places if place.is_dir() for entry in place.iterdir()]

    def private_server(self) -> PrivateServer:
        """Find the private PostgreSQL that runs here now."""
        (found,) = [*self.tmp.rglob("postmaster.pid"), *self.storage.rglob("postmaster.pid")]
        pid, _, _, port, socket, *_ = found.read_text().splitlines()
        return PrivateServer(int(pid), Path(socket), int(port))

    def of_postgres(self, parent: int | None = None) -> list[psutil.Process]:
        """List the processes of private PostgreSQL servers, or of one parent; they may end at any time."""
        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                if "postgres" in process.name() and parent in (None, process.ppid()):
                    found.append(process)
        return found

    def processes(self) -> Iterator[psutil.Process]:
        """Yield the living processes that have to do with this place."""
        sign = str(self.base)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                about = [*process.cmdline(), process.cwd(), *process.environ().values()]
                if process.pid != os.getpid() and any(sign in text for text in about):
                    yield process

    def close(self) -> None:
        """End what still runs; fails the test when something does that should not, or lies about."""
        left = [f"{process.pid} {' '.join(process.cmdline())}" for process in self.processes()]
        servers = self.servers()
        while family := list(self.processes()):
            for process in family:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(family, timeout=5)
        for running in self.running:
            running.process.wait()
        shutil.rmtree(self.base, ignore_errors=True)
        if not self.may_leave:
            assert left == [], "processes are left"
            assert servers == [], "a private server's folders or records are left"


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """Kill processes of one family: when its first is gone, the others end by themselves."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def make_base() -> Path:
    """Make a short folder (a socket's path is short) that the servers' user can enter."""
    base = Path(tempfile.mkdtemp(prefix="ls-", dir="/var/tmp"))
    base.chmod(0o755)
    return base


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """Mount a disk that is soon full; skips the test of an ordinary user."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path, leave_bytes: int) -> Path:
    """Fill a disk but for about so many bytes, while others write to it as well."""
    ballast = folder / "ballast"
    handle = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    size, step = 0, 1 << 20
    while step >= 4096 and shutil.disk_usage(folder).free > leave_bytes:
        try:
            os.posix_fallocate(handle, size, step)
        except OSError:
            step //= 2
        else:
            size += step
    os.close(handle)
    return ballast


@dataclass(frozen=True)
class PrivateServer:
    """A run's own PostgreSQL, seen from outside the run."""

    pid: int
    socket: Path
    port: int

    def value(self, statement: str) -> Any:
        where = f"host={self.socket} port={self.port} user={USER} dbname={DATABASE}"
        with psycopg.connect(where, autocommit=True) as connection:
            row = connection.execute(statement.encode()).fetchone()
            return row[0] if row else None


class Database:
    """An empty database on the tests' server."""

    def __init__(self, server: EmbeddedServer, name: str) -> None:
        self.server = server
        self.name = name
        self.password = server.tcp_connection.password or ""

    @property
    def url(self) -> str:
        """By TCP, with the password."""
        there = self.server.tcp_connection
        return f"postgres://{there.user}:{quote(self.password)}@{there.host}:{there.port}/{self.name}"

    @property
    def bare_url(self) -> str:
        """By TCP, without the password."""
        return self.url.replace(f":{quote(self.password)}@", "@")

    @property
    def socket_url(self) -> str:
        there = self.server.connection
        return f"postgres://{there.user}@/{self.name}?host={quote(there.host, safe='')}&port={there.port}"

    @contextlib.contextmanager
    def connect(self) -> Iterator[psycopg.Connection]:
        there = self.server.connection
        with psycopg.connect(
            host=there.host, port=there.port, user=there.user, dbname=self.name, autocommit=True
        ) as connection:
            yield connection

    def value(self, statement: str) -> Any:
        with self.connect() as connection:
            row = connection.execute(statement.encode()).fetchone()
            return row[0] if row else None

    def execute(self, statement: str) -> None:
        with self.connect() as connection:
            connection.execute(statement.encode())

    def wait_until_left(self) -> None:
        """Wait until the server has seen the end of all sessions of commands, as after a kill."""
        ours = "datname = current_database() and application_name like 'loadstone%'"
        query = f"select count(*) from pg_stat_activity where {ours}"
        wait_until(lambda: self.value(query) == 0, "no session of ours is left")
