"""What a run was measured on and with: environment.json, and warnings about what will blur the figures.

The only module that reads the wall clock: all else counts from the monotonic clock's origin taken here.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import json
import os
import platform
import resource
import socket
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.host import machine
from loadstone.host.gpu import Gpus
from loadstone.host.machine import ROOT, Facts

if TYPE_CHECKING:
    from collections.abc import Mapping

LIBRARIES = (
    "click",
    "duckdb",
    "hdrhistogram",
    "jinja2",
    "numpy",
    "nvidia-ml-py",
    "psutil",
    "psycopg",
    "pyarrow",
    "rich",
    "scipy",
    "vl-convert-python",
)
BILL_OF_MATERIALS = "sboms/loadstone-py.cyclonedx.json"
_BUSY_SHARE = 0.25
_SWAP_BYTES = 64 * 2**20
_SPARE_FILES = 64
"""File descriptors beside the clients' sockets: results, libraries, control connections."""
_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")
_OWN_GOVERNORS = ("intel_pstate", "amd-pstate-epp")
"""Drivers whose `powersave` still goes to full speed under load."""

_READ_S = 0.01
"""What two readings of both clocks may differ by."""
_ADJUSTED = 0.01


@dataclass(frozen=True, slots=True)
class Origin:
    """One moment on both clocks."""

    started_at: str
    """UTC, ISO 8601 with milliseconds: `2026-11-20T10:15:00.123Z`."""
    origin_ns: int
    """The same moment on CLOCK_MONOTONIC, in nanoseconds."""

    def at(self, t_ns: int) -> str:
        """Return the wall-clock moment of a monotonic one, in the form of `started_at`."""
        begin = datetime.fromisoformat(self.started_at).timestamp()
        return _utc(datetime.fromtimestamp(begin + (t_ns - self.origin_ns) / 1e9, UTC))

    def stepped_s(self, later: Origin) -> float | None:
        """Return by how many seconds the wall clock was set between this moment and a later one.

        None: it was not, beyond what the reading in milliseconds, and a clock that is being adjusted (at most
        1 % here), can differ by.
        """
        shown = datetime.fromisoformat(later.started_at) - datetime.fromisoformat(self.started_at)
        passed_s = (later.origin_ns - self.origin_ns) / 1e9
        step_s = shown.total_seconds() - passed_s
        return step_s if abs(step_s) > _READ_S + _ADJUSTED * passed_s else None


