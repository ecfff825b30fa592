"""What an hour of each target costs, as the user says: for the report, the run itself never uses it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.results.redact import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.target import Target

_PRICE = re.compile(r"(?P<target>.+)=(?P<number>\d{1,9}(?:\.\d{1,9})?)/h", re.DOTALL | re.ASCII)
_FORM = (
    "Write TARGET=2.50/h: an id of the report or the target as given, and a number above 0, without currency."
)


def prices_of(texts: Iterable[str], asked: Sequence[str], targets: Sequence[Target]) -> dict[str, float]:
    """Return the price of an hour by the target's id; `asked` are the targets' texts, in their order.

    Raises LoadstoneError for what is no price, or names no target of the run.
    """
    prices: dict[str, float] = {}
    for text in texts:
        named, price = _understood(text)
        meant = [
            target.id
            for target, given in zip(targets, asked, strict=True)
            if named == target.id or named == given.strip()
        ]
        if not meant:
            known = ", ".join(target.id for target in targets)
            raise LoadstoneError(
                f"--price {redact(text)} is not for a target of this run", f"Targets, by their ids: {known}."
            )
        for id_ in meant:
            if id_ in prices:
                raise LoadstoneError(f"the target '{id_}' has two prices", "Set one.")
            prices[id_] = price
    return prices


def _understood(text: str) -> tuple[str, float]:
    found = _PRICE.fullmatch(text.strip())
    price = float(found["number"]) if found else 0.0
    if found is None or price <= 0:
        raise LoadstoneError(f"--price {redact(text)} is not the price of a target", _FORM)
    return found["target"].strip(), price
