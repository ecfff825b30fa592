"""One session with a HeavyDB server, by the Thrift client that its makers generate (PyPI pyheavydb).

Of that package the generated client and nothing else is used: its own Connection knows neither a limit for
connecting nor how to interrupt a query, and Arrow batches are what Thrift takes anyway.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from heavydb.common.ttypes import TDatumType, TDeviceType
from heavydb.thrift.Heavy import Client
from heavydb.thrift.ttypes import TArrowTransport, TDBException
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TSSLSocket import TSSLSocket
from thrift.transport.TTransport import TBufferedTransport

from loadstone.engines.heavydb.control import HeavyError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.engine.control import Row
    from loadstone.model import Connection

# What it logs it also raises: that is ours to tell, in our own words.
logging.getLogger("thrift").addHandler(logging.NullHandler())
_DEAD_SESSION = "session not valid"
_ALL_ROWS = -1


class ThriftLink:
    """A socket, a Thrift client and a session; one call at a time."""

    def __init__(self, server: Connection, database: str) -> None:
        """Connect. Raises HeavyError, `lost` when there is no such server."""
        self._socket = _socket(server)
        self._socket.setTimeout(server.connect_timeout_s * 1000)
        transport = TBufferedTransport(self._socket)
        self._client = Client(TBinaryProtocolAccelerated(transport))
        self._open = True
        try:
            self._call(lambda _: transport.open())
            self.session: str = self._call(
                lambda client: client.connect(server.user, server.password or "", database)
            )
        except BaseException:
            self.cut()
            raise
        self._socket.setTimeout(None)

    def ask(self, sql: str) -> list[Row]:
        """Run one statement and return its rows."""
        found = self._call(
            lambda client: client.sql_execute(self.session, sql, True, "", _ALL_ROWS, _ALL_ROWS)  # noqa: FBT003
        )
        return _rows(found.row_set)

    def table(self, sql: str) -> pa.Table:
        """Run a query and return its answer, which comes as an Arrow stream."""
        frame = self._call(
            lambda client: client.sql_execute_df(
                self.session, sql, TDeviceType.CPU, 0, _ALL_ROWS, TArrowTransport.WIRE
            )
        )
        with pa.ipc.open_stream(frame.df_buffer) as stream:
            return stream.read_all()

    def put(self, table: str, rows: pa.RecordBatch) -> None:
        """Append rows to a table, named as it is; columns are known by their names."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_batch(rows)
        payload = sink.getvalue().to_pybytes()
        self._call(lambda client: client.load_table_binary_arrow(self.session, table, payload, True))  # noqa: FBT003

    def version(self) -> str:
        """Return the server's version."""
        found: str = self._call(lambda client: client.get_version())
        return found

    def databases(self) -> list[str]:
        """Return the names of the databases that the user may see."""
        return [entry.db_name for entry in self._call(lambda client: client.get_databases(self.session))]

    def use(self, database: str) -> None:
        """Make unqualified names mean what is in a database."""
        self._call(lambda client: client.switch_database(self.session, database))

    def hardware(self) -> tuple[int, int]:
        """Return how many GPUs the server works with, and how many CPU threads it sees."""
        found = self._call(lambda client: client.get_hardware_info(self.session)).hardware_info
        return sum(host.num_gpu_allocated or 0 for host in found), sum(host.num_cpu_hw or 0 for host in found)

    def memory(self, level: str) -> tuple[int, int]:
        """Return the bytes that the buffer pools of `cpu` or `gpu` have taken, and those in use."""
        taken = used = 0
        for node in self._call(lambda client: client.get_memory(self.session, level)):
            taken += node.num_pages_allocated * node.page_size
            used += sum(data.num_pages for data in node.node_memory_data if not data.is_free) * node.page_size
        return taken, used

    def interrupt(self, session: str) -> None:
        """Make the statement that another session runs fail."""
        self._call(lambda client: client.interrupt(session, self.session))

    def cut(self) -> None:
        """End the socket at once, whichever thread waits at it; may be called again."""
        self._open = False
        handle = self._socket.handle
        if handle is not None:
            with contextlib.suppress(OSError):
                handle.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def close(self) -> None:
        """Say goodbye, so that the server forgets the session; may be called again."""
        if self._open:
            self._socket.setTimeout(1000)
            with contextlib.suppress(HeavyError):
                self._call(lambda client: client.disconnect(self.session))
        self.cut()

    def _call(self, work: Callable[[Client], Any]) -> Any:
        try:
            return work(self._client)
        except TDBException as error:
            said = (error.error_msg or "").strip()
            raise HeavyError(said, lost=_DEAD_SESSION in said.lower()) from error
        except (TException, OSError, EOFError) as error:
            said = str(getattr(error, "message", None) or error).strip()
            raise HeavyError(f"the server does not answer: {said}", lost=True) from error


def _socket(server: Connection) -> TSocket:
    if server.sslmode == "disable":
        return TSocket(server.host, server.port)
    context = ssl.create_default_context(cafile=server.sslrootcert)
    if server.sslmode == "require":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return TSSLSocket(server.host, server.port, ssl_context=context)


def _rows(found: Any) -> list[Row]:
    """Turn columns, as Thrift brings them, into rows."""
    if not found or not found.row_desc:
        return []
    columns = [_values(desc, column) for desc, column in zip(found.row_desc, found.columns, strict=True)]
    names = [desc.col_name for desc in found.row_desc]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _values(desc: Any, column: Any) -> Sequence[Any]:
    data = column.data
    held: Sequence[Any] = next(
        (values for values in (data.int_col, data.real_col, data.str_col) if values), []
    )
    if desc.col_type.type == TDatumType.BOOL:
        held = [bool(value) for value in held]
    return [None if null else value for value, null in zip(held, column.nulls, strict=True)]
