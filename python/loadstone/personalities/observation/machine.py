"""The server's machine during a drive without a run folder: averages, in a few lines.

The figures are computed as those of a report, from one pair of samples after the other: memory does not grow
with the drive.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import msgspec

from loadstone.host.monitor import Monitor, Watched
from loadstone.report import formats
from loadstone.results.documents import Sample
from loadstone.results.json_files import JsonLines
from loadstone.summary.watched import counter_rates, machine_figures

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone.watch.watchers import Watcher

FILE = "monitor.jsonl"
_NS_PER_S = 1e9
_MOST_NOTES = 8


@dataclass(slots=True)
class _Mean:
    """The mean of a figure over time, and its highest value."""

    sum: float = 0.0
    seconds: float = 0.0
    highest: float = 0.0

    def add(self, value: float, seconds: float) -> None:
        self.sum += value * seconds
        self.seconds += seconds
        self.highest = max(self.highest, value)

    @property
    def mean(self) -> float:
        return self.sum / self.seconds


class Digest:
    """One machine, as its sources show it, over the measured time."""

    def __init__(self, sources: Collection[str]) -> None:
        """Take what these sources say."""
        self.since_ns: int | None = None
        """When the measured time began, on our monotonic clock; before that, nothing counts."""
        self.seen: Counter[str] = Counter(dict.fromkeys(sources, 0))
        """Samples of each source."""
        self.samples = 0
        self._figures: dict[str, _Mean] = {}
        self._before: Sample | None = None

    def take(self, line: Mapping[str, Any]) -> None:
        """Take a line of monitor.jsonl."""
        entries = [entry for entry in line.get("watch") or () if entry["source"] in self.seen]
        # By JSON, as from a run folder: the figures are the same.
        text = msgspec.json.encode({"t_ns": line["t_ns"], "watch": entries})
        sample = msgspec.json.decode(text, type=Sample)
        self.samples += 1
        self.seen.update(entry["source"] for entry in entries)
        before, self._before = self._before, sample
        if before is not None and self._counts((before.t_ns + sample.t_ns) // 2):
            seconds = (sample.t_ns - before.t_ns) / _NS_PER_S
            found = machine_figures(before, sample) | counter_rates(before, sample)
            for name, value in found.items():
                self._figures.setdefault(name, _Mean()).add(value, seconds)

    def mean(self, name: str) -> float | None:
        """Return the mean of a figure, by the names of the summary; None where it was not seen."""
        found = self._figures.get(name)
        return found.mean if found is not None and found.seconds > 0 else None

    def highest(self, name: str) -> float | None:
        """Return the highest value between two samples."""
        found = self._figures.get(name)
        return found.highest if found is not None else None

    def _counts(self, middle_ns: int) -> bool:
        return self.since_ns is not None and middle_ns >= self.since_ns


class MachineWatch:
    """Samples the machines of a drive's servers once a second."""

    def __init__(
        self,
        watchers: Mapping[str, Sequence[Watcher]],
        say: Callable[[str], object],
        keep: Path | None = None,
    ) -> None:
        """`watchers` by the labels of their servers; `say` gets what goes wrong meanwhile.

        `keep` is the folder for monitor.jsonl, the samples as in a run folder. Raises RunFailedError.
        """
        self._lines_kept = JsonLines(keep / FILE) if keep is not None else None
        self._watchers = {label: list(found) for label, found in watchers.items() if found}
        self._say = say
        self.digests = {
            label: Digest([watcher.shown for watcher in found]) for label, found in self._watchers.items()
        }
        sources = {watcher.shown: watcher.ask for found in self._watchers.values() for watcher in found}
        self._monitor = Monitor(Watched(sources=sources), self._write, self._tell)

    @property
    def since_ns(self) -> int | None:
        """When the measured time began."""
        return next(iter(self.digests.values())).since_ns

    @since_ns.setter
    def since_ns(self, begun_ns: int | None) -> None:
        for digest in self.digests.values():
            digest.since_ns = begun_ns

    def start(self) -> Self:
        """Begin to sample."""
        self._monitor.start()
        return self

    def stop(self) -> None:
        """Take the last sample; may be called again."""
        self._monitor.stop()
        if self._lines_kept is not None:
            self._lines_kept.close()

    def mean(self, name: str) -> float | None:
        """Return the mean of a figure of the first machine, by the names of the summary."""
        return next(iter(self.digests.values())).mean(name)

    def lines(self) -> list[str]:
        """Return what there is to say of all machines."""
        return [line for label in self.digests for line in self._lines(label)]

    def _lines(self, label: str) -> Iterator[str]:
        digest, watchers = self.digests[label], self._watchers[label]
        whose = "server's machine" if len(self.digests) == 1 else f"machine of {label}"
        parts = [*_machine(digest), *_flows(digest), *_server(digest)]
        yield f"{whose}: {parts[0] if parts else 'not seen twice in the measured time'}"
        yield from parts[1:]
        for watcher in watchers:
            missed = digest.samples - digest.seen[watcher.shown]
            gaps = f", {missed} missed" if missed else ""
            yield f"watched by {watcher.shown}: {digest.seen[watcher.shown]} samples{gaps}"
            yield from (f"not observed: {words}" for words in watcher.source.not_observed[:_MOST_NOTES])

    def _write(self, line: Mapping[str, object]) -> None:
        for digest in self.digests.values():
            digest.take(line)
        if self._lines_kept is not None:
            self._lines_kept.write(line)

    def _tell(self, level: str, message: str, hint: str) -> None:
        self._say(f"{'warning: ' if level == 'warning' else ''}{message}{f' {hint}' if hint else ''}")


def _machine(digest: Digest) -> Iterator[str]:
    busy = digest.mean("machine_cpu")
    if busy is None:
        return
    shares = {
        "iowait": "machine_iowait",
        "stolen": "machine_steal",
        "server's processes": "machine_server_cpu",
    }
    parts = [
        f"CPU busy {formats.percent(busy)} (highest second {formats.percent(digest.highest('machine_cpu'))})"
    ]
    parts += [
        f"{word} {formats.percent(value)}"
        for word, name in shares.items()
        if (value := digest.mean(name)) is not None
    ]
    memory = digest.mean("machine_memory_bytes")
    yield ", ".join(parts) + (f"; memory in use {formats.size(memory)}" if memory is not None else "")


def _flows(digest: Digest) -> Iterator[str]:
    busy = digest.mean("machine_disk_busy")
    disk = [f"busy {formats.percent(busy)}"] if busy is not None else []
    disk += _rates(digest, {"read": "machine_read_bytes_per_s", "written": "machine_write_bytes_per_s"})
    network = _rates(digest, {"received": "machine_rx_bytes_per_s", "sent": "machine_tx_bytes_per_s"})
    named = {"disks": disk, "network": network}
    if found := [f"{name} {', '.join(parts)}" for name, parts in named.items() if parts]:
        yield "; ".join(found)


def _server(digest: Digest) -> Iterator[str]:
    names = {"commits": "commits_per_s", "blocks read": "blocks_read_per_s"}
    found = [
        f"{word} {formats.rate(value)}/s"
        for word, name in names.items()
        if (value := digest.mean(name)) is not None
    ]
    if found:
        yield f"server: {', '.join(found)}"


def _rates(digest: Digest, names: Mapping[str, str]) -> list[str]:
    return [
        f"{word} {formats.size(value)}/s"
        for word, name in names.items()
        if (value := digest.mean(name)) is not None
    ]
