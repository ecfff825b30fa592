"""What the rules of `make check` that we write ourselves share: how they are run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def status(findings: Callable[[Path], Iterable[str]]) -> int:
    """Print what is found in the tree (the first argument, or ours); returns the exit status."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    found = list(findings(root))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0
