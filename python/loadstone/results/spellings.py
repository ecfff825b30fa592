"""Every way in which one secret can be spelled in a text: as given, percent-encoded, quoted, escaped."""

from __future__ import annotations

import re

_NAMED = {'"': "quot", "&": "amp", "<": "lt", ">": "gt", "'": "apos"}
"""HTML's names of characters."""
_SHORT = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
"""What a backslash with a letter means in JSON, SQL and Python."""
_SAFE_LENGTH = 8
"""A shorter secret is looked for as a word of its own: it may be a part of other words by chance."""
_WORD_BEGINS = r"(?:(?<![0-9A-Za-z])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrtbf]))"
_WORD_ENDS = r"(?![0-9A-Za-z])"


def pattern_of(secret: str) -> str:
    """Return a regular expression that matches the secret however each of its characters is written.

    Which characters of a URL are percent-encoded is its writer's choice, and quoted text may be quoted again,
    so each character has its spellings for itself.
    """
    body = "".join(_character(letter) for letter in secret)
    if len(secret) >= _SAFE_LENGTH:
        return body
    begins = _WORD_BEGINS if secret[0].isalnum() else ""
    return begins + body + (_WORD_ENDS if secret[-1].isalnum() else "")


def may_be_spelled(text: str) -> bool:
    """Return whether a text may hold a letter or digit written otherwise than as itself."""
    return "%" in text or "\\" in text or "&" in text


def _character(letter: str) -> str:
    code = ord(letter)
    raw = letter.encode("utf-8", "surrogatepass" if not 0xDC80 <= code <= 0xDCFF else "surrogateescape")  # noqa: PLR2004
    forms = [
        "".join(f"%(?:25)*{_hex(f'{byte:02x}')}" for byte in raw),
        "".join(rf"\\\\*x{_hex(f'{byte:02x}')}" for byte in raw),
        "".join(rf"\\\\*u{_hex(f'{unit:04x}')}" for unit in _utf16(letter)),
        rf"\\\\*U{_hex(f'{code:08x}')}",
        rf"\\\\*x{_hex(f'{code:02x}')}",
        rf"&#0*{code};",
        rf"&#[xX]0*{_hex(f'{code:x}')};",
    ]
    if letter in _NAMED:
        forms.append(f"&(?:amp;)?{_NAMED[letter]};")
    if letter in _SHORT:
        forms.append(rf"\\\\*{_SHORT[letter]}")
    if letter == " ":
        forms.append(r"\+")
    if letter == "'":
        forms += [r"'\\+''", "'\"'\"'", "'{2,}"]
    if letter == '"':
        forms.append('"{2,}')
    if not letter.isalnum():
        forms.append(rf"\\\\*{re.escape(letter)}")
    return f"(?:{'|'.join(forms)}|{re.escape(letter)})"


def _hex(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


def _utf16(letter: str) -> list[int]:
    encoded = letter.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(encoded[at : at + 2]) for at in range(0, len(encoded), 2)]
