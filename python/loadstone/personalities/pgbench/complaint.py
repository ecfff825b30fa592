"""What pgbench says when it cannot go on, and when it has nothing more to do."""

from __future__ import annotations

from loadstone.errors import LoadstoneError

PROGRAM = "pgbench"
"""How messages begin: scripts that read pgbench's standard error look for it."""
NO_SETUP = "could not create connection for setup"
LOST = "the server was lost before the run"


class ComplaintError(LoadstoneError):
    """Trouble in pgbench's own form: `error`, then `detail`, `further` errors and `hint`, a line each."""

    def __init__(
        self, message: str, hint: str = "", *, detail: str = "", further: str = "", bare: bool = False
    ) -> None:
        """`bare` leaves out the word `error`, as the C library does in complaints about options."""
        super().__init__(message, hint)
        self.detail = detail
        self.further = further
        self.bare = bare

    def text(self) -> str:
        """Return the lines for standard error."""
        lines = [f"{PROGRAM}: {self.message}" if self.bare else f"{PROGRAM}: error: {self.message}"]
        if self.detail:
            lines.append(f"{PROGRAM}: detail: {self.detail}")
        if self.further:
            lines.append(f"{PROGRAM}: error: {self.further}")
        if self.hint:
            lines.append(f"{PROGRAM}: hint: {self.hint}")
        return "".join(f"{line}\n" for line in lines)


class AnswerGivenError(Exception):
    """An option asked for a text and nothing else: it goes to standard output or standard error."""

    def __init__(self, out: str = "", err: str = "") -> None:
        """Keep what goes where."""
        super().__init__(out or err)
        self.out = out
        self.err = err
