"""`loadstone compare`: run folders that exist, compared."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.compare.documents import Document
    from loadstone.compare.sides import Pair

FORMATS = ("text", "markdown", "json", "junit")
_SUFFIXES = {".md": "markdown", ".json": "json", ".xml": "junit", ".html": "html", ".txt": "text"}
FAILURES = ("worse", "undecided")


class Percent(click.ParamType[float]):
    """A share in percent, with or without its sign: `3%`."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share as a part of one."""
        if isinstance(value, float):
            return value
        try:
            share = float(str(value).strip().removesuffix("%")) / 100
        except ValueError:
            share = -1.0
        if not 0 < share < 1:
            self.fail(f"{value!r} is not a percentage above 0 and below 100, such as 3%.", param, ctx)
        return share


def _failures(_: click.Context, option: click.Parameter, text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in FAILURES:
            message = f"{name!r} is none of {', '.join(FAILURES)}"
            raise click.BadParameter(message, param=option)
    return names


def _pages(_: click.Context, option: click.Parameter, paths: Sequence[Path]) -> tuple[Path, ...]:
    for path in paths:
        if path.suffix.lower() not in _SUFFIXES:
            message = f"{path}: the name must end in {', '.join(_SUFFIXES)}"
            raise click.BadParameter(message, param=option)
    return tuple(paths)


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, metavar="DIR…")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="What is printed on standard output.",
)
@click.option(
    "--out",
    "pages",
    multiple=True,
    type=click.Path(path_type=Path),
    callback=_pages,
    help="Also write a file, in the format that its name ends in: .html (a page with charts), .md, .json, "
    ".xml (JUnit), .txt. May be given several times.",
)
@click.option(
    "--matters",
    type=Percent(),
    default="3%",
    show_default=True,
    help="Differences smaller than this do not matter.",
)
@click.option("--all", "every", is_flag=True, help="Show all metrics, also those that do not differ.")
@click.option(
    "--fail-on",
    default="",
    callback=_failures,
    metavar="WORSE,UNDECIDED",
    help="Exit with 4 for a regression (worse), with 5 if a phase is not decided (undecided).",
)
@click.option(
    "--accept",
    "known",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="List of known regressions with end dates (TOML).",
)
@click.option("--anyway", is_flag=True, help="Compare runs of different plans: ratios without verdicts.")
def command(**given: Any) -> None:
    """Compare run folders: the first with each of the others.

    One folder with several targets: its first target with each other one. DIR#TARGET chooses a target of a
    run.

    \b
    loadstone compare loadstone-runs/monday loadstone-runs/tuesday
    loadstone compare runs/pg17-and-pg18 --format markdown --fail-on worse
    """  # noqa: D301 - click's mark of lines to be kept
    from loadstone.cli.output import write_out
    from loadstone.compare.comparison import compare
    from loadstone.compare.gate import exit_code
    from loadstone.compare.sides import pairs_of

    pairs = pairs_of(given["runs"])
    document = compare(pairs, given["matters"], anyway=given["anyway"])
    if given["known"] is not None:
        _accept(document, given["known"])
    document = _visible(document)
    forms = _forms(document, pairs, every=given["every"])
    for path in given["pages"]:
        _write(path, forms[_SUFFIXES[path.suffix.lower()]]())
    write_out(forms[given["form"]]())
    sys.exit(int(exit_code(document, given["fail_on"])))


def _accept(document: Document, path: Path) -> None:
    from datetime import date

    from loadstone.cli import terminal
    from loadstone.compare.gate import accept, read_accepted
    from loadstone.host.environment import read_clocks

    today = date.fromisoformat(read_clocks().started_at[:10])
    for line in accept(document, read_accepted(path), today):
        terminal.say(line)


def _visible(document: Document) -> Document:
    """Return the document with texts of run folders that cannot act on a terminal or break XML."""
    import msgspec

    from loadstone.compare.documents import Document
    from loadstone.visible import visible_tree

    return msgspec.convert(visible_tree(msgspec.to_builtins(document)), Document)


def _forms(document: Document, pairs: Sequence[Pair], *, every: bool) -> dict[str, Callable[[], str]]:
    def text() -> str:
        from loadstone.compare.terminal import screen

        return _drawn(screen(document, every=every))

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

        return page(document, pairs, terminal.say)

    return {"text": text, "markdown": markdown, "json": as_json, "junit": as_junit, "html": html}


def _drawn(what: Any) -> str:
    """Return a screen as text: as wide as the terminal, with colours only there."""
    import io
    import os

    from rich.console import Console

    shown = sys.stdout is not None and sys.stdout.isatty()
    width = None if shown or "COLUMNS" in os.environ else 120
    console = Console(file=io.StringIO(), force_terminal=shown, width=width, highlight=False, markup=False)
    console.print(what)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def _write(path: Path, text: str) -> None:
    from loadstone.results.json_files import write_atomic
    from loadstone.results.redact import redact

    if path.is_dir() or not path.absolute().parent.is_dir():
        what = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise LoadstoneError(f"'{path}' {what}", "Name a file in a folder that exists.")
    write_atomic(path, redact(text))
