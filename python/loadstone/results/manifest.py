"""manifest.jsonl: what the run has written, so that a reader can say whether it is all still there.

One line for each thing that has come to an end (a document, a phase, the run), appended as it happens. Each
line holds the checksum of the line before it: lines that were lost, doubled or changed are seen. A document
is entered before it is replaced, so that a kill in between leaves it as the entry before said.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from loadstone.errors import LoadstoneError
from loadstone.results.document_reader import exists, open_regular, read_jsonl, unreadable
from loadstone.results.documents import ManifestLine
from loadstone.results.json_files import JsonLines, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

NAME = "manifest.jsonl"
IN_LINES = (".jsonl", ".hlog")
_BLOCK = 1 << 20
_FIELDS = ("path", "bytes", "lines", "sha256")
What = Literal["written", "begun", "ended", "closed"]
Entry = dict[str, Any]
"""A file as the manifest knows it: path below the run folder, bytes, lines (null for documents), sha256."""


@dataclass(slots=True)
class Sum:
    """Size, lines and checksum of a file that may grow."""

    size: int = 0
    lines: int = 0
    _hash: Any = field(default_factory=hashlib.sha256)

    def update(self, data: bytes) -> None:
        """Add what comes next in the file."""
        self.size += len(data)
        self.lines += data.count(b"\n")
        self._hash.update(data)

    def read(self, path: Path, end: int | None = None) -> None:
        """Add what the file has gained, up to `end` bytes. Raises LoadstoneError when it cannot be read."""
        with open_regular(path) as file:
            file.seek(self.size)
            while data := file.read(_BLOCK if end is None else min(_BLOCK, end - self.size)):
                self.update(data)

    def entry(self, name: str) -> Entry:
        """Return the file's entry under this path."""
        lines = self.lines if name.endswith(IN_LINES) else None
        return {"path": name, "bytes": self.size, "lines": lines, "sha256": self._hash.hexdigest()}


def digest_of_line(line: object) -> str:
    """Return what the next line of the manifest says of this one."""
    return hashlib.sha256(to_json(line).encode()).hexdigest()[:16]


class Manifest:
    """Appends to the manifest of a run that goes on."""

    def __init__(self, root: Path) -> None:
        """Begin the manifest of the run folder `root`, or continue with the one that is there."""
        self._root = root
        self._after: str | None = None
        self._file: JsonLines | None = None
        self._growing: dict[str, Sum] = {}
        self._appended: list[JsonLines] = []
        for line in read_jsonl(root / NAME):
            self._after = digest_of_line(line)

    def document(self, path: Path, text: str) -> None:
        """Enter a document that is about to be written or replaced."""
        self._append("written", [self._entry_of_text(path, text)])

    def append_to(self, path: Path) -> JsonLines:
        """Open a growing file: it takes lines until the run's end is entered, and none after that."""
        lines = JsonLines(path)
        self._appended.append(lines)
        return lines

    def begin_phase(self, folder: Path) -> None:
        """Enter that a phase begins to write into its folder."""
        self._append("begun", [], self._name(folder))

    def end_phase(self, folder: Path) -> None:
        """Enter every file of a phase that has ended, and how far the run's growing files are."""
        self._append("ended", [*self._inside(folder), *self._grown()], self._name(folder))

    def close(self, path: Path, text: str) -> None:
        """Enter the run's end: run.json as it is about to be written, and the growing files.

        A thread that is still about cannot write into them any more: nothing follows what was summed up.
        """
        for lines in self._appended:
            lines.close()
        self._append("closed", [self._entry_of_text(path, text), *self._grown()])

    def settle(self) -> None:
        """Enter as they are the documents of the last line, which a kill may have kept from being written."""
        last = list(read_jsonl(self._root / NAME, ManifestLine))[-1]
        wanted = [file for file in last["files"] if not file["path"].endswith(IN_LINES)]
        found = [self._as_it_is(file["path"]) for file in wanted if last["what"] in ("written", "closed")]
        if any(entry not in wanted for entry in found):
            self._append("written", found)

    def release(self) -> None:
        """Bring the lines to the disk and close the file; safe to call twice."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, what: What, files: list[Entry], phase: str | None = None) -> None:
        line = {"what": what, "phase": phase, "after": self._after, "files": files}
        if self._file is None:
            self._file = JsonLines(self._root / NAME, checksums=True)
        if self._file.write(line):
            self._after = digest_of_line(line)

    def _entry_of_text(self, path: Path, text: str) -> Entry:
        found = Sum()
        found.update(text.encode())
        return found.entry(self._name(path))

    def _as_it_is(self, name: str) -> Entry:
        path = self._root / name
        return _entry(path, name) if exists(path) else {**dict.fromkeys(_FIELDS), "path": name}

    def _inside(self, folder: Path) -> Iterator[Entry]:
        for path in files_below(folder):
            yield _entry(path, self._name(path))

    def _grown(self) -> Iterator[Entry]:
        for path in growing_files(self._root):
            name = self._name(path)
            known = self._growing.setdefault(name, Sum())
            known.read(path)
            yield known.entry(name)

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._root))


def _entry(path: Path, name: str, end: int | None = None) -> Entry:
    found = Sum()
    found.read(path, end)
    return found.entry(name)


def growing_files(root: Path) -> list[Path]:
    """Return the files that grow over several phases, as far as they are there."""
    found = [root / "events.jsonl", *(target / "monitor.jsonl" for target in folders(root / "targets"))]
    return [path for path in found if exists(path)]


def folders(parent: Path) -> list[Path]:
    """Return the folders below `parent`, in the order of their names; hidden ones are left out."""
    if not parent.is_dir():
        return []
    return [path for path in _listed(parent) if path.is_dir() and not path.name.startswith(".")]


def files_below(folder: Path) -> Iterator[Path]:
    """Yield all files of a phase; what an attempt before left, and what is half written, is left out."""
    for path in _listed(folder):
        if path.name.startswith((".", "before-")):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from files_below(path)
        else:
            yield path


def _listed(folder: Path) -> list[Path]:
    """Return what is in a folder, in the order of the names. Raises LoadstoneError when it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise unreadable(folder, error) from error


