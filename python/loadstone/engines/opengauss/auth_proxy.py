"""A proxy that logs in at a server whose way to log in libpq does not know, then passes bytes on as they are.

openGauss sends authentication code 10, which PostgreSQL uses for SASL, with data of its own: how the password
is kept (0 or 2: SHA-256), 64 hexadecimal digits of salt, 8 of a token, and in protocol 3.0 a signature.
K = PBKDF2-HMAC-SHA1(password, salt, 10,000 rounds, 32 bytes), ClientKey = HMAC-SHA256(K, "Client Key"), and
the answer is hex(ClientKey xor HMAC-SHA256(SHA256(ClientKey), token)). The signature is HMAC-SHA256 of the
token under the key HMAC-SHA256(K, "Sever Key"), spelled so. The core's clients do the same (crates/wire,
`sha256_challenge`); this is for control connections, which psycopg opens.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import selectors
import shutil
import socket
import ssl
import struct
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.model import Connection

ROUNDS = 10_000
_SHA256 = (0, 2)
_OK = 0
_CHALLENGE = 10
_SALT_DIGITS, _TOKEN_DIGITS, _SIGNATURE_DIGITS = 64, 8, 64
_SSL_REQUEST = struct.pack("!II", 8, 80877103)
_HEAD = struct.Struct("!cI")
_LENGTH = struct.Struct("!I")
_LONGEST = 1 << 16
"""No message before the end of the login is longer."""
_PIECE = 1 << 16
_TLS = ("require", "verify-ca", "verify-full")

Line = socket.socket


class OpenGaussAuthProxy:
    """Waits at a socket of our own for one client, and lets it in at the server."""

    def __init__(self, connection: Connection) -> None:
        """Listen; the server is reached once somebody knocks."""
        self._connection = connection
        self._folder = Path(tempfile.mkdtemp(prefix="loadstone-door-"))
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(self._folder / f".s.PGSQL.{connection.port}"))
        self._door.listen(1)
        self.trouble: LoadstoneError | None = None
        """Why the client was not let in, where it was not the server that said so."""
        threading.Thread(target=self._serve, name="loadstone-auth-proxy", daemon=True).start()

    @property
    def connection(self) -> Connection:
        """How the client reaches the server through this door; the password stays here."""
        return replace(
            self._connection,
            host=str(self._folder),
            password=None,
            sslmode="disable",
            channel_binding="disable",
            sslrootcert=None,
            sslcert=None,
            sslkey=None,
        )

    def close(self) -> None:
        """Open to nobody any more; who has been let in stays."""
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            client, _ = self._door.accept()
            with client:
                self._lead(client)

    def _lead(self, client: Line) -> None:
        try:
            with reach(self._connection) as server:
                begin = _exactly(client, _LENGTH.size)
                length = _LENGTH.unpack(begin)[0]
                server.sendall(begin + _exactly(client, _bounded(length) - _LENGTH.size))
                log_in(server, client, self._connection.password or "")
                server.settimeout(None)
                _pass_on(client, server)
        except LoadstoneError as error:
            self.trouble = error
        except OSError as error:
            self.trouble = LoadstoneError(
                f"the server cannot be reached: {error}", "Check that it is running on that host and port."
            )


def reach(connection: Connection) -> Line:
    """Open a socket to the server, with TLS as the connection options. Raises LoadstoneError or OSError."""
    host, port, limit_s = connection.host, connection.port, connection.connect_timeout_s
    if host.startswith("/"):
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(limit_s)
        line.connect(f"{host}/.s.PGSQL.{port}")
        return line
    line = socket.create_connection((host, port), limit_s)
    if connection.sslmode == "disable":
        return line
    line.sendall(_SSL_REQUEST)
    if _exactly(line, 1) == b"S":
        return _context(connection).wrap_socket(line, server_hostname=host)
    if connection.sslmode in _TLS:
        line.close()
        raise LoadstoneError(
            "the server does not support TLS", "Use sslmode=prefer, or turn on ssl in the server."
        )
    return line


def log_in(server: Line, client: Line, password: str) -> None:
    """Answer the server's challenge; what ends the login goes to the client as it came.

    Raises LoadstoneError when the server asks for something else, or does not know the password itself.
    """
    while True:
        head = _exactly(server, _HEAD.size)
        kind, length = _HEAD.unpack(head)
        body = _exactly(server, _bounded(length) - _LENGTH.size)
        code = _LENGTH.unpack_from(body)[0] if kind == b"R" and len(body) >= _LENGTH.size else None
        if code == _CHALLENGE:
            reply = answer(password, body[_LENGTH.size :]) + b"\0"
            server.sendall(_HEAD.pack(b"p", _LENGTH.size + len(reply)) + reply)
        elif code in (None, _OK):
            client.sendall(head + body)
            return
        else:
            raise LoadstoneError(
                f"the server requires authentication method {code}, which Loadstone does not support",
                "Use SHA-256 or MD5.",
            )


def answer(password: str, challenge: bytes) -> bytes:
    """Return the answer to a challenge, 64 hexadecimal digits. Raises LoadstoneError for another kind."""
    kept = _LENGTH.unpack_from(challenge)[0] if len(challenge) >= _LENGTH.size else None
    digits = challenge[_LENGTH.size :]
    wanted = _SALT_DIGITS + _TOKEN_DIGITS
    if kept not in _SHA256 or len(digits) not in (wanted, wanted + _SIGNATURE_DIGITS):
        raise LoadstoneError(
            "the server's challenge is not that of a password stored as SHA-256",
            "Set the user's password again with password_encryption_type = 2.",
        )
    try:
        salt, token = (
            bytes.fromhex(digits[:_SALT_DIGITS].decode()),
            bytes.fromhex(digits[_SALT_DIGITS:wanted].decode()),
        )
    except ValueError as error:
        raise LoadstoneError(
            "the server's challenge cannot be read", "Check that it is openGauss."
        ) from error
    key = hashlib.pbkdf2_hmac("sha1", password.encode(), salt, ROUNDS, 32)
    signature = _sign(_sign(key, b"Sever Key"), token).hex().encode()
    if digits[wanted:] and not hmac.compare_digest(signature, digits[wanted:].lower()):
        raise LoadstoneError(
            "the password is wrong, or the user does not exist", "Check the user and password of the target."
        )
    client_key = _sign(key, b"Client Key")
    mask = _sign(hashlib.sha256(client_key).digest(), token)
    return bytes(a ^ b for a, b in zip(client_key, mask, strict=True)).hex().encode()


def _sign(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _context(connection: Connection) -> ssl.SSLContext:
    """Return what libpq's sslmode means to Python's ssl."""
    root = connection.sslrootcert
    context = ssl.create_default_context(cafile=root if root not in (None, "system") else None)
    context.check_hostname = connection.sslmode == "verify-full"
    if connection.sslmode not in ("verify-ca", "verify-full"):
        context.verify_mode = ssl.CERT_NONE
    if connection.sslcert:
        context.load_cert_chain(connection.sslcert, connection.sslkey)
    return context


def _exactly(line: Line, count: int) -> bytes:
    """Read so many bytes. Raises OSError when the other side ends before."""
    found = b""
    while len(found) < count:
        piece = line.recv(count - len(found))
        if not piece:
            raise OSError("the connection was closed")
        found += piece
    return found


def _bounded(length: int) -> int:
    if not _LENGTH.size <= length <= _LONGEST:
        raise OSError(f"a message of {length} bytes")
    return length


def _pass_on(client: Line, server: Line) -> None:
    """Pass bytes on in both directions until one side ends."""
    with selectors.DefaultSelector() as ready, contextlib.suppress(OSError):
        ready.register(client, selectors.EVENT_READ, server)
        ready.register(server, selectors.EVENT_READ, client)
        while True:
            for key, _ in ready.select():
                source, target = key.fileobj, key.data
                while True:
                    piece = source.recv(_PIECE)  # type: ignore[union-attr]
                    if not piece:
                        return
                    target.sendall(piece)
                    # TLS may have read more than was requested: no selector sees that.
                    if not (isinstance(source, ssl.SSLSocket) and source.pending()):
                        break
