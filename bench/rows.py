"""What making, encoding and reading rows costs on one core: the measurements of crates/gen/examples."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HOURS = {"devops": 2, "iot": 12}
PLAIN = {
    "import": (("rows=100000",), (1000, 100_000)),
    "types": (("table=text", "rows=6000"), (30, 1000)),
    "flights": (("rows=100000",), (500, 100_000)),
}
"""Plain tables, and rows a batch: what stays in the second cache, and what does not. At least 1.5 GB/s of
COPY text and 2.5 GB/s of COPY binary are wanted of a core; of `flights`, which is short numbers, 1 GB/s of
text, and 500 ns to make a row as Arrow has it."""


def run() -> None:
    """Print what each example prints."""
    print("### Rows: made, encoded, read (crates/gen/examples, release build)\n")
    for name, (options, batches) in PLAIN.items():
        for batch in batches:
            _example("rows_speed", name, *options, f"batch={batch}")
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-", dir=_memory()) as folder:
        for use_case, hours in HOURS.items():
            _example("native_generate", f"--use-case={use_case}", "--threads=1")
            _example("native_generate", f"--use-case={use_case}", "--threads=2")
            _example("encode_speed", use_case, "1000", "300")
            path = Path(folder) / f"{use_case}.txt"
            flags = [f"--use-case={use_case}", "--scale=1000", "--seed=123", "--format=timescaledb"]
            flags += [f"--timestamp-end=2016-01-01T{hours:02}:00:00Z", f"--file={path}"]
            loadstone = str(Path(sys.executable).with_name("loadstone"))
            subprocess.run([loadstone, "tsbs", "generate-data", *flags], check=True, capture_output=True)
            _example("tsbs_read", str(path), "--from-memory")
            path.unlink()


def _example(name: str, *arguments: str) -> None:
    command = ["cargo", "run", "--quiet", "--release", "-p", "loadstone-gen", "--example", name, "--"]
    print(f"`{name} {' '.join(a for a in arguments if '/' not in a)}`\n```", flush=True)
    subprocess.run([*command, *arguments], check=True)
    print("```\n", flush=True)


def _memory() -> str | None:
    """Return a folder in memory, where there is one: the disk is not what is measured."""
    shared = Path("/dev/shm")
    return str(shared) if shared.is_dir() else None
