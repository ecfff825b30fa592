"""`loadstone pgbench --report`: the run folder and the page of `loadstone run`, of a pgbench command line."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from support.sandbox import COMMAND, Database, wait_until

from loadstone.cli.group import loadstone as command
from loadstone.errors import LoadstoneError
from loadstone.personalities import pgbench
from loadstone.personalities.pgbench.libpq_control import dial
from loadstone.results.folder import RunFolder

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.personalities.pgbench.server import Address


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "one.sql").write_text("select 1;\n")
    (tmp_path / "fail.sql").write_text("select 1 / (1 - :client_id);\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ours(*arguments: str) -> tuple[int, str, str]:
    out: list[str] = []
    err: list[str] = []
    code = pgbench.main(arguments, out.append, err.append)
    return code, "".join(out), "".join(err)


def run_json(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def only_phase(folder: Path) -> dict[str, Any]:
    (phase,) = json.loads((folder / "summary.json").read_text())["phases"]
    assert isinstance(phase, dict)
    return phase


def test_a_command_line_leaves_a_run_folder_and_a_report(database: Database, place: Path) -> None:
    code, out, err = ours("-n", "-f", "one.sql", "-c", "2", "-t", "40", "--report", "run", database.url)
    assert (code, err) == (0, "pgbench: report: run/report.html\n")
    assert out.startswith("pgbench (loadstone")
    assert "actually processed: 80/80" in out
    folder = place / "run"
    assert run_json(folder)["state"] == "complete"
    assert run_json(folder)["command"][:3] == ["loadstone", "pgbench", "-n"]
    phase = only_phase(folder)
    assert (phase["title"], phase["state"], phase["drive"]["counts"]["done"]) == ("one.sql", "complete", 80)
    (target,) = RunFolder.open(folder).targets()
    facts = target.read_target()
    assert facts
    assert facts.settings
    assert facts.durability
    samples = list(target.read_monitor())
    assert [sample for sample in samples if sample.engine]
    assert [sample for sample in samples if sample.host]
    page = (folder / "report.html").read_text()
    assert "one.sql" in page
    assert "size None" not in page
    assert [
        p for p in folder.rglob("*") if p.is_file() and database.password.encode() in p.read_bytes()
    ] == []


def test_the_report_is_written_again_as_that_of_any_run(database: Database, place: Path) -> None:
    assert ours("-n", "-f", "one.sql", "--report=run", database.socket_url)[0] == 0
    before = (place / "run" / "report.html").read_bytes()
    shown = CliRunner().invoke(command, ["report", "run"])
    assert shown.exit_code == 0, shown.output
    assert (place / "run" / "report.html").read_bytes() == before


def test_a_folder_in_use_is_refused_before_there_is_a_connection(place: Path) -> None:
    code, out, err = ours("-n", "-f", "one.sql", "--report", ".", "-h", "/nowhere")
    assert (code, out) == (1, "")
    assert "is not empty" in err
    assert "new folder with --report" in err
    assert sorted(path.name for path in place.iterdir()) == ["fail.sql", "one.sql"]


@pytest.mark.parametrize("arguments", [("-h", "/nowhere"), ("-S",)])
def test_where_nothing_was_measured_no_folder_is_left(
    database: Database, place: Path, arguments: tuple[str, ...]
) -> None:
    name = () if "-h" in arguments else (database.socket_url,)
    code, out, _ = ours("-n", "-f", "one.sql", "--report", "new/run", *arguments, *name)
    assert (code, out) == (1, "")
    assert not (place / "new").exists()


def test_clients_that_cannot_connect_leave_no_folder(database: Database, place: Path) -> None:
    code, _, err = ours("-n", "-f", "one.sql", "-c", "500", "--report", "run", database.socket_url)
    assert code == 1
    assert "error: " in err
    assert not (place / "run").exists()


def test_a_run_that_was_aborted_is_reported_as_failed(database: Database, place: Path) -> None:
    code, out, err = ours("-n", "-f", "fail.sql", "-c", "2", "-t", "5", "--report=run", database.socket_url)
    assert code == 2
    assert "actually processed: 5/10" in out
    assert err.endswith("pgbench: report: run/report.html\n")
    assert (run_json(place / "run")["state"], run_json(place / "run")["exit_code"]) == ("failed", 2)
    assert "division by zero" in run_json(place / "run")["reason"]
    assert only_phase(place / "run")["drive"]["counts"]["failed"] == 1


def test_a_signal_leaves_the_report_of_what_was_measured(database: Database, place: Path) -> None:
    with subprocess.Popen(
        [
            *("env", "--default-signal=INT", COMMAND, "pgbench", "-n", "-f", "one.sql", "-T", "600"),
            *("--report", "run", database.socket_url),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        pattern = "run/targets/*/phases/*/series.jsonl"
        wait_until(lambda: any(p.stat().st_size for p in place.glob(pattern)), "the first interval")
        running.send_signal(signal.SIGINT)
        out, err = running.communicate()
    assert running.returncode == 130, err
    assert "tps = " in out
    assert err.endswith("pgbench: report: run/report.html\n")
    assert (run_json(place / "run")["state"], run_json(place / "run")["exit_code"]) == ("interrupted", 130)
    phase = only_phase(place / "run")
    assert phase["state"] == "interrupted"
    assert phase["drive"]["counts"]["done"] > 0


def test_a_server_that_shows_nothing_of_itself_costs_only_that_part(
    database: Database, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(address: Address, needs: Any) -> Any:
        if address.connection.application_name.startswith("loadstone"):
            raise LoadstoneError("no more connections", "Close some.")
        return dial(address, needs)

    monkeypatch.setattr("loadstone.personalities.pgbench.libpq_control.dial", refuse)
    monkeypatch.setenv("PGAPPNAME", "mine")
    assert ours("-n", "-f", "one.sql", "--report=run", database.socket_url)[0] == 0
    folder = RunFolder.open(place / "run")
    told = [event.message for event in folder.read_events()]
    assert "settings and sizes of the server are not recorded: no more connections" in told
    assert only_phase(place / "run")["drive"]["counts"]["done"] == 10
    (target,) = folder.targets()
    assert [sample for sample in target.read_monitor() if sample.host]
