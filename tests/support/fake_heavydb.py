"""A stand-in for a HeavyDB server, made of the client's own Thrift classes, which keeps rows in DuckDB.

It proves what is sent, in which order, and how answers are read. That HeavyDB itself understands the SQL it
cannot prove: it drops the words that DuckDB does not know.
"""

from __future__ import annotations

import contextlib
import re
import threading
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from heavydb.common.ttypes import TDatumType, TTypeInfo
from heavydb.thrift.Heavy import Processor
from heavydb.thrift.ttypes import (
    TClusterHardwareInfo,
    TColumn,
    TColumnData,
    TColumnType,
    TDataFrame,
    TDBException,
    TDBInfo,
    THardwareInfo,
    TMemoryData,
    TNodeMemoryInfo,
    TQueryResult,
    TRowSet,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAcceleratedFactory
from thrift.transport.TSocket import TServerSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = 1 << 21
_EPOCH = re.compile(r'extract\(epoch from ("\w+")\)')
"""Whole seconds there, with their fraction in DuckDB."""
_WORDS = re.compile(r" encoding (?:dict|days)\(\d+\)| encoding none| with \(fragment_size = \d+\)")


class FakeHeavyDB:
    """The server's side: what the methods of the Thrift service answer."""

    def __init__(self, gpus: int = 1, version: str = "8.1.0-20250101-abcdef") -> None:
        self.gpus, self.version = gpus, version
        self.databases: dict[str, duckdb.DuckDBPyConnection] = {"heavyai": duckdb.connect()}
        self.sessions: dict[str, str] = {}
        self.devices: dict[str, str] = {}
        self.statements: list[str] = []
        self.interrupted = threading.Event()
        self.deaf = False
        """Whether it takes no notice of being told to interrupt."""
        self.super_user = True
        self.asked = 0
        self.lock = threading.Lock()

    def connect(self, user: str, passwd: str, dbname: str) -> str:
        if (user, passwd) != ("admin", "secret"):
            raise TDBException(error_msg="Authentication failure")
        if dbname not in self.databases and dbname != "information_schema":
            raise TDBException(error_msg=f"Database name {dbname} does not exist.")
        self.asked += 1
        self.sessions[f"session{self.asked}"] = dbname
        return f"session{self.asked}"

    def disconnect(self, session: str) -> None:
        self.sessions.pop(session, None)

    def get_version(self) -> str:
        return self.version

    def get_databases(self, session: str) -> list[TDBInfo]:
        self._database(session)
        return [TDBInfo(db_name=name, db_owner="admin") for name in self.databases]

    def switch_database(self, session: str, dbname: str) -> None:
        self._database(session)
        self.sessions[session] = dbname

    def get_hardware_info(self, session: str) -> TClusterHardwareInfo:
        self._database(session)
        host = THardwareInfo(num_gpu_hw=self.gpus, num_cpu_hw=16, num_gpu_allocated=self.gpus)
        return TClusterHardwareInfo(hardware_info=[host])

    def get_memory(self, session: str, memory_level: str) -> list[TNodeMemoryInfo]:
        self._database(session)
        pages = {"cpu": 10, "gpu": 4 * self.gpus}[memory_level]
        data = [TMemoryData(num_pages=3, is_free=False), TMemoryData(num_pages=1, is_free=True)]
        return [TNodeMemoryInfo(page_size=512, num_pages_allocated=pages, node_memory_data=data)]

    def interrupt(self, query_session: str, interrupt_session: str) -> None:
        self._database(interrupt_session)
        assert query_session in self.sessions
        if not self.deaf:
            self.interrupted.set()

    def load_table_binary_arrow(
        self,
        session: str,
        table_name: str,
        arrow_stream: bytes,
        use_column_names: bool,  # noqa: FBT001 - Thrift's order, here and below
    ) -> None:
        assert use_column_names is True
        rows = pa.ipc.open_stream(arrow_stream).read_all()
        for column in rows.schema:
            assert not pa.types.is_large_string(column.type), "HeavyDB reads no other kind of text"
            assert getattr(column.type, "tz", None) is None
        with self.lock:
            database = self._database(session)
            database.register("incoming", rows)
            names = ", ".join(f'"{name}"' for name in rows.schema.names)
            try:
                database.execute(f'insert into "{table_name}" ({names}) select * from incoming')
            except duckdb.Error as error:
                raise TDBException(error_msg=str(error)) from error

    def sql_execute(
        self,
        session: str,
        query: str,
        column_format: bool,  # noqa: FBT001
        nonce: str,
        first_n: int,
        at_most_n: int,
    ) -> TQueryResult:
        assert (column_format, nonce, first_n, at_most_n) == (True, "", -1, -1)
        return TQueryResult(row_set=_row_set(self._run(session, query)))

    def sql_execute_df(
        self, session: str, query: str, device_type: int, device_id: int, first_n: int, transport_method: int
    ) -> TDataFrame:
        assert (device_type, device_id, first_n, transport_method) == (0, 0, -1, 1)
        found = self._run(session, query)
        assert found is not None
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, found.schema) as stream:
            stream.write_table(found)
        return TDataFrame(df_buffer=sink.getvalue().to_pybytes())

    def _run(self, session: str, query: str) -> pa.Table | None:
        self.statements.append(query)
        lowered = query.lower()
        if "hang" in lowered:
            self.interrupted.wait(60)
            raise TDBException(error_msg="Query execution failed because the query was interrupted")
        if made := re.fullmatch(r"(create|drop) database (\w+)", lowered):
            self._databases(*made.groups())
            return None
        if chosen := re.fullmatch(r"alter session set executor_device='(\w+)'", lowered):
            self.devices[session] = chosen.group(1).upper()
            return None
        if lowered.startswith("alter system clear"):
            if not self.super_user:
                raise TDBException(error_msg="Super user privilege is required")
            return None
        if lowered.startswith("explain calcite "):
            return pa.table({"Explanation": ["LogicalAggregate(group=[{}])\n"]})
        if lowered.startswith("explain "):
            device = self.devices.get(session, "GPU" if self.gpus else "CPU")
            return pa.table({"Explanation": [f"IR for the {device}:\n===============\ndefine i32 …\n"]})
        with self.lock:
            return self._ask(self._database(session), lowered, query)

    def _ask(self, database: duckdb.DuckDBPyConnection, lowered: str, query: str) -> pa.Table | None:
        tables = [name for (name,) in database.execute("show tables").fetchall()]
        if lowered == "show tables":
            return pa.table({"table_name": pa.array(tables, pa.string())})
        if lowered == "show table details":
            return _details(tables)
        if "storage_details" in lowered:
            raise TDBException(error_msg="Object 'storage_details' not found")
        try:
            text = _EPOCH.sub(r"epoch_us(\1::timestamp) // 1000000", _WORDS.sub("", query))
            relation = database.sql(text)
            return None if relation is None else relation.to_arrow_table()  # type: ignore[redundant-expr]
        except duckdb.Error as error:
            raise TDBException(error_msg=f"SQL Error: {error}") from error

    def _databases(self, verb: str, name: str) -> None:
        if verb == "create":
            self.databases[name] = duckdb.connect()
            return
        del self.databases[name]
        self.sessions = {key: where for key, where in self.sessions.items() if where != name}

    def _database(self, session: str) -> duckdb.DuckDBPyConnection:
        if session not in self.sessions:
            raise TDBException(error_msg="Session not valid.")
        name = self.sessions[session]
        return self.databases["heavyai" if name == "information_schema" else name]


