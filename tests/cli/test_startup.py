"""Starting is quick: a command imports what it needs, and nothing before passwords are hidden."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database

pytestmark = pytest.mark.slow  # many programs are started

HEAVY = (
    "numpy",
    "scipy",
    "pyarrow",
    "pandas",
    "psycopg",
    "jinja2",
    "rich",
    "duckdb",
    "vl_convert",
    "psutil",
    "requests",
    "prometheus_client",
    "http.server",
    "dask",
    "distributed",
    "cloudpickle",
)
PLANNING = {"numpy", "pyarrow", "cloudpickle", "psycopg", "psutil", "jinja2"}
"""What a plan is made with: templates, the engines, and a look at the first rows (Arrow has cloudpickle)."""
OBSERVING = ("loadstone.watch", "loadstone.live.figures", "loadstone.live.openmetrics", "loadstone.live.page")
"""What `--watch`, `--live` and `--openmetrics` need, and nothing else."""
CALLED = """
import atexit, sys
heavy = sys.argv.pop(1).split(",")
atexit.register(lambda: print("imported:", *[name for name in heavy if name in sys.modules], file=sys.stderr))
from loadstone.cli import main
main()
"""
DATA: tuple[str, ...] = (
    "--use-case",
    "cpu-only",
    "--scale",
    "1",
    "--format",
    "timescaledb",
    "--log-interval",
    "10s",
)
DATA += ("--timestamp-start", "2016-01-01T00:00:00Z", "--timestamp-end", "2016-01-01T00:01:00Z", "--file")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("--help",),
        ("run", "--help"),
        ("scenarios",),
        ("ab", "--help"),
        ("compare", "--help"),
        ("crash", "--help"),
        ("export", "--help"),
        ("history", "--help"),
        ("history", "add", "--help"),
        ("slo", "--help"),
        ("pgbench", "--version"),
        ("pgbench", "--help"),
        ("sysbench", "--version"),
        ("sysbench", "--help"),
        ("tsbs", "generate-data", *DATA),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_command_loads_no_library_that_it_does_not_need(arguments: tuple[str, ...], tmp_path: Path) -> None:
    if arguments[-1] == "--file":
        arguments = (*arguments, str(tmp_path / "data"))
    command = [sys.executable, "-c", CALLED, ",".join(HEAVY), *arguments]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "imported:"


def test_a_plan_of_a_billion_rows_loads_nothing_that_measures_or_reports() -> None:
    arguments = ("plan", "index-import", "--set", "rows=1000000000", "--set", "workers=8")
    heavy = sorted({*HEAVY, "loadstone.report", "loadstone.summary.document"} - PLANNING)
    command = [sys.executable, "-c", CALLED, ",".join(heavy), *arguments]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    assert '"rows": 1000000000' in done.stdout
    assert done.stderr.splitlines()[-1] == "imported:"


@pytest.mark.parametrize(
    "arguments", [("-i", "-I", "dt"), ("-n", "-t", "1", "-f", "one.sql"), ("-t", "1", "-f", "one.sql")]
)
def test_pgbench_with_a_server_loads_no_library_of_reports(
    database: Database, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "one.sql").write_text("select 1;\n")
    libpq = {"psycopg"} if "-i" in arguments else set()
    heavy = ",".join(sorted({*HEAVY, *OBSERVING, "loadstone.report", "loadstone.summary.document"} - libpq))
    command = [sys.executable, "-c", CALLED, heavy, "pgbench", *arguments, database.socket_url]
    done = subprocess.run(command, capture_output=True, check=False, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "imported:"


@pytest.mark.parametrize(
    "arguments",
    [
        ("sysbench", "own.lua", "--events=1", "run"),
        ("tsbs", "load", "--do-load=false", "--use-case=cpu-only", "--seed=1", "--limit=10"),
        ("tsbs", "run-queries", "--file=nowhere", "--target=postgres://nobody@127.0.0.1:1/x"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_what_follows_a_drive_is_loaded_where_it_is_asked_for(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "own.lua").write_text("function event() end\n")
    command = [sys.executable, "-c", CALLED, ",".join(OBSERVING), *arguments]
    done = subprocess.run(command, capture_output=True, check=False, text=True, cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == "imported:"


def test_passwords_are_hidden_before_anything_but_the_standard_library_is_loaded() -> None:
    ask = (
        "import sys; from loadstone.cli import main; from loadstone.cli import process_title"
        "; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, check=True, text=True)
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    own = {name for name in done.stdout.split() if name.startswith("loadstone.")}
    known = sys.stdlib_module_names | {"loadstone", "__main__", "sitecustomize", "usercustomize"}
    assert {top for top in tops if not top.startswith(("_", "__"))} <= known
    assert own <= {
        "loadstone.cli",
        "loadstone.cli.process_title",
        "loadstone.results",
        "loadstone.results.redact",
        "loadstone.results.spellings",
    }


def test_queries_for_postgresql_need_no_other_engine() -> None:
    """Neither its target nor the dialect of its queries imports a client library."""
    text = (
        "import sys\n"
        "from loadstone.engines import engine\n"
        "from loadstone.target import parse_target\n"
        "from loadstone.workload.tsbs.queries import QuerySpec, dialect_of, generate, translate\n"
        "parse_target('host=localhost dbname=x user=y')\n"
        "parse_target('postgresql://y@localhost/x')\n"
        "spec = QuerySpec('iot', 'last-loc', 10, 1451606400000000000, 1451692800000000000, 1, 1)\n"
        "(query,) = generate(spec)\n"
        "assert translate(query, dialect_of(engine('postgres'))).reason is None\n"
        "print(*{'duckdb', 'pyarrow', 'chdb'} & sys.modules.keys())\n"
    )
    done = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == ""
