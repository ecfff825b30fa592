"""Asks an exporter for its metrics over HTTP or HTTPS: one text of limited size within limited time."""

from __future__ import annotations

import ssl
import time
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.watch.clock import RoundTrip
from loadstone.watch.exposition import Metrics, metrics_of, reading_of
from loadstone.watch.source import Answer, Source

if TYPE_CHECKING:
    from pathlib import Path

    import requests
    from requests.adapters import HTTPAdapter

    from loadstone.watch.spec import Spec

TEXT_BYTES_MAX = 8 * 2**20
ANSWER_S = 5.0
"""Longest wait for a whole answer; a scrape of node_exporter takes some ten milliseconds."""
_ROUND_TRIPS = 3
_CHUNK_BYTES = 64 * 1024
_ACCEPT = "text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"
_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 200, 401, 403, 404
_WORDS = {
    _UNAUTHORIZED: ("refuses us: the token or the password is wrong, or missing", "credentials"),
    _FORBIDDEN: ("refuses us: the token or the password is not allowed to read it", "credentials"),
    _NOT_FOUND: ("does not exist there (404)", "path"),
}
_HINTS = {
    "credentials": "Set LOADSTONE_WATCH_TOKEN (or --watch-token-file FILE) for a bearer token, or "
    "LOADSTONE_WATCH_PASSWORD with a user in the URL for basic auth; ~/.netrc works too.",
    "path": "Exporters serve /metrics: name the whole address, such as http://db1:9100/metrics.",
}


class Exporter(Source):
    """One address. A postgres_exporter's counters are narrowed to the target's database."""

    def __init__(self, spec: Spec, token: str | None, ca: Path | None) -> None:
        """Open nothing yet."""
        super().__init__(spec.shown)
        self._url = spec.url
        self._auth = (spec.user, spec.password) if spec.user is not None else None
        self._token = token
        self._ca = ca
        self._database = spec.database
        self._session: requests.Session | None = None
        self._boot_s: float | None = None

    def check(self) -> str:
        """Ask once, and have all of the text parsed. Raises LoadstoneError."""
        metrics, trip = self._metrics(whole=True)
        reading = reading_of(metrics, self._database)
        self.clock.place(self._trip(trip, reading.time_ns))
        self._boot_s = reading.boot_s
        for _ in range(_ROUND_TRIPS):  # the first one had to connect
            self.ask()
        if reading.host is not None:
            self.not_observed.append("the server's processes: exporters do not show them, ssh:// does")
        else:
            self.not_observed.append("CPU, memory, disks and network: that is node_exporter's part")
        return reading.about

    def ask(self) -> Answer:
        """Return what it says now. Raises LoadstoneError."""
        metrics, trip = self._metrics(whole=False)
        reading = reading_of(metrics, self._database)
        before, self._boot_s = self._boot_s, reading.boot_s
        if before is not None and reading.boot_s is not None and reading.boot_s > before + 60:
            raise LoadstoneError(f"{self.shown}: its machine was started again: the counters begin again")
        placed_ns = self.clock.place(self._trip(trip, reading.time_ns))
        return Answer(placed_ns, reading.host, None, reading.counters, reading.gauges)

    def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            self._session.close()

    @staticmethod
    def _trip(trip: RoundTrip, time_ns: int | None) -> RoundTrip:
        return RoundTrip(trip.sent_ns, trip.received_ns, time_ns)

    def _metrics(self, *, whole: bool) -> tuple[Metrics, RoundTrip]:
        sent_ns = time.monotonic_ns()
        text, content_type = self._text()
        trip = RoundTrip(sent_ns, time.monotonic_ns())
        try:
            return metrics_of(text, content_type, whole=whole), trip
        except LoadstoneError as error:
            raise LoadstoneError(
                f"what {self.shown} serves {error.message}",
                error.hint or "Name the exporter's own address, such as http://db1:9100/metrics.",
            ) from error

    def _text(self) -> tuple[bytes, str]:
        import requests  # noqa: PLC0415 - slow to import, and needed here only
        import urllib3  # noqa: PLC0415 - as above

        until_s = time.monotonic() + ANSWER_S
        session = self._opened()
        try:
            with session.get(
                self._url,
                auth=self._authorize(),
                timeout=ANSWER_S,
                stream=True,
                allow_redirects=False,  # a token is for the address that was named
                headers={"Accept": _ACCEPT, "Accept-Encoding": "identity"},
            ) as response:
                self._refuse(response)
                return self._body(response, until_s), response.headers.get("Content-Type", "")
        except requests.exceptions.SSLError as error:
            raise LoadstoneError(
                f"the certificate of {self.shown} is not trusted: {_cause(error)}",
                "Name the authority that signed it: --watch-ca FILE (PEM).",
            ) from None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise LoadstoneError(
                f"{self.shown} cannot be read: {_cause(error)}",
                "Is the exporter running, and is its port open to this machine?",
            ) from None

    def _refuse(self, response: requests.Response) -> None:
        status = response.status_code
        if status != _OK:
            words, hint = _WORDS.get(status, (f"answers {status} {response.reason}".strip(), "path"))
            raise LoadstoneError(f"{self.shown} {words}", _HINTS[hint])
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise LoadstoneError(f"{self.shown} answers compressed, although it was asked not to")

    def _body(self, response: requests.Response, until_s: float) -> bytes:
        """Read in pieces: neither a text without end nor one that drips can keep us."""
        parts, size = [], 0
        while part := response.raw.read1(_CHUNK_BYTES):
            parts.append(part)
            size += len(part)
            if size > TEXT_BYTES_MAX:
                raise LoadstoneError(f"{self.shown} serves more than {TEXT_BYTES_MAX:,} bytes: not metrics")
            if time.monotonic() > until_s:
                raise LoadstoneError(f"{self.shown} did not answer within {ANSWER_S:.0f} s")
        return b"".join(parts)

    def _authorize(self) -> Any:
        """Return what adds credentials to a request; None leaves it to ~/.netrc."""
        if self._auth is not None or self._token is None:
            return self._auth

        def bearer(request: requests.PreparedRequest) -> requests.PreparedRequest:
            request.headers["Authorization"] = f"Bearer {self._token}"
            return request

        return bearer

    def _opened(self) -> requests.Session:
        if self._session is None:
            import requests  # noqa: PLC0415 - as above

            self._session = requests.Session()
            if self._url.startswith("https:"):
                self._session.mount("https://", _adapter(self._ca))
        return self._session


def _adapter(ca: Path | None) -> HTTPAdapter:
    """Return an adapter that trusts one authority, or those of this system as its other programs do."""
    import truststore  # noqa: PLC0415 - needed for HTTPS only
    from requests.adapters import HTTPAdapter  # noqa: PLC0415 - as above

    context: ssl.SSLContext = (
        truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if ca is None
        else ssl.create_default_context(cafile=str(ca))
    )

    class Trusting(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **given: Any) -> None:
            super().init_poolmanager(*args, **given, ssl_context=context)

        def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
            del conn, url, verify, cert  # the context says what is trusted, not the bundle of requests

    return Trusting()


def _cause(error: BaseException) -> str:
    """Return the innermost cause: what the client says around it holds the whole address."""
    cause = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    return getattr(cause, "verify_message", None) or getattr(cause, "strerror", None) or type(cause).__name__
