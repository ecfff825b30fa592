"""The spellings of a secret that tests search for, made without the code that hides them."""

from __future__ import annotations

import html
import json
import shlex
from urllib.parse import quote, quote_plus

from psycopg.conninfo import make_conninfo


def spellings(secret: str) -> dict[str, str]:
    """Return ways to write a secret, by their names."""
    in_url = "".join(f"%{byte:02x}" for byte in secret.encode())
    mixed = "".join(letter if at % 2 else quote(letter, safe="") for at, letter in enumerate(secret))
    units = secret.encode("utf-16-be")
    utf16 = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    conninfo = make_conninfo(password=secret).removeprefix("password=")
    return {
        "as given": secret,
        "percent": quote(secret, safe=""),
        "form": quote_plus(secret),
        "each byte": in_url,
        "each byte, capitals": in_url.upper(),
        "some": mixed,
        "percent twice": quote(quote(secret, safe=""), safe=""),
        "libpq": conninfo,
        "sql": secret.replace("'", "''"),
        "sql twice": secret.replace("'", "''''"),
        "sql E": secret.replace("\\", "\\\\").replace("'", "\\'"),
        "json": json.dumps(secret)[1:-1],
        "json, not ascii": json.dumps(secret, ensure_ascii=False)[1:-1],
        "json twice": json.dumps(json.dumps(secret))[1:-1],
        "json, all": "".join(f"\\u{unit:04x}" for unit in utf16),
        "html": html.escape(secret),
        "html, numbers": "".join(f"&#{ord(letter)};" for letter in secret),
        "html, hexadecimal": "".join(f"&#x{ord(letter):x};" for letter in secret),
        "shell": shlex.quote(secret),
        "python": repr(secret)[1:-1],
        "bytes": repr(secret.encode())[2:-1],
    }
