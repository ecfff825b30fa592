"""`loadstone tsbs generate-data` as its users meet it: the real command, its bytes, and who reads them."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
import shutil
import signal
import subprocess
import termios
from array import array
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pytest
from support.sandbox import wait_until
from support.tsbs_sandbox import HOUR, IOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.tsbs_sandbox import Place

pytestmark = pytest.mark.slow

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
TWO_HOURS = "--timestamp-end=2016-01-01T02:00:00Z"
LONG = ("--use-case=devops", "--seed=123", "--scale=1000", "--format=timescaledb")
"""About twenty gigabytes: what is to be cut off."""

VECTORS = {
    "cpu-only --seed=123 --scale=10": (HOUR, "5ed3f2c18ff833c812f3544e2f8981c3"),
    "cpu-single --seed=123 --scale=10": (HOUR, "a50e1e60b0801ad8d38b90d59d9caf23"),
    "devops --seed=123 --scale=10": (HOUR, "18350e60bce8466b14599a3c094156ec"),
    "iot --seed=123 --scale=10": (HOUR, "0fbde6c14938fb4619e27bcbbdbd3438"),
    "iot --seed=5 --scale=50 --initial-scale=10": (TWO_HOURS, "947d9a8302e03fc840175a149618d708"),
    "devops --seed=5 --scale=50 --initial-scale=10": (TWO_HOURS, "3af296652d1cc0578dd80874f18928be"),
    "cpu-only --seed=9 --scale=20 --initial-scale=1": (HOUR, "a45326e0f9623bc8d92ceeb35148170a"),
    "iot --seed=7 --scale=20 --interleaved-generation-group-id=1 --interleaved-generation-groups=3": (
        HOUR,
        "0f0b29be116da6cce289c8319fa69c7f",
    ),
    "cpu-single --seed=42 --scale=100 --log-interval=1s": (HOUR, "9699d62d5029f8ef5a5fb148bc479290"),
    "devops --seed=2147483770 --scale=2": (
        "--timestamp-end=2016-01-01T00:01:00Z",
        "926c6ef03466cff4a9124eee4d63dd76",
    ),
}
"""Digests of what tsbs_generate_data itself writes."""


@pytest.mark.parametrize("flags", VECTORS)
def test_every_byte_is_tsbs_own(place: Place, flags: str) -> None:
    end, digest = VECTORS[flags]
    use_case, *more = flags.split()
    made = place.make(f"--use-case={use_case}", *more, end, "--format=timescaledb", "--threads=3")
    assert (made.digest, made.err, made.code) == (digest, "", 0)


@pytest.mark.parametrize("threads", ["1", "2", "7"])
def test_the_number_of_threads_changes_nothing(place: Place, threads: str) -> None:
    made = place.made(*IOT, "--scale=50", "--format=timescaledb", f"--threads={threads}")
    assert (
        hashlib.md5(made).hexdigest()
        == hashlib.md5(place.made(*IOT, "--scale=50", "--format=timescaledb")).hexdigest()
    )


def test_groups_are_a_deal_of_the_whole(place: Place) -> None:
    def rows(*flags: str) -> list[bytes]:
        lines = place.made(*IOT, "--format=timescaledb", *flags).split(b"\n\n", 1)[1].splitlines()
        return [b"\n".join(pair) for pair in zip(lines[::2], lines[1::2], strict=True)]

    groups = "--interleaved-generation-groups=3"
    dealt = [rows(groups, f"--interleaved-generation-group-id={group}") for group in range(3)]
    assert [dealt[i % 3][i // 3] for i in range(sum(map(len, dealt)))] == rows()


def test_a_file_is_there_when_it_is_complete(place: Place) -> None:
    place.made(*IOT, "--format=timescaledb", "--file=data.txt")
    data = (place.folder / "data.txt").read_bytes()
    assert hashlib.md5(data).hexdigest() == VECTORS["iot --seed=123 --scale=10"][1]
    assert place.names() == ["data.txt"]
    again = place.make(*IOT, "--seed=5", "--format=timescaledb", "--file=data.txt")
    assert (again.code, "already exists" in again.err) == (1, True)
    assert (place.folder / "data.txt").read_bytes() == data
    place.made(*IOT, "--seed=5", "--format=timescaledb", "--file=data.txt", "--overwrite")
    assert (place.folder / "data.txt").read_bytes() != data


def test_one_file_has_one_writer(place: Place) -> None:
    first = place.start(*LONG, "--file=data.txt")
    wait_until((place.folder / "data.txt.part").exists, "the file begins")
    second = place.make(*IOT, "--format=timescaledb", "--file=data.txt")
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=120)
    assert (second.code, "being written by another process" in second.err) == (1, True)
    assert (first.returncode, place.names()) == (143, [])


@pytest.mark.parametrize("threads", ["1", "3"])
def test_compressed_data_is_for_the_usual_tools(place: Place, threads: str) -> None:
    plain = place.made(*IOT, "--format=timescaledb")
    more = ("--format=timescaledb", f"--threads={threads}")
    packed = place.made(*IOT, *more, "--compress=gzip")
    assert len(packed) < len(plain) / 5
    assert gzip.decompress(packed) == plain
    (place.folder / "data.gz").write_bytes(packed)
    unpacked = subprocess.run(["gzip", "-dc", "data.gz"], cwd=place.folder, capture_output=True, check=True)
    assert unpacked.stdout == plain
    place.made(*IOT, *more, "--compress=zstd", "--file=data.zst")
    with pa.input_stream(place.folder / "data.zst", compression="zstd") as stream:
        assert stream.read() == plain
    if zstd := shutil.which("zstd"):
        unpacked = subprocess.run(
            [zstd, "-dc", "data.zst"], cwd=place.folder, capture_output=True, check=True
        )
        assert unpacked.stdout == plain


@pytest.mark.parametrize("how", [signal.SIG_UNBLOCK, signal.SIG_BLOCK])
def test_a_reader_that_has_had_enough_is_no_error(place: Place, how: int) -> None:
    before = signal.pthread_sigmask(how, {signal.SIGPIPE})  # a child begins with what its parent has blocked
    try:
        process = place.start(*LONG)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b"tags,hostname string")
    process.stdout.close()
    assert process.wait(timeout=120) == -signal.SIGPIPE
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize("more", [(), ("--compress=gzip",)])
def test_a_full_device_is_said(place: Place, more: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        made = place.make(*IOT, "--format=timescaledb", *more, out=full)
    assert made.code == 2
    assert "writing standard output after 0 bytes: No space left on device" in made.err
    made = place.make(*IOT, "--format=timescaledb", *more, "--file=/dev/full")
    assert (made.code, "writing /dev/full after 0 bytes" in made.err) == (2, True)


@pytest.fixture
def small_disk(place: Place) -> Iterator[Path]:
    folder = place.folder / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@ROOT
@pytest.mark.parametrize("format_", ["timescaledb", "copy-binary", "csv", "parquet", "arrow"])
def test_a_full_disk_leaves_nothing_behind(place: Place, small_disk: Path, format_: str) -> None:
    day = ("--use-case=devops", "--seed=123", "--scale=20", "--timestamp-end=2016-01-01T12:00:00Z")
    made = place.make(*day, f"--format={format_}", "--file=small/data")
    assert made.code == 2
    assert "No space left on device" in made.err
    assert "was removed" in made.err
    assert list(small_disk.iterdir()) == []


def test_ctrl_c_leaves_nothing_behind(place: Place) -> None:
    for format_ in ("timescaledb", "copy-text", "parquet"):
        process = place.start(
            "--use-case=devops", "--seed=1", "--scale=1000", f"--format={format_}", "--file=data"
        )
        wait_until((place.folder / "data.part").exists, "the output begins")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (130, b"loadstone tsbs generate-data: stopped by SIGINT\n")
        assert list(place.folder.iterdir()) == []


def waiting_bytes(pipe: IO[bytes] | None) -> int:
    """Return what is in a pipe."""
    assert pipe is not None
    count = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def test_ctrl_c_ends_it_also_when_nobody_reads(place: Place) -> None:
    process = place.start(*LONG)
    assert process.stdout is not None
    seen = [-1, 0]

    def is_full() -> bool:
        seen[:] = [seen[1], waiting_bytes(process.stdout)]
        return 0 < seen[0] == seen[1]

    wait_until(is_full, "nothing more goes into the pipe")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 130
    process.communicate()


def peak_bytes(place: Place, *arguments: str) -> int:
    process = place.start(*arguments, out=subprocess.DEVNULL)
    assert process.stderr is not None
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    assert process.returncode == 0
    return usage.ru_maxrss * 1024


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["timescaledb", "parquet"])
def test_memory_does_not_grow_with_the_rows(place: Place, format_: str) -> None:
    def peak(hours: int) -> int:
        end = f"--timestamp-end=2016-01-01T{hours:02}:00:00Z"
        flags = ("--use-case=devops", "--seed=1", "--scale=100", "--threads=2", end, f"--format={format_}")
        return peak_bytes(place, *flags, *((f"--file={hours}",) if format_ == "parquet" else ()))

    few, many = peak(4), peak(20)
    assert many < few + 60_000_000
