"""Load hosts by ssh, on a server of the test's own on loopback."""

from __future__ import annotations

import getpass
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.sandbox import COMMAND, wait_until
from support.sshd import Sshd, sshd

from loadstone import model
from loadstone.errors import LoadstoneError
from loadstone.hosts.fleet import open_fleet
from loadstone.hosts.places import parse_hosts
from loadstone.hosts.ssh import COMMAND_VARIABLE, SshHost, connect_options, parse_ssh
from loadstone.workload.calibrate import null_server
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.sandbox import Database

pytestmark = [
    pytest.mark.slow,  # many programs are started
    pytest.mark.filterwarnings("default"),  # what Dask and its libraries warn of is not ours
]
OURS = ("distributed.cli.dask_spec", "loadstone.hosts.agent")


def test_hosts_by_ssh_are_named_as_ssh_names_them() -> None:
    python = SshHost("x").python
    assert parse_ssh("ssh://h1") == (SshHost("h1", None, None, python),)
    assert parse_ssh("ssh://me@h1,me@h2:2222/opt/venv/bin/python, h3") == (
        SshHost("h1", "me"),
        SshHost("h2", "me", 2222, "/opt/venv/bin/python"),
        SshHost("h3"),
    )
    assert parse_ssh("ssh://me@[::1]:22")[0] == SshHost("::1", "me", 22)


def test_only_what_is_said_goes_beyond_the_users_own_configuration() -> None:
    usual = {"connect_timeout", "keepalive_interval"}
    assert set(connect_options(SshHost("h"), {})) == usual
    given = connect_options(SshHost("h", "me", 5), {COMMAND_VARIABLE: "ssh -v -F '/a b/config'"})
    assert {name: given[name] for name in set(given) - usual} == {
        "username": "me", "port": 5, "config": ["/a b/config"],
    }  # fmt: skip


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    before = credentials()
    with sshd(tmp_path) as server:
        server.known.touch()
        monkeypatch.setenv(COMMAND_VARIABLE, server.command)
        yield server
        wait_until(lambda: not server.processes(*OURS), "processes on the load host end with the command")
    wait_until(lambda: credentials() <= before, "credentials are removed")


def credentials() -> set[Path]:
    """Return what this test has left of them, and others that run at the same time have not yet removed."""
    return set(Path("/tmp").glob("loadstone-dask-*"))


def address(server: Sshd) -> str:
    return f"ssh://{getpass.getuser()}@127.0.0.1:{server.port}"


def test_a_drive_over_ssh_is_that_of_one_host(server: Sshd) -> None:
    server.known.write_text(server.host_key)
    script = model.Script("one", "\\set n random(1, 9)\nselect :n;\n")
    drive = model.Drive(scripts=(script,), mode="simple", clients=3, seed=5, transactions_per_client=7)
    before = credentials()
    with null_server(8) as (_, connection):
        with open_fleet(parse_hosts(address(server))) as fleet:
            wait_until(lambda: credentials() <= before, "credentials are removed when they were read")
            assert all(line.address.startswith("tls://127.0.0.1") for line in fleet._lines.values())
            account = fleet.perform(drive_document(drive, connection, None), None)
        alone = perform(drive_document(drive, connection, None), None)
    assert account["counts"] == alone["counts"]
    assert account["counts"]["done"] == 21


def test_unknown_hosts_wrong_logins_and_hosts_without_loadstone_are_refused(
    server: Sshd, tmp_path: Path
) -> None:
    def refused(text: str, message: str) -> str:
        with pytest.raises(LoadstoneError, match=message) as caught, open_fleet(parse_hosts(text)):
            pass
        assert caught.value.exit_code == 1
        return caught.value.hint

    assert "accept it" in refused(address(server), "its host key is unknown")
    other = server.host_key.split()
    server.known.write_text(f"{other[0]} {other[1]} {(tmp_path / 'user.pub').read_text().split()[1]}\n")
    assert "compare the key" in refused(address(server), "its host key is unknown")
    server.known.write_text(server.host_key)
    refused(f"{address(server)}/bin/false", "/bin/false cannot load Loadstone and Dask")
    server.known.write_text(server.host_key + server.host_key.replace("127.0.0.1", "localhost"))
    twice = f"{address(server)},{getpass.getuser()}@localhost:{server.port}"
    refused(
        twice, "root@127.0.0.1 and root@localhost are the same machine".replace("root", getpass.getuser())
    )
    (tmp_path / "authorized").write_text("")
    assert f"ssh -o BatchMode=yes -p {server.port}" in refused(address(server), "refuses the login")
    refused("ssh://127.0.0.1:1", "cannot be reached by ssh")


def test_all_on_the_hosts_ends_when_the_command_is_killed(
    server: Sshd, database: Database, tmp_path: Path
) -> None:
    server.known.write_text(server.host_key)
    (tmp_path / "one.sql").write_text("select 1;\n")
    command = [str(COMMAND), "pgbench", "-n", "-f", str(tmp_path / "one.sql"), "-T", "600", "-P", "1"]
    command += ["--hosts", address(server), database.url]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any(line.startswith("progress: ") for line in process.stderr)
        assert len(server.processes(*OURS)) == 3  # scheduler, worker, agent
        process.kill()
    wait_until(lambda: not server.processes(*OURS), "they end with the connection")
