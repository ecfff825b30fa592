"""Texts of exporters, also such as no exporter writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.exposition_server import node_text

from loadstone.errors import LoadstoneError
from loadstone.watch.exposition import KEPT_BYTES_MAX, LINE_BYTES_MAX, OPENMETRICS, metrics_of, reading_of

POSTGRES = """# TYPE pg_stat_database_xact_commit counter
pg_stat_database_xact_commit{datid="5",datname="postgres"} 100
pg_stat_database_xact_commit{datid="6",datname="app"} 23
pg_stat_activity_count{datname="app",state="active"} 3
pg_stat_activity_count{datname="app",state="idle"} 9
pg_up %d
"""


def test_node_exporter_says_what_the_local_sampler_says() -> None:
    reading = reading_of(metrics_of(node_text(user=50.5).encode()))
    assert reading.host is not None
    assert reading.host["cpu_s"]["user"] == 50.5
    assert reading.host["cpu_s"]["steal"] == 0
    assert reading.host["cores"] == 1
    assert reading.host["memory_available_bytes"] == 400
    assert reading.host["disk"] == {"read_bytes": 4096}, "what is stacked on a disk counts once"
    assert reading.host["network"] == {"rx_bytes": 7}, "neither loopback nor virtual cards count"
    assert reading.time_ns == 2 * 10**18
    assert reading.about == "node_exporter 1.5.0 on db1 (6.1)"
    assert reading.counters is None


def test_a_postgres_exporter_is_narrowed_to_the_database() -> None:
    metrics = metrics_of((POSTGRES % 1).encode())
    assert reading_of(metrics, "app").counters == {"xact_commit": 23}
    assert reading_of(metrics).counters == {"xact_commit": 123}
    assert reading_of(metrics).gauges == {"active": 3}
    assert reading_of(metrics).host is None


def test_an_exporter_without_its_server_is_refused() -> None:
    with pytest.raises(LoadstoneError, match="pg_up is 0"):
        reading_of(metrics_of((POSTGRES % 0).encode()))


def test_openmetrics_is_read_as_well() -> None:
    text = b'# TYPE node_cpu_seconds counter\nnode_cpu_seconds_total{cpu="0",mode="user"} 4.0\n# EOF\n'
    for whole in (True, False):
        reading = reading_of(metrics_of(text, f"{OPENMETRICS}; version=1.0.0", whole=whole))
        assert reading.host is not None
        assert reading.host["cpu_s"]["user"] == 4


@pytest.mark.parametrize(
    "text", [b"", b"<html><body>welcome</body></html>", b"up 1\n", b"# just a comment\n"]
)
def test_what_no_exporter_of_ours_serves_is_refused(text: bytes) -> None:
    with pytest.raises(LoadstoneError):
        reading_of(metrics_of(text, whole=True))


def test_a_line_without_end_is_refused() -> None:
    with pytest.raises(LoadstoneError, match="a line has more than"):
        metrics_of(b"node_load1" + b" " * LINE_BYTES_MAX + b"1\n")


def test_more_lines_than_a_machine_has_are_refused() -> None:
    line = b'node_cpu_seconds_total{cpu="0",mode="idle"} 1\n'
    with pytest.raises(LoadstoneError, match="not metrics of one machine"):
        metrics_of(line * (KEPT_BYTES_MAX // len(line) + 2))


def test_figures_that_are_none_are_left_out() -> None:
    text = b'node_cpu_seconds_total{cpu="0",mode="user"} NaN\nnode_load1 +Inf\npg_up 1\n'
    assert list(metrics_of(text)) == ["pg_up"]


_NAMES = st.sampled_from(["node_cpu_seconds_total", "node_load1", "pg_up", "node_disk_read_bytes_total", "x"])
_LINES = st.one_of(
    st.binary(max_size=60),
    st.builds(lambda name, rest: name.encode() + rest, _NAMES, st.binary(max_size=40)),
    st.builds(
        lambda name, label, value: f'{name}{{mode="{label}",device="{label}"}} {value}'.encode(),
        _NAMES,
        st.text(max_size=8),
        st.one_of(st.floats(), st.text(max_size=6)),
    ),
)


@given(st.lists(_LINES, max_size=12), st.sampled_from(["text/plain", OPENMETRICS]), st.booleans())
def test_any_bytes_are_read_or_refused(lines: list[bytes], content_type: str, whole: bool) -> None:  # noqa: FBT001
    try:
        reading = reading_of(metrics_of(b"\n".join(lines), content_type, whole=whole))
    except LoadstoneError:
        return
    for value in (reading.host or {}).get("cpu_s", {}).values():
        assert abs(value) < 1e20