@dataclass(frozen=True, slots=True)
class Findings:
    """What a comparison of a run folder with its manifest has found."""

    checked: bool
    """False for a folder without a manifest, of an older version."""
    problems: list[str] = field(default_factory=list)
    """What is missing, was changed, or was added: each begins with the file's path in the folder."""


def verify(root: Path, *, expected: bool, ended: bool, complete: bool) -> Findings:
    """Compare a run folder with its manifest.

    `expected` says that run.json names a manifest, `ended` that the run has come to its end, and `complete`
    that it did so as planned. Raises LoadstoneError when the manifest cannot be read.
    """
    if not exists(root / NAME):
        return Findings(expected, [f"{NAME} is missing"] if expected else [])
    lines = list(read_jsonl(root / NAME, ManifestLine))
    problems = list(_broken_chain(lines))
    closed = bool(lines) and lines[-1]["what"] == "closed"
    if ended and not closed:
        problems.append(f"{NAME} ends before the run ended")
    problems += _Check(root, lines, closed=closed, complete=complete).problems()
    return Findings(checked=True, problems=problems)


def _broken_chain(lines: Iterable[Entry]) -> Iterator[str]:
    after = None
    for number, line in enumerate(lines, start=1):
        if line["after"] != after:
            yield f"{NAME}, line {number} does not follow the previous line: lines were lost or changed"
        after = digest_of_line(line)


class _Check:
    """What the manifest says last of each file, against what is there."""

    def __init__(self, root: Path, lines: list[Entry], *, closed: bool, complete: bool) -> None:
        self._root = root
        self._closed = closed
        self._complete = complete
        self._documents: dict[str, list[Entry | None]] = {}
        self._growing: dict[str, Entry] = {}
        self._phases: dict[str, list[Entry] | None] = {}
        for line in lines:
            if line["what"] in ("begun", "ended"):
                inside = [file for file in line["files"] if file["path"].startswith(f"{line['phase']}/")]
                self._phases[line["phase"]] = inside if line["what"] == "ended" else None
            for file in line["files"]:
                self._take(file, line["phase"], last=line is lines[-1])

    def _take(self, file: Entry, phase: str | None, *, last: bool) -> None:
        name = file["path"]
        if phase is not None and name.startswith(f"{phase}/"):
            return
        if name.endswith(IN_LINES):
            self._growing[name] = file
        else:
            # A kill may have come between the last line and what it says.
            before = [*self._documents.get(name, [None])][-1:] if last else []
            self._documents[name] = [*before, file]

    def problems(self) -> Iterator[str]:
        """Yield what is missing, was changed or was added, in the order of the files' names."""
        for name, entries in sorted(self._documents.items()):
            yield from self._compare(name, entries)
        for name, entry in sorted(self._growing.items()):
            yield from self._compare(name, [entry], grows=not self._closed)
        for phase, files in sorted(self._phases.items()):
            yield from self._phase(phase, files)
        yield from self._added()

    def _phase(self, phase: str, files: list[Entry] | None) -> Iterator[str]:
        if not (self._root / phase).is_dir():
            yield f"{phase} is missing"
        elif files is None:
            if self._complete:
                yield f"{phase} was begun, but {NAME} does not say that it ended"
        else:
            for file in files:
                yield from self._compare(file["path"], [file])
            known = {file["path"] for file in files}
            there = (str(path.relative_to(self._root)) for path in files_below(self._root / phase))
            yield from (f"{name} was added after its phase" for name in there if name not in known)

    def _compare(self, name: str, entries: Sequence[Entry | None], *, grows: bool = False) -> Iterator[str]:
        """Compare a file with the states that it may be in; None: not there."""
        last = entries[-1] or {}
        now = None
        if exists(self._root / name):
            try:
                now = _entry(self._root / name, name, last["bytes"] if grows else None)
            except LoadstoneError as error:
                yield f"{name} cannot be read: {error.message}"
                return
        if now not in [entry and (entry if entry["bytes"] is not None else None) for entry in entries]:
            yield f"{name} is missing" if now is None else _difference(last, now)

    def _added(self) -> Iterator[str]:
        """Yield what the summary would read and the run has not written."""
        targets = folders(self._root / "targets")
        known = {*self._documents, *self._growing}
        names = ["plan.json", "environment.json", "calibration.json"]
        names += [f"targets/{target.name}/target.json" for target in targets]
        if self._closed:  # before, they may be younger than the last entry
            names += [str(path.relative_to(self._root)) for path in growing_files(self._root)]
        names = [name for name in names if exists(self._root / name) and name not in known]
        phases = [phase for target in targets for phase in folders(target / "phases")]
        there = [str(phase.relative_to(self._root)) for phase in phases]
        for name in (*names, *(name for name in there if name not in self._phases)):
            yield f"{name} is not in {NAME}: the run did not write it"


def _difference(written: Entry, now: Entry) -> str:
    name = now["path"]
    if written["lines"] is not None and written["lines"] != now["lines"]:
        return f"{name} has {now['lines']:,} lines; the run had written {written['lines']:,}"
    if written["bytes"] is not None and written["bytes"] != now["bytes"]:
        return f"{name} has {now['bytes']:,} bytes; the run had written {written['bytes']:,}"
    return f"{name} was changed after the run had written it"
