"""The nouns that several stages share, as frozen values without behaviour of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Value = bool | int | float | str
"""The value of a scenario's parameter."""

PhaseKind = Literal["sql", "drive", "size", "check"]
QueryMode = Literal["simple", "extended", "prepared"]
PaceKind = Literal["closed", "fixed", "poisson"]
InOut = Literal["auto", "io_uring", "epoll"]
"""Which interface of the kernel carries the driver's bytes; `auto` is io_uring where it is allowed."""


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach one PostgreSQL-protocol server: libpq's parameters, resolved.

    `host` beginning with "/" is the folder of a unix socket. The password never shows in `repr`.
    """

    host: str
    port: int
    user: str
    database: str
    password: str | None = field(default=None, repr=False)
    sslmode: str = "prefer"
    sslrootcert: str | None = None
    sslcert: str | None = None
    sslkey: str | None = None
    channel_binding: str = "prefer"
    connect_timeout_s: float = 10.0
    application_name: str = "loadstone"
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Further start-up parameters (`options`, `search_path`, …), sent as they are."""


@dataclass(frozen=True, slots=True)
class Published:
    """One figure of the published test, to be shown beside ours."""

    metric: str
    value: float
    unit: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a published test comes from, and on what it ran."""

    title: str
    author: str
    year: int
    hardware: str
    cores: int
    url: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """One pgbench-language script with its weight in the mix."""

    name: str
    text: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Pace:
    """When transactions are to start; `rate_per_s` is the total over all clients."""

    kind: PaceKind = "closed"
    rate_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class RowCheck:
    """After a drive phase: `count_sql` (one integer) must have grown by rows_per_transaction x done."""

    count_sql: str
    rows_per_transaction: int


@dataclass(frozen=True, slots=True)
class Drive:
    """All that the driver needs to know of a phase, except where to connect."""

    scripts: tuple[Script, ...]
    mode: QueryMode = "prepared"
    clients: int = 1
    threads: int | None = None
    duration_s: float | None = None
    transactions_per_client: int | None = None
    warmup_s: float = 0.0
    pace: Pace = Pace()
    latency_limit_ms: float | None = None
    timeout_s: float = 60.0
    reconnect: bool = False
    seed: int = 1
    variables: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedPhase:
    """One phase on one target, ready to run: every template filled in, nothing left to decide."""

    key: str
    """Unique in the plan and usable as a folder name: phase id, variant, repeat."""
    id: str
    scenario: str
    kind: PhaseKind
    title: str
    why: str = ""
    variant: Mapping[str, Value] = field(default_factory=dict)
    repeat: int = 1
    setup: tuple[str, ...] = ()
    """SQL statements before the phase (for kind `sql`: the phase itself), one statement each."""
    drive: Drive | None = None
    row_check: RowCheck | None = None
    checks: tuple[tuple[str, str, str], ...] = ()
    """(name, SQL giving one value, expected value as text): verified after the phase."""
    headline: str = "tps"
    rows_per_transaction: int | None = None
    published: tuple[Published, ...] = ()
    optional: bool = False
    """A failing setup skips the phase, with the server's words as the reason, instead of failing the run."""
    setup_estimate_s: float = 0.0
    """About how long `setup` takes, in the scenario author's judgement; 0 when not worth counting."""
    skip: str | None = None
    """Why this phase cannot run on this target, in words; None when it can."""


@dataclass(frozen=True, slots=True)
class PlannedTarget:
    """One target with its phases in order."""

    id: str
    engine: str
    url: str
    """Without password."""
    phases: tuple[PlannedPhase, ...]


@dataclass(frozen=True, slots=True)
class PlannedScenario:
    """What the report must say of a scenario that is run."""

    id: str
    version: str
    title: str
    why: str
    source: Source | None
    parameters: Mapping[str, Value]
    folder: Path


@dataclass(frozen=True, slots=True)
class Plan:
    """Scenario x engine: pure data, written to plan.json before anything is touched."""

    size: str
    seed: int
    repeats: int
    scenarios: tuple[PlannedScenario, ...]
    targets: tuple[PlannedTarget, ...]
