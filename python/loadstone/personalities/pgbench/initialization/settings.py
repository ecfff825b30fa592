"""The options of initialization, with pgbench's complaints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from loadstone.personalities.pgbench.complaint import ComplaintError
from loadstone.personalities.pgbench.values import integer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Method = Literal["range", "hash"]

STEPS = "dtgGvpf"
"""All steps: drop, create, fill from the client, fill on the server, vacuum, primary keys, foreign keys."""
_METHODS: tuple[Method, ...] = ("range", "hash")


@dataclass(slots=True)
class InitSettings:
    """What `-i` shall make."""

    steps: str = "dtgvp"
    fillfactor: int = 100
    """In percent."""
    quiet: bool = False
    """A line of progress every five seconds, instead of one every 100,000 rows."""
    partitions: int = 0
    """Of pgbench_accounts; 0: it is one table."""
    partition_method: Method | None = None
    foreign_keys: bool = False
    unlogged: bool = False
    tablespace: str | None = None
    index_tablespace: str | None = None

    @property
    def method(self) -> Method | None:
        """How pgbench_accounts is partitioned; None: not at all."""
        return (self.partition_method or "range") if self.partitions else None

    def check(self) -> None:
        """Raise ComplaintError for options that contradict each other."""
        if self.partition_method and not self.partitions:
            raise ComplaintError("--partition-method requires greater than zero --partitions")

    def steps_to_do(self, *, vacuum: bool) -> str:
        """Return the steps in order; `vacuum` is False under `-n`."""
        steps = self.steps.replace(" ", "")
        if not vacuum:
            steps = steps.replace("v", "")
        return f"{steps}f" if self.foreign_keys and "f" not in steps else steps


def _take_steps(settings: InitSettings, text: str) -> None:
    if not text:
        raise ComplaintError("no initialization steps specified")
    for step in text:
        if step not in f"{STEPS} ":
            raise ComplaintError(
                f'unrecognized initialization step "{step}"',
                detail=f'Allowed step characters are: "{STEPS}".',
            )
    settings.steps = text


def _take_method(settings: InitSettings, text: str) -> None:
    found = next((method for method in _METHODS if method == text.lower()), None)
    if found is None:
        raise ComplaintError(f'invalid partition method, expecting "range" or "hash", got: "{text}"')
    settings.partition_method = found


def _setter(name: str, convert: Callable[[str], object]) -> Callable[[InitSettings, str], None]:
    return lambda settings, text: setattr(settings, name, convert(text))


HANDLERS: Mapping[str, Callable[[InitSettings, str], None]] = {
    "init-steps": _take_steps,
    "fillfactor": _setter("fillfactor", lambda text: integer("-F/--fillfactor", text, 10, 100)),
    "quiet": _setter("quiet", lambda _: True),
    "partitions": _setter("partitions", lambda text: integer("--partitions", text, 0)),
    "partition-method": _take_method,
    "foreign-keys": _setter("foreign_keys", lambda _: True),
    "unlogged-tables": _setter("unlogged", lambda _: True),
    "tablespace": _setter("tablespace", str),
    "index-tablespace": _setter("index_tablespace", str),
}
"""What each option does, by its long name."""
