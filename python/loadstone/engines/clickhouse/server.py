"""A ClickHouse server behind its HTTP interface, by the driver that its makers offer."""

from __future__ import annotations

import contextlib
import logging
import re
from typing import TYPE_CHECKING, Any

import clickhouse_connect
import urllib3
from clickhouse_connect.driver.exceptions import ClickHouseError
from clickhouse_connect.driver.httputil import get_pool_manager

from loadstone.engine import waits
from loadstone.engine.library.links import LinkDatabase
from loadstone.engine.library.places import listener
from loadstone.engines.clickhouse.control import ClickControl, ClickError
from loadstone.engines.clickhouse.family import refuse_too_old
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from loadstone.model import Connection
    from loadstone.sqltext import Qualified

# What it logs it also raises: that is ours to tell, in our own words.
logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())
_READS = re.compile(r"\s*(?:\(\s*)*(?:select|with|show|explain|describe|desc|exists|values)\b", re.IGNORECASE)
_SET = re.compile(r"\s*set\s+(.*)", re.IGNORECASE | re.DOTALL)
_USE = re.compile(r'\s*use\s+"?((?:[^"]|"")*)"?\s*', re.IGNORECASE)
_ONE_SET = re.compile(r"\s*(\w+)\s*=\s*('(?:[^'\\]|\\.|'')*'|[^,]+)\s*(?:,|\Z)")
_CODE = re.compile(r"(?:Code: |error code )(\d+)")
_ANSWER_S = 24 * 3600
"""Longer than any limit of ours: it is we who end what takes too long."""


class HttpLine:
    """One connection: HTTP has no sessions here, so its settings and database go with each statement."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def ask(self, sql: str) -> pa.Table | None:
        """Run one statement to its end and return its whole answer, None when it has none."""
        chosen, assigned = _USE.fullmatch(sql), _SET.fullmatch(sql)
        if chosen:
            self._client.database = chosen.group(1).replace('""', '"')
            return None
        with _errors_translated():
            if assigned:
                for name, value in _ONE_SET.findall(assigned.group(1)):
                    self._client.set_client_setting(name, _plain(value))
                return None
            if _READS.match(sql):
                return self._client.query_arrow(sql, use_strings=True)
            self._client.command(sql)
            return None

    def put(self, table: Qualified, columns: Sequence[str], rows: pa.Table) -> None:
        """Insert rows, which travel as an Arrow stream."""
        del columns  # the rows bear their names
        with _errors_translated():
            self._client.insert_arrow(table, rows)

    @property
    def version(self) -> str:
        """The server's version, which the driver has asked for."""
        return str(self._client.server_version)

    def close(self) -> None:
        """End it, and with its socket what the server still does for it."""
        self._client.close()


class ClickServer(LinkDatabase[ClickControl]):
    """A server that is reached over HTTP."""

    def __init__(self, server: Connection) -> None:
        """Reach it. Raises LoadstoneError when that is not possible."""
        super().__init__()
        self._server = server
        self.settings: Mapping[str, str] = {}
        self.pid = listener(server).pid
        try:
            with contextlib.closing(self.line()) as line:
                version = line.version
        except ClickError as error:
            if error.code is not None:  # the server answers, though not what the driver can use
                refuse_too_old(self._version_over_http())
            raise LoadstoneError(
                f"cannot connect to {server.host}:{server.port} (user {server.user}): {error}",
                "Check that the server is running with its HTTP interface on that port, and that the "
                "password is right.",
            ) from error
        # Before any session is set up: old servers do not know the settings of ours.
        refuse_too_old(version)

    @property
    def data_directory(self) -> Path | None:
        """Say nothing: its files are not ours to see."""
        return None

    def connect(self, name: str) -> ClickControl:
        """Open a control connection. Raises LoadstoneError when that is not possible."""
        control = ClickControl(self, name)
        try:
            control.execute("select 1")
        except ClickError as error:
            raise LoadstoneError(
                f"the server cannot be used: {error}", "Check that it is running."
            ) from error
        return self.enlist(control)

    def line(self) -> HttpLine:
        """Open a connection."""
        with _errors_translated():
            # The driver asks the server about itself, with the limit that holds for every answer.
            return HttpLine(waits.at_most(self._server.connect_timeout_s, self._client))

    def _client(self) -> Any:
        server = self._server
        return clickhouse_connect.get_client(
            host=server.host,
            port=server.port,
            username=server.user,
            password=server.password or "",
            secure=server.sslmode != "disable",
            verify=server.sslmode == "verify-full",
            ca_cert=server.sslrootcert,
            connect_timeout=max(1, round(server.connect_timeout_s)),
            send_receive_timeout=_ANSWER_S,
            autogenerate_session_id=False,
            query_retries=0,
        )

    def _version_over_http(self) -> str | None:
        """Ask for the version by a request without the driver, which old servers do not understand."""
        server = self._server
        scheme = "http" if server.sslmode == "disable" else "https"
        host = f"[{server.host}]" if ":" in server.host else server.host
        manager = get_pool_manager(verify=server.sslmode == "verify-full", ca_cert=server.sslrootcert)
        try:
            found = manager.request(
                "GET",
                f"{scheme}://{host}:{server.port}/",
                fields={"query": "select version()"},
                headers=urllib3.make_headers(basic_auth=f"{server.user}:{server.password or ''}"),
                timeout=server.connect_timeout_s,
                retries=False,
            )
        except (urllib3.exceptions.HTTPError, OSError):
            return None
        finally:
            manager.clear()
        text = found.data.decode(errors="replace").strip()
        return text if re.fullmatch(r"\d+(\.\d+)+", text) else None

    def probe(self) -> None:
        """Open and close another connection, which asks the server its version."""
        self.line().close()

    def hang_up(self, line: object) -> None:
        """Close a connection's socket: a server ends a query whose asker is gone when it next looks."""
        if isinstance(line, HttpLine):
            line.close()


@contextlib.contextmanager
def _errors_translated() -> Any:
    try:
        yield
    except ClickHouseError as error:
        said = _reason(error) or str(error).strip()
        code = _CODE.search(said)
        raise ClickError(said, int(code.group(1)) if code else None) from error
    except OSError as error:
        raise ClickError(f"the server does not respond: {error}") from error


def _reason(error: BaseException) -> str | None:
    """Return what the network said, if it was the network: the driver wraps it in words of its own."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__
    return str(cause.strerror or cause) if cause is not None else None


def _plain(value: str) -> str:
    value = value.strip()
    return value[1:-1].replace("''", "'") if value.startswith("'") else value
