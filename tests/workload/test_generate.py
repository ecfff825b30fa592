"""`loadstone generate` as its users meet it: files that PostgreSQL loads, and what becomes of broken ones."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet
from support.sandbox import small_disk, wait_until

from loadstone import _core

if TYPE_CHECKING:
    from support.sandbox import Database

pytestmark = pytest.mark.slow

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
LOADSTONE = str(Path(sys.executable).with_name("loadstone"))
ROWS = 3000
IMPORT = f"({', '.join(f'{name} text' for name in 'abcdefghijk')}, l timestamp)"
UNION = (
    "(id int, data1 int, data2 varchar(2000), data3 text, data4 bigint, data5 json, data6 double precision)"
)
TABLES: dict[str, tuple[list[str], str, list[str], list[str]]] = {
    "import": (
        ["import"],
        f"test {IMPORT}",
        [*"abcdefghijk", "(extract(epoch from l) * 1000000)::bigint"],
        [],
    ),
    "union": (
        ["types", "--option", "table=union", "--option", "distribution=compressible"],
        f"table_union {UNION}",
        ["id", "data1", "data2", "data3", "data4", "data5::text"],
        ["data6"],
    ),
}
_SMALL = "smallint"
FLIGHTS = {
    **dict.fromkeys(("flight_year", "flight_month", "flight_dayofmonth", "flight_dayofweek"), _SMALL),
    **dict.fromkeys(("deptime", "crsdeptime", "arrtime", "crsarrtime"), _SMALL),
    "uniquecarrier": "text",
    "flightnum": _SMALL,
    "tailnum": "text",
    **dict.fromkeys(("actualelapsedtime", "crselapsedtime", "airtime", "arrdelay", "depdelay"), _SMALL),
    **dict.fromkeys(("origin", "dest"), "text"),
    **dict.fromkeys(("distance", "taxiin", "taxiout", "cancelled"), _SMALL),
    "cancellationcode": "text",
    "diverted": _SMALL,
    **dict.fromkeys(("carrierdelay", "weatherdelay", "nasdelay", "securitydelay"), _SMALL),
    "lateaircraftdelay": _SMALL,
    "dep_timestamp": "timestamp",
    "arr_timestamp": "timestamp",
    **dict.fromkeys(("carrier_name", "plane_type", "plane_manufacturer"), "text"),
    "plane_issue_date": "date",
    **dict.fromkeys(
        [f"plane_{what}" for what in ("model", "status", "aircraft_type", "engine_type")], "text"
    ),
    "plane_year": _SMALL,
    **{
        f"{end}_{what}": kind
        for end in ("origin", "dest")
        for what, kind in (
            ("name", "text"),
            ("city", "text"),
            ("state", "text"),
            ("country", "text"),
            ("lat", "real"),
            ("lon", "real"),
        )
    },
    **{f"{end}_merc_{axis}": "real" for end in ("origin", "dest") for axis in "xy"},
}
"""MapD's published columns, in their order."""
_US = "(extract(epoch from {}) * 1000000)::bigint"
TABLES["flights"] = (
    ["flights"],
    f"flights ({', '.join(f'{name} {kind}' for name, kind in FLIGHTS.items())})",
    [_US.format(name) if kind == "timestamp" else name for name, kind in FLIGHTS.items() if kind != "real"],
    [name for name, kind in FLIGHTS.items() if kind == "real"],
)
OPTIONS = {"text": "", "csv": "(format csv)", "binary": "(format binary)"}


