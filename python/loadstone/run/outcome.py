"""What a drive's account says of its phase: complete, interrupted or failed, and why."""

from __future__ import annotations

from typing import Any

import msgspec

from loadstone.errors import RunFailedError
from loadstone.results.documents import Drive, kind_of_drive
from loadstone.results.service import service_losses

Document = dict[str, Any]

DISK_FULL = "53100"
_BROKEN = {
    DISK_FULL: "the server's disk is full",
    "58030": "the server cannot read or write its files",
    "XX001": "the server's data is damaged",
    "XX002": "an index of the server is damaged",
}
"""SQLSTATEs after which no figure of the phase means anything, however many transactions succeeded."""


def outcome_of(account: Document) -> tuple[str, str | None]:
    """Return the phase's state and the reason; raises RunFailedError when the records are incomplete."""
    if account["output_error"]:
        raise RunFailedError(
            f"the records of the drive are incomplete: {account['output_error']}",
            "Free some space there, or choose another folder with --out.",
        )
    if account["state"] == "complete":
        return _judge_complete(account)
    if account["state"] == "interrupted":
        return "interrupted", account["reason"]
    reason, error = str(account["reason"]), first_error(account)
    return "failed", _joined(reason, error)


def first_error(account: Document) -> str:
    """Quote the error that came first: the others may be its consequences."""
    if not account["errors"]:
        return ""
    error = min(account["errors"], key=lambda error: int(error["first_ns"]))
    return f": {error['message']} ({error['sqlstate']})"


def _joined(reason: str, error: str) -> str:
    """Add the error to the reason, whose last words it may be."""
    message = error.rpartition(" (")[0]
    return f"{reason.removesuffix(message)}{error}" if message else reason


def _judge_complete(account: Document) -> tuple[str, str | None]:
    counts, warmup = account["counts"], account["warmup_counts"]
    if counts["done"] + warmup["done"] == 0 and counts["failed"] > 0:
        return "failed", f"every transaction failed{first_error(account)}"
    for error in account["errors"]:
        if error["sqlstate"] in _BROKEN:
            return "failed", f"{_BROKEN[error['sqlstate']]}: {error['message']} ({error['sqlstate']})"
    # Queries that run one by one say each how it went.
    lost = service_losses(msgspec.convert(account, Drive)) if kind_of_drive(account) is Drive else []
    return ("failed", "; ".join(lost)) if lost else ("complete", None)
