"""Exporters over HTTP and HTTPS, and all that may answer in their place."""

import base64
import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from support.exposition_server import ExpositionServer, Reply, exposition, node_text

from loadstone.errors import LoadstoneError
from loadstone.target import parse_targets
from loadstone.watch import exporter as module
from loadstone.watch.exporter import Exporter
from loadstone.watch.spec import specs_of
from loadstone.watch.watchers import Watcher


@contextlib.contextmanager
def watching(url: str, token: str | None = None, ca: Path | None = None) -> Iterator[Exporter]:
    asked = ["pg18"]
    (spec,) = specs_of([url], asked, parse_targets(asked), {})
    exporter = Exporter(spec, token, ca)
    try:
        yield exporter
    finally:
        exporter.close()


@pytest.fixture
def served() -> Iterator[ExpositionServer]:
    with exposition(node_text()) as server:
        yield server


def refusal(reply: Reply) -> LoadstoneError:
    with exposition(reply) as server, watching(server.url) as exporter:
        with pytest.raises(LoadstoneError) as refused:
            exporter.check()
        return refused.value


def test_counters_are_read_at_a_moment_of_our_clock(served: ExpositionServer) -> None:
    with watching(served.url) as exporter:
        assert exporter.check() == "node_exporter 1.5.0 on db1 (6.1)"
        first, second = exporter.ask(), exporter.ask()
    assert first.host is not None
    assert first.host["cpu_s"]["idle"] == 100
    assert first.t_ns <= second.t_ns
    assert exporter.not_observed == ["the server's processes: exporters do not show them, ssh:// does"]


def test_a_token_is_sent_and_so_is_basic_auth(served: ExpositionServer) -> None:
    with watching(served.url, token="abcdef") as exporter:
        exporter.check()
    with watching(served.url.replace("//", "//me:pass-word@")) as exporter:
        exporter.check()
    basic = "Basic " + base64.b64encode(b"me:pass-word").decode()
    assert {headers["Authorization"] for headers in served.asked} == {"Bearer abcdef", basic}


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(401), "the token or the password is wrong"),
        (Reply(403), "not allowed"),
        (Reply(404), "does not exist"),
        (Reply(302, headers={"Location": "http://127.0.0.1:1/"}), "answers 302"),
        (Reply(500), "answers 500"),
        (Reply(200, b"<html>hello</html>"), "is not metrics"),
        (Reply(200, b"up 1\n"), "has no metrics of node_exporter"),
        (Reply(200, b"x", {"Content-Encoding": "gzip"}), "compressed"),
        (Reply(200, b"a" * (module.TEXT_BYTES_MAX + 2**17)), "serves more than"),
        (Reply(200, b"node_load1 1\n", {"Content-Length": "99"}), "cannot be read"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.status),
)
def test_what_is_no_exporter_is_refused_in_words(reply: Reply, words: str) -> None:
    if reply.headers.get("Content-Length"):
        reply.headers["Connection"] = "close"
    assert words in refusal(reply).message


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with watching(url) as exporter, pytest.raises(LoadstoneError, match="Connection refused"):
            exporter.check()


def test_a_source_that_is_gone_is_named_once() -> None:
    """By the monitor, which names what it cannot read."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with watching(url) as exporter, pytest.raises(LoadstoneError) as gone:
            Watcher("pg18", exporter, 0).ask()
    assert gone.value.message == "Connection refused"


def test_an_answer_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.2)
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while not ended.wait(0.02):
                connection.sendall(b"#")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        given_up = pytest.raises(LoadstoneError, match="did not answer within")
        with watching(url) as exporter, given_up:
            exporter.check()
        ended.set()
        thread.join()


def test_a_certificate_must_be_trusted_and_can_be(tmp_path: Path) -> None:
    authority, chain = tmp_path / "ca.pem", tmp_path / "chain.pem"
    ca = trustme.CA()
    ca.cert_pem.write_to_path(authority)
    ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(chain)
    with exposition(node_text(), chain) as server:
        with (
            watching(server.url) as exporter,
            pytest.raises(LoadstoneError, match="is not trusted") as refused,
        ):
            exporter.check()
        assert "--watch-ca" in refused.value.hint
        assert server.asked == [], "nothing is asked of a server that is not trusted"
        with watching(server.url, ca=authority) as exporter:
            assert exporter.check().startswith("node_exporter")


def test_counters_of_a_machine_that_was_restarted_are_no_rates(served: ExpositionServer) -> None:
    with watching(served.url) as exporter:
        exporter.check()
        served.replies = lambda: Reply(body=node_text(idle=1, user=1, boot=1.5e9).encode())
        with pytest.raises(LoadstoneError, match="was started again"):
            exporter.ask()
        assert exporter.ask().host is not None
