"""The names of targets for people: as short as can be while no two of a run have the same one."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from loadstone.model import TargetName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OPTIONAL = ("host", "port", "database", "user", "options", "settings", "given")
"""What a name may add to engine and version, the most telling first."""
_WHERE = re.compile(r" \(| at |, | on ")


def distinct_labels(targets: Sequence[TargetName]) -> list[str]:
    """Return a label for each target, no two alike.

    It begins with engine and version. Targets that share these add the fewest parts that tell them apart;
    those that no part tells apart are numbered.
    """
    groups: dict[str, list[int]] = {}
    for at, target in enumerate(targets):
        groups.setdefault(_plain(target.title) or "target", []).append(at)
    labels = [""] * len(targets)
    for title, members in groups.items():
        chosen = _distinguishing([targets[at] for at in members])
        for at in members:
            labels[at] = _label(title, targets[at], chosen)
    return _numbered(labels)


def name_document(name: TargetName) -> dict[str, Any]:
    """Return what target.json keeps of a name."""
    return asdict(name)


def name_of_document(target: Mapping[str, Any]) -> TargetName:
    """Return the name that target.json keeps; an older one has a label only, which begins with the engine."""
    kept = target.get("name")
    if isinstance(kept, dict):
        return TargetName(**{part: str(kept.get(part) or "") for part in ("title", *_OPTIONAL)})
    label = str(target.get("label") or target.get("id") or "")
    title, *where = _WHERE.split(label, maxsplit=1)
    return TargetName(title=title, given="".join(where).removesuffix(")"))


def _distinguishing(targets: Sequence[TargetName]) -> tuple[str, ...]:
    """Return the fewest parts by which the most of these targets differ."""
    choices = itertools.chain.from_iterable(
        itertools.combinations(_OPTIONAL, count) for count in range(len(_OPTIONAL) + 1)
    )
    # `max` keeps the first of equals: the fewest parts, and of these the most telling.
    return max(choices, key=lambda parts: len({_label("", target, parts) for target in targets}))


def _label(title: str, target: TargetName, parts: Sequence[str]) -> str:
    values = {part: text for part in parts if (text := _plain(getattr(target, part)))}
    words = []
    if "host" in values and "port" in values:
        host = values.pop("host")
        words.append(f"{f'[{host}]' if ':' in host else host}:{values.pop('port')}")
    if parts and not values and (given := _plain(target.given)):
        words.append(given)  # a private server has no host, port, database to be told by
    plain = ("host", "settings", "given")
    words += [text if part in plain else f"{part} {text}" for part, text in values.items()]
    return f"{title} ({', '.join(words)})" if words else title


def _numbered(labels: Sequence[str]) -> list[str]:
    """Add a number to each label that is there more than once."""
    count = Counter(labels)
    taken = set(labels)
    found = []
    for label in labels:
        if count[label] == 1:
            found.append(label)
            continue
        numbered = (f"{label} #{number}" for number in itertools.count(1))
        found.append(next(text for text in numbered if text not in taken))
        taken.add(found[-1])
    return found


def _plain(text: str) -> str:
    """Return the text as a page shows it, where any white space is one blank."""
    return " ".join(text.split())
