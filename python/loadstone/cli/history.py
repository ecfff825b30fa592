"""`loadstone history`: what runs measured, kept over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadstone.cli.comparisons import refuse_place
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.history.documents import HistoryLine

FORMATS = ("otava", "bencher")
LONGEST_COMMIT = 200

_file = click.option(
    "--history",
    "path",
    type=click.Path(path_type=Path),
    default="history.jsonl",
    show_default=True,
    metavar="FILE",
    help="The history.",
)


def _commit(_: click.Context, option: click.Parameter, text: str | None) -> str | None:
    from loadstone.visible import visible

    if text is None:
        return None
    label = text.strip()
    if not label or len(label) > LONGEST_COMMIT or "\n" in label or "\t" in label or visible(label) != label:
        message = f"{text[:LONGEST_COMMIT]!r} is not one line of 1 to {LONGEST_COMMIT} characters"
        raise click.BadParameter(message, param=option)
    return label


@click.group("history", no_args_is_help=True)
def command() -> None:
    """Keep what runs measured over time: a file, a page, exports for other tools.

    \b
    loadstone history add loadstone-runs/today --commit "$(git rev-parse --short HEAD)"
    loadstone history page --out history.html
    """  # noqa: D301 - click's mark of lines to be kept


@command.command("add")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR…")
@_file
@click.option("--commit", callback=_commit, metavar="LABEL", help="What was measured, such as a commit.")
@click.option("--replace", is_flag=True, help="Runs that are already in the history count as added now.")
def add(runs: tuple[Path, ...], path: Path, commit: str | None, *, replace: bool) -> None:
    """Append a line for each target of each run folder. If one cannot be added, none is."""
    from loadstone.cli import terminal
    from loadstone.history.file import append

    lines = [line for folder in runs for line in _lines(folder, commit)]
    append(path, lines, replace=replace)
    for line in lines:
        terminal.say(f"{path}: added {line.run}, {line.target.id}, {_phases(len(line.phases))}")


def _lines(folder: Path, commit: str | None) -> list[HistoryLine]:
    """Return the lines of a run, or that of side A of an experiment."""
    from loadstone.ab.noise import NAME, lines_of_experiment
    from loadstone.history.lines import lines_of

    return lines_of_experiment(folder, commit) if (folder / NAME).is_file() else lines_of(folder, commit)


def _phases(count: int) -> str:
    return f"{count} phase{'' if count == 1 else 's'}"


@command.command("page")
@_file
@click.option(
    "--out", type=click.Path(path_type=Path), default="history.html", show_default=True, help="The page."
)
def page(path: Path, out: Path) -> None:
    """Write a page with a chart for each phase over time."""
    from loadstone.cli import terminal
    from loadstone.history.page import page as drawn
    from loadstone.history.series import blocks_of
    from loadstone.results.json_files import write_atomic
    from loadstone.results.redact import redact

    refuse_place(out)
    lines, wrong = _read(path)
    write_atomic(out, redact(drawn(lines, blocks_of(lines), wrong, terminal.say)))
    terminal.say(str(out))


@command.command("export")
@_file
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="For which tool.")
@click.option("--run", metavar="ID", help="For bencher: the run.  [default: the newest]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="For otava: a folder for its files. For bencher: a file; without it, standard output.",
)
def export(path: Path, form: str, run: str | None, out: Path | None) -> None:
    """Write the history for Otava (CSV), or one run of it for Bencher (JSON)."""
    if form == "bencher":
        _bencher(path, run, out)
        return
    if run is not None:
        raise click.UsageError("--run goes with bencher.")
    if out is None:
        raise LoadstoneError(
            "several files cannot be printed on standard output", "Give a folder with --out."
        )
    _otava(path, out)


def _bencher(path: Path, run: str | None, out: Path | None) -> None:
    from loadstone.cli.output import write_out
    from loadstone.history.bencher import bencher
    from loadstone.results.json_files import to_json, write_atomic

    if out is not None:
        refuse_place(out)
    text = to_json(bencher(_read(path)[0], run), indent=1) + "\n"
    if out is None:
        write_out(text)
    else:
        write_atomic(out, text)


def _otava(path: Path, out: Path) -> None:
    from loadstone.cli import terminal
    from loadstone.history.otava import otava
    from loadstone.history.series import blocks_of
    from loadstone.results.json_files import write_atomic, write_error

    files = otava(blocks_of(_read(path)[0]))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(out, error) from error
    for name, text in files.items():
        write_atomic(out / name, text)
    terminal.say(f"{out}: {len(files)} files")


def _read(path: Path) -> tuple[Sequence[HistoryLine], Sequence[str]]:
    """Read the history, and say which of its lines cannot be read."""
    from loadstone.cli import terminal
    from loadstone.history.file import read

    lines, wrong = read(path)
    for words in wrong:
        terminal.say(f"left out: {words}")
    return lines, wrong