def run(*arguments: str, **given: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([LOADSTONE, "generate", *arguments], capture_output=True, check=False, **given)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def make(*arguments: str) -> None:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr.decode()


def expected(arguments: list[str], first: int = 0) -> dict[str, Any]:
    pairs = [text.split("=") for text in arguments if "=" in text]
    data = {"kind": "rows", "set": arguments[0], "seed": 1, "first": first, "rows": ROWS}
    found: dict[str, Any] = json.loads(_core.fingerprint_rows(json.dumps(data | {"options": dict(pairs)}), 2))
    return found


def stored(database: Database, table: str, values: list[str], doubles: list[str]) -> dict[str, str]:
    """The fingerprint as the database computes it from what it holds."""
    row = " || '|' || ".join(f"coalesce(({value})::text, '\\N')" for value in values)
    s = " + ".join(f"coalesce({name}, 0) * {n}.0::float8" for n, name in enumerate(doubles, 1)) or "0::float8"
    numbers = "sum((1 + k % 65521) * floor((s - floor(s / 65521) * 65521) * 1048576)::numeric)"
    with database.connect() as connection:
        found = connection.execute(
            f"select count(*), sum(k), {numbers} from (select "
            f"('x' || substr(md5({row}), 1, 8))::bit(32)::int8 & 4294967295 as k, {s} as s "
            f"from {table}) x".encode()
        ).fetchone()
    assert found is not None
    return {
        "rows": str(found[0]),
        "content": str(found[1]),
        "numbers": str(int(found[2])) if doubles else "0",
    }


def copy_in(database: Database, table: str, options: str, content: bytes) -> None:
    statement = f"copy {table} from stdin {options}".encode()
    with database.connect() as connection, connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(content)


@pytest.mark.parametrize("format_", ["text", "parquet"])
def test_a_folder_may_be_named_with_a_slash(tmp_path: Path, format_: str) -> None:
    arguments = ["import", "--rows", "2500", "--format", format_]
    refused = run(*arguments, "--out", f"{tmp_path}/rows/")
    assert refused.returncode == 1
    assert "rows/' is a folder, but all rows are written to one file" in refused.stderr.decode()
    assert names(tmp_path) == []
    make(*arguments, "--step-rows", "1000", "--out", f"{tmp_path}/rows/")
    assert names(tmp_path) == ["rows"]
    assert len(names(tmp_path / "rows")) == 3


@pytest.mark.parametrize("format_", OPTIONS)
@pytest.mark.parametrize("name", TABLES)
def test_postgres_holds_what_was_generated(
    database: Database, tmp_path: Path, name: str, format_: str
) -> None:
    arguments, ddl, values, doubles = TABLES[name]
    out = tmp_path / "rows"
    make(*arguments, "--rows", str(ROWS), "--format", format_, "--out", str(out))
    database.execute(f"create table {ddl}")
    copy_in(database, ddl.split()[0], OPTIONS[format_], out.read_bytes())
    wanted = expected(arguments)
    for key, value in stored(database, ddl.split()[0], values, doubles).items():
        assert value == wanted[key], key


@pytest.mark.skipif(shutil.which("psql") is None, reason="there is no psql")
def test_psql_loads_the_steps_one_after_the_other(database: Database, tmp_path: Path) -> None:
    out = tmp_path / "steps"
    make(
        "import", "--rows", str(ROWS), "--step-rows", "1300", "--format", "csv", "--header", "--out", str(out)
    )
    assert names(out) == ["test-000001.csv", "test-000002.csv", "test-000003.csv"]
    database.execute(f"create table test {IMPORT}")
    lines = [(path.read_bytes().count(b"\r\n"), path) for path in sorted(out.iterdir())]
    assert [count for count, _ in lines] == [1301, 1301, 401]
    for _, path in lines:
        copy = f"\\copy test from '{path}' (format csv, header)"
        subprocess.run(["psql", "-X", "-v", "ON_ERROR_STOP=1", database.socket_url, "-c", copy], check=True)
    assert stored(database, "test", TABLES["import"][2], [])["content"] == expected(["import"])["content"]


@pytest.mark.parametrize("format_", [*OPTIONS, "parquet"])
def test_a_slice_is_the_same_whatever_the_threads_and_the_compression(tmp_path: Path, format_: str) -> None:
    common = ["import", "--rows", "7000", "--first", "12345", "--format", format_]
    for threads in ("1", "3"):
        make(*common, "--threads", threads, "--out", str(tmp_path / threads))
    assert (tmp_path / "1").read_bytes() == (tmp_path / "3").read_bytes()
    if format_ == "parquet":
        table = parquet.read_table(tmp_path / "1")
        assert (table.num_rows, table.num_columns) == (7000, 12)
        return
    make(*common, "--compress", "gzip", "--out", str(tmp_path / "gz"))
    assert gzip.decompress((tmp_path / "gz").read_bytes()) == (tmp_path / "1").read_bytes()
    assert run(*common, "--out", "-").stdout == (tmp_path / "1").read_bytes()


def test_parquet_holds_the_rows_in_steps(tmp_path: Path) -> None:
    out = tmp_path / "steps"
    make(
        "types",
        "--option",
        "table=union",
        "--rows",
        "500",
        "--step-rows",
        "200",
        "--format",
        "parquet",
        "--out",
        str(out),
    )
    rows = [parquet.read_table(path).column("id").to_pylist() for path in sorted(out.iterdir())]
    assert [len(ids) for ids in rows] == [200, 200, 100]
    assert [number for ids in rows for number in ids] == list(range(1, 501))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["imports", "--out", "x"], "there are import, types and flights"),
        (["types", "--option", "table=jsonb", "--out", "x"], "choose text, bigint"),
        (["import", "--out", "-", "--step-rows", "10"], "standard output cannot contain"),
        (["import", "--out", "-", "--format", "parquet"], "Parquet cannot be written to standard output"),
        (["import", "--out", "x", "--header"], "only CSV files have a header"),
        (["types", "--first", "2147483647", "--out", "x"], "its last row is number 2147483646"),
        (["import", "--out", "/nosuch/x"], "/nosuch/x"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert (done.returncode, names(tmp_path)) == (1, []), done.stderr.decode()
    assert words in " ".join(done.stderr.decode().split())


@pytest.mark.parametrize("format_", ["text", "parquet"])
def test_what_is_there_stays_unless_told(tmp_path: Path, format_: str) -> None:
    out = tmp_path / "rows"
    out.write_text("mine")
    arguments = ("import", "--rows", "10", "--format", format_, "--out", str(out))
    done = run(*arguments)
    assert done.returncode == 1
    assert "already exists" in done.stderr.decode()
    assert out.read_text() == "mine"
    make(*arguments, "--overwrite")
    assert out.stat().st_size > 1000
    assert names(tmp_path) == ["rows"]


@pytest.mark.parametrize("format_", ["text", "parquet"])
@pytest.mark.parametrize("step_rows", ["0", "1000000"])
def test_ctrl_c_leaves_nothing_incomplete(tmp_path: Path, format_: str, step_rows: str) -> None:
    arguments = ["import", "--rows", "900000000", "--format", format_, "--step-rows", step_rows]
    process = subprocess.Popen([LOADSTONE, "generate", *arguments, "--out", str(tmp_path / "rows")])
    part = tmp_path / "rows.part"  # a file, or a folder with one for each step
    wait_until(lambda: any(file.stat().st_size for file in (part, *part.glob("*")) if file.is_file()), "rows")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert names(tmp_path) == []


@ROOT
@pytest.mark.parametrize("format_", ["binary", "parquet"])
def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, format_: str) -> None:
    with small_disk(tmp_path / "disk", 16) as disk:
        done = run("import", "--rows", "3000000", "--format", format_, "--out", str(disk / "rows"))
        assert done.returncode == 2, done.stderr.decode()
        assert "No space left on device" in done.stderr.decode()
        assert not list(disk.glob("rows*"))
