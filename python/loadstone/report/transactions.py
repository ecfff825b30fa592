"""Long transactions: how rows went in inside each of them, how long a thousand took, and the commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.charts import Table
from loadstone.report.charts.curves import DASHED, Axis, Curve, colour, curves, linear

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.report.charts import Chart
    from loadstone.report.chunks import Chunk
    from loadstone.results.documents.summary import Spread, TransactionFigures, TransactionsFigures

MS_PER_S = 1e3


@dataclass(frozen=True, slots=True)
class Member:
    """A phase of long transactions, as it is named and drawn."""

    name: str
    colour: str
    found: TransactionsFigures


@dataclass(frozen=True, slots=True)
class Row:
    """All transactions of a phase."""

    label: str
    transactions: int
    committed: int
    rows: int
    rates: tuple[float, float, float] | None
    """Slowest, median, fastest: rows a second."""
    per_mark: Spread | None
    commit: Spread | None


@dataclass(frozen=True, slots=True)
class One:
    """One transaction of a phase."""

    label: str
    figures: TransactionFigures


@dataclass(frozen=True, slots=True)
class TransactionsBlock:
    """What the page says of a group of phases of long transactions."""

    id: str
    title: str
    charts: list[Chart]
    mark_rows: int | None
    rows: list[Row]
    each: list[One]


def blocks(chunks: Sequence[Chunk]) -> list[TransactionsBlock]:
    """Return a block for each group of phases of long transactions."""
    found = []
    for chunk in chunks:
        members = [
            Member(one.label or "all", colour(at), figures)
            for at, one in enumerate(chunk.members)
            if (figures := one.phase.transactions)
        ]
        if members:
            found.append(_block(chunk.id, chunk.title, members))
    return found


def _block(chunk: str, title: str, members: Sequence[Member]) -> TransactionsBlock:
    identity = f"transactions-{chunk}"
    mark_rows = members[0].found.mark_rows
    charts = [_courses(identity, members), _marks(identity, members, mark_rows)]
    return TransactionsBlock(
        id=identity,
        title=title,
        charts=[chart for chart in charts if chart],
        mark_rows=mark_rows,
        rows=[_row(member) for member in members],
        each=[One(member.name, figures) for member in members for figures in member.found.transactions],
    )


def _row(member: Member) -> Row:
    found = member.found
    rates = sorted(t.rows_per_s for t in found.transactions if t.rows_per_s)
    return Row(
        label=member.name,
        transactions=len(found.transactions),
        committed=found.committed,
        rows=found.rows_committed,
        rates=(rates[0], rates[len(rates) // 2], rates[-1]) if rates else None,
        per_mark=found.per_mark,
        commit=found.commit_s,
    )


def _courses(identity: str, members: Sequence[Member]) -> Chart | None:
    """Draw the rows of each transaction against its own time."""
    lines = [
        Curve(
            member.name,
            member.colour,
            [mark.t_s for mark in transaction.marks],
            [mark.rows for mark in transaction.marks],
            path=transaction.transaction,
            width=1.0,
        )
        for member in members
        for transaction in member.found.transactions
        if len(transaction.marks) > 1
    ]
    if not lines:
        return None
    words = "; ".join(_words(member) for member in members)
    rows = [
        (f"{line.name}, transaction {line.path}", formats.count(line.y[-1]), formats.digits(line.x[-1]))
        for line in lines
    ]
    return curves(
        identity=(f"{identity}-course", "Rows inside each transaction", f"{words}."),
        lines=lines,
        axes=(Axis("seconds since the transaction began"), linear("rows", lines)),
        width="half",
        note="One line per transaction; its commit follows its last point.",
        table=Table(("transaction", "rows", "seconds"), rows),
    )


def _marks(identity: str, members: Sequence[Member], mark_rows: int | None) -> Chart | None:
    """Draw the time of so many rows against the rows that went in before them."""
    lines: list[Curve] = []
    for member in members:
        course = member.found.course
        xs = [point.rows for point in course]
        middle = [None if point.p50_s is None else point.p50_s * MS_PER_S for point in course]
        lines.append(Curve(member.name, member.colour, xs, middle))
        high = [None if p.p95_s is None else p.p95_s * MS_PER_S for p in course]
        if any(value is not None for value in high):
            name = f"{member.name}, 95th percentile"
            lines.append(Curve(name, member.colour, xs, high, style=DASHED))
    drawn = [line for line in lines if len(line.x) > 1]
    if not drawn or mark_rows is None:
        return None
    words = "; ".join(_words(member) for member in members)
    return curves(
        identity=(f"{identity}-marks", f"Time of {formats.rows(mark_rows)} rows, median", f"{words}."),
        lines=drawn,
        axes=(
            Axis("rows inserted so far in the transaction"),
            linear(f"ms for {formats.rows(mark_rows)} rows", drawn),
        ),
        width="half",
    )


def _words(member: Member) -> str:
    found = member.found
    each = found.per_mark
    took = (
        f", {formats.thousandths(each.median_s)} ms for {formats.rows(found.mark_rows)} rows (median)"
        if each
        else ""
    )
    return f"{member.name}: {found.committed} of {len(found.transactions)} committed{took}"
