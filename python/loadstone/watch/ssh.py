"""Watches a machine over ssh: the sampler of this machine is sent to its Python, or its shell shows files.

Nothing is installed there and no file is written; the sampler ends with the connection.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import select
import shlex
import subprocess
import tempfile
import time
from typing import IO, TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.host import machine, procfs
from loadstone.watch import remote_program, shell
from loadstone.watch.clock import RoundTrip
from loadstone.watch.source import Answer, Source

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from loadstone.watch.spec import Spec

COMMAND_VARIABLE = "LOADSTONE_SSH"
"""The ssh command with options of its own, such as `ssh -F FILE`."""
ANSWER_BYTES_MAX = 8 * 2**20
_CONNECT_S = 15.0
_ANSWER_S = 5.0
_PINGS = 8
_MARK = b"loadstone-watch "
_OPTIONS = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3")
_HAS_PYTHON = 'python3 -c "import sys; sys.exit(sys.version_info < (3, 10))" </dev/null >/dev/null 2>&1'
_READ_PROGRAM = "import sys; f = sys.stdin.buffer; exec(f.read(int(f.readline())))"
_REMOTE = "exec sh -c '{loop}'".replace(
    "{loop}",
    f'if {_HAS_PYTHON}; then echo "{_MARK.decode()}python"; exec python3 -c "{_READ_PROGRAM}"; '
    f'else echo "{_MARK.decode()}sh"; {shell.LOOP}; fi',
)
_LOADER = """
import sys, types
def _load(name, source):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    exec(compile(source, name, "exec"), module.__dict__)
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
for _name, _source in SOURCES:
    _load(_name, _source)
