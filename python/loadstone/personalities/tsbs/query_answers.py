"""The answers of a run: written to a file, compared with those of another run or target."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.results.json_files import to_json, write_atomic
from loadstone.workload.queries.execution import compare_answers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone.workload.tsbs.queries import Query

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class KnownAnswers:
    """The answers that a run is compared with."""

    name: str
    """Where they come from, in words."""
    sums: Sequence[str]
    """What each query was, shortened."""
    answers: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, path: Path) -> KnownAnswers:
        """Read a file of --answers. Raises LoadstoneError."""
        hint = "Use a file that was written with --answers."
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["format"] != _FORMAT:
                raise LoadstoneError(f"{path} is of format {document['format']}, not {_FORMAT}", hint)
            return cls(f"{path} ({document['target']})", document["queries"], document["answers"])
        except OSError as error:
            raise LoadstoneError(f"'{path}' cannot be read: {error.strerror}", hint) from error
        except (ValueError, KeyError, TypeError) as error:
            raise LoadstoneError(f"{path} is not a file of answers: {error!r}", hint) from error


@dataclass(slots=True)
class Answers:
    """The answers of one run or several over the same queries."""

    known: KnownAnswers | None
    """What all are compared with; without it, the first run's."""
    used: bool = True
    """Whether there is another run to compare with, or a file to write."""
    wrong: int = 0
    sums: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    first: KnownAnswers | None = None

    def noting(self, queries: Iterator[Query]) -> Iterator[Query]:
        """Pass queries on, and remember which they were."""
        self.sums.clear()
        self.labels.clear()
        if not self.used:
            yield from queries
            return
        for query in queries:
            text = f"{query.label}\0{query.sql}".encode()
            self.sums.append(hashlib.blake2b(text, digest_size=8).hexdigest())
            self.labels.append(query.label)
            yield query

    def take(self, target: str, answers: Sequence[Mapping[str, Any]]) -> str | None:
        """Take in a run's answers; returns what came of comparing them, in lines, if there is what to."""
        expected = self.known or self.first
        if self.first is None:
            self.first = KnownAnswers(target, list(self.sums), list(answers))
        if expected is None:
            return None
        common = min(len(expected.sums), len(self.sums))
        if list(expected.sums[:common]) != self.sums[:common]:
            raise LoadstoneError(
                f"the answers of {expected.name} are for other queries", "Run the same file of queries."
            )
        differing = compare_answers(expected.answers, answers)
        self.wrong += len(differing)
        compared = len({a["query"] for a in expected.answers} & {a["query"] for a in answers})
        lines = [f" - wrong answer to query {n + 1} ({self.labels[n]}): {words}\n" for n, words in differing]
        head = f" - answers compared with {expected.name}: {compared} queries, {len(differing)} wrong"
        head += " (here: those; there: this run's)\n" if differing else "\n"
        return head + "".join(lines)

    def write(self, path: Path) -> None:
        """Write the first run's answers to a file."""
        found = self.first
        assert found is not None, "written after a run"  # noqa: S101
        document = {
            "format": _FORMAT,
            "target": found.name,
            "queries": found.sums,
            "answers": found.answers,
        }
        try:
            write_atomic(path, to_json(document))
        except OSError as error:
            raise RunFailedError(
                f"the answers could not be written to {path}: {error.strerror}", "Choose another file."
            ) from error
