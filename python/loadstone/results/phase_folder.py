"""The folder of one phase on one target: its documents and lists, written and read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.results import documents
from loadstone.results.document_reader import exists, read_document, read_json, read_jsonl, read_lines, typed
from loadstone.results.json_files import Document, JsonLines, to_json, write_atomic
from loadstone.results.older import renamed
from loadstone.results.subfolders import subfolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from loadstone.results.manifest import Manifest


@dataclass(frozen=True, slots=True)
class PhaseFolder:
    """The folder of one phase on one target; `manifest` is that of the run while it goes on."""

    path: Path
    manifest: Manifest | None = field(default=None, compare=False)

    def begin(self) -> None:
        """Enter into the manifest that the phase begins."""
        if self.manifest is not None:
            self.manifest.begin_phase(self.path)

    def end(self) -> None:
        """Enter into the manifest all that the phase has written."""
        if self.manifest is not None:
            self.manifest.end_phase(self.path)

    @property
    def key(self) -> str:
        """The phase's place in the run and its id: `003-one-table-single`."""
        return self.path.name

    @property
    def latency_path(self) -> Path:
        """Where the driver writes its histogram log."""
        return self.path / "latency.hlog"

    @property
    def series_path(self) -> Path:
        """Where the driver writes one object an interval."""
        return self.path / "series.jsonl"

    def set_aside(self, *stay: str) -> None:
        """Move what an attempt has left, but for phase.json and `stay`, into a folder `before-N`."""
        left = [
            path
            for path in self.path.iterdir()
            if path.name not in ("phase.json", *stay) and not path.name.startswith(("before-", "."))
        ]
        if not left:
            return
        number = 1 + sum(path.name.startswith("before-") for path in self.path.iterdir())
        aside = subfolder(self.path, f"before-{number}")
        for path in left:
            path.rename(aside / path.name)

    def write_steps(self, lines: Iterable[Document]) -> None:
        """Replace steps.jsonl."""
        write_atomic(self.path / "steps.jsonl", "".join(to_json(line) + "\n" for line in lines))

    def steps(self) -> JsonLines:
        """Open steps.jsonl for appending."""
        return JsonLines(self.path / "steps.jsonl")

    def read_steps(self) -> Iterator[documents.Step]:
        """Yield the steps of a bulk load that have ended."""
        return read_lines(self.path / "steps.jsonl", documents.Step)

    def written_steps(self) -> Iterator[Document]:
        """Yield them as they were written: a run that goes on writes them again."""
        return read_jsonl(self.path / "steps.jsonl", documents.Step)

    def subfolder(self, name: str, *, create: bool = True) -> PhaseFolder:
        """Return the folder of what ran at the same time: `queries` or `probe`."""
        return PhaseFolder(subfolder(self.path, name) if create else self.path / name)

    def write_phase(self, document: Mapping[str, object]) -> None:
        """Replace phase.json."""
        write_atomic(self.path / "phase.json", to_json(document, indent=1))

    def written_phase(self) -> Document:
        """Return it as it was written: a run that goes on writes it again."""
        return read_json(self.path / "phase.json", documents.Phase)

    def write_drive(self, text: str) -> None:
        """Replace drive.json by the driver's own text."""
        write_atomic(self.path / "drive.json", text)

    def read_drive(self) -> documents.Drive | documents.QueriesInTurnDrive | None:
        """Return drive.json; None when the phase has none (nothing to drive, or killed before its end)."""
        found = self._drive()
        return None if found is None else found[1]

    def written_drive(self) -> Document | None:
        """Return it as it was written: a run that goes on adds to it."""
        found = self._drive()
        return None if found is None else found[0]

    def _drive(self) -> tuple[Document, documents.Drive | documents.QueriesInTurnDrive] | None:
        path = self.path / "drive.json"
        if not exists(path):
            return None
        drive = renamed(read_json(path), documents.Drive)
        return drive, typed(drive, str(path), documents.kind_of_drive(drive))

    def read_hosts(self) -> documents.Hosts | None:
        """Return hosts.json; None for a drive from one host."""
        path = self.path / "hosts.json"
        return read_document(path, documents.Hosts) if exists(path) else None

    def read_series(self) -> Iterator[documents.Interval]:
        """Yield the intervals of series.jsonl."""
        return read_lines(self.series_path, documents.Interval)

    def read_progress(self) -> Iterator[documents.Progress]:
        """Yield what long transactions had come to, line by line."""
        return read_lines(self.path / "progress.jsonl", documents.Progress)

    def read_sent(self) -> Iterator[documents.Sent]:
        """Yield when new row times were passed on."""
        return read_lines(self.path / "sent.jsonl", documents.Sent)

    def read_probe(self) -> Iterator[documents.Probed]:
        """Yield the answers of the probe for freshness."""
        return read_lines(self.path / "probe.jsonl", documents.Probed)
