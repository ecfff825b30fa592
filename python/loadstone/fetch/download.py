"""A file over HTTP, verified by the strongest checksum that the repository states."""

from __future__ import annotations

import queue
import ssl
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from loadstone.fetch import checksums
from loadstone.fetch.errors import DamagedError, MissingError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

    import requests
    from requests.adapters import HTTPAdapter

    from loadstone.fetch.artifact import Artifact

LIMIT_S = 600
"""15 MB at 25 kB/s; a connection slower than that counts as dead."""
_SILENCE_S = 60
_CLIENT_ERRORS = range(400, 500)
_NOT_FOUND = 404


def download(artifact: Artifact, base: str, algorithms: tuple[str, ...], limit_s: float = LIMIT_S) -> bytes:
    """Return the file from the repository at the address `base`.

    A signal's exception leaves at once, also during a name lookup, which nothing can interrupt: the transfer
    runs in a thread that is left behind then.
    """
    return _wait(lambda: _receive(artifact, base, algorithms), artifact.jar, limit_s)


def _wait(receive: Callable[[], bytes], jar: str, limit_s: float) -> bytes:
    results: queue.SimpleQueue[bytes | BaseException] = queue.SimpleQueue()

    def work() -> None:
        try:
            results.put(receive())
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            results.put(error)

    threading.Thread(target=work, name="download", daemon=True).start()
    try:
        result = results.get(timeout=limit_s)
    except queue.Empty:
        raise UnreachableError(jar, f"it was not downloaded within {limit_s:g} seconds") from None
    if isinstance(result, BaseException):
        raise result
    return result


def _receive(artifact: Artifact, base: str, algorithms: tuple[str, ...]) -> bytes:
    import requests  # noqa: PLC0415 - slow to import, and needed once in a cache's life

    address = f"{base}/{artifact.path}"
    with requests.Session() as session:
        session.mount("https://", _by_system_store())
        try:
            stated = _stated(session, address, algorithms)
            content = _get(session, address)
        except requests.RequestException as error:
            raise _trouble(artifact.jar, base, error) from None  # the address may hold a password
    if stated is None:
        raise DamagedError(artifact.jar, f"the repository states no {algorithms[-1].upper()} checksum for it")
    checksums.check(artifact.jar, content, *stated, "the repository")
    return content


def _by_system_store() -> HTTPAdapter:
    """Return an adapter that trusts this system's certificate authorities, as its other programs do.

    requests alone knows the public ones only, and a company's network may have its own.
    """
    import truststore  # noqa: PLC0415 - as above
    from requests.adapters import HTTPAdapter  # noqa: PLC0415 - as above

    class SystemStore(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **given: Any) -> None:
            super().init_poolmanager(
                *args, **given, ssl_context=truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            )

    return SystemStore()


def _stated(session: requests.Session, address: str, algorithms: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the strongest checksum beside a file, with its algorithm."""
    import requests  # noqa: PLC0415 - as above

    for algorithm in algorithms:
        try:
            return algorithm, _get(session, f"{address}.{algorithm}").decode("ascii", "replace")
        except requests.HTTPError as error:
            if error.response.status_code != _NOT_FOUND:
                raise
    return None


def _get(session: requests.Session, address: str) -> bytes:
    response = session.get(address, timeout=_SILENCE_S)
    response.raise_for_status()
    return response.content


def _trouble(jar: str, base: str, error: requests.RequestException) -> Exception:
    host, response = urlsplit(base).hostname, error.response
    if response is None:
        return UnreachableError(jar, f"{_reason(error)} (host {host})")
    kind = MissingError if response.status_code in _CLIENT_ERRORS else UnreachableError
    return kind(jar, f"{host} answered {response.status_code} {response.reason}".strip())


def _reason(error: BaseException) -> str:
    """Return the innermost cause: what the client says around it holds the whole address."""
    cause = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    return getattr(cause, "strerror", None) or type(cause).__name__