sys.modules["loadstone.watch.remote_program"].main()
"""


def program() -> bytes:
    """Return what the other machine's Python runs: this machine's own sampler with what it needs."""
    modules = (machine, procfs, remote_program)
    sources = [(name, "") for name in ("loadstone", "loadstone.host", "loadstone.watch")]
    sources += [(module.__name__, inspect.getsource(module)) for module in modules]
    return f"SOURCES = {sources!r}\n{_LOADER}".encode()


class OverSsh(Source):
    """One machine. `names` are the names of the server's processes."""

    def __init__(self, spec: Spec, names: Collection[str], variables: Mapping[str, str]) -> None:
        """Connect with `check`, or when asked."""
        super().__init__(spec.shown)
        command = shlex.split(variables.get(COMMAND_VARIABLE) or "ssh")
        options = [word for option in _OPTIONS for word in ("-o", option)]
        port = ["-p", str(spec.port)] if spec.port is not None else []
        user = ["-l", spec.user] if spec.user is not None else []
        self._command = [*command, "-T", *options, *port, *user, "--", spec.host, _REMOTE]
        self._backend: int | None = None
        self._names = list(names)
        self._link: _Link | None = None

    def check(self) -> str:
        """Connect, estimate the clock, and sample once."""
        link = self._connected()
        for _ in range(_PINGS):
            self.clock.place(self._clocks(link, *link.ask({"sample": False})))
        self._sample(link, names=[])
        self.not_observed += link.lacks
        if not self._names:
            self._note("the server's processes: their names are not known for this engine")
        return f"/proc by {link.kind}"

    def served_by(self, backend: int | None) -> None:
        """Keep a process that serves us: its first ancestor of such a name is the server."""
        self._backend = backend

    def ask(self) -> Answer:
        """Return what it says now; connects again where the connection is lost."""
        return self._sample(self._connected(), self._names)

    def close(self) -> None:
        """End the sampler there, by ending the connection."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _connected(self) -> _Link:
        if self._link is None:
            self._link = _Link(self._command, self.shown)
        return self._link

    def _sample(self, link: _Link, names: Sequence[str]) -> Answer:
        question = {"sample": True, "names": names, "backend": self._backend}
        try:
            sample, trip = link.ask(question)
            placed_ns = self.clock.place(self._clocks(link, sample, trip))
        except BaseException:
            self.close()
            raise
        if sample["reason"]:
            self._note(f"the server's processes: {sample['reason']}")
        return Answer(placed_ns, sample["host"], sample["server"])

    def _note(self, words: str) -> None:
        if words not in self.not_observed:
            self.not_observed.append(words)

    @staticmethod
    def _clocks(link: _Link, sample: Mapping[str, Any], trip: RoundTrip) -> RoundTrip:
        try:
            theirs_ns, wall_ns = int(sample["monotonic_ns"]), int(sample["wall_ns"])
        except (KeyError, TypeError, ValueError) as error:
            raise LoadstoneError(f"{link.shown} does not answer as the sampler does") from error
        return RoundTrip(trip.sent_ns, trip.received_ns, theirs_ns, wall_ns - theirs_ns)


class _Link:
    """A connection, with the sampler running at its other end."""

    def __init__(self, command: list[str], shown: str) -> None:
        self.shown = shown
        self.lacks: list[str] = []
        self._buffer = b""
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the connection
        self._shell: shell.ShellAnswers | None = None
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._words,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is for us
            )
        except OSError as error:
            raise LoadstoneError(
                f"{command[0]} cannot be started: {error.strerror}", "Install the ssh client."
            ) from error
        try:
            self.kind = self._begin()
        except BaseException:
            self.close()
            raise

    def ask(self, question: Mapping[str, Any]) -> tuple[dict[str, Any], RoundTrip]:
        """Return the answer. Raises LoadstoneError when there is none in time, or it is none."""
        sent_ns = time.monotonic_ns()
        if self._shell is not None:
            self._send(b"sample\n" if question["sample"] else b"clocks\n")
            text = self._until(shell.END, _ANSWER_S)
            trip = RoundTrip(sent_ns, time.monotonic_ns())
            clocks = self._shell.clocks(text)
            if not question["sample"]:
                return clocks, trip
            return clocks | self._shell.sample(text, question["names"], question["backend"]), trip
        self._send(json.dumps(question).encode() + b"\n")
        line = self._until(b"\n", _ANSWER_S)
        trip = RoundTrip(sent_ns, time.monotonic_ns())
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise LoadstoneError(f"{self.shown} does not answer as the sampler does") from error
        return answer, trip

    def close(self) -> None:
        """End the connection and wait for ssh's end."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._words.close()
        if self._shell is not None:
            self._shell.close()
            self._shell = None

    def _begin(self) -> str:
        """Wait for the mark; a login shell's own words before it are dropped."""
        before = self._until(_MARK, _CONNECT_S)
        del before
        kind = self._until(b"\n", _ANSWER_S).decode(errors="replace").strip()
        if kind == "python":
            source = program()
            self._send(str(len(source)).encode() + b"\n" + source)
            return "its Python"
        self._shell = shell.ShellAnswers()
        self.lacks.append("memory and bytes of the server's processes: there is no Python 3.10 or newer")
        return "its shell, once a second"

    def _send(self, content: bytes) -> None:
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        try:
            while content:
                content = content[self._process.stdin.write(content) or 0 :]
        except OSError:
            raise self._lost() from None

    def _until(self, mark: bytes, limit_s: float) -> bytes:
        """Return what comes before the mark."""
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        until_s = time.monotonic() + limit_s
        handle = self._process.stdout.fileno()
        searched = 0
        while (at := self._buffer.find(mark, searched)) < 0:
            searched = max(0, len(self._buffer) - len(mark))
            left_s = until_s - time.monotonic()
            if left_s <= 0 or not select.select([handle], [], [], left_s)[0]:
                raise LoadstoneError(f"{self.shown} did not answer within {limit_s:.0f} s")
            part = os.read(handle, 65536)
            if not part:
                raise self._lost()
            self._buffer += part
            if len(self._buffer) > ANSWER_BYTES_MAX:
                raise LoadstoneError(f"{self.shown} answers more than {ANSWER_BYTES_MAX:,} bytes")
        found, self._buffer = self._buffer[:at], self._buffer[at + len(mark) :]
        return found

    def _lost(self) -> LoadstoneError:
        """Return ssh's own words on why it ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2)
        self._words.seek(0)
        words = self._words.read(65536).decode(errors="replace")
        lines = [line for line in words.splitlines() if line.strip()]
        said = "; ".join(lines[-2:]) or f"ssh ended with status {self._process.poll()}"
        return LoadstoneError(
            f"{self.shown} cannot be watched: {said}",
            "Make sure that `ssh -o BatchMode=yes HOST true` works: a known host key, and a key to log in.",
        )
