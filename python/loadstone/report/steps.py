"""Loads in steps: seconds against rows in the table, the knee, what it advises, and whether that held."""

from __future__ import annotations

from statistics import mean, median
from typing import TYPE_CHECKING, Any

from loadstone.report import formats
from loadstone.report.charts import Table
from loadstone.report.charts.curves import (
    CROSS,
    DASHED,
    DOTTED,
    Axis,
    Curve,
    Extras,
    colour,
    curves,
    linear,
    logarithmic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.report.charts import Chart

Json = dict[str, Any]

FIRST_STEPS = 3
"""The median of so many steps is what the others are held against."""
SENTENCES = 2
"""Of an advice, in the terminal; the report has them all."""
BROKEN = ("failed", "interrupted")
MEBI = 2**20


def blocks(chunks: Sequence[Json], summary: Json) -> list[Json]:
    """Return a block for each group of phases that loaded in steps; `chunks` are those of `view.chunks`."""
    found = []
    for chunk in chunks:
        members = [
            {**member, "colour": colour(at)}
            for at, member in enumerate(chunk["members"])
            if in_steps(member["phase"])
        ]
        if members:
            found.append(_block(chunk, members, summary))
    return found


def in_steps(phase: Json) -> bool:
    """Whether a phase loaded in more than one step: a single one has no course."""
    return len((phase["steps"] or {}).get("points") or []) > 1


def rates(phase: Json) -> list[Json]:
    """Return rows per second of each step at its middle: a step of few batches has no course of its own."""
    begun_s = phase["drive"]["start_s"]
    return [
        {
            "t_s": (point["start_s"] + point["end_s"]) / 2 - begun_s,
            "rows_per_s": point["rows_per_s"],
            "tps": 0,
        }
        for point in _complete(phase["steps"])
        if point["start_s"] is not None and point["end_s"] is not None
    ]


def knee_words(label: str, steps: Json) -> str:
    """Say in a sentence where import begins to slow down."""
    if steps["knee"] is None:
        return ""
    return f"{label}: {steps['knee']['sentence']}" if label else str(steps["knee"]["sentence"])


def conclusions(members: Sequence[Json], summary: Json) -> list[str]:
    """Say in lines what the loads advise, and whether the partitioned table kept what was advised."""
    lines = [
        f"{entry['label'] + ': ' if entry['label'] else ''}{' '.join(entry['sentences'][:SENTENCES])}"
        for entry in (_advice(member) for member in members if member["phase"]["steps"]["advice"])
        if entry["sentences"]
    ]
    lines += _built(members)
    lines += _limits(members)
    for member, phase in _verified(members, summary):
        whose = f"{member['label']}, " if member["label"] else ""
        lines.append(f"{whose}in partitions: {phase['sentence']}")
    if any((member["phase"]["steps"]["advice"] or {}).get("ddl") for member in members):
        lines.append("`loadstone advise` prints the partitions as DDL.")
    return lines


def figures(steps: Json) -> Json:
    """Return what the table says of one load in steps."""
    points = _complete(steps)
    flat = _flat_s_per_row(steps)
    rows = sum(point["rows"] for point in points)
    last = points[-1] if points else None
    there = last["rows_before"] + last["rows"] if last else 0
    ends = _per_row(points[-FIRST_STEPS:])
    return {
        "knee": _knee_cell(steps["knee"]),
        "interval": _span(steps["knee"]) if (steps["knee"] or {}).get("found") else "",
        "rows": there,
        "rows_per_s": 1 / flat if flat else None,
        "slowdown": median(ends) / flat if flat and ends else None,
        "table_bytes_per_row": _over(_added(last, "table_bytes", "toast_bytes"), there),
        "index_bytes_per_row": _over(_added(last, "index_bytes"), there),
        "wal_bytes_per_row": _over(_total(points, "wal_bytes"), rows),
        "hit_first": _mean(points[:FIRST_STEPS], "hit_ratio"),
        "hit_last": _mean(points[-FIRST_STEPS:], "hit_ratio"),
    }


def _block(chunk: Json, members: Sequence[Json], summary: Json) -> Json:
    identity = f"steps-{chunk['id']}"
    charts = [_seconds(identity, members), _slowdown(identity, members)]
    charts += [_small(identity, members, *panel) for panel in _PANELS]
    steps = [member["phase"]["steps"] for member in members]
    return {
        "id": identity,
        "title": chunk["title"],
        "charts": [chart for chart in charts if chart],
        "sentences": [
            *(text for m in members if (text := knee_words(m["label"], m["phase"]["steps"]))),
            *_built(members),
        ],
        "method": next((s["knee"]["method"] for s in steps if s["knee"] and s["knee"].get("method")), ""),
        "rows": [
            {"label": m["label"] or "all", **figures(step), **_indexed(m["phase"])}
            for m, step in zip(members, steps, strict=True)
        ],
        "looked": any(step["knee"] for step in steps),
        "failed": [
            {"label": m["label"], **point}
            for m in members
            for point in m["phase"]["steps"]["points"]
            if point["state"] in BROKEN
        ],
        "resumed": [
            {"label": m["label"], "step": point["step"]}
            for m in members
            for point in m["phase"]["steps"]["points"]
            if point["state"] == "resumed"
        ],
        "published": [
            {"label": m["label"], **published, "words": _published_words(published)}
            for m in members
            for published in m["phase"]["steps"]["curves"]
        ],
        "limits": _limits(members),
        "durability": _durability(members, summary),
        "advice": [_advice(m) for m in members if m["phase"]["steps"]["advice"]],
        "verification": _verification(identity, members, summary),
    }


def _seconds(identity: str, members: Sequence[Json]) -> Chart:
    lines = [_line(member, lambda point: point["seconds"]) for member in members]
    words = [text for m in members if (text := knee_words(m["label"], m["phase"]["steps"]))]
    course = "; ".join(_course(line) for line in lines)
    knees = [(m, m["phase"]["steps"]["knee"]) for m in members]
    found = [(m, knee) for m, knee in knees if knee and knee["found"]]
    extras = Extras(
        bands=[(_name(m), max(0, knee["low"]), knee["high"]) for m, knee in found if knee["low"] is not None],
        rules=[
            (_name(m), knee["rows"], f"knee: {formats.about_rows(knee['rows'])} rows") for m, knee in found
        ],
        dots=[
            (_name(m), point["rows_before"], point["seconds"] or 0, CROSS)
            for m in members
            for point in m["phase"]["steps"]["points"]
            if point["state"] in BROKEN
        ],
    )
    return curves(
        identity=(f"{identity}-seconds", "Seconds per step", f"{course}. {' '.join(words)}"),
        lines=lines,
        axes=(Axis(_ROWS_BEFORE), linear("seconds per step", lines)),
        extras=extras,
        height=280,
        note=_legend_words(members, extras),
    )


def _legend_words(members: Sequence[Json], extras: Extras) -> str:
    sizes = sorted({member["phase"]["steps"]["step_rows"] for member in members})
    words = [f"A step is {' or '.join(formats.rows(size) for size in sizes)} rows."]
    if extras.rules:
        words.append("Dotted line: the knee; shaded: its interval.")
    if extras.dots:
        words.append("Cross: a step that failed or was broken off, at the time until then.")
    return " ".join(words)


def _slowdown(identity: str, members: Sequence[Json]) -> Chart | None:
    """Draw our curves and the published ones, each against its own first steps: hardware and steps differ."""
    lines: list[Curve] = []
    for member in members:
        steps = member["phase"]["steps"]
        points = _complete(steps)
        ours = [(p["rows_before"] + p["rows"], s) for p, s in zip(points, _per_row(points), strict=True)]
        published = [
            Curve(
                f"{_name(member)}, {_curve_name(curve)}",
                member["colour"],
                *_relative([((at + 1) * curve["step_rows"], s) for at, s in enumerate(curve["seconds"])]),
                style=DASHED if at == 0 else DOTTED,
            )
            for at, curve in enumerate(steps["curves"])
        ]
        lines += [Curve(_name(member), member["colour"], *_relative(ours)), *published]
    drawn = [line for line in lines if line.x]
    if not any(line.style for line in drawn):
        return None
    xs, ys = [x for line in drawn for x in line.x], [y for line in drawn for y in line.y if y]
    if not ys:
        return None
    return curves(
        identity=(
            f"{identity}-slowdown",
            "Slowdown, beside the published curves",
            "; ".join(_course(line) for line in drawn) + ".",
        ),
        lines=drawn,
        axes=(
            logarithmic("rows in the table after the step", xs),
            logarithmic("time of a row, over that of the first steps", ys),
        ),
        height=280,
        note=_comparable(members),
        table=_slowdown_table(drawn),
    )


def _slowdown_table(lines: Sequence[Curve]) -> Table:
    """List each line's own points: those of other tests stand at other numbers of rows."""
    rows = [
        (line.name, formats.rows(x), formats.times(y))
        for line in lines
        for x, y in list(zip(line.x, line.y, strict=True))[:: max(1, -(-len(line.x) // 12))]
    ]
    return Table(("line", "rows in the table", "slowdown"), rows, "About a dozen points of each line.")


def _comparable(members: Sequence[Json]) -> str:
    curve = next(c for m in members for c in m["phase"]["steps"]["curves"])
    note = f" ({curve['note']})" if curve["note"] else ""
    return (
        f"The published curves are of another machine{note} and of steps of "
        f"{formats.rows(curve['step_rows'])} rows. To stand side by side, every line is divided by the "
        f"median time of a row in its own first {FIRST_STEPS} steps, and both axes are logarithmic: compare "
        "where a line turns upwards, not how fast either machine is."
    )


def _small(
    identity: str,
    members: Sequence[Json],
    panel: tuple[str, str, str],
    figure: Callable[[Json], float | None],
) -> Chart | None:
    name, title, unit = panel
    lines = [_line(member, figure) for member in members]
    if not any(y for line in lines for y in line.y):
        return None
    return curves(
        identity=(f"{identity}-{name}", title, "; ".join(_course(line) for line in lines) + "."),
        lines=lines,
        axes=(Axis(_ROWS_BEFORE), linear(unit, lines)),
        width="third",
        height=150,
        legend=False,
    )


def _line(member: Json, figure: Callable[[Json], float | None]) -> Curve:
    # A server may count a step's blocks only with the next one's: the line goes on over what is not known.
    found = [(point["rows_before"], figure(point)) for point in _complete(member["phase"]["steps"])]
    known = [(x, y) for x, y in found if y is not None]
    return Curve(_name(member), member["colour"], [x for x, _ in known], [y for _, y in known])


_ROWS_BEFORE = "rows in the table before the step"
_PANELS: tuple[tuple[tuple[str, str, str], Callable[[Json], float | None]], ...] = (
    (("index", "Indexes after the step", "MiB"), lambda point: _over(point["index_bytes"], MEBI)),
    (
        ("wal", "Write-ahead log per row", "bytes a row"),
        lambda point: _over(point["wal_bytes"], point["rows"]),
    ),
    (
        ("hits", "Found in the server's cache", "% of blocks"),
        lambda point: None if point["hit_ratio"] is None else 100 * point["hit_ratio"],
    ),
)


def _built(members: Sequence[Json]) -> list[str]:
    """Say what the indexes that were made after the rows took, and what rows and indexes came to."""
    found = [(member, (member["phase"]["load"] or {}).get("built")) for member in members]
    return [
        f"{member['label'] + ': ' if member['label'] else ''}{built['indexes']} "
        f"index{'' if built['indexes'] == 1 else 'es'} made after the rows in "
        f"{formats.duration(built['indexes_s'])}, the rows in {formats.duration(built['rows_s'])}: "
        f"{formats.duration(built['whole_s'])} in all, {formats.rate(built['rows_per_s'])} rows a second."
        for member, built in found
        if built
    ]


def _indexed(phase: Json) -> Json:
    """Return the size of indexes that were made after the last step, which knew of none."""
    looks = (phase["storage"] or {}).get("looks")
    if not looks or not (phase["load"] or {}).get("built"):
        return {}
    return {"index_bytes_per_row": looks[-1]["sum"]["per_row"]["index"]}


def _limits(members: Sequence[Json]) -> list[str]:
    """Say beside the knee what it is the knee of, where memory was held down."""
    found = {
        (member["phase"].get("usage") or {}).get("memory_limit_bytes")
        or member["phase"]["steps"].get("memory_limit_bytes")
        for member in members
    }
    return [
        f"Memory of the server and of its files' page cache was limited to {formats.size(limit)} by a "
        "control group: where import slows down depends on that."
        for limit in sorted(limit for limit in found if limit)
    ]


def _durability(members: Sequence[Json], summary: Json) -> list[str]:
    """Return the settings that decide durability, to stand beside figures that they touch."""
    targets = {member["phase"]["target"] for member in members}
    words = []
    for target in summary["targets"]:
        settings = target.get("durability") or []
        if target["id"] not in targets or not settings:
            continue
        unsafe = [s for s in settings if s.get("durable") is False]
        listed = ", ".join(f"{s['setting']} = {s['value']}" for s in unsafe or settings)
        name = f"{target['short_label']}: " if len(targets) > 1 else ""
        words.append(f"{name}{'not durable, ' if unsafe else 'durable, '}{listed}.")
    return words


def _advice(member: Json) -> Json:
    advice = member["phase"]["steps"]["advice"]
    said = (member["phase"]["steps"]["knee"] or {}).get("sentence")
    sentences = [text for text in advice["sentences"] if text != said]
    return {"label": member["label"], "sentences": sentences, "ddl": advice["ddl"]}


def _verification(identity: str, members: Sequence[Json], summary: Json) -> Json | None:
    """Lay the run of the partitioned table over the one that advised it."""
    verified = _verified(members, summary)
    if not verified:
        return None
    lines = []
    for member, phase in verified:
        partitioned = {**member, "label": f"{_name(member)}, partitioned", "phase": phase}
        lines.append(_line(member, lambda point: point["seconds"]))
        lines.append(_as_dashed(_line(partitioned, lambda point: point["seconds"])))
    words = "; ".join(_course(line) for line in lines)
    chart = curves(
        identity=(f"{identity}-verification", "One table, and the same rows in partitions", f"{words}."),
        lines=lines,
        axes=(Axis(_ROWS_BEFORE), linear("seconds per step", lines)),
    )
    phases = [{**phase, "label": member["label"]} for member, phase in verified]
    found = summary["verification"]
    return {"chart": chart, "phases": phases, "run": found["id"], "state": found["state"]}


def _verified(members: Sequence[Json], summary: Json) -> list[tuple[Json, Json]]:
    """Return each load with the one that verified it: the same variant into partitions."""
    if not summary["verification"]:
        return []
    return [
        (member, phase)
        for member in members
        for phase in summary["verification"]["phases"]
        if phase["steps"]["points"] and _same(member["phase"], phase)
    ]


def _same(phase: Json, verifying: Json) -> bool:
    names = ("scenario", "id", "target")
    variant = {name: verifying["variant"].get(name) for name in phase["variant"]}
    return variant == phase["variant"] and all(phase[name] == verifying[name] for name in names)


def _as_dashed(line: Curve) -> Curve:
    return Curve(line.name, line.colour, line.x, line.y, style=DASHED)


def _curve_name(curve: Json) -> str:
    name = str(curve["name"] or "")
    return name if name.startswith("published") else ": ".join(part for part in ("published", name) if part)


def _published_words(curve: Json) -> str:
    knee = curve.get("knee")
    if not knee:
        return formats.NONE
    if not knee["found"]:
        return str(knee["sentence"])
    return f"{formats.about_rows(knee['rows'])} rows ({_span(knee)})"


def _name(member: Json) -> str:
    return str(member["label"] or "measured")


def _complete(steps: Json) -> list[Json]:
    return [point for point in steps["points"] if point["state"] == "complete" and point["rows"]]


def _per_row(points: Sequence[Json]) -> list[float]:
    return [point["seconds"] / point["rows"] for point in points]


def _flat_s_per_row(steps: Json) -> float | None:
    """Return the time of a row before the knee; without one, that of the first steps."""
    flat = (steps["knee"] or {}).get("flat_seconds")
    if flat and steps["step_rows"]:
        return float(flat) / float(steps["step_rows"])
    first = _per_row(_complete(steps)[:FIRST_STEPS])
    return median(first) if first else None


def _relative(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float | None]]:
    known = [(x, y) for x, y in points if y > 0]
    if not known:
        return [], []
    base = median(y for _, y in known[:FIRST_STEPS])
    return [x for x, _ in known], [y / base for _, y in known]


def _course(line: Curve) -> str:
    known = [y for y in line.y if y is not None]
    if not known:
        return f"{line.name}: no data"
    first, last, most = (formats.digits(value) for value in (known[0], known[-1], max(known)))
    return f"{line.name}: {first} at first, {last} at the end, at most {most}"


def _knee_cell(knee: Json | None) -> str:
    if knee is None:
        return "not looked for"
    if knee["found"]:
        return f"{formats.about_rows(knee['rows'])} rows"
    words = {"steady": "grows from the start", "unclear": "not clear", "too_few": "too few steps"}
    return words.get(str(knee.get("outcome"))) or f"none up to {formats.rows(knee['up_to_rows'])}"


def _span(knee: Json) -> str:
    if knee["low"] is None or knee["high"] is None:
        return ""
    return f"{formats.about_rows(knee['low'])} … {formats.about_rows(knee['high'])}"


def _added(point: Json | None, *names: str) -> float | None:
    known = [point[name] for name in names if point and point.get(name) is not None]
    return sum(known) if known else None


def _total(points: Sequence[Json], name: str) -> float | None:
    known = [point[name] for point in points]
    return None if None in known or not known else sum(known)


def _mean(points: Sequence[Json], name: str) -> float | None:
    known = [point[name] for point in points if point[name] is not None]
    return mean(known) if known else None


def _over(value: float | None, unit: float | None) -> float | None:
    return value / unit if value is not None and unit else None
