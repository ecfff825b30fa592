"""From a URL or a libpq string, and all that libpq would add to it, to `model.Connection`.

The grammar and the PG* variables are libpq's own work (PQconninfoParse, PQconndefaults).
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from loadstone.engine.postgres.passfile import password_from, read_service
from loadstone.engine.postgres.plain_conninfo import plain_parameters
from loadstone.errors import LoadstoneError
from loadstone.model import Connection
from loadstone.results.redact import remember

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psycopg import pq

SOCKET_FOLDERS = (Path("/var/run/postgresql"), Path("/tmp"))  # noqa: S108 - where servers put their sockets
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
URL_SCHEMES = ("postgresql", "postgres")
DEFAULT_TIMEOUT_S = 10.0
FOREVER_S = 3600.0

_PORT = re.compile(r"[0-9]{1,5}")
_LONGEST_SHOWN = 40

_REFUSED = {
    "replication": "",
    "requirepeer": "",
    "require_auth": "",
    "sslcrl": "",
    "sslcrldir": "",
    "sslpassword": "",
    "sslnegotiation": "postgres",
    "target_session_attrs": "any",
    "gssencmode": "disable prefer",
    "ssl_max_protocol_version": "",
    "oauth_issuer": "",
}
"""What the driver cannot honour -> values that ask for nothing. All others are refused, never ignored."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A connection, and what the user should know about how it came about."""

    connection: Connection
    notes: tuple[str, ...] = ()


def resolve(text: str) -> Resolved:
    """Return the connection that libpq would make of the text, the environment and the user's files."""
    return resolve_values(parameters(text))


def resolve_values(values: Mapping[str, str]) -> Resolved:
    """Return the connection that libpq would make of its parameters and the user's files."""
    _refuse_bytes(values)
    _refuse_what_cannot_be(values)
    host, port = _place(values)
    user = values.get("user") or ""
    database = values.get("dbname") or user
    password, note = values.get("password"), None
    if not password:
        # In the file, the default socket goes by the name of localhost.
        named = "localhost" if Path(host) in SOCKET_FOLDERS else values.get("host") or host
        wanted = (named, str(port), database, user)
        password, note = password_from(_pass_file(values), wanted)
    remember(password, (host, user, database))
    is_socket = host.startswith("/")
    tls: Mapping[str, str | None] = {} if is_socket else _tls_files(values)
    connection = Connection(
        host=host,
        port=port,
        user=user,
        database=database,
        password=password or None,
        sslmode="disable" if is_socket else values["sslmode"],
        channel_binding=values.get("channel_binding") or "prefer",
        connect_timeout_s=_timeout_s(values),
        application_name=values.get("application_name") or "loadstone",
        parameters=_start_up(values),
        sslrootcert=tls.get("sslrootcert"),
        sslcert=tls.get("sslcert"),
        sslkey=tls.get("sslkey"),
    )
    return Resolved(connection, (note,) if note else ())


def parameters(text: str) -> dict[str, str]:
    """Return libpq's parameters: the text's, else the service's, else the environment's, else the default."""
    return plain_parameters(text, {}) or _by_libpq(text)


def _by_libpq(text: str) -> dict[str, str]:
    given = _parse(text)
    service = given.get("service") or os.environ.get("PGSERVICE")
    from_service = read_service(service, _service_files()) if service else {}
    return _defaults() | from_service | given


def redacted_url(scheme: str, connection: Connection) -> str:
    """Write a connection as a URL without its password."""
    user, database = quote(connection.user, safe=""), quote(connection.database, safe="")
    if connection.host.startswith("/"):
        return f"{scheme}://{user}@/{database}?host={quote(connection.host)}&port={connection.port}"
    host = f"[{connection.host}]" if ":" in connection.host else connection.host
    sslmode = "" if connection.sslmode == "prefer" else f"?sslmode={connection.sslmode}"
    return f"{scheme}://{user}@{host}:{connection.port}/{database}{sslmode}"


def conninfo_url(scheme: str, connection: Connection) -> str:
    """Write all that makes a connection as a URL, whatever the environment says, without its password."""
    values: dict[str, object] = {
        "host": connection.host,
        "port": connection.port,
        "user": connection.user,
        "dbname": connection.database,
        **{name: _absolute(getattr(connection, name)) for name in ("sslrootcert", "sslcert", "sslkey")},
        "connect_timeout": f"{connection.connect_timeout_s:g}",
        "application_name": connection.application_name,
        "channel_binding": connection.channel_binding,
        **connection.parameters,
    }
    if not connection.host.startswith("/"):
        values["sslmode"] = connection.sslmode
    usual = {"connect_timeout": f"{DEFAULT_TIMEOUT_S:g}"}
    usual |= {"application_name": "loadstone", "channel_binding": "prefer", "sslmode": "prefer"}
    told = {name: value for name, value in values.items() if value is not None and value != usual.get(name)}
    return f"{scheme}://?{urlencode(told, quote_via=quote)}"


def _absolute(file: str | None) -> str | None:
    return file if file in (None, "system") else str(Path(file).absolute())


def refuse_unescaped(url: str) -> None:
    """Refuse a URL whose password holds an @ or a slash as it is: libpq takes what follows for the host.

    Raises LoadstoneError, which shows nothing of the URL.
    """
    scheme, _, rest = url.partition("://")
    user, at, place = rest.partition("@")
    if scheme not in URL_SCHEMES or not at:
        return
    beginning, slash, path = user.partition("/")
    ends_late = slash and ":" in beginning and "?" not in path
    if ends_late or "@" in place.partition("?")[0]:
        raise LoadstoneError(
            "a character of the target's URL must be percent-encoded: an @ or / in its password, or an @ in "
            "another part",
            "Write %40 for @ and %2F for /, or set the password in PGPASSWORD or ~/.pgpass.",
        )


