"""The run folder is written whole, read with forgiveness, and refuses bad places in words."""

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.results.document_reader import read_jsonl
from loadstone.results.documents import Sample, Target
from loadstone.results.folder import RunFolder, make_run_id, state_of
from loadstone.results.json_files import JsonLines, to_json, write_atomic
from loadstone.results.redact import redact_document

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)  # beyond them no document of ours has numbers
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=6).filter(
    lambda records: redact_document(records) == records  # what looks like a secret is not written as it is
)


@contextlib.contextmanager
def without_privileges() -> Iterator[None]:
    """Root may write anywhere: be somebody else for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let the kernel refuse writes beyond `size` (as a full disk does: short write, then an error)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def begun(tmp_path: Path, **run: object) -> RunFolder:
    folder = RunFolder.create(tmp_path / "run", "id")
    folder.write_run(**{"state": "running", "loadstone": "0.1.0"} | run)
    return folder


class TestCreate:
    def test_default_place_is_named_by_the_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert RunFolder.create(None, "20261120T101500Z-x").path == Path("loadstone-runs/20261120T101500Z-x")
        assert RunFolder.create(None, "20261120T101500Z-x").path == Path(
            "loadstone-runs/20261120T101500Z-x-2"
        )

    def test_run_id(self) -> None:
        assert make_run_id("2026-11-20T10:15:00.123Z", ["iot-feed"]) == "20261120T101500Z-iot-feed"
        assert make_run_id("2026-11-20T10:15:00Z", ["a", "my own/b"]) == "20261120T101500Z-a+my-own-b"

    def test_an_empty_folder_is_taken(self, tmp_path: Path) -> None:
        assert list(RunFolder.create(tmp_path, "id").path.iterdir()) == []

    def test_a_folder_with_something_in_it_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "precious").touch()
        with pytest.raises(LoadstoneError, match=r"not empty[\s\S]*--out"):
            RunFolder.create(tmp_path, "id")

    def test_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        for path in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(LoadstoneError, match="is a file, or inside one"):
                RunFolder.create(path, "id")

    def test_an_unwritable_place_is_refused(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o555)
        with (
            without_privileges(),
            pytest.raises(LoadstoneError, match=r"Permission denied[\s\S]*may write to with --out"),
        ):
            RunFolder.create(tmp_path / "new", "id")

    def test_too_little_space_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(LoadstoneError, match=r"MiB are free[\s\S]*--out"):
            RunFolder.create(tmp_path / "new", "id", need_bytes=2**62)


class TestOpen:
    def check(self, path: Path, message: str, hint: str) -> None:
        with pytest.raises(LoadstoneError, match=message) as caught:
            RunFolder.open(path)
        assert hint in caught.value.hint

    def test_places_that_are_no_run(self, tmp_path: Path) -> None:
        self.check(tmp_path / "no", "' does not exist", "Check the path")
        self.check(tmp_path, "no run.json", "`loadstone run`")
        (tmp_path / "file").touch()
        self.check(tmp_path / "file", "is not a folder", "Use the run's folder")

    def test_the_parent_of_runs_names_the_latest(self, tmp_path: Path) -> None:
        begun(tmp_path)
        self.check(tmp_path, "contains run folders but is not one", str(tmp_path / "run"))

    def test_a_newer_format(self, tmp_path: Path) -> None:
        begun(tmp_path, format=99, loadstone="9.9")
        self.check(tmp_path / "run", "newer Loadstone: 9.9, format 99", "Update")

    def test_a_foreign_or_broken_run_json(self, tmp_path: Path) -> None:
        (tmp_path / "run.json").write_text('{"name": "another tool"}')
        self.check(tmp_path, "was not written by Loadstone", "`loadstone run`")
        (tmp_path / "run.json").write_text("{")
        self.check(tmp_path, "not JSON", "untouched copy")

    def test_what_was_written_is_read(self, tmp_path: Path) -> None:
        folder = begun(tmp_path, id="x")
        folder.write_json("plan.json", {"targets": [{"id": "pg18"}, {"id": "pg10"}]})
        folder.event(
            "warning", "outage", "lost postgres://me:secret@h/db", target="pg18", phase="002-b", hint="h"
        )
        for name in ("pg10", "pg18", "unplanned"):
            target = folder.target(name)
            target.write_target({"id": name})
        target = folder.target("pg18")
        with target.monitor() as monitor:
            monitor.write({"t_ns": 1})
        for number in (2, 10, 1000, 1):
            target.phase(number, "b").write_phase({"number": number})
        target.phase(1, "b").write_drive('{"plain_queries": {"runs": []}}')
        folder.close()

        again = RunFolder.open(tmp_path / "run")
        assert again.run == folder.run
        assert [target.id for target in again.targets()] == ["pg18", "pg10", "unplanned"]
        (event,) = again.read_events()
        told = msgspec.to_builtins(event)
        assert told.pop("t_ns") > 0
        assert told == {
            "level": "warning",
            "kind": "outage",
            "target": "pg18",
            "phase": "002-b",
            "message": "lost postgres://me:***@h/db",
            "hint": "h",
        }
        first = again.targets()[0]
        assert first.read_target() == Target(id="pg18")
        assert list(first.read_monitor()) == [Sample(t_ns=1)]
        assert [phase.written_phase()["number"] for phase in first.phases()] == [1, 2, 10, 1000]
        assert first.phases()[0].key == "001-b"
        assert first.phases()[0].written_drive() == {"plain_queries": {"runs": []}}
        assert first.phases()[1].read_drive() is None
        assert list(first.phases()[0].read_series()) == []
        assert again.read_json("summary.json") is None

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "-x", ".hidden", "x" * 200])
    def test_names_that_leave_the_folder_are_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(LoadstoneError, match="cannot be the name of a folder"):
            begun(tmp_path).target(name)


class TestState:
    @pytest.mark.parametrize("state", ["complete", "failed", "interrupted"])
    def test_an_ended_run(self, tmp_path: Path, state: str) -> None:
        assert state_of(begun(tmp_path, state=state)) == state

    def test_our_own_run_is_running(self, tmp_path: Path) -> None:
        begun(tmp_path)
        assert state_of(RunFolder.open(tmp_path / "run")) == "running"

    def test_a_process_of_the_same_number_is_another_run(self, tmp_path: Path) -> None:
        identity = str(begun(tmp_path).run["process"])
        boot, _, ticks = identity.partition("/")
        assert int(ticks) > 0
        for other in (f"{boot}/1", f"another-boot/{ticks}", None):
            shutil.rmtree(tmp_path / "run")
            assert state_of(begun(tmp_path, process=other)) == "killed"

    def test_a_killed_run(self, tmp_path: Path) -> None:
        code = (
            "import os, signal, sys\n"
            "from pathlib import Path; from loadstone.results.folder import RunFolder\n"
            "folder = RunFolder.create(Path(sys.argv[1]), 'id'); folder.write_run(state='running')\n"
            "folder.event('info', 'note', 'begun'); os.kill(os.getpid(), signal.SIGKILL)"
        )
        assert subprocess.run([sys.executable, "-c", code, tmp_path / "run"], check=False).returncode == -9
        folder = RunFolder.open(tmp_path / "run")
        assert state_of(folder) == "killed"
        assert [event.message for event in folder.read_events()] == ["begun"]

    def test_a_dead_process_that_nobody_waited_for(self, tmp_path: Path) -> None:
        folder = begun(tmp_path)
        with subprocess.Popen(["true"]) as child:
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            folder.write_run(pid=child.pid)
            assert state_of(folder) == "killed"


class TestJsonLines:
    @given(RECORDS)
    def test_what_is_written_is_read(
        self, tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, object]]
    ) -> None:
        path = tmp_path_factory.mktemp("lines") / "x.jsonl"
        with JsonLines(path) as lines:
            assert all(lines.write(record) for record in records)
        assert list(read_jsonl(path)) == records

    @given(RECORDS, st.data())
    def test_cut_anywhere_the_whole_lines_remain(
        self, tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, object]], data: st.DataObject
    ) -> None:
        path = tmp_path_factory.mktemp("cut") / "x.jsonl"
        with JsonLines(path) as lines:
            for record in records:
                lines.write(record)
        whole = path.read_bytes()
        cut = data.draw(st.integers(0, len(whole)))
        path.write_bytes(whole[:cut])
        read = list(read_jsonl(path))
        complete = whole[:cut].count(b"\n")
        assert read in (records[:complete], records[: complete + 1])

        with JsonLines(path) as lines:
            lines.write({"after": 1})
        assert list(read_jsonl(path)) == [*records[:complete], {"after": 1}]

    def test_a_torn_line_longer_than_a_block_is_cut_off(self, tmp_path: Path) -> None:
        path = tmp_path / "x.jsonl"
        path.write_bytes(b'{"a":1}\n{"b":"' + b"x" * 200_000)
        with JsonLines(path) as lines:
            lines.write({"c": 1})
        assert path.read_bytes() == b'{"a":1}\n{"c":1}\n'

    def test_a_broken_line_in_the_middle_is_told(self, tmp_path: Path) -> None:
        path = tmp_path / "x.jsonl"
        path.write_text('{"a":1}\n{"a"\n{"a":3}\n')
        with pytest.raises(LoadstoneError, match="line 2: not JSON"):
            list(read_jsonl(path))
        path.write_text('{"a":1}\n[1]\n{"a":3}\n')
        with pytest.raises(LoadstoneError, match="line 2: not a JSON object"):
            list(read_jsonl(path))

    def test_a_full_disk_loses_whole_lines_and_is_told_once(self, tmp_path: Path) -> None:
        path = tmp_path / "x.jsonl"
        record = {"text": "x" * 300}
        with JsonLines(path) as lines:
            with file_size_limit(1000):
                assert [lines.write(record) for _ in range(3)] == [True] * 3
                with pytest.raises(RunFailedError, match=r".*x\.jsonl"):
                    lines.write(record)
                assert [lines.write(record) for _ in range(3)] == [False] * 3
            assert lines.lost == 4
            assert lines.write({"space": "again"})
        assert list(read_jsonl(path)) == [record] * 3 + [{"space": "again"}]

    def test_no_space_left_is_told_in_words(self, tmp_path: Path) -> None:
        handle = os.open("/dev/full", os.O_RDWR)
        lines = JsonLines(tmp_path / "x.jsonl")
        assert lines._handle is not None
        os.dup2(handle, lines._handle)
        os.close(handle)
        with pytest.raises(RunFailedError, match=r"No space left on device[\s\S]*Free some space"):
            lines.write({"a": 1})
        lines.close()

    def test_threads_never_mix_their_lines(self, tmp_path: Path) -> None:
        path = tmp_path / "x.jsonl"
        with JsonLines(path) as lines:
            threads = [
                threading.Thread(target=lambda n=n: [lines.write({"n": n, "i": i}) for i in range(200)])
                for n in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        read = list(read_jsonl(path))
        for n in range(4):
            assert [record["i"] for record in read if record["n"] == n] == list(range(200))

    def test_after_the_end_nothing_is_written(self, tmp_path: Path) -> None:
        lines = JsonLines(tmp_path / "x.jsonl")
        lines.close()
        lines.close()
        with pytest.raises(RunFailedError, match="closed"):
            lines.write({"a": 1})


class TestWriteAtomic:
    def test_a_refused_write_leaves_the_old_text_and_no_litter(self, tmp_path: Path) -> None:
        path = tmp_path / "run.json"
        write_atomic(path, "old")
        with file_size_limit(10), pytest.raises(RunFailedError, match="cannot be written"):
            write_atomic(path, "x" * 1000)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_a_reader_never_sees_half(self, tmp_path: Path) -> None:
        path = tmp_path / "run.json"
        texts = {letter * 50_000 for letter in "ab"}
        write_atomic(path, "a" * 50_000)
        done = threading.Event()

        def rewrite() -> None:
            for _ in range(50):
                for text in texts:
                    write_atomic(path, text)
            done.set()

        writer = threading.Thread(target=rewrite)
        writer.start()
        seen = set()
        while not done.is_set():
            seen.add(path.read_text())
        writer.join()
        assert seen <= texts


class TestJson:
    def test_dataclasses_and_paths(self) -> None:
        @dataclass(frozen=True, slots=True)
        class Thing:
            path: Path
            values: tuple[int, ...]

        assert json.loads(to_json({"thing": Thing(Path("a/b"), (1, 2))})) == {
            "thing": {"path": "a/b", "values": [1, 2]}
        }

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_what_json_cannot_say_is_refused(self, value: object) -> None:
        with pytest.raises(ValueError, match="JSON"):
            to_json({"x": value})

    def test_an_object_without_form_is_refused(self) -> None:
        with pytest.raises(TypeError, match="object has no JSON form"):
            to_json({"x": object()})

    def test_a_path_that_is_not_utf8(self) -> None:
        assert json.loads(to_json({"p": os.fsdecode(b"\xff")})) == {"p": "\udcff"}

    @given(JSON, st.integers(1, 3))
    def test_indented_text_is_that_of_the_standard_library(self, value: object, indent: int) -> None:
        wanted = json.dumps(value, ensure_ascii=False, indent=indent)
        try:
            wanted.encode()
        except UnicodeEncodeError:
            wanted = json.dumps(value, indent=indent)
        assert to_json(value, indent=indent) == wanted
