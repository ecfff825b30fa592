"""Warnings about loads: bulk loads, loads in steps, and the disk that they went to."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from loadstone.summary.warnings.registry import Warnings, warning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.results.documents.summary import PhaseFigures, StepFigures, Warning
    from loadstone.summary.run_files import RunFiles

STARVED = 0.5
"""Share of the connections' time without rows to send from which making them may have been the limit."""
CLIENT_SHARE = 0.5
"""Our share of the CPU time that server and Loadstone used in a step."""
SHORT_STEP_S = 1.0
"""Chance decides the length of a step that is shorter."""
SLOWER = 1.2
"""How much longer than its neighbours a step with a checkpoint must have taken to be worth a word."""
_MEBI = 2**20
_STEPS_NAMED = 6

of_load: Warnings[PhaseFigures] = Warnings()
of_steps: Warnings[Sequence[StepFigures]] = Warnings()
of_disk: Warnings[str] = Warnings()


def load_warnings(phase: PhaseFigures) -> Iterator[Warning]:
    """Say what holds for a phase that loads."""
    where = phase.target, phase.folder
    yield from of_load.of(phase, *where)
    points = phase.steps.points if phase.steps else []
    yield from of_steps.of([step for step in points if step.state == "complete"], *where)


def disk_warnings(files: RunFiles, phases: Sequence[PhaseFigures]) -> Iterator[Warning]:
    """Say where the results share a disk with the data of a bulk load, whose device bytes are counted."""
    places = files.environment.storage or {}
    results = places.get("results")  # no document: places by name
    loaded = {phase.target for phase in phases if phase.storage or phase.steps}
    for target in sorted(loaded):
        data = places.get(f"data of {target}")
        if results and results.disk and data and data.disk == results.disk:
            yield from of_disk.of(results.disk, target)


@of_load
def rows_were_the_limit(phase: PhaseFigures) -> Warning | None:
    """Say that the connections waited for rows: making them was slower than the server."""
    starved = phase.load and phase.load.starved
    if starved is None or starved < STARVED:
        return None
    return warning(
        "Generating rows may have been the limit: the connections waited for rows "
        f"{100 * min(1.0, starved):.0f} % of the time.",
        "Use fewer connections, load rows from files that `loadstone generate` wrote, or drive the load "
        "from another machine: the server may be able to load more.",
    )


@of_load
def memory_limited(phase: PhaseFigures) -> Warning | None:
    """Say that a control group held the server's memory down."""
    source = phase.steps or phase.usage
    limit = source and source.memory_limit_bytes
    if not limit or not ((phase.steps and phase.steps.points) or phase.storage):
        return None
    return warning(
        "A control group limited the memory of the server and of its files' page cache to "
        f"{limit / _MEBI:,.0f} MiB: a knee found here applies to that amount of memory.",
        "To find the knee of this machine, run the size `full` or use a server without such a limit.",
        "info",
    )


@of_steps
def short_steps(steps: Sequence[StepFigures]) -> Warning | None:
    """Say that steps are so short that chance decides their length."""
    short = [step for step in steps if (step.seconds or 0) < SHORT_STEP_S]
    if not short or len(steps) == 1:
        return None
    return warning(
        f"{len(short)} of {len(steps)} steps took less than {SHORT_STEP_S:g} s: a single checkpoint or "
        "pause of the machine is a large part of such a step.",
        "Use more rows per step (--set step_rows=N), or judge the trend over many steps, not single ones.",
    )


@of_steps
def client_used_more(steps: Sequence[StepFigures]) -> Warning | None:
    """Say that in some steps we used more of the machine than the server did."""
    shares = {step.step: share for step in steps if (share := _client_share(step)) is not None}
    ours = [step for step, share in shares.items() if share >= CLIENT_SHARE]
    if not ours:
        return None
    return warning(
        f"Loadstone used more CPU than the server in {len(ours)} of {len(steps)} steps ({named(ours)}; "
        f"up to {100 * max(shares.values()):.0f} % of the CPU time of both): on one machine that slows the "
        "server down.",
        "Send rows in binary form (method copy_binary), or drive the load from another machine.",
    )


@of_steps
def checkpoints_in_steps(steps: Sequence[StepFigures]) -> Warning | None:
    """Say that checkpoints fell into single steps, which paid for those beside them."""
    met = [at for at, step in enumerate(steps) if step.checkpoints]
    if not 0 < len(met) <= len(steps) / 2:
        return None
    slower = median(_against_neighbours(steps, at) for at in met)
    if slower < SLOWER:
        return None
    return warning(
        f"Checkpoints began in {len(met)} of {len(steps)} steps "
        f"({named([steps[at].step for at in met])}); these took {slower:.2g} times as long as the steps "
        "next to them (median).",
        "Do not mistake such a step for the knee. With larger steps, or a smaller max_wal_size, "
        "checkpoints are spread evenly over the steps.",
        "info",
    )


@of_disk
def shared_disk(disk: str) -> Warning:
    """Say that what we write down is on the server's disk."""
    return warning(
        f"The results are written to the same disk as the server's data ({disk}): the disk figures "
        "include Loadstone's own writes, about a kilobyte a second.",
        "If single writes matter, choose a folder on another disk or in memory with --out.",
        "info",
    )


def named(steps: Sequence[int]) -> str:
    """Name steps, the first few of many: "steps 3, 7, 9, …"."""
    shown = ", ".join(str(step) for step in steps[:_STEPS_NAMED])
    return f"step{'s' if len(steps) > 1 else ''} {shown}{', …' if len(steps) > _STEPS_NAMED else ''}"


def _client_share(step: StepFigures) -> float | None:
    ours, servers = step.client_cpu_s, step.server_cpu_s
    return ours / (ours + servers) if ours is not None and servers is not None and ours + servers else None


def _against_neighbours(steps: Sequence[StepFigures], at: int) -> float:
    """Return the step's time per row over that of those right before and after it without a checkpoint."""
    around = (*steps[max(0, at - 1) : at], *steps[at + 1 : at + 2])
    beside = [step for step in around if not step.checkpoints]
    usual = [step.seconds / step.rows for step in beside if step.rows and step.seconds]
    own = steps[at]
    return (own.seconds or 0) / own.rows / (sum(usual) / len(usual)) if usual and own.rows else 1.0
