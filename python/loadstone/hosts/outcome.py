"""What several hosts have recorded, as the files of one drive and those of each host."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import _core
from loadstone.errors import RunFailedError
from loadstone.results.json_files import to_json, write_atomic
from loadstone.results.subfolders import subfolder
from loadstone.temporary import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone.hosts.joint import JointDrive, Share

Document = dict[str, Any]

SKEW_NS = 10_000_000
SKEW_OF_INTERVAL = 0.01
"""A start skew above either is warned of."""


@contextmanager
def records_folder(out_dir: str | None) -> Iterator[Path]:
    """Open the place of the records until they are merged."""
    with temporary_folder(".records-", out_dir) as folder:
        yield folder


def merge(document: Document, joint: JointDrive, records: Mapping[int, Path]) -> Document:
    """Merge what the hosts have recorded; `records`: what was fetched, by the number of the host.

    Returns the account of all of them (drive.json); with `out_dir` all files are written, those of each host
    to `hosts/NAME/` there. Raises RunFailedError when they cannot be.
    """
    out_dir = document.get("out_dir")
    if out_dir is not None:
        for share in joint.shares:
            of_one = document | {
                "out_dir": str(subfolder(Path(out_dir) / "hosts", share.name)),
                "host": {"number": share.number, "of": len(joint.shares)},
            }
            _write(_merged(of_one, joint, [share], records), of_one["out_dir"])
    account = _merged(document, joint, joint.shares, records)
    lost = [share.name for share in joint.shares if share.lost is not None]
    if lost:
        account["lost_hosts"] = lost
    if out_dir is not None:
        _write(account, out_dir)
    return account


def _write(account: Document, folder: str) -> None:
    write_atomic(Path(folder) / "drive.json", to_json(account, indent=1) + "\n")


def _merged(
    document: Document, joint: JointDrive, shares: Sequence[Share], records: Mapping[int, Path]
) -> Document:
    hosts = [
        {
            "name": share.name,
            "records": str(records[share.number]) if share.number in records else None,
            "lost": share.lost,
        }
        for share in shares
    ]
    asked = {"drive": document, "start_ns": joint.go_ns, "hosts": hosts}
    try:
        account: Document = json.loads(_core.merge_hosts(json.dumps(asked)))
    except _core.DriveError as error:
        raise RunFailedError(*error.args) from error
    return account


def hosts_document(joint: JointDrive, abouts: Mapping[str, Document], interval_s: float) -> Document:
    """Return hosts.json: what the hosts are, their clocks, and how exactly they began together."""
    began = {s.number: s.here(ns) for s in joint.shares if (ns := s.progress.get("began_ns"))}
    skew_ns = max(began.values()) - min(began.values()) if began else None
    return {
        "format": 1,
        "go_ns": joint.go_ns,
        "start_skew_ns": skew_ns,
        "start_skew_limit_ns": round(min(SKEW_NS, SKEW_OF_INTERVAL * interval_s * 1e9)),
        "hosts": [
            _host(share, abouts[share.name], began.get(share.number), joint.go_ns) for share in joint.shares
        ],
    }


def _host(share: Share, about: Document, began_ns: int | None, go_ns: int | None) -> Document:
    before, after = share.before, share.after
    return {
        "name": share.name,
        "number": share.number,
        "machine": about["name"],
        "cpus": about["cpus"],
        "state": "lost" if share.lost is not None else (share.ended or {}).get("state"),
        "reason": share.lost or (share.ended or {}).get("reason"),
        "clock": {
            "offset_ns": before.offset_ns if before else None,
            "error_ns": before.error_ns if before else None,
            "round_trip_ns": before.round_trip_ns if before else None,
            "drift_ns": after.offset_ns - before.offset_ns if before and after else None,
            "drift_error_ns": after.error_ns + before.error_ns if before and after else None,
        },
        "began_after_go_ns": began_ns - go_ns if began_ns is not None and go_ns is not None else None,
        "ceiling_tps": (share.ceiling or {}).get("tps"),
        "agent": _agent((share.ended or {}).get("own")),
    }


def _agent(own: Document | None) -> Document | None:
    """Return what an agent cost each second beside its drive."""
    if not own or own["wall_ns"] <= 0:
        return None
    seconds = own["wall_ns"] / 1e9
    return {"cpu_ns_per_s": own["cpu_ns"] / seconds, "bytes_per_s": own["bytes"] / seconds}


def said_of(document: Document) -> list[tuple[str, str]]:
    """Return what the user is told of a drive on several hosts: (level, text) each."""
    skew_ns, hosts = document["start_skew_ns"], document["hosts"]
    errors = [host["clock"]["error_ns"] for host in hosts if host["clock"]["error_ns"] is not None]
    if skew_ns is None or not errors:
        return []
    exactly = f"{skew_ns / 1e6:.2f} ms (clocks known to {max(errors) / 1e6:.2f} ms)"
    if skew_ns + max(errors) <= document["start_skew_limit_ns"]:
        return [("info", f"{len(hosts)} load hosts began within {exactly}")]
    limit = f"{document['start_skew_limit_ns'] / 1e6:g} ms"
    return [("warning", f"{len(hosts)} load hosts may have begun {exactly} apart, more than {limit}")]


def folder_name(name: str, taken: Sequence[str]) -> str:
    """Return a name that a folder may have, and no other host has."""
    plain = re.sub(r"[^A-Za-z0-9._+-]", "-", name).lstrip("._+-")[:60] or "host"
    names = [plain, *(f"{plain}-{number}" for number in range(2, len(taken) + 2))]
    return next(candidate for candidate in names if candidate not in taken)
