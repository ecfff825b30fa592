"""`--watch`, `--live` and `--openmetrics` of `load` and `run-queries`."""

# ruff: noqa: FBT003 - a default is of the flag's kind

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.personalities.observation.observer import Observer, Served, observing, serving_process
from loadstone.personalities.observation.options import ObservationOptions
from loadstone.personalities.tsbs.flags import Flag

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from loadstone.personalities.tsbs.flags import Values
    from loadstone.target import OpenTarget, Target

FLAGS = (
    Flag("live", "bool", False, "Show the run in a browser while it continues"),
    Flag("live-port", "uint", 0, "Port of that page, 0 = any that is free"),
    Flag("openmetrics", "string", "", "Serve figures for Prometheus at [HOST:]PORT during the run"),
    Flag(
        "watch",
        "string",
        "",
        "Watch the server's machine: [TARGET=]http://…, https://… (exporters), ssh://…; with commas between",
    ),
    Flag("watch-ca", "string", "", "Certificate authority to trust for exporters (PEM)"),
    Flag("watch-token-file", "string", "", "File with the bearer token for exporters"),
)


def observation_of(values: Values) -> ObservationOptions:
    """Return what the flags ask for."""
    token_file, ca = values.text("watch-token-file"), values.text("watch-ca")
    return ObservationOptions(
        [url for url in values.text("watch").split(",") if url],
        Path(token_file) if token_file else None,
        Path(ca) if ca else None,
        values.on("live"),
        values.number("live-port") or None,
        values.text("openmetrics") or None,
    )


def observing_of(
    values: Values, targets: Sequence[Target], program: str, err: Callable[[str], object]
) -> AbstractContextManager[Observer]:
    """Prepare it; raises LoadstoneError before anything is touched."""
    asked = values.text("target").split()
    given = asked if len(asked) == len(targets) else [""] * len(targets)
    return observing(
        observation_of(values),
        "tsbs",
        lambda: list(zip(given, targets, strict=True)),
        lambda text: err(f"{program}: {text}\n"),
    )


def served(opened: OpenTarget) -> Served:
    """Return an open target as what a drive uses."""
    return Served(
        opened.id,
        opened.label,
        lambda: serving_process(opened.engine, lambda: opened.connect("loadstone")),
    )


def bullets(lines: Sequence[str]) -> str:
    """Return lines as the others below TSBS's figures."""
    return "".join(f" - {line}\n" for line in lines)
