"""The tables of a load: made, refused when they are there, and the ledger that lets a broken load go on.

The ledger books each batch in the transaction that holds its rows: what it lists is in the tables, and
nothing else is. Its row -1 says of what load it is.
"""

# ruff: noqa: S608 - identifiers and values are written by `quoted` and `literal`
from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError, words_of
from loadstone.sqltext import literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.names import NamedTables

LEDGER = "loadstone_batches"
_ABOUT = -1


@dataclass(frozen=True, slots=True)
class Committed:
    """What the ledger books."""

    batches: int
    rows: int
    ranges: tuple[tuple[int, int], ...]
    """First and last number of each run of batches without a gap, ascending."""


def execute(control: Control, statements: Iterable[str]) -> list[dict[str, Any]]:
    """Run statements one by one; returns each with its duration, as phase.json lists them."""
    done = []
    for text in statements:
        begin = time.monotonic()
        control.execute(text)
        done.append({"text": text, "seconds": round(time.monotonic() - begin, 6)})
    return done


def refuse_existing(control: Control, answers: NamedTables, wanted: Sequence[str]) -> None:
    """Raise LoadstoneError when one of the tables is there already."""
    found = answers.existing(control, [*wanted, LEDGER])
    if LEDGER in found:
        booked = committed(control, answers)
        raise LoadstoneError(
            f"an earlier load of these tables was interrupted after {booked.batches:,} batches "
            f"({booked.rows:,} rows)",
            "Add --resume to load the rest, or --replace to drop the tables and start again.",
        )
    if found:
        raise LoadstoneError(
            f"the database already has {_listed(found)}, and a load creates its tables itself",
            "Use another database, or add --replace to drop them with everything in them.",
        )


def refuse_unready(control: Control, answers: NamedTables, wanted: Sequence[str]) -> None:
    """Raise LoadstoneError unless all tables are there and empty: somebody else made them."""
    found = answers.existing(control, wanted)
    missing = [name for name in wanted if name not in found]
    if missing:
        raise LoadstoneError(
            f"the database does not have {_listed(missing)}", "Let Loadstone create the tables."
        )
    filled = [name for name in wanted if not is_empty(control, answers, name)]
    if filled:
        raise LoadstoneError(
            f"{_listed(filled)} in the database already contain rows",
            "A load numbers its devices from 1, and counts all rows when it ends: empty them first.",
        )


def make(
    control: Control,
    answers: NamedTables,
    wanted: Sequence[str],
    statements: Iterable[str],
    errors: tuple[type[Exception], ...],
) -> list[dict[str, Any]]:
    """Run the statements that make the tables; returns them with their durations.

    Raises LoadstoneError when one fails with one of `errors`: the tables made so far are dropped again.
    """
    done: list[dict[str, Any]] = []
    try:
        for statement in statements:
            done += execute(control, [statement])
    except errors as error:
        with contextlib.suppress(*errors):
            drop_made(control, answers, wanted, [entry["text"] for entry in done])
        raise LoadstoneError(
            f"the tables cannot be created: {words_of(error)}", "Those created so far are dropped again."
        ) from error
    return done


def drop(control: Control, answers: NamedTables, wanted: Sequence[str]) -> None:
    """Drop the tables and the ledger, those that there are."""
    ours = [LEDGER] if answers.ledger else []
    for name in (*ours, *reversed(wanted)):
        control.execute(answers.drop(name))


def drop_made(control: Control, answers: NamedTables, wanted: Sequence[str], done: list[str]) -> None:
    """Drop the tables that these statements made, and no other: one that was in their way is somebody's."""
    for name in reversed(wanted):
        table = answers.qualified(name)
        made = (f"create table {table} ", f"create {answers.relation} {table} ")
        if any(text.startswith(made) for text in done):
            control.execute(answers.drop(name))


def open_ledger(control: Control, answers: NamedTables, about: Mapping[str, Any]) -> None:
    """Make the ledger of a load that is described by `about`."""
    ledger = answers.qualified(LEDGER)
    columns = 'batch bigint primary key, "rows" bigint not null, about text'
    control.execute(f"create table {ledger} ({columns})")
    text = literal(json.dumps(about, sort_keys=True))
    control.execute(f'insert into {ledger} (batch, "rows", about) values ({_ABOUT}, 0, {text})')


def reopen_ledger(
    control: Control, answers: NamedTables, wanted: Sequence[str], about: Mapping[str, Any]
) -> Committed:
    """Return what a broken load has committed; raises LoadstoneError when it was not the same load."""
    found = answers.existing(control, [*wanted, LEDGER])
    if LEDGER not in found:
        raise LoadstoneError(
            "there is no interrupted load to resume",
            "A load that finished is not recorded; remove --resume, or add --replace to load again.",
        )
    missing = [name for name in wanted if name not in found]
    if missing:
        raise LoadstoneError(
            f"the interrupted load cannot be resumed: {_listed(missing)} is gone",
            "Start again with --replace.",
        )
    ledger = answers.qualified(LEDGER)
    row = control.execute(f"select about from {ledger} where batch = {_ABOUT}").fetchone()
    before = json.loads(row["about"]) if row else {}
    changed = sorted(key for key in {*before, *about} if before.get(key) != about.get(key))
    if changed:
        key = changed[0]
        raise LoadstoneError(
            f"the interrupted load was another one: its {key} was {before.get(key)!r}, now it is "
            f"{about.get(key)!r}{_more(len(changed))}",
            "Use the same data, batch size and form of the tables as before, or start again with --replace.",
        )
    return committed(control, answers)


def committed(control: Control, answers: NamedTables) -> Committed:
    """Read what is booked."""
    rows = control.execute(
        'select min(batch) as first, max(batch) as last, count(*) as batches, sum("rows") as "rows" '
        'from (select batch, "rows", 1 + batch - row_number() over (order by batch) as gap '
        f"from {answers.qualified(LEDGER)} where batch >= 0) as booked group by gap order by 1"
    ).fetchall()
    return Committed(
        batches=sum(int(row["batches"]) for row in rows),
        rows=sum(int(row["rows"]) for row in rows),
        ranges=tuple((int(row["first"]), int(row["last"])) for row in rows),
    )


def close_ledger(control: Control, answers: NamedTables) -> None:
    """Drop the ledger: the load is whole."""
    control.execute(answers.drop(LEDGER))


def is_empty(control: Control, answers: NamedTables, name: str) -> bool:
    """Return whether a table that is there holds no row."""
    table = answers.qualified(name)
    return control.execute(f"select 1 as one from {table} limit 1").fetchone() is None


def _listed(found: list[str]) -> str:
    plural = "the tables" if len(found) > 1 else "the table"
    return f"{plural} {', '.join(found)}"


def _more(changed: int) -> str:
    return f", and {changed - 1} more differ" if changed > 1 else ""
