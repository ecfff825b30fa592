"""One search with pgbench's command line: server looked at once, trials driven, answer printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.experiment.documents import begun
from loadstone.host.environment import read_clocks
from loadstone.personalities.pgbench.complaint import PROGRAM, ComplaintError
from loadstone.personalities.pgbench.reporting.planned import parameters
from loadstone.personalities.pgbench.results import head
from loadstone.personalities.pgbench.run import drive_of
from loadstone.personalities.pgbench.scripts import title
from loadstone.personalities.pgbench.server import prepare
from loadstone.personalities.pgbench.slo.texts import answer_block
from loadstone.personalities.pgbench.slo.trials import PgbenchTrials
from loadstone.results.folder import RunFolder, missing
from loadstone.slo.documents import FORMAT, Slo
from loadstone.slo.experiment import SloSearch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loadstone.model import Drive
    from loadstone.personalities.observation.observer import Observer
    from loadstone.personalities.pgbench.options import Options
    from loadstone.personalities.pgbench.server import Address, ServerFacts

    Write = Callable[[str], object]


def search(options: Options, address: Address, observer: Observer, out: Write, err: Write) -> int:
    """Search the highest rate that keeps the limits, and return the exit status.

    Raises LoadstoneError where nothing could be run; no folder is left then.
    """
    folder, found = _begun(options, address, err)
    drive = drive_of(options, found)
    bench = PgbenchTrials(options, drive, address, folder, observer, err)
    document = _document(options, drive, address, folder)

    def say(text: str) -> None:
        err(f"{PROGRAM}: {text}\n")

    window_s = float(options.duration_s or 0)
    searched = SloSearch(document, say, bench, window_s, options.slo.most)
    searched.run()
    lines = [*head(options, found, drive.threads or 1), "", *answer_block(document, options.seed)]
    out("".join(f"{line}\n" for line in lines))
    if searched.trouble is not None:
        err(ComplaintError(searched.trouble.message, searched.trouble.hint).text())
    if folder is not None:
        _write_forms(folder, document, say)
    return searched.exit_code or searched.required()


def _begun(options: Options, address: Address, err: Write) -> tuple[Path | None, ServerFacts]:
    """Make the folder of `--report`, and look at the server; without the server no folder is left."""
    if options.report is None:
        return None, prepare(address, options, err)
    made = missing(options.report)
    folder = RunFolder.create(options.report, options.report.name, option="--report")
    try:
        return folder.path, prepare(address, options, err)
    except BaseException:
        folder.discard(made)
        raise
    finally:
        folder.close()


def _document(options: Options, drive: Drive, address: Address, folder: Path | None) -> Slo:
    where, slo = address.connection, options.slo
    shown = {name: str(value) for name, value in parameters(options, drive).items()}
    run_id = folder.absolute().name if folder else PROGRAM
    command = ["loadstone", PROGRAM, *options.arguments]
    return begun(
        Slo, run_id, read_clocks().started_at, command, format=FORMAT,
        scenario=PROGRAM, phase=title(options.scripts), size="", seed=options.seed,
        target=f"{where.host}:{where.port}/{where.database}", parameters=shown, settings={},
        limits=[one.text for one in slo.limits], errors=slo.errors, required=slo.required_per_s,
        restored=False,
    )  # fmt: skip


def _write_forms(folder: Path, document: Slo, say: Callable[[str], None]) -> None:
    """Write answer and curve as Markdown and as a page; a full disk takes them, and not the answer."""
    from loadstone.results.json_files import write_atomic  # noqa: PLC0415
    from loadstone.slo import texts  # noqa: PLC0415
    from loadstone.slo.page import page  # noqa: PLC0415 - draws charts

    try:
        write_atomic(folder / "slo.md", texts.markdown(document))
        write_atomic(folder / "slo.html", page(document, say))
    except LoadstoneError as error:
        say(f"error: there is no report: {error.message}")
    else:
        say(f"report: {folder / 'slo.html'}")
