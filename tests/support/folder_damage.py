"""Damages a run folder in every way that files can be damaged, each chosen by a seed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random  # noqa: TID251 - for the type: hypothesis hands in such generators
    from collections.abc import Callable
    from pathlib import Path

PRODUCTS = ("summary.json", "report.html")
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2**63, -(2**70), 10**30, 0.5, -1e300, 1e308, "", "x", "1", "\ud800",
    "\x1b[2J",    [], {}, [None], {"a": None}, [[]], "2026-11-20T10:15:00.123Z", float("nan"), float("inf"),
)  # fmt: skip


def damage(folder: Path, rng: random.Random) -> str:
    """Do one thing to one file or folder of the run, and say what."""
    paths = sorted(p for p in folder.rglob("*") if p.name not in PRODUCTS and not p.name.startswith("."))
    files = [path for path in paths if path.is_file()]
    path = rng.choice(files)
    ways: list[Callable[[Path, random.Random], object]] = [
        _cut, _double_a_line, _drop_a_line, _swap_lines, _garble, _insert, _nest,
        _replace, _delete, _double_folder, _change, _change, _change, _change,
    ]  # fmt: skip
    way = rng.choice(ways)
    told = way(rng.choice(paths) if way in (_delete, _replace, _double_folder) else path, rng)
    return f"{way.__name__} {path.relative_to(folder)} {told}"


def _cut(path: Path, rng: random.Random) -> int:
    text = path.read_bytes()
    at = rng.randrange(len(text)) if text else 0
    path.write_bytes(text[:at])
    return at


def _double_a_line(path: Path, rng: random.Random) -> None:
    lines = path.read_bytes().splitlines(keepends=True) or [b"\n"]
    at = rng.randrange(len(lines))
    path.write_bytes(b"".join([*lines[: at + 1], *lines[at:]]))


def _drop_a_line(path: Path, rng: random.Random) -> None:
    lines = path.read_bytes().splitlines(keepends=True) or [b""]
    at = rng.randrange(len(lines))
    path.write_bytes(b"".join([*lines[:at], *lines[at + 1 :]]))


def _swap_lines(path: Path, rng: random.Random) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    rng.shuffle(lines)
    path.write_bytes(b"".join(lines))


def _garble(path: Path, rng: random.Random) -> None:
    text = bytearray(path.read_bytes() or b" ")
    for _ in range(rng.choice((1, 1, 1, 5, 100))):
        text[rng.randrange(len(text))] = rng.randrange(256)
    path.write_bytes(text)


def _insert(path: Path, rng: random.Random) -> None:
    text = path.read_bytes()
    at = rng.randrange(len(text) + 1)
    path.write_bytes(
        text[:at] + rng.choice((b"\0" * 9, b"\n", b"9" * 300, b"[", b'"', b"-", b"e9")) + text[at:]
    )


def _nest(path: Path, rng: random.Random) -> None:
    depth = rng.choice((70, 400, 990, 20_000))
    path.write_bytes(b'{"a":' * depth + b"1" + b"}" * depth + b"\n")


def _replace(path: Path, rng: random.Random) -> str:
    _delete(path, rng)
    ways: dict[str, Callable[[], object]] = {
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "loop": lambda: path.symlink_to(path.name),
        "up": lambda: path.symlink_to(".."),
        "zero": lambda: path.symlink_to("/dev/zero"),
        "empty": path.touch,
    }
    way = rng.choice(sorted(ways))
    ways[way]()
    return way


def _delete(path: Path, _: random.Random) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _double_folder(path: Path, rng: random.Random) -> None:
    home = path if path.is_dir() else path.parent
    copy = home.with_name(rng.choice(("002-again", "x", "zz")) + str(rng.randrange(9)))
    with contextlib.suppress(shutil.Error):  # pipes of an earlier damage are left out
        shutil.copytree(home, copy, symlinks=True, dirs_exist_ok=True)


def _change(path: Path, rng: random.Random) -> str:
    """Give a value of a document, or of a line, another value; some values go or come instead."""
    lines = path.read_bytes().splitlines(keepends=True) if path.suffix == ".jsonl" else [path.read_bytes()]
    at = rng.randrange(len(lines)) if lines else 0
    try:
        document = json.loads(lines[at])
    except (ValueError, IndexError):
        return "-"
    places = list(_places(document, ()))
    if not places:
        return "-"
    place = rng.choice(places)
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    told = _new_value(inner, place[-1], rng)
    lines[at] = json.dumps(document).encode() + (b"\n" if path.suffix == ".jsonl" else b"")
    path.write_bytes(b"".join(lines))
    return f"{place} {told}"


def _new_value(inner: Any, key: Any, rng: random.Random) -> str:
    old = inner[key]
    if rng.random() < 0.2:
        del inner[key]
        return "gone"
    if isinstance(old, int | float) and rng.random() < 0.4:
        inner[key] = rng.choice((-old, old * 2, old + 1, old * 10**9, old / 3, 0))
    elif isinstance(old, list) and old and rng.random() < 0.4:
        inner[key] = old * 2
    else:
        inner[key] = rng.choice(VALUES)
    return f"-> {str(inner[key])[:60]}"


def _places(value: Any, here: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in ((*here, key), *_places(item, (*here, key)))]