def _details(tables: list[str]) -> pa.Table:
    rows = [
        {
            "table_name": name,
            "total_metadata_file_size": 4096 * 4,
            "total_metadata_page_count": 4,
            "total_free_metadata_page_count": 3,
            "total_data_file_size": PAGE * 256,
            "total_data_page_count": 256,
            "total_free_data_page_count": 250,
        }
        for name in tables
    ]
    return pa.Table.from_pylist(rows) if rows else pa.table({"table_name": pa.array([], pa.string())})


def _row_set(found: pa.Table | None) -> TRowSet:
    """Put an answer into Thrift's columns, as HeavyDB does: one list by kind, NULLs beside it."""
    if found is None:
        return TRowSet(row_desc=[], rows=[], columns=[], is_columnar=True)
    described, columns = [], []
    for field, values in zip(found.schema, found.columns, strict=True):
        kind, data = _column(field.type, values.to_pylist())
        described.append(TColumnType(col_name=field.name, col_type=TTypeInfo(type=kind)))
        columns.append(TColumn(data=data, nulls=[value is None for value in values.to_pylist()]))
    return TRowSet(row_desc=described, rows=[], columns=columns, is_columnar=True)


def _column(kind: pa.DataType, values: list[Any]) -> tuple[int, TColumnData]:
    if pa.types.is_boolean(kind):
        return TDatumType.BOOL, TColumnData(int_col=[int(value or 0) for value in values])
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return TDatumType.BIGINT, TColumnData(int_col=[int(value or 0) for value in values])
    if pa.types.is_floating(kind):
        return TDatumType.DOUBLE, TColumnData(real_col=[float(value or 0) for value in values])
    return TDatumType.STR, TColumnData(str_col=[value or "" for value in values])


@contextlib.contextmanager
def listening(server: FakeHeavyDB) -> Iterator[int]:
    """Serve on a free port of 127.0.0.1, and say which."""
    transport, processor = TServerSocket("127.0.0.1", 0), Processor(server)
    transport.listen()
    port: int = transport.handle.getsockname()[1]
    ended = threading.Event()

    def serve(client: Any) -> None:
        protocol = TBinaryProtocolAcceleratedFactory().getProtocol(TBufferedTransport(client))
        with contextlib.suppress(TTransportException, OSError):
            while not ended.is_set():
                processor.process(protocol, protocol)
        client.close()

    def accept() -> None:
        while not ended.is_set():
            try:
                client = transport.accept()
            except (TTransportException, OSError, AttributeError):
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield port
    finally:
        ended.set()
        server.interrupted.set()
        with contextlib.suppress(OSError):
            transport.handle.shutdown(2)
        transport.close()
        thread.join(5)
