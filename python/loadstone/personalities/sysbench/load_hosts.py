"""`--hosts`: a run from several load hosts, which are sent the texts of the script and of its modules."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.hosts.driving import driver
from loadstone.hosts.places import parse_hosts
from loadstone.personalities.sysbench.complaint import ComplaintError
from loadstone.personalities.sysbench.scripts import templates

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from loadstone.hosts.driving import Driver
    from loadstone.personalities.sysbench.running import Job
    from loadstone.personalities.sysbench.scripts import Script

_OPTION = "hosts"
_READS = re.compile(r"""\b(require|dofile|loadfile)\s*\(?\s*(["'])([^"'\n]+)\2""")
"""A file that a script reads later than it is loaded, if its name is written there."""
_BYTES_MAX = 1 << 24


def hosts_of(job: Job) -> str | None:
    """Return the load hosts; None where there are none, or where the option is the script's own."""
    own = {option.name for option in job.script.options}
    return None if _OPTION in own else job.settings.string(_OPTION)


def refuse_impossible(job: Job) -> None:
    """Raise LoadstoneError for what load hosts cannot do."""
    hosts = hosts_of(job)
    if hosts is None:
        return
    parse_hosts(hosts)
    if job.limits.checkpoints_s:
        raise ComplaintError(
            "--hosts and --report-checkpoints exclude each other: the statistics of several load hosts are "
            "put together when all have ended",
            "Use --report-interval.",
            fatal=True,
        )


def note_alone(job: Job, command: str) -> None:
    """Say that a command other than `run` is no work for load hosts."""
    if hosts_of(job) is not None:
        job.err(f"sysbench: '{command or 'the script'}' runs once, on this host: --hosts is for run\n")


def driven(job: Job) -> AbstractContextManager[Driver]:
    """Return what drives a run: this process, or the load hosts. Raises LoadstoneError."""

    def say(level: str, text: str) -> None:
        job.err(f"sysbench: {'warning: ' if level == 'warning' else ''}{text}\n")

    return driver(hosts_of(job), job.signals, say)


def sent_of(script: Script) -> dict[str, Any]:
    """Return what load hosts are told of a script beyond what this one is; raises ComplaintError."""
    return {"files": texts_of(script), "done": "done" in script.functions}


def texts_of(script: Script) -> dict[str, str]:
    """Return the texts of the script and of what it reads, by path; raises ComplaintError.

    That is what it has read when it was loaded, and what it names in `require`, `dofile` or `loadfile`. A
    module whose name is computed, or that is no Lua, must be on the load hosts themselves.
    """
    texts: dict[str, str] = {}
    ahead = [script.found.script, *script.files]
    while ahead:
        path = ahead.pop()
        if path in texts:
            continue
        texts[path] = _text(path)
        ahead += _named(texts[path])
    size = sum(len(text.encode()) for text in texts.values())
    if size > _BYTES_MAX:
        raise ComplaintError(
            f"the script and its modules have {size:,} bytes, more than the {_BYTES_MAX:,} that are sent to "
            "load hosts",
            "Let the script read large tables from the database.",
            fatal=True,
        )
    return texts


def _text(path: str) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise ComplaintError(f"{path} cannot be read: {error.strerror}", fatal=True) from error
    except UnicodeDecodeError:
        raise ComplaintError(
            f"{path} cannot be sent to load hosts: it is not UTF-8 text",
            "Convert it: iconv -f latin1 -t utf-8.",
            fatal=True,
        ) from None


def _named(text: str) -> Iterator[str]:
    """Yield the paths of files that a text names, of those that are there."""
    for kind, _, name in _READS.findall(text):
        places = [template.replace("?", name.replace(".", "/")) for template in templates()]
        for path in places if kind == "require" else [name]:
            if Path(path).is_file():
                yield path
                break
