"""The run folder on disk (format: docs/run-folder.md): written while the run goes on, read when it is over.

A run that is killed at any moment leaves a folder that can be read: documents are replaced as a whole, lists
are appended to one whole line at a time, and the reader forgives a torn last line.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from loadstone.errors import LoadstoneError
from loadstone.results import documents
from loadstone.results.document_reader import (
    exists,
    read_document,
    read_json,
    read_lines,
    validate,
)
from loadstone.results.json_files import (
    Document,
    JsonLines,
    mend,
    redact_json,
    to_json,
    write_atomic,
)
from loadstone.results.manifest import NAME as MANIFEST
from loadstone.results.manifest import Findings, Manifest, folders, verify
from loadstone.results.phase_folder import PhaseFolder
from loadstone.results.subfolders import NAME_LENGTH, listed, subfolder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FORMAT = 2
"""The format this version writes; older ones are read as well, newer ones refused."""

PRODUCTS = ("summary.json", "report.html")
"""Computed from the rest, at any time: not in the manifest."""
DEFAULT_PARENT = Path("loadstone-runs")
NEED_BYTES = 64 * 1024 * 1024
"""Free space below which a run is not begun: its records would not fit."""

RunState = Literal["running", "complete", "failed", "interrupted", "killed"]
Level = Literal["info", "warning", "error"]
EventKind = Literal["phase-start", "phase-end", "warning", "skip", "outage", "check", "note"]

_KINDS: dict[str, type[documents.Struct]] = {
    "plan.json": documents.Plan,
    "environment.json": documents.Environment,
    "calibration.json": documents.Calibration,
}


@dataclass(frozen=True, slots=True)
class TargetFolder:
    """The folder of one target; `manifest` is that of the run while it goes on."""

    path: Path
    manifest: Manifest | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        """The target's id."""
        return self.path.name

    def write_target(self, document: Mapping[str, object]) -> None:
        """Replace target.json."""
        path, text = self.path / "target.json", redact_json(to_json(document, indent=1))
        if self.manifest is not None:
            self.manifest.document(path, text)
        write_atomic(path, text)

    def read_target(self) -> documents.Target | None:
        """Return target.json; None when the run ended before the target was reached."""
        path = self.path / "target.json"
        return read_document(path, documents.Target) if exists(path) else None

    def monitor(self) -> JsonLines:
        """Open monitor.jsonl for appending."""
        return _lines(self.path / "monitor.jsonl", self.manifest)

    def read_monitor(self) -> Iterator[documents.Sample]:
        """Yield the samples of monitor.jsonl."""
        return read_lines(self.path / "monitor.jsonl", documents.Sample)

    def phase(self, number: int, key: str) -> PhaseFolder:
        """Create the folder of the phase at `number` (from 1) in the run."""
        return PhaseFolder(subfolder(self.path / "phases", f"{number:03d}-{key}"), self.manifest)

    def phases(self) -> list[PhaseFolder]:
        """Return the phases begun so far, in the order in which they ran."""
        return [PhaseFolder(path) for path in sorted(listed(self.path / "phases"), key=_phase_order)]


def _lines(path: Path, manifest: Manifest | None) -> JsonLines:
    """Open a file that grows over several phases."""
    return JsonLines(path) if manifest is None else manifest.append_to(path)


def _phase_order(path: Path) -> tuple[int, str]:
    number = path.name.partition("-")[0]
    return (int(number) if number.isdecimal() else 0, path.name)


def make_run_id(started_at: str, scenarios: Sequence[str]) -> str:
    """Name a run by its start (run.json's `started_at`, UTC) and scenarios: `20261120T101500Z-iot-feed`."""
    stamp = re.sub(r"[-:]|\.\d+", "", started_at)
    names = re.sub(r"[^A-Za-z0-9._+-]+", "-", "+".join(scenarios))
    return f"{stamp}-{names}"[:NAME_LENGTH]