def read_clocks() -> Origin:
    """Read both clocks together: of several readings the one that took least."""
    readings = []
    for _ in range(5):
        before = time.monotonic_ns()
        now = datetime.now(UTC)  # noqa: TID251 - here, for all others
        after = time.monotonic_ns()
        readings.append((after - before, (before + after) // 2, now))
    _, origin_ns, now = min(readings)
    return Origin(_utc(now), origin_ns)


def _utc(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def collect(paths: Mapping[str, Path], *, clients: int = 0, root: Path = ROOT) -> Facts:
    """Return environment.json as described in docs/run-folder.md.

    `paths` are the places whose disks matter, by what they are for (`results`, `data`); `clients` is the
    largest number of connections the run will hold; `root` stands for `/`. What is not known is None.
    """
    facts: Facts = {
        "format": 1,
        "loadstone": loadstone(),
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "libraries": _libraries(),
        "system": _system(root),
        "cpu": machine.cpu(root),
        "memory": machine.memory(root),
        "storage": {name: machine.storage(path, root) for name, path in sorted(paths.items())},
        "limits": _limits(root),
        "control_group": machine.control_group(root),
        "io_uring": machine.io_uring(),
        "gpus": _gpus(),
        "load": list(os.getloadavg()),
        "on_battery": machine.on_battery(root),
    }
    return facts | {"warnings": warnings(facts, clients)}


def loadstone() -> Facts:
    """Return which build of Loadstone this is; `core` is None when the compiled part is not there."""
    try:
        version = importlib.metadata.version("loadstone")
    except importlib.metadata.PackageNotFoundError:
        version = None
    try:
        core = importlib.import_module("loadstone._core")
    except ImportError:
        return {"version": version, "core": None}
    return {
        "version": version or core.__version__,
        "core": {
            "version": core.__version__,
            "debug_build": core.is_debug_build,
            "sha256": _digest(getattr(core, "__file__", None)),
            "crates": crates(),
        },
    }


def crates() -> dict[str, list[str]] | None:
    """Return the versions of each crate that the core was built from; None where that was not recorded.

    maturin puts them into every wheel as a bill of materials (CycloneDX 1.5). A crate may be there in several
    versions. Crates for other systems than this one are listed too.
    """
    try:
        text = importlib.metadata.distribution("loadstone").read_text(BILL_OF_MATERIALS)
        parts = json.loads(text or "{}").get("components", [])
    except (importlib.metadata.PackageNotFoundError, OSError, ValueError):
        return None
    found: dict[str, list[str]] = {}
    for part in sorted(parts, key=itemgetter("name", "version")):
        found.setdefault(part["name"], []).append(part["version"])
    return found or None


def verbose_version() -> str:
    """Return the versions that a figure may depend on, a line each, and a digest to compare programs by."""
    build = loadstone()
    core = build["core"] or {}
    lines = [f"loadstone {build['version']}", f"Python {platform.python_version()}"]
    lines += [f"{name} {version or 'not installed'}" for name, version in _libraries().items()]
    of_crates = [
        f"crate {name} {' '.join(versions)}" for name, versions in (core.get("crates") or {}).items()
    ]
    lines += of_crates or ["crates: not recorded when this core was built"]
    digest = hashlib.sha256("\n".join(of_crates).encode()).hexdigest()
    lines.append(f"crates sha256 {digest if of_crates else 'unknown'}")
    debug = " (debug build)" if core.get("debug_build") else ""
    lines.append(f"core sha256 {core.get('sha256') or 'unknown'}{debug}")
    return "\n".join(lines)


def _digest(path: str | None) -> str | None:
    if path is None:
        return None
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _libraries() -> Facts:
    found: Facts = {}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def _system(root: Path) -> Facts:
    release = {}
    for line in (machine.read(root / "etc/os-release") or "").splitlines():
        name, _, value = line.partition("=")
        release[name] = value.strip("\"'")
    clock = root / "sys/devices/system/clocksource/clocksource0"
    return {
        "hostname": socket.gethostname(),
        "kernel": f"{platform.system()} {platform.release()}",
        "distribution": release.get("PRETTY_NAME"),
        "virtualisation": machine.virtualisation(root),
        "container": machine.container(root),
        "clock_source": machine.read(clock / "current_clocksource"),
        "time_zone": _time_zone(root),
        "as_root": os.geteuid() == 0,
    }


def _time_zone(root: Path) -> str:
    named = os.environ.get("TZ") or machine.read(root / "etc/timezone")
    if named:
        return named
    try:
        return str((root / "etc/localtime").readlink()).partition("zoneinfo/")[2] or time.tzname[0]
    except OSError:
        return time.tzname[0]


def _limits(root: Path) -> Facts:
    """Return soft and hard limits of this process; None is "no limit"."""
    kinds = {
        "open_files": resource.RLIMIT_NOFILE,
        "processes": resource.RLIMIT_NPROC,
        "locked_memory_bytes": resource.RLIMIT_MEMLOCK,
    }
    found: Facts = {}
    for name, kind in kinds.items():
        soft, hard = (
            None if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(kind)
        )
        found[name] = {"soft": soft, "hard": hard}
    found["threads_max"] = machine.number(machine.read(root / "proc/sys/kernel/threads-max"))
    return found


def _gpus() -> list[Facts]:
    with contextlib.closing(Gpus()) as gpus:
        return gpus.facts()


def warnings(facts: Facts, clients: int) -> list[dict[str, str]]:
    """Return what on this machine will blur or spoil the figures: `{"message", "hint"}` each."""
    found = [
        *_warn_build(facts["loadstone"]),
        *_warn_load(facts),
        *_warn_cpu(facts),
        *_warn_memory(facts["memory"]),
        *_warn_files(facts["limits"]["open_files"], clients),
        *(_warn_in_memory(name, place) for name, place in facts["storage"].items() if _in_memory(place)),
    ]
    return [{"message": message, "hint": hint} for message, hint in found]


Warnings = list[tuple[str, str]]


def _warn_build(build: Facts) -> Warnings:
    if build["core"] and build["core"]["debug_build"]:
        return [("Loadstone's core is a debug build: it is slow.", "Build it with `make build`.")]
    return []


def _warn_load(facts: Facts) -> Warnings:
    cores, load = facts["cpu"]["cores_usable"], facts["load"][0]
    if load <= max(0.5, _BUSY_SHARE * cores):
        return []
    on = "1 core" if cores == 1 else f"{cores} cores"
    return [
        (
            f"The machine was busy before the run: load average {load:.1f} on {on}.",
            "Stop other work, and run again when the load is lower.",
        )
    ]


def _warn_cpu(facts: Facts) -> Warnings:
    cpu, found = facts["cpu"], []
    if "powersave" in cpu["governors"] and cpu["frequency_driver"] not in _OWN_GOVERNORS:
        hint = "Set it to performance: `cpupower frequency-set -g performance`."
        found.append(
            ("The processor is kept at its lowest speed: the frequency governor is powersave.", hint)
        )
    limit, cores = cpu["cores_limit"], cpu["cores_usable"]
    if limit is not None and limit < cores:
        hint = "Client and server are paused when they reach the limit: raise it."
        found.append(
            (f"A control group limits Loadstone to the CPU time of {limit:g} of {cores} cores.", hint)
        )
    if facts["on_battery"]:
        found.append(("The machine runs on battery: its speed may change at any time.", "Plug it in."))
    clock = facts["system"]["clock_source"]
    if clock in _SLOW_CLOCKS:
        hint = "Find out why the kernel does not use its faster clock (`dmesg | grep clocksource`)."
        found.append((f"Reading the clock is slow here: the clock source is {clock}.", hint))
    return found


def _warn_memory(memory: Facts) -> Warnings:
    used = memory["swap_used_bytes"] or 0
    if used < _SWAP_BYTES:
        return []
    return [
        (
            f"{used / 2**20:.0f} MiB of swap are in use.",
            "Free memory, or expect stalls that the database does not cause.",
        )
    ]


def _warn_files(limit: Facts, clients: int) -> Warnings:
    need = clients + _SPARE_FILES
    if limit["soft"] is None or limit["soft"] >= need:
        return []
    message = f"{clients} clients need {need} open files, but this process may have only {limit['soft']}."
    return [(message, f"Raise the limit before the run: `ulimit -n {need}`.")]


def _in_memory(place: Facts) -> bool:
    return place["filesystem"] in ("tmpfs", "ramfs", "rootfs")


def _warn_in_memory(name: str, place: Facts) -> tuple[str, str]:
    return (
        (
            f"The folder for {name} is in memory ({place['filesystem']} at {place['mount_point']}), not "
            "on a disk."
        ),
        "Use a folder on a disk, or read the figures as those of a database without a disk.",
    )
