"""What several tests share: places of their own, and one server for all that need only a database."""

from __future__ import annotations

import shutil
import signal
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from support.mariadb import certificate, mariadb
from support.sandbox import Database, Sandbox, make_base
from support.tsbs_sandbox import Place

from loadstone.engines.chdb.process import ChdbDatabase
from loadstone.engines.mariadb.server import PrivateMaria
from loadstone.engines.questdb.server import QuestDatabase
from loadstone.private_server import EmbeddedServer, ServerSpec, find_build
from loadstone.private_server.builds import cache_root
from loadstone.private_server.os_user import server_account
from loadstone.results import redact

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.mariadb import MariaDB

# A busy machine is no fault of what is tested; how fast things are is measured in bench/. The same examples
# come every time, so that what fails is what was changed; others come with --hypothesis-profile=explore.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("loadstone", settings.get_profile("explore"), derandomize=True)
settings.register_profile("quick", settings.get_profile("loadstone"), max_examples=20)
settings.load_profile("loadstone")
# What differs is shown where they compare, as in a test.
pytest.register_assert_rewrite("support.browser_pages", "support.stopped_drive")

_numbers = count(1)
_OF_SERVERS = {"builds", "postgres", "clickhouse_port", "mariadb_server"}
"""Fixtures that every fixture with a server or the whole command uses."""
_STARTS = (
    (EmbeddedServer, "start"),
    (QuestDatabase, "_popen"),
    (PrivateMaria, "_install"),
    (ChdbDatabase, "_start"),
)
"""What starts the process of a server."""
_FOLDERS_OF_SERVERS = {"e2e", "private_server"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="leave out what needs a server or a browser, or is slow"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("quick"):
        settings.load_profile("quick")
        # Whichever way a test comes to its server.
        for engine, start in _STARTS:
            setattr(engine, start, _skip)


def _skip(*_: object) -> None:
    pytest.skip("needs a server")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import tests that all need a server."""
    return (config.getoption("quick") and collection_path.name in _FOLDERS_OF_SERVERS) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("quick"):
        return
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (left_out if _is_long(item) else kept).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def _is_long(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    return bool(fixtures & _OF_SERVERS) or item.get_closest_marker("slow") is not None


@pytest.fixture(autouse=True, scope="session")
def signals_arrive() -> None:
    """Signals that whoever started the tests ignores (`nohup`, a shell's `&`) end what they must end."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """Secrets that one test makes known are not hidden in another."""
    yield
    redact.forget()


@pytest.fixture(scope="session")
def builds() -> Path:
    """The folder of PostgreSQL builds that this user's runs share, with the newest in it."""
    account = server_account()
    find_build("pg", account)
    return cache_root(account) / "postgresql"


@pytest.fixture
def sandbox(builds: Path) -> Iterator[Sandbox]:
    """A place for one test; it fails when the test leaves a process or a server's folder."""
    place = Sandbox(make_base(), builds)
    yield place
    place.close()


@pytest.fixture
def own_registry(builds: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A registry of private servers of the test's own: what it kills is removed by nobody else's start."""
    base = make_base()
    (base / "loadstone").mkdir()
    (base / "loadstone" / "postgresql").symlink_to(builds)
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    yield
    shutil.rmtree(base)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A folder to generate data in."""
    return Place(tmp_path)


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedServer]:
    """One PostgreSQL for all tests that need no more than a database."""
    with EmbeddedServer(ServerSpec("pg", clients=30)) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDB]:
    """One MariaDB with TLS for all tests that need no more than databases of their own in it."""
    with certificate() as options, mariadb(*options) as server:
        yield server


@pytest.fixture
def database(postgres: EmbeddedServer) -> Iterator[Database]:
    """A database of the test's own, empty."""
    name = f"test_{next(_numbers)}"
    admin = Database(postgres, postgres.connection.database)
    admin.execute(f"create database {name}")
    yield Database(postgres, name)
    admin.execute(f"drop database {name} with (force)")
