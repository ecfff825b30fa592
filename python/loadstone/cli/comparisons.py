"""What commands share that compare: their options, and the forms of their output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli.experiments import format_option
from loadstone.errors import LoadstoneError
from loadstone.model import MATTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from loadstone.compare.documents import Document
    from loadstone.compare.gate import Accepted
    from loadstone.compare.page import Listing
    from loadstone.compare.sides import Pair

FORMATS = ("text", "markdown", "json", "junit")
SUFFIXES = {".md": "markdown", ".json": "json", ".xml": "junit", ".html": "html", ".txt": "text"}
FAILURES = ("worse", "undecided")


class Percent(click.ParamType[float]):
    """A share in percent, with or without its sign: `3%`."""

    name = "percent"

    def __init__(self, example: str = "3%") -> None:
        self.example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share as a part of one."""
        if isinstance(value, float):
            return value
        try:
            share = float(str(value).strip().removesuffix("%")) / 100
        except ValueError:
            share = -1.0
        if not 0 < share < 1:
            self.fail(
                f"{value!r} is not a percentage above 0 and below 100, such as {self.example}", param, ctx
            )
        return share


form_option = format_option(FORMATS)
matters_option = click.option(
    "--matters",
    type=Percent(),
    default=f"{100 * MATTERS:g}%",
    show_default=True,
    help="Differences smaller than this do not matter.",
)
every_option = click.option(
    "--all", "every", is_flag=True, help="Show all metrics, also those that do not differ."
)


def failures_given(_: click.Context, option: click.Parameter, text: str) -> tuple[str, ...]:
    """Read `--fail-on`."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in FAILURES:
            message = f"{name!r} is not one of {', '.join(FAILURES)}"
            raise click.BadParameter(message, param=option)
    return names


def files_given(_: click.Context, option: click.Parameter, paths: Sequence[Path]) -> tuple[Path, ...]:
    """Refuse files whose names do not say their form."""
    for path in paths:
        if path.suffix.lower() not in SUFFIXES:
            message = f"{path}: the name must end in {', '.join(SUFFIXES)}"
            raise click.BadParameter(message, param=option)
    return tuple(paths)


def accept_known(document: Document, known: Sequence[Accepted]) -> None:
    """Mark known regressions, and say which entries of the list ended or match nothing."""
    from datetime import date

    from loadstone.cli import terminal
    from loadstone.compare.gate import accept
    from loadstone.host.environment import read_clocks

    today = date.fromisoformat(read_clocks().started_at[:10])
    for line in accept(document, known, today):
        terminal.say(line)


def visible_document(document: Document) -> Document:
    """Return the document with texts of run folders that cannot act on a terminal or break XML."""
    import msgspec

    from loadstone.compare.documents import Document
    from loadstone.visible import visible_tree

    return msgspec.convert(visible_tree(msgspec.to_builtins(document)), Document)


def forms_of(
    document: Document, pairs: Sequence[Pair], *, every: bool, listings: Sequence[Listing] = ()
) -> dict[str, Callable[[], str]]:
    """Return what makes each form of the output: text, markdown, json, junit, html."""

    def text() -> str:
        from loadstone.compare.terminal import screen

        return drawn(screen(document, every=every))

    def markdown() -> str:
        from loadstone.compare.markdown import markdown

        return markdown(document, every=every)

    def as_json() -> str:
        import msgspec

        from loadstone.results.json_files import to_json

        return to_json(msgspec.to_builtins(document), indent=1) + "\n"

    def as_junit() -> str:
        from loadstone.compare.junit import junit

        return junit(document)

    def html() -> str:
        from loadstone.cli import terminal
        from loadstone.compare.page import page

        return page(document, pairs, terminal.say, listings)

    return {"text": text, "markdown": markdown, "json": as_json, "junit": as_junit, "html": html}


def drawn(what: Any) -> str:
    """Return a screen as text: as wide as the terminal, with colours only there."""
    import io
    import os

    from rich.console import Console

    shown = sys.stdout is not None and sys.stdout.isatty()
    width = None if shown or "COLUMNS" in os.environ else 120
    console = Console(file=io.StringIO(), force_terminal=shown, width=width, highlight=False, markup=False)
    console.print(what)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def write_form(path: Path, text: str) -> None:
    """Write an output into a file. Raises LoadstoneError where it cannot be."""
    from loadstone.results.json_files import write_atomic
    from loadstone.results.redact import redact

    refuse_place(path)
    write_atomic(path, redact(text))


def refuse_place(path: Path) -> None:
    """Raise LoadstoneError where no file can be: a folder is there, or its folder is missing."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        what = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise LoadstoneError(f"'{path}' {what}", "Name a file in a folder that exists.")
