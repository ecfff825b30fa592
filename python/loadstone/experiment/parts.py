"""A plan in two parts: what loads an arm's template, and what each trial measures on a copy of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.plan.model import ScriptWorkload, SqlWorkload
from loadstone.scenario.parameter import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from loadstone.plan.model import Plan, PlannedPhase, PlannedTarget

TEMPLATE = "template"
"""Id of the phase that prepares the first measured one."""
_DRIVEN = ("script", "queries")
_KEPT = ("load", "check", "sql")
"""Phases that others may need, measured or not."""
_CACHES = "pg_prewarm"
"""A statement with this fills a cache, which no copy of the data has."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Which phases are measured: those of these ids, or without any the scenario's own choice.

    That is its scripts and queries; where it has none, its loads. Phases before the first measured one load
    the template, and so does what that one sets up. Phases that fill caches run in each trial.
    """

    chosen: tuple[str, ...] = ()

    def loading(self, plan: Plan) -> Plan:
        """Return the part that makes the template."""
        return _with_phases(plan, self._loading)

    def measuring(self, plan: Plan) -> Plan:
        """Return the part that each trial runs."""
        return _with_phases(plan, self._measuring)

    def _loading(self, phases: Sequence[PlannedPhase]) -> list[PlannedPhase]:
        at = self._first(phases)
        first = phases[at]
        before = [phase for phase in phases[:at] if not _fills_cache(phase)]
        prepared = replace(
            first, id=TEMPLATE, title="Prepare the first measured phase", workload=SqlWorkload(), checks=(),
            published=(), curves=(), variant={}, why="",
        )  # fmt: skip
        return [*before, prepared]

    def _measuring(self, phases: Sequence[PlannedPhase]) -> list[PlannedPhase]:
        at = self._first(phases)
        first = phases[at]
        rest = [
            phase for phase in phases[at + 1 :] if self._is_measured(phase, phases) or phase.kind in _KEPT
        ]
        while rest and rest[-1].kind == "sql":
            rest.pop()  # what only cleans up: the copy is thrown away
        caches = [phase for phase in phases[:at] if _fills_cache(phase)]
        return [*caches, replace(first, setup=(), setup_estimate_s=0.0), *rest]

    def _first(self, phases: Sequence[PlannedPhase]) -> int:
        measured = (at for at, phase in enumerate(phases) if self._is_measured(phase, phases))
        at = next((at for at in measured if phases[at].skip is None), None)
        if at is None:
            raise LoadstoneError(
                "no phase can be measured: " + (_skipped(phases) or "the scenario has neither scripts, "
                "queries nor loads"), "Use another scenario or target.",
            )  # fmt: skip
        return at

    def _is_measured(self, phase: PlannedPhase, phases: Sequence[PlannedPhase]) -> bool:
        if self.chosen:
            return phase.id in self.chosen
        driven = any(one.kind in _DRIVEN for one in phases)
        return phase.kind in _DRIVEN if driven else phase.kind == "load"

    def check(self, plan: Plan) -> None:
        """Refuse ids that no phase has, or that measure nothing. Raises LoadstoneError."""
        kinds = {phase.id: phase.kind for phase in plan.targets[0].phases}
        known = [name for name, kind in kinds.items() if kind in (*_DRIVEN, "load")]
        for name in self.chosen:
            if name not in known:
                what = "measures nothing" if name in kinds else "does not exist"
                raise LoadstoneError(
                    f"the phase '{name}' {what}", f"{nearest(name, known)}Phases: {', '.join(known)}."
                )


def _fills_cache(phase: PlannedPhase) -> bool:
    return phase.kind == "sql" and any(_CACHES in statement for statement in phase.setup)


def _skipped(phases: Sequence[PlannedPhase]) -> str:
    return "; ".join(dict.fromkeys(phase.skip for phase in phases if phase.skip))


def _with_phases(plan: Plan, part: Callable[[Sequence[PlannedPhase]], Sequence[PlannedPhase]]) -> Plan:
    def shortened(target: PlannedTarget) -> PlannedTarget:
        return replace(target, phases=tuple(part(target.phases)))

    return replace(plan, targets=tuple(map(shortened, plan.targets)))


def only_script_phase(phases: Iterable[PlannedPhase], *, none: str, several: str) -> PlannedPhase:
    """Return the one phase of scripts among `phases`.

    Raises LoadstoneError where there is none, with `none` as its hint, or where there are `several`.
    """
    found = [one for one in phases if isinstance(one.workload, ScriptWorkload)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise LoadstoneError("the scenario has no phase of scripts", none)
    ids = list(dict.fromkeys(one.id for one in found))
    hint = f"Choose one with --phase: {', '.join(ids)}."
    if len(ids) == 1:
        swept = ", ".join(dict.fromkeys(name for one in found for name in one.variant))
        hint = f"The phase '{ids[0]}' has {len(found)} variants: set {swept} with --set."
    raise LoadstoneError(several, hint)
