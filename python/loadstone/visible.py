r"""Characters that act on a terminal, or deceive its reader, written as text: ESC becomes `\x1b`."""

from __future__ import annotations

import re
from typing import Any

# Control characters but line feed and tab; marks that turn the direction of the text; line ends that are
# none to us; halves of pairs (a byte that is not UTF-8 arrives as one); characters that XML forbids.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
_BYTES = range(0xDC80, 0xDD00)


class Drawn(str):
    """Text of our own that acts on the terminal on purpose."""

    __slots__ = ()


def visible(text: str) -> str:
    r"""Return the text with each such character as an escape of Python's: `\x1b`, `\u202e`."""
    return _HIDDEN.sub(_escape, text)


def visible_tree(value: Any) -> Any:
    """Return a JSON document with every text in it made visible, names of keys as well."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(key) if isinstance(key, str) else key: visible_tree(v) for key, v in value.items()}
    if isinstance(value, list):
        return [visible_tree(item) for item in value]
    return value


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code in _BYTES:
        code -= 0xDC00  # the byte that could not be decoded
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 - two digits hold a byte
