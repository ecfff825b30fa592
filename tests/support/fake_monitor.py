"""A machine whose counters grow as those of a busy two-core run would."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np


def write_lines(path: Path, documents: Sequence[dict[str, Any] | msgspec.Struct]) -> None:
    lines = [json.dumps(msgspec.to_builtins(line)) + "\n" for line in documents]
    path.write_text("".join(lines), encoding="utf-8")


class Monitor:
    """One sample a second with growing counters, as the machine of a busy two-core run would show."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.samples: list[dict[str, Any]] = []
        self.cpu = dict.fromkeys(
            ("user", "nice", "system", "iowait", "irq", "softirq", "steal", "idle"), 100.0
        )
        self.server = self.client = 5.0
        self.wal = 10**9
        self.checkpoints = 3
        self.disk = {
            "read_ops": 1000,
            "write_ops": 5000,
            "read_bytes": 10**8,
            "write_bytes": 10**9,
            "busy_s": 10.0,
        }

    def second(self, t_ns: int, load: float, steal: float = 0.0) -> None:
        """`load` 0..1: how busy the phase keeps the machine."""
        noise = float(self.rng.normal(1, 0.05))
        server, client, other = 1.25 * load * noise, 0.35 * load * noise, 0.03
        self.server += server
        self.client += client
        self.cpu["user"] += (server + client) * 0.7 + other
        self.cpu["system"] += (server + client) * 0.3
        self.cpu["iowait"] += 0.1 * load
        self.cpu["steal"] += steal
        self.cpu["idle"] += max(0.0, 2 - server - client - other - 0.1 * load - steal)
        written = int(40e6 * load * noise)
        self.wal += int(written * 0.8)
        self.checkpoints += len(self.samples) % 45 == 44
        for name, amount in (
            ("write_bytes", written),
            ("write_ops", written // 16384),
            ("read_ops", 3),
            ("read_bytes", 24576),
        ):
            self.disk[name] += amount
        self.disk["busy_s"] += min(1.0, 0.6 * load * noise)
        self.samples.append(self._sample(t_ns, load, noise))

    def _sample(self, t_ns: int, load: float, noise: float) -> dict[str, Any]:
        n = len(self.samples)
        return {
            "t_ns": t_ns,
            "host": {
                "cpu_s": dict(self.cpu),
                "cores": 2,
                "load1": 3.1,
                "memory_total_bytes": 8 * 2**30,
                "memory_available_bytes": int((5 - n * 0.002) * 2**30),
                "swap_used_bytes": 0,
                "disk": dict(self.disk),
                "network": {
                    "rx_bytes": n * 2000,
                    "tx_bytes": n * 3000,
                    "rx_packets": n * 20,
                    "tx_packets": n * 20,
                },
                "pressure": {"cpu_some_s": n * 0.5, "io_some_s": n * 0.1, "memory_some_s": 0.0},
            },
            "server": {
                "processes": 14,
                "cpu_user_s": self.server * 0.7,
                "cpu_system_s": self.server * 0.3,
                "rss_bytes": int(4e8 + n * 1e6),
                "read_bytes": 0,
                "write_bytes": self.disk["write_bytes"],
            },
            "client": {
                "cpu_user_s": self.client * 0.6,
                "cpu_system_s": self.client * 0.4,
                "rss_bytes": 42 * 2**20,
            },
            "engine": {
                "counters": {
                    "wal_bytes": self.wal,
                    "xact_commit": n * 4000,
                    "blks_read": n * 3,
                    "temp_bytes": 0,
                    "checkpoints_timed": 2,
                    "checkpoints_requested": self.checkpoints - 2,
                    "deadlocks": 0,
                },
                "gauges": {
                    "dead_tuples": n * 10,
                    "live_tuples": n * 1000,
                    "connections": 10,
                    "active": int(8 * load),
                },
                "waits": {
                    "LWLock:WALWrite": int(4 * load * noise),
                    "IO:WALSync": int(2 * load * noise),
                    "Client:ClientRead": 2,
                }
                if load
                else {},
            },
        }

    def write(self, path: Path) -> None:
        write_lines(path, self.samples)