class RunFolder:
    """One run on disk: `create` begins one, `open` reads one."""

    def __init__(self, path: Path) -> None:
        """Wrap a folder without looking at it; use `create` or `open`."""
        self.path = path
        self._run: Document = {}
        self._events: JsonLines | None = None
        self._manifest: Manifest | None = None
        self._sealed = False
        self._lock = threading.Lock()

    @classmethod
    def create(
        cls, out: Path | None, run_id: str, *, need_bytes: int = NEED_BYTES, option: str = "--out"
    ) -> Self:
        """Make the folder: `out`, which `option` names, or `loadstone-runs/RUN_ID` below the working folder.

        Raises LoadstoneError when the place holds something already, may not be written, or has less than
        `need_bytes` free.
        """
        path = _fresh_default(run_id) if out is None else out
        _make_folder(path, option)
        _check_space(path, need_bytes, option)
        folder = cls(path)
        folder._manifest = Manifest(path)
        return folder

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a folder for reading. Raises LoadstoneError for one that is not ours or is too new."""
        if not os.path.lexists(path / "run.json"):
            raise _no_run_folder(path)
        folder = cls(path)
        folder._run = read_json(path / "run.json")
        version = folder._run.get("format")
        if not isinstance(version, int) or isinstance(version, bool):
            raise LoadstoneError(
                f"'{path}/run.json' was not written by Loadstone",
                "Use a folder that `loadstone run` created.",
            )
        if version > FORMAT:
            raise LoadstoneError(
                f"'{path}' was written by a newer Loadstone: {folder._run.get('loadstone')}, format "
                f"{version}",
                "Update Loadstone to read it.",
            )
        validate(folder._run, str(path / "run.json"), documents.Run)
        return folder

    @property
    def run(self) -> Document:
        """The content of run.json, as last written or read."""
        return self._run

    def write_run(self, **changes: object) -> None:
        """Change keys of run.json and replace the file. Who writes first is the run's process."""
        if not self._run:
            self._run = {"format": FORMAT, "pid": os.getpid(), "process": _process_identity(os.getpid())}
            self._run |= {"manifest": True} if self._manifest is not None else {}
        self._run = {**self._run, **changes}
        path, text = self.path / "run.json", redact_json(to_json(self._run, indent=1))
        if self._manifest is not None:
            if self._run.get("state") == "running":
                self._manifest.document(path, text)
            else:
                self._seal()
                self._manifest.close(path, text)
        write_atomic(path, text)

    def take_over(self, at: str) -> None:
        """Let this process continue with the run at this moment (UTC): it is its process from now on."""
        if exists(self.path / MANIFEST):
            self._manifest = Manifest(self.path)
            self._manifest.settle()
        self.write_run(
            state="running",
            pid=os.getpid(),
            process=_process_identity(os.getpid()),
            ended_at=None,
            exit_code=None,
            reason=None,
            resumed_at=[*self._run.get("resumed_at", ()), at],
        )

    def is_of_this_boot(self) -> bool:
        """Return whether its times are those of this machine's clock, which begins again when it starts."""
        here = _process_identity(os.getpid()) or ""
        return str(self._run.get("process")).partition("/")[0] == here.partition("/")[0]

    def write_json(self, name: str, document: object) -> None:
        """Replace a document of the run: plan.json, environment.json, calibration.json, summary.json."""
        self.write_text(name, to_json(document, indent=1))

    def write_text(self, name: str, text: str) -> None:
        """Replace a document of the run by this text."""
        path, text = self.path / name, redact_json(text) if name.endswith(".json") else text
        if self._manifest is not None and name not in PRODUCTS:
            self._manifest.document(path, text)
        write_atomic(path, text)

    def verify(self) -> Findings:
        """Compare the folder with its manifest. Raises LoadstoneError when that cannot be read."""
        state = self._run.get("state")
        return verify(
            self.path,
            expected=bool(self._run.get("manifest")),
            ended=state in ("complete", "failed", "interrupted"),
            complete=state == "complete",
        )

    def read_json(self, name: str) -> Document | None:
        """Return a document of the run; None when the run ended before it was written."""
        path = self.path / name
        return read_json(path, _KINDS.get(name)) if exists(path) else None

    def read_plan(self) -> documents.Plan:
        """Return plan.json; an empty plan when the run ended before it was written."""
        path = self.path / "plan.json"
        return read_document(path, documents.Plan) if exists(path) else documents.Plan()

    def event(
        self,
        level: Level,
        kind: EventKind,
        message: str,
        *,
        hint: str | None = None,
        target: str | None = None,
        phase: str | None = None,
    ) -> bool:
        """Append to events.jsonl, stamped now.

        `phase` is a phase folder's key. Returns False and raises as `JsonLines.write` does; what a thread has
        to tell once the run's end is entered is lost.
        """
        record = {
            "t_ns": time.monotonic_ns(),
            "level": level,
            "kind": kind,
            "target": target,
            "phase": phase,
            "message": message,
            "hint": hint or None,
        }
        with self._lock:  # the monitor's thread tells events as well
            if self._sealed:
                return False
            if self._events is None:
                self._events = _lines(self.path / "events.jsonl", self._manifest)
            return self._events.write(record)

    def read_events(self) -> Iterator[documents.Event]:
        """Yield the events so far."""
        return read_lines(self.path / "events.jsonl", documents.Event)

    def target(self, target_id: str) -> TargetFolder:
        """Create the folder of a target."""
        return TargetFolder(subfolder(self.path / "targets", target_id), self._manifest)

    def targets(self) -> list[TargetFolder]:
        """Return the targets of the run, in the order of the plan where it names them."""
        planned = [target.id for target in self.read_plan().targets]
        found = [TargetFolder(path) for path in listed(self.path / "targets")]
        return sorted(found, key=lambda t: planned.index(t.id) if t.id in planned else len(planned))

    def discard(self, made: Sequence[Path]) -> None:
        """Remove what is in a folder in which nothing was measured, and the folders `made` for it."""
        for entry in self.path.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            for path in made:
                path.rmdir()

    def _seal(self) -> None:
        with self._lock:
            self._sealed = True

    def close(self) -> None:
        """Close what is open, and take no more events; safe to call twice."""
        self._seal()
        if self._events is not None:
            self._events.close()
        if self._manifest is not None:
            self._manifest.release()


