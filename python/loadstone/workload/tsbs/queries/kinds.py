"""The kinds of query that TSBS knows: what each draws, its text, and what people call it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from loadstone.errors import LoadstoneError

MINUTE_NS = 60 * 10**9
HOUR_NS = 60 * MINUTE_NS

CPU_FIELDS = (
    "usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait", "usage_irq", "usage_softirq",
    "usage_steal", "usage_guest", "usage_guest_nice",
)  # fmt: skip

LABEL_PREFIX = "TimescaleDB "
"""TSBS's labels begin with the database that the text was made for; ours are for all the same."""

Family = Literal["devops", "iot"]
Draw = Literal["window", "devices", "fleet"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of query."""

    name: str
    family: Family
    text: str
    """Name of the file in `texts/`."""
    table: str
    """What TSBS calls its hypertable, though some kinds read another."""
    label: str
    """TSBS's human label, without its prefix."""
    draws: tuple[Draw, ...] = ()
    """What is drawn, in the order of the random stream."""
    window_ns: int = 0
    devices: int = 0
    fields: int = 0
    """How many of the CPU's fields are aggregated."""
    aggregate: str = "max"
    periods: int = 0
    """More periods of ten minutes than so many make a long session."""
    says: Literal["", "start", "end"] = ""
    """Which end of the window TSBS's description names."""
    remark: str = ""
    """What TSBS's description says beside the label."""

    @property
    def human_label(self) -> str:
        """TSBS's label: by it, its reports tell queries apart."""
        return LABEL_PREFIX + self.label


def _single(fields: int, hosts: int, hours: int) -> Kind:
    return Kind(
        name=f"single-groupby-{fields}-{hosts}-{hours}",
        family="devops",
        text="single-groupby",
        table="cpu",
        label=f"{fields} cpu metric(s), random {hosts:4d} hosts, random {hours}h0m0s by 1m",
        draws=("window", "devices"),
        window_ns=hours * HOUR_NS,
        devices=hosts,
        fields=fields,
        says="start",
    )


def _max_all(name: str, hosts: int, hours: int) -> Kind:
    return Kind(
        name=f"cpu-max-all-{name}",
        family="devops",
        text="cpu-max-all",
        table="cpu",
        # The label says 8 hours whatever the window is.
        label=f"max of all CPU metrics, random {hosts:4d} hosts, random 8h0m0s by 1h",
        draws=("window", "devices"),
        window_ns=hours * HOUR_NS,
        devices=hosts,
        fields=len(CPU_FIELDS),
        says="start",
    )


def _double(name: str, fields: int) -> Kind:
    return Kind(
        name=f"double-groupby-{name}",
        family="devops",
        text="double-groupby",
        table="cpu",
        label=f"mean of {fields} metrics, all hosts, random 12h0m0s by 1h",
        draws=("window",),
        window_ns=12 * HOUR_NS,
        fields=fields,
        aggregate="avg",
        says="start",
    )


def _high(name: str, hosts: int) -> Kind:
    return Kind(
        name=f"high-cpu-{name}",
        family="devops",
        text="high-cpu",
        table="cpu",
        label=f"CPU over threshold, {f'{hosts} host(s)' if hosts else 'all hosts'}",
        draws=("devices", "window") if hosts else ("window",),
        window_ns=12 * HOUR_NS,
        devices=hosts,
        says="start",
    )


def _iot(name: str, table: str, label: str, **more: object) -> Kind:
    given: dict[str, object] = {"text": name, **more}
    return Kind(name=name, family="iot", table=table, label=label, **given)  # type: ignore[arg-type]


_DEVOPS = (
    _single(1, 1, 1),
    _single(1, 1, 12),
    _single(1, 8, 1),
    _single(5, 1, 1),
    _single(5, 1, 12),
    _single(5, 8, 1),
    _max_all("1", 1, 8),
    _max_all("8", 8, 8),
    _max_all("32-24", 32, 24),
    _double("1", 1),
    _double("5", 5),
    _double("all", len(CPU_FIELDS)),
    Kind(
        name="groupby-orderby-limit",
        family="devops",
        text="groupby-orderby-limit",
        table="cpu",
        label="max cpu over last 5 min-intervals (random end)",
        draws=("window",),
        window_ns=HOUR_NS,
        says="end",
    ),
    _high("all", 0),
    _high("1", 1),
    Kind(name="lastpoint", family="devops", text="lastpoint", table="cpu", label="last row per host"),
)

_IOT = (
    _iot("last-loc", "readings", "last location per truck", draws=("fleet",)),
    _iot(
        "single-last-loc",
        "readings",
        "last location by specific truck",
        draws=("devices",),
        devices=1,
        remark="random    1 trucks",
    ),
    _iot("low-fuel", "diagnostics", "trucks with low fuel", draws=("fleet",), remark="under 10 percent"),
    _iot("high-load", "diagnostics", "trucks with high load", draws=("fleet",), remark="over 90 percent"),
    _iot(
        "stationary-trucks",
        "readings",
        "stationary trucks",
        draws=("window", "fleet"),
        window_ns=10 * MINUTE_NS,
        remark="with low avg velocity in last 10 minutes",
    ),
    _iot(
        "long-driving-sessions",
        "readings",
        "trucks with longer driving sessions",
        text="long-sessions",
        draws=("window", "fleet"),
        window_ns=4 * HOUR_NS,
        periods=22,
        remark="stopped less than 20 mins in 4 hour period",
    ),
    _iot(
        "long-daily-sessions",
        "readings",
        "trucks with longer daily sessions",
        text="long-sessions",
        draws=("window", "fleet"),
        window_ns=24 * HOUR_NS,
        periods=60,
        remark="drove more than 10 hours in the last 24 hours",
    ),
    _iot("avg-vs-projected-fuel-consumption", "readings", "average vs projected fuel consumption per fleet"),
    _iot("avg-daily-driving-duration", "readings", "average driver driving duration per day"),
    _iot(
        "avg-daily-driving-session",
        "readings",
        "average driver driving session without stopping per day",
    ),
    _iot("avg-load", "readings", "average load per truck model per fleet"),
    _iot("daily-activity", "readings", "daily truck activity per fleet per model"),
    _iot("breakdown-frequency", "diagnostics", "truck breakdown frequency per model"),
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in (*_DEVOPS, *_IOT)}

FAMILIES: dict[str, Family] = {"devops": "devops", "cpu-only": "devops", "iot": "iot"}
"""Which kinds go with which use case; TSBS has none for its other use cases."""


def kinds_of(use_case: str) -> tuple[str, ...]:
    """Return the names of the kinds that can be asked of a use case's data; none for some."""
    family = FAMILIES.get(use_case)
    return tuple(name for name, kind in KINDS.items() if kind.family == family)


def kind_named(name: str, use_case: str) -> Kind:
    """Return a kind. Raises LoadstoneError that lists what there is."""
    names = kinds_of(use_case)
    if not names:
        raise LoadstoneError(
            f"there are no queries for the use case '{use_case}'",
            f"Use cases with queries: {', '.join(FAMILIES)}.",
        )
    if name not in names:
        raise LoadstoneError(
            f"invalid query type for use case '{use_case}': '{name}'", f"There are: {', '.join(names)}."
        )
    return KINDS[name]
