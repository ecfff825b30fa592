"""The request of a run, kept in run.json without its secrets, so that `--resume DIR` alone goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, UnsetType

from loadstone.errors import LoadstoneError
from loadstone.model import InOut  # noqa: TC001 - msgspec reads the annotations at run time
from loadstone.results.document_reader import typed
from loadstone.results.documents.base import Count, Struct
from loadstone.results.folder import FORMAT, RunFolder
from loadstone.results.redact import HIDDEN, redact
from loadstone.scenario.builtin import builtin_scenarios
from loadstone.scenario.scenario import find_scenario
from loadstone.target import parse_target
from loadstone.watch.spec import specs_of
from loadstone.watch.watchers import WatchOptions

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from loadstone.run.request import Request
    from loadstone.target import Target

_AS_THEY_ARE = (
    "size", "seed", "repeats", "keep", "replace", "ignore_space", "calibrate", "io", "verify", "hosts",
)  # fmt: skip
_OPTIONS = {"overrides": "--set", "settings": "--setting"}


class _Watched(Struct, frozen=True):
    """What watched the run, as run.json keeps it."""

    urls: list[str]
    token_file: str | UnsetType = UNSET
    ca: str | UnsetType = UNSET


class _Request(Struct, frozen=True):
    """The key `asked` of run.json: what must be true of it for a run to be resumed."""

    scenarios: list[str]
    targets: list[str]
    overrides: dict[str, str]
    settings: dict[str, str]
    storage: str | None = None
    watch: _Watched | UnsetType = UNSET
    size: Literal["tiny", "small", "full"] = "small"
    seed: Count = 1
    repeats: Count = 1
    keep: bool = False
    replace: bool = False
    ignore_space: bool = False
    calibrate: bool = True
    verify: bool = False
    io: InOut = "auto"
    hosts: str | None = None


def asked_document(request: Request, targets: Sequence[Target]) -> dict[str, Any]:
    """Return the key `asked` of run.json; `targets` are the request's, understood."""
    ours = {path: name for name, path in builtin_scenarios().items()}
    return {
        "scenarios": [ours.get(one.folder) or str(one.folder.absolute()) for one in request.scenarios],
        "targets": [redact(target.without_password()) for target in targets],
        **{name: _without_secrets(getattr(request, name)) for name in _OPTIONS},
        "storage": str(request.storage.absolute()) if request.storage else None,
        **{name: getattr(request, name) for name in _AS_THEY_ARE},
        **({"watch": _watch_document(request, targets)} if request.watch.urls else {}),
    }


def with_what_was_asked(request: Request, given: Collection[str]) -> Request:
    """Return the request to resume a run, whose folder says what is not `given` again.

    `given` are fields of the request; of settings and parameters, single ones can be given. Passwords are in
    no folder: a target is named again to give one. Raises LoadstoneError.
    """
    if request.resume is None:
        return request
    if request.out is not None and request.out.absolute() != request.resume.absolute():
        raise LoadstoneError(
            "--out creates a new folder, but --resume continues in the old one", "Remove --out."
        )
    folder = RunFolder.open(request.resume)
    _refuse_older(folder)
    asked = folder.run.get("asked")
    if not isinstance(asked, dict):
        return request  # as an older Loadstone wrote it: all options must be given
    typed(asked, f"{folder.path / 'run.json'}, asked", _Request)
    kept: dict[str, Any] = {name: asked[name] for name in _AS_THEY_ARE if name in asked and name not in given}
    if "scenarios" not in given:
        kept["scenarios"] = [find_scenario(name) for name in asked["scenarios"]]
    if "storage" not in given and asked.get("storage"):
        kept["storage"] = Path(asked["storage"])
    if "watch" not in given and asked.get("watch"):
        kept["watch"] = _watch(request.watch, asked["watch"])
    kept["targets"] = _targets(request.targets if "targets" in given else (), asked["targets"])
    for name, option in _OPTIONS.items():
        anew = getattr(request, name)
        _refuse_hidden(option, {n: v for n, v in asked[name].items() if n not in anew})
        kept[name] = {**asked[name], **anew}
    return replace(request, **kept)


def _watch_document(request: Request, targets: Sequence[Target]) -> dict[str, Any]:
    """Name targets by their ids: how they are written may change when the run goes on. Without passwords."""
    watch = request.watch
    specs = specs_of(watch.urls, request.targets, targets, {})
    paths = {"token_file": watch.token_file, "ca": watch.ca}
    return {
        "urls": [f"{spec.target}={spec.shown}" for spec in specs],
        **{name: str(path.absolute()) for name, path in paths.items() if path is not None},
    }


def _watch(given: WatchOptions, asked: Mapping[str, Any]) -> WatchOptions:
    """Return what watched the run, with the files that are given again."""
    paths = {name: Path(asked[name]) for name in ("token_file", "ca") if name in asked}
    return WatchOptions(
        asked["urls"], given.token_file or paths.get("token_file"), given.ca or paths.get("ca")
    )


def _refuse_older(folder: RunFolder) -> None:
    """Refuse what an older version began: its plan and documents have other names."""
    if (found := folder.run["format"]) < FORMAT:
        raise LoadstoneError(
            f"{folder.path} was begun by Loadstone {folder.run.get('loadstone')} (format {found}), "
            "and this version cannot resume it",
            "Resume it with that version, or start a new run.",
        )


def _targets(anew: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Put targets that are named again in the place of those that they mean."""
    urls = {parse_target(text).url: text for text in anew}
    known = [urls.pop(parse_target(text).url, text) for text in asked]
    if urls:
        return list(anew)  # what it is that differs is told once all is understood
    for text in known:
        if text not in anew:
            _refuse_hidden("--target", {"URL": text})
    return known


def _without_secrets(pairs: Mapping[str, str]) -> dict[str, str]:
    return {name: redact(f"{name}={value}").partition("=")[2] for name, value in pairs.items()}


def _refuse_hidden(option: str, pairs: Mapping[str, str]) -> None:
    for name, value in pairs.items():
        if HIDDEN in value:
            raise LoadstoneError(
                f"the run's folder does not contain the whole value of {option} {name}, because it "
                "stores no secrets",
                f"Set it again together with --resume: {option} {name}=…",
            )