def missing(path: Path) -> list[Path]:
    """Return the folders that making this one makes, itself included, the innermost first."""
    return [folder for folder in (path, *path.parents) if not folder.exists()]


def _fresh_default(run_id: str) -> Path:
    """Two runs may begin within one second: the second gets a number."""
    path, number = DEFAULT_PARENT / run_id, 1
    while path.exists():
        number += 1
        path = DEFAULT_PARENT / f"{run_id}-{number}"
    return path


def _make_folder(path: Path, option: str) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise LoadstoneError(
                f"the folder '{path}' is not empty",
                f"Choose a new folder with {option}: results are never overwritten.",
            )
        probe = path / f".probe.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except (FileExistsError, NotADirectoryError) as error:
        raise LoadstoneError(
            f"'{path}' is a file, or inside one", f"Choose a folder with {option}."
        ) from error
    except OSError as error:
        raise LoadstoneError(
            f"the folder '{path}' cannot be created: {error.strerror}", mend(error)
        ) from error


def _check_space(path: Path, need_bytes: int, option: str) -> None:
    free = shutil.disk_usage(path).free
    if free < need_bytes:
        raise LoadstoneError(
            f"{free / 2**20:.0f} MiB are free for results in '{path}', but {need_bytes / 2**20:.0f} "
            "are needed",
            f"Free some space there, or choose another folder with {option}.",
        )


def _no_run_folder(path: Path) -> LoadstoneError:
    if not path.exists():
        return LoadstoneError(
            f"the folder '{path}' does not exist", "Check the path; `loadstone run` prints it at its end."
        )
    if not path.is_dir():
        return LoadstoneError(f"'{path}' is not a folder", "Use the run's folder, not a file in it.")
    inside = [sub.name for sub in folders(path) if (sub / "run.json").is_file()]
    if inside:
        return LoadstoneError(
            f"'{path}' contains run folders but is not one",
            f"Use one of them; the latest is {path / inside[-1]}",
        )
    return LoadstoneError(
        f"'{path}' is not a run folder: it has no run.json", "Use a folder that `loadstone run` created."
    )


def state_of(folder: RunFolder) -> RunState:
    """Say how the run stands: `killed` when it is marked running but its process is gone.

    A process id may have been given away again, or the folder been copied from another machine: the process
    must be of the same boot and have started at the same moment.
    """
    state = folder.run.get("state")
    if state in ("complete", "failed", "interrupted"):
        return state  # type: ignore[no-any-return]
    pid = folder.run.get("pid")
    identity = _process_identity(pid) if isinstance(pid, int) else None
    return "running" if identity is not None and identity == folder.run.get("process") else "killed"


def _process_identity(pid: int) -> str | None:
    """Return boot and start time (clock ticks since boot): with the id they are unique; None if gone."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else f"{boot}/{fields[19]}"
