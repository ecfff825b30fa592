"""Warnings about a run as a whole, and about its targets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from loadstone.summary.damage import damage
from loadstone.summary.warnings.registry import Warnings, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.results.documents import Environment, Event, Target
    from loadstone.results.documents.run import Note
    from loadstone.results.documents.summary import Warning
    from loadstone.results.documents.target import Durability
    from loadstone.summary.run_files import RunFiles

_COMPILED = re.compile(r"compiled by [^,]+")

of_run: Warnings[RunFiles] = Warnings()
of_damage: Warnings[str] = Warnings()
of_manifest: Warnings[RunFiles] = Warnings()
of_note: Warnings[Event | Note] = Warnings()
of_builds: Warnings[RunFiles] = Warnings()
of_setting: Warnings[Durability] = Warnings()
of_target: Warnings[Target] = Warnings()


def run_warnings(files: RunFiles) -> Iterator[Warning]:
    """Say what holds for the run as a whole: its end, our build, what was noted on the way."""
    yield from of_run.of(files)
    for text in damage(files, files.findings):
        yield from of_damage.of(text)
    yield from of_manifest.of(files)
    for note in _notes(files):
        yield from of_note.of(note)
    yield from of_builds.of(files)


def target_warnings(target: Target) -> Iterator[Warning]:
    """Say what holds for all figures of one target: durability and the way to it."""
    for setting in target.durability or []:
        yield from of_setting.of(setting, target.id)
    yield from of_target.of(target, target.id)


@of_run
def run_incomplete(files: RunFiles) -> Warning | None:
    """Say how the run ended that did not reach its end."""
    if files.state == "complete":
        return None
    words = {
        "killed": "The run was killed before its end",
        "interrupted": "The run was interrupted",
        "failed": "The run failed",
        "running": "The run has not finished",
    }
    because = f": {files.run.reason}" if files.run.reason else ""
    hint = "Run it to its end before you compare its figures with others."
    if files.state == "running":
        hint = "Run `loadstone report` again when the run has finished."
    begun = words.get(files.state, files.state)
    return warning(f"{begun}{because}. The figures are those recorded until then.", hint)


@of_damage
def folder_damaged(text: str) -> Warning:
    """Say which file is not as the run has left it."""
    return warning(
        f"The run folder is damaged: {text}.",
        "Use an untouched copy of the folder; figures from this one may be wrong.",
        "error",
    )


@of_manifest
def no_manifest(files: RunFiles) -> Warning | None:
    """Say that nothing says whether the files are those that the run wrote."""
    if files.findings.checked:
        return None
    return warning(
        "There is no manifest, so the files of this folder were not checked for damage.",
        "An older version of Loadstone wrote this folder; folders of this version are checked.",
        "info",
    )


@of_manifest
def debug_build(files: RunFiles) -> Warning | None:
    """Say that our own core is not optimised."""
    if not _is_debug(files.environment):
        return None
    return warning(
        "Loadstone's core is a debug build: the client is several times slower than it should be.",
        "Run `make build` and measure again.",
    )


@of_note
def noted(note: Event | Note) -> Warning:
    """Pass on what the run itself warned of, before it began or while it went on."""
    found = warning(note.message, note.hint or "See events.jsonl in the run folder.", note.level)
    found.target, found.phase = getattr(note, "target", None), getattr(note, "phase", None)
    return found


@of_builds
def mixed_builds(files: RunFiles) -> Warning | None:
    """Say that the targets differ in more than the engine."""
    builds = sorted({build for target in files.targets if (build := _build_of(target.target))})
    if len(builds) < 2:  # noqa: PLR2004 - all are built alike
        return None
    named = "; ".join(builds)
    return warning(
        f"The targets were compiled differently: {named}. That may explain a part of any difference.",
        "Compare servers from the same packager, or mention the builds next to the figures.",
    )


@of_setting
def durability_off(setting: Durability) -> Warning | None:
    """Name a setting that trades durability for speed."""
    if setting.durable is not False:
        return None
    name, because = setting.setting, f" ({setting.why})" if setting.why else ""
    return warning(
        f"Not durable: {name} = {setting.value}{because}. This improves all figures of this target.",
        f"Turn {name} on for figures that apply to production, or mention it next to every figure.",
    )


@of_target
def cleartext_password(target: Target) -> Warning | None:
    """Say that the password crossed the network readably."""
    if target.authentication not in {"password", "cleartext"} or target.encrypted:
        return None
    return warning(
        "The server requested the password in plain text over a connection without TLS.",
        "Use scram-sha-256 in pg_hba.conf, or sslmode=verify-full, and change the password.",
    )


@of_target
def not_encrypted(target: Target) -> Warning | None:
    """Say that a remote server was measured without TLS."""
    if not _is_unencrypted(target):
        return None
    return warning(
        "The connection to this remote server was not encrypted: its figures do not include the cost of TLS.",
        "Add sslmode=require to the URL if production uses TLS.",
        "info",
    )


def _build_of(target: Target) -> str | None:
    """Return what is known of a server's build: what it was packed as, else which compiler it names."""
    if target.build:
        return target.build
    named = _COMPILED.search(target.version_text or "")
    return f"{target.label} ({named[0]})" if named else None


def _notes(files: RunFiles) -> Iterator[Event | Note]:
    """Yield what the run warned of, before it began (the machine) and while it went on, each once."""
    before = [note for note in files.environment.warnings or [] if "debug build" not in note.message]
    during = [
        event
        for event in files.events
        if event.kind in {"warning", "note"} and event.level in {"warning", "error"}
    ]
    seen = set()
    notes: list[Event | Note] = [*during, *before]
    for note in notes:
        if note.message in seen or ("debug build" in note.message and _is_debug(files.environment)):
            continue
        seen.add(note.message)
        yield note


def _is_debug(environment: Environment) -> bool:
    core = environment.loadstone and environment.loadstone.core
    return bool(core and core.debug_build)


def _is_unencrypted(target: Target) -> bool:
    if isinstance(target.encrypted, bool):
        return not target.encrypted and target.local is False
    query = parse_qs(urlsplit(target.url or "").query)
    return target.local is False and query.get("sslmode") == ["disable"]  # no document: a query string
