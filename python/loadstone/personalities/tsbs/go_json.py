"""JSON as Go's encoding/json indents it: TSBS's results file and printed responses have its form."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN_BELOW = 1e21
_PLAIN_FROM = 1e-6


def indented(value: Any, indent: str, *, sort: bool = False, level: int = 0) -> str:
    """Return `MarshalIndent(value, "", indent)`; `sort` orders keys as Go does those of its maps."""
    inner, outer = "\n" + indent * (level + 1), "\n" + indent * level
    if isinstance(value, dict):
        items = [
            f"{_text(key)}: {indented(found, indent, sort=sort or key == 'Totals', level=level + 1)}"
            for key, found in _ordered(value, sort=sort)
        ]
        return f"{{{inner}{f',{inner}'.join(items)}{outer}}}" if items else "{}"
    if isinstance(value, list | tuple):
        items = [indented(found, indent, sort=sort, level=level + 1) for found in value]
        return f"[{inner}{f',{inner}'.join(items)}{outer}]" if items else "[]"
    return _scalar(value)


def _ordered(value: Mapping[str, Any], *, sort: bool) -> list[tuple[str, Any]]:
    return sorted(value.items(), key=lambda item: item[0].encode()) if sort else list(value.items())


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    return _text(str(value))


def number(value: float) -> str:
    """Return a double as Go writes it in JSON, which has no NaN: that becomes a text."""
    if not math.isfinite(value):
        return _text(str(value))
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    if _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        shortest = repr(value)
        return format_plain(shortest)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        return format_plain(repr(value))
    sign, digits = exponent[0] if exponent[0] in "+-" else "+", exponent.lstrip("+-0")
    # Go writes e-7 for e-07, and e+21 as it is.
    return f"{mantissa.removesuffix('.0')}e{sign}{digits}"


def format_plain(shortest: str) -> str:
    """Return the shortest digits of a double without an exponent."""
    mantissa, _, exponent = shortest.partition("e")
    if not exponent:
        return mantissa.removesuffix(".0")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    fraction = "" if fraction == "0" else fraction
    shift = int(exponent)
    if shift >= 0:
        digits = (whole + fraction).ljust(len(whole) + shift, "0")
        return sign + digits
    return f"{sign}0.{'0' * (-shift - len(whole))}{whole}{fraction}"


def _text(text: str) -> str:
    # Go escapes what could end a script in HTML.
    found = json.dumps(text, ensure_ascii=False)
    found = re.sub("[<>&\u2028\u2029\x7f]", _escaped, found)
    return found.replace("\\b", "\\u0008").replace("\\f", "\\u000c")


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0] == "\x7f" else f"\\u{ord(found[0]):04x}"