def _parse(text: str) -> dict[str, str]:
    import psycopg  # noqa: PLC0415 - takes long; plain text needs none of it
    from psycopg import pq  # noqa: PLC0415

    refuse_unescaped(text)
    try:
        options = pq.Conninfo.parse(text.encode())
    except UnicodeEncodeError:
        raise LoadstoneError(
            "the target is not UTF-8 text", "Write it in UTF-8, or percent-encode it in a URL."
        ) from None
    except psycopg.OperationalError as error:
        # libpq's complaint may quote the text, and so the password.
        said = str(error).strip().replace(text, "…").splitlines()[0].split('"')[0].rstrip(" :")
        raise LoadstoneError(
            f"libpq does not accept the target as a connection string: {said}",
            "Write postgres://user@host:port/database?name=value or host=… port=… dbname=…; "
            "in a URL, special characters of a password are percent-encoded.",
        ) from error
    return _named(options)


def _defaults() -> dict[str, str]:
    from psycopg import pq  # noqa: PLC0415

    return _named(pq.Conninfo.get_defaults())


def _named(options: list[pq.ConninfoOption]) -> dict[str, str]:
    return {o.keyword.decode(): o.val.decode(errors="surrogateescape") for o in options if o.val is not None}


def _service_files() -> list[Path]:
    own = os.environ.get("PGSERVICEFILE")
    files = [Path(own) if own else Path.home() / ".pg_service.conf"]
    folder = os.environ.get("PGSYSCONFDIR")
    return [*files, Path(folder) / "pg_service.conf"] if folder else files


def _pass_file(values: Mapping[str, str]) -> Path:
    named = values.get("passfile")
    return Path(named) if named else Path.home() / ".pgpass"


def _refuse_bytes(values: Mapping[str, str]) -> None:
    """Refuse names that are not UTF-8: of `%FF` in a URL nobody can make a text again."""
    for name, value in values.items():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise LoadstoneError(
                f"the connection parameter {name} is not UTF-8 text",
                "In a URL, a byte from %80 on is part of a UTF-8 character: é is %C3%A9.",
            ) from None


def _refuse_what_cannot_be(values: Mapping[str, str]) -> None:
    for name in ("host", "hostaddr", "port"):
        if "," in values.get(name, ""):
            raise LoadstoneError(
                "the target contains several hosts",
                "Write one host: Loadstone measures one server per target.",
            )
    for name, harmless in _REFUSED.items():
        value = values.get(name, "")
        if value and value not in harmless.split():
            raise LoadstoneError(
                f"Loadstone does not support the connection parameter {name} with this value",
                "Remove it from the target and from the environment.",
            )
    if values.get("sslmode") not in SSL_MODES:
        raise LoadstoneError(
            f"'{values.get('sslmode')}' is not an sslmode", f"The modes are {', '.join(SSL_MODES)}."
        )


def _place(values: Mapping[str, str]) -> tuple[str, int]:
    port_text = values.get("port") or "5432"
    if not _PORT.fullmatch(port_text) or not 0 < int(port_text) < 1 << 16:
        # What stands there may be a password: postgres://me:password
        raise LoadstoneError(
            "the port in the target is not a number from 1 to 65535",
            "Write postgres://user@host:port/database. In a password, write %40 for @, %2F for /, %3A for :.",
        )
    host, address, port = values.get("host", ""), values.get("hostaddr", ""), int(port_text)
    if host.startswith("@"):
        raise LoadstoneError("abstract unix sockets are not supported", "Use a socket folder, or TCP.")
    if address and host and values.get("sslmode") == "verify-full":
        raise LoadstoneError(
            "host and hostaddr are both set, with sslmode=verify-full",
            "Set only host: the certificate is checked against it.",
        )
    return address or host or _default_host(port), port


def _default_host(port: int) -> str:
    for folder in SOCKET_FOLDERS:
        if (folder / f".s.PGSQL.{port}").is_socket():
            return str(folder)
    return "localhost"


def _timeout_s(values: Mapping[str, str]) -> float:
    text = values.get("connect_timeout") or str(DEFAULT_TIMEOUT_S)
    try:
        timeout_s = float(text)
    except ValueError:
        timeout_s = math.nan
    if not math.isfinite(timeout_s) or timeout_s > FOREVER_S:
        raise LoadstoneError(
            f"'{text[:_LONGEST_SHOWN]}' is not a connect_timeout",
            f"Write whole seconds up to {FOREVER_S:.0f}; 0 waits that long.",
        )
    return timeout_s if timeout_s > 0 else FOREVER_S


def _start_up(values: Mapping[str, str]) -> dict[str, str]:
    return {name: values[name] for name in ("options", "client_encoding") if values.get(name)}


def _tls_files(values: Mapping[str, str]) -> dict[str, str | None]:
    """Return the TLS files, named or at libpq's usual places."""
    folder = Path.home() / ".postgresql"
    usual = {"sslrootcert": "root.crt", "sslcert": "postgresql.crt", "sslkey": "postgresql.key"}
    found: dict[str, str | None] = {}
    for name, file in usual.items():
        path = folder / file
        found[name] = values.get(name) or (str(path) if path.is_file() else None)
        named = values.get(name)
        if named and named != "system" and not Path(named).is_file():
            raise LoadstoneError(f"the file of {name} does not exist: '{named}'", "Check its path.")
    if values["sslmode"].startswith("verify-") and not found["sslrootcert"]:
        raise LoadstoneError(
            f"sslmode={values['sslmode']} needs the certificate of an authority, and there is none",
            f"Set sslrootcert=FILE or sslrootcert=system, or put the file at {folder / 'root.crt'}.",
        )
    return found
