"""What the Rust core offers to Python. Documents cross the border as JSON text."""

from collections.abc import Sequence

__version__: str
is_debug_build: bool

class DriveError(Exception):
    """The driver could not start: `args` are (message, hint)."""

class ScriptError(Exception):
    """A script does not parse: `args` are (message, file, line, column, hint)."""

class FetchError(Exception):
    """An archive could not be had: `args` are (message, hint)."""

def check_script(name: str, text: str, mode: str, variables: Sequence[str]) -> str:
    """Parse a pgbench script.

    Returns JSON: `{"commands": [{"line", "text", "kind"}], "variables": [...], "warnings": [...]}`.
    """

def fetch_postgres(version: str, destination: str, mirror: str | None) -> str:
    """Download, verify and unpack one PostgreSQL build into `destination` (created whole or not at all).

    Returns the folder that holds `bin`, `lib` and `share`.
    """

class Drive:
    """One drive phase: threads of the core that send, receive and record."""

    def __init__(self, spec: str) -> None: ...
    def start(self) -> None:
        """Connect all clients and begin; returns at once."""

    def progress(self) -> str:
        """JSON of the latest interval and the totals so far; never blocks the driver."""

    def stop(self) -> None:
        """Ask for an early end: transactions under way finish or are cut off after a grace time."""

    def wait(self, timeout_s: float) -> str | None:
        """drive.json's text once the phase has ended, None when it has not within `timeout_s`."""

class NullServer:
    """The built-in PostgreSQL-protocol server that answers at once."""

    def __init__(self, spec: str) -> None: ...
    @property
    def port(self) -> int: ...
    @property
    def socket_directory(self) -> str: ...
    def cpu_ns(self) -> int:
        """CPU time that serving has taken so far, nanoseconds."""

    def stop(self) -> None: ...

class GoRand:
    """Go's `math/rand` (version 1) after `rand.Seed(seed)`, bit for bit."""

    def __init__(self, seed: int) -> None:
        """Take a seed of 64 bits with sign; equal ones modulo 2^31 - 1 give one stream."""

    def int63(self) -> int:
        """Return 63 random bits."""

    def int63n(self, n: int) -> int:
        """Return a number in [0, n). Raises ValueError unless n is above 0. Not `intn`'s stream."""

    def intn(self, n: int) -> int:
        """Return a number in [0, n), of 31 random bits where they suffice. Raises ValueError unless n > 0."""

    def float64(self) -> float:
        """Return a number in [0, 1)."""

def builtin_script(prefix: str) -> tuple[str, str, str]:
    """Name, description and text of pgbench's built-in script whose name begins with `prefix`."""

def builtin_scripts() -> list[tuple[str, str]]:
    """Names and descriptions of pgbench's built-in scripts."""

def clock_cost_ns() -> float:
    """Median cost of reading the driver's clock once, in nanoseconds."""

def record_cost_ns() -> float:
    """Median cost of recording one sample, in nanoseconds."""
