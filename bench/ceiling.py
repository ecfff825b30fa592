"""Our own ceiling: the driver against the built-in server, and what a clock reading and a sample cost."""

from __future__ import annotations

import statistics

from loadstone import _core
from loadstone.workload.calibrate import calibrate_for

CLIENTS = (1, 8, 32, 128, 512)


def run(rounds: int) -> None:
    """Print the table."""
    print("### Against a server that answers at once (both sides on this machine)\n")
    print(f"{rounds} rounds of 1 s, medians, prepared\n")
    print("| clients | transactions/s | our CPU µs/tx | server's CPU µs/tx | loop lag p99 µs |")
    print("|---:|---:|---:|---:|---:|")
    wanted = [("prepared", clients) for clients in CLIENTS]
    results = [calibrate_for(wanted)["results"] for _ in range(rounds)]  # type: ignore[arg-type]
    for rows in zip(*results, strict=True):
        tps, ours, theirs, lag = (
            statistics.median(row[name] for row in rows)
            for name in ("tps", "cpu_ns_per_transaction", "server_cpu_ns_per_transaction", "loop_lag_p99_ns")
        )
        cells = (f"{tps:,.0f}", f"{ours / 1e3:.2f}", f"{theirs / 1e3:.2f}", f"{lag / 1e3:.1f}")
        print(f"| {rows[0]['clients']} | {' | '.join(cells)} |")
    clock = statistics.median(_core.clock_cost_ns() for _ in range(rounds))
    record = statistics.median(_core.record_cost_ns() for _ in range(rounds))
    print(f"\nreading the clock: {clock:.1f} ns; recording one sample: {record:.1f} ns (aim: under 50)\n")
