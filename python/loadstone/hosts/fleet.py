"""The load hosts of a run: opened once, and each drive performed on all of them."""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.hosts import attendant
from loadstone.hosts.addresses import is_local
from loadstone.hosts.cluster import client_of, workers_of
from loadstone.hosts.joint import PATIENCE_S, JointDrive, Share
from loadstone.hosts.line import Line, LineLostError
from loadstone.hosts.loads import JointSteps, held, note_losses
from loadstone.hosts.outcome import folder_name, hosts_document, merge, records_folder, said_of
from loadstone.hosts.progress import JointProgress
from loadstone.results.json_files import to_json, write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from loadstone.hosts.places import Places
    from loadstone.signals import Signals

    OnMessages = Callable[[Sequence[Mapping[str, str]]], None]

Document = dict[str, Any]


@contextlib.contextmanager
def open_fleet(places: Places, *, calibrate: bool = False) -> Iterator[Fleet]:
    """Find the load hosts. Raises LoadstoneError when they cannot be used together.

    `calibrate`: each host measures its own ceiling before its first drive of a kind.
    """
    with client_of(places) as client:
        fleet = Fleet(client, calibrate=calibrate)
        fleet.find(local=bool(places.local))
        yield fleet


class Fleet:
    """Hosts that drive together: one agent each, never two on one host."""

    def __init__(self, client: Any, *, calibrate: bool) -> None:
        """Look for no host yet."""
        self._client = client
        self._calibrate = calibrate
        self._lines: dict[str, Line] = {}
        self._abouts: dict[str, Document] = {}
        self._ceilings: dict[tuple[str, int], dict[str, Document]] = {}
        self._mine: Document = attendant.about()
        self.notes: list[str] = []
        """What is to be said of the hosts that were found."""

    @property
    def names(self) -> list[str]:
        """The names of the hosts, in the order of their numbers."""
        return list(self._lines)

    def find(self, *, local: bool) -> None:
        """Take one worker of each host; with `local` every worker is a host of its own."""
        lines = [Line(self._client, address) for address in workers_of(self._client)]
        if not lines:
            raise LoadstoneError(
                "the Dask cluster has no workers", "Start one on each host: dask worker ADDRESS"
            )
        taken: set[tuple[str, str]] = set()
        for line, about in zip(lines, self._client.sync(self._ask_all, lines), strict=True):
            place = (about["machine"], about["network"])
            if place in taken and not local:
                self.notes.append(f"{line.address}: not used, as there is another worker on {about['name']}")
                continue
            taken.add(place)
            name = f"local-{len(self._lines)}" if local else folder_name(about["name"], self.names)
            self._refuse_other(name, about)
            self._lines[name] = line
            self._abouts[name] = about

    async def _ask_all(self, lines: Sequence[Line]) -> list[Document]:
        return [await self._about(line) for line in lines]

    @staticmethod
    async def _about(line: Line) -> Document:
        await line.find_way()
        try:
            about: Document = await line.call(attendant.about, within_s=PATIENCE_S)
        except LineLostError as error:
            raise LoadstoneError(f"the Dask worker {line.address} cannot be used: {error}") from error
        except (ImportError, AttributeError) as error:
            raise LoadstoneError(
                f"the Dask worker {line.address} has no Loadstone, or another version: {error}",
                "Install this version there, in the environment that `dask worker` runs in.",
            ) from error
        return about

    def _refuse_other(self, name: str, about: Document) -> None:
        for what, title in (("version", "version"), ("core", "build of the core")):
            if about[what] != self._mine[what]:
                raise LoadstoneError(
                    f"load host {name} has another {title}: {about[what]}, here {self._mine[what]}",
                    "Install the same one on every load host: figures of different ones cannot be merged.",
                )

    def perform(
        self,
        document: Document,
        signals: Signals | None,
        show: Callable[[Document], None] | None = None,
        on_messages: OnMessages | None = None,
        say: Callable[[str, str], object] | None = None,
        on_step: Callable[[Document], None] | None = None,
    ) -> Document:
        """Run a drive on all hosts to its end and return its account, as `workload.drive.perform` does.

        `say` is told (level, text) of what concerns the hosts. Raises LoadstoneError for a drive that cannot
        be split, HostLostError when a host is lost before the start, and what keeps clients from connecting.
        """
        self._refuse_unsplittable(document)
        document = held(document)
        shares = self._shares()
        drive = _Performance(self._client, JointDrive(shares), signals)
        mode_clients = self._wanted_ceiling(document)
        if mode_clients in self._ceilings:
            for share in shares:
                share.ceiling = self._ceilings[mode_clients][share.name]
        unknown = mode_clients if mode_clients not in self._ceilings else None
        sent = sent_of(document, [about["cpus"] for about in self._abouts.values()])
        with drive.ending():
            begun = drive.begin(sent, unknown, on_messages)
            if mode_clients is not None and begun:
                self._ceilings[mode_clients] = {s.name: s.ceiling for s in shares if s.ceiling}
            drive.watch(show, on_messages, on_step, ends_with_one=_ends_with_one(document))
            return self._outcome(document, drive, say)

    def calibrate(self, wanted: Sequence[tuple[str, int]], seconds: float) -> dict[str, list[Document]]:
        """Measure the ceiling of every host, all at once: `results` of calibration.json by name of the host.

        `wanted` are protocol modes and clients on each host. Raises HostLostError.
        """
        joint = JointDrive(self._shares())
        joint.calibration_s = seconds
        try:
            found: list[list[Document]] = self._client.sync(joint.calibrate, wanted)
        finally:
            self._client.sync(joint.close)
        return dict(zip(self.names, found, strict=True))

    def _shares(self) -> list[Share]:
        return [
            Share(name, line, uuid.uuid4().hex, number)
            for number, (name, line) in enumerate(self._lines.items())
        ]

    def _wanted_ceiling(self, document: Document) -> tuple[str, int] | None:
        if not self._calibrate or not document.get("scripts"):
            return None
        return document["mode"], -(-document["clients"] // len(self._lines))

    def _outcome(
        self, document: Document, drive: _Performance, say: Callable[[str, str], object] | None
    ) -> Document:
        joint, out_dir = drive.joint, document.get("out_dir")
        with records_folder(out_dir) as folder:
            account = merge(document, joint, drive.fetch(folder))
        note_losses(account, joint.shares)
        about = hosts_document(joint, self._abouts, document.get("interval_s", 1.0))
        if out_dir is not None:
            write_atomic(Path(out_dir) / "hosts.json", to_json(about, indent=1) + "\n")
        if say is not None:
            for level, text in said_of(about):
                say(level, text)
        return account

    def _refuse_unsplittable(self, document: Document) -> None:
        if not any(document.get(work) for work in ("scripts", "queries", "lua", "load")):
            raise LoadstoneError(
                "--hosts: only scripts, queries and loads can be split over several load hosts",
                "Run this from one host: leave out --hosts.",
            )
        if document.get("log"):
            raise LoadstoneError(
                "--hosts: no log of transactions can be written on several load hosts", "Leave out -l."
            )
        self.refuse_too_few(document["clients"])
        self.refuse_unreachable(document["connection"]["host"])

    def refuse_too_few(self, clients: int, option: str | None = None) -> None:
        """Raise LoadstoneError for fewer clients than hosts; `option` says how many clients there are."""
        hosts = len(self._lines)
        if clients < hosts:
            raise LoadstoneError(
                f"{clients} client{'s' if clients > 1 else ''} cannot be split over {hosts} load hosts",
                f"Use {option}={hosts}." if option else "Use at least as many clients as hosts.",
            )

    def refuse_unreachable(self, host: str) -> None:
        """Raise LoadstoneError for an address that leads to this machine, when a load host is another."""
        remote = [name for name, about in self._abouts.items() if about["machine"] != self._mine["machine"]]
        if remote and is_local(host):
            raise LoadstoneError(
                f"the server's address '{host}' leads to this machine only; load host {remote[0]} is another",
                "Name the server by an address that every load host can reach: "
                "--target postgres://user@ADDRESS/database",
            )


def sent_of(document: Document, cores: Iterable[int]) -> Document:
    """Return what hosts with so many cores each get of a document.

    The number of threads comes from the smallest of them: each thread has its own part of a rate's starts.
    """
    return {name: value for name, value in document.items() if name != "out_dir"} | {"cores": min(cores)}


def _ends_with_one(document: Document) -> bool:
    """Whether the drive ends with the first client that gives up, on whichever host."""
    return bool(document.get("exit_on_abort") or "lua" in document)


class _Performance:
    """One joint drive, from the thread that waits for it."""

    def __init__(self, client: Any, joint: JointDrive, signals: Signals | None) -> None:
        self._client = client
        self.joint = joint
        self._signals = signals
        self._stop_asked = False
        self._stopped = False

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """End the agents, however the context is left."""

        def stop() -> None:
            self._stop_asked = True

        try:
            if self._signals is not None:
                self._signals.during(stop)
            yield
        finally:
            try:
                self._client.sync(self.joint.close)
            finally:
                if self._signals is not None:
                    self._signals.during(None)

    def begin(
        self, document: Document, ceiling_of: tuple[str, int] | None, on_messages: OnMessages | None
    ) -> bool:
        """Prepare all hosts, and let them begin unless a signal comes before; returns whether they did."""
        self._client.sync(self.joint.prepare, document, ceiling_of)
        try:
            while not self._client.sync(self.joint.look_ready):
                if self._stop_asked and self._signals is not None:
                    self._signals.check()
        finally:
            if on_messages is not None:
                on_messages(self.joint.take_messages())
        if self._stop_asked and self._signals is not None:
            self._signals.check()
        self._client.sync(self.joint.go)
        return True

    def watch(
        self,
        show: Callable[[Document], None] | None,
        on_messages: OnMessages | None,
        on_step: Callable[[Document], None] | None,
        *,
        ends_with_one: bool = False,
    ) -> None:
        """Watch until all have ended; when one is lost, the others are stopped.

        `ends_with_one`: so they are when the drive of one has failed.
        """
        progress, steps = JointProgress(self.joint.shares), JointSteps(self.joint.shares)
        while any(share.running for share in self.joint.shares):
            self._client.sync(self.joint.look)
            taken = progress.take()
            lost = any(share.lost is not None for share in self.joint.shares)
            failed = ends_with_one and self.joint.has_failed()
            if (lost or failed or self._stop_asked or taken["output_error"]) and not self._stopped:
                self._stopped = True
                self._client.sync(self.joint.stop)
            if self.joint.first_awaits_others():
                self._client.sync(self.joint.tell_first)
            self._pass_steps(steps, on_step)
            if on_messages is not None:
                on_messages(taken["messages"])
            if show is not None:
                show(taken | ({"steps": steps.ended} if steps.ended else {}))
        self._client.sync(self.joint.measure_clocks)

    def _pass_steps(self, steps: JointSteps, on_step: Callable[[Document], None] | None) -> None:
        """Tell of the steps that have ended everywhere, and let the next one begin."""
        for step in steps.take():
            if on_step is not None:
                on_step(step)
        if steps.holding and not self._stopped:
            self._client.sync(self.joint.proceed)

    def fetch(self, folder: Path) -> dict[int, Path]:
        """Copy the records of all hosts into a folder."""
        records = {}
        for share in self.joint.shares:
            path = folder / f"{share.number}.jsonl"
            if self._client.sync(self.joint.fetch, share, path):
                records[share.number] = path
        return records
