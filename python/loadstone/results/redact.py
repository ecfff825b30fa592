"""The border of all that is shown or written: secrets do not pass it.

Two rules work together. A *pattern* finds a secret by its place: in a URL, behind `password=`, in SQL such as
`alter role … password '…'`. A *known* secret (`remember`, `learn`) is found in any text and any spelling, so
that a server that repeats it does no harm. What is sent to a server never comes here.
"""

from __future__ import annotations

import contextlib
import html
import re
import threading
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, unquote_plus

from loadstone.results.spellings import may_be_spelled, pattern_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

HIDDEN = "***"


_LEAST, _LEAST_DIGITS = 4, 8
"""Shorter secrets, shorter numbers, and our own words are hidden by their place only: to hide them everywhere
would hide names and figures too."""
_OUR_WORDS = """loadstone postgres postgresql timescaledb timescale complete failed interrupted skipped killed
running true false null none auto public localhost warning error info unknown default benchmark anonymous root
user admin guest host database schema local embedded password"""
_MOST = 1000
"""No password is longer; a text that only looks like one may be."""
_LIKELY_ENDS = 8
"""At so many of the "@" in what may be a URL its password may have ended."""
_NUMBER = re.compile(r"[\d.,:+-]+")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

_NOUN = r"(?:password|passwd|passphrase|pwd|secret|secret_access_key|access_token|auth_token|api_key)"
_SHORT_NOUN = r"(?:db|pg|user|sql|admin)?(?:pass|pw)"
_KEY = rf"(?:[\w.-]*{_NOUN}|(?:\b|(?<=_)){_SHORT_NOUN})"
_SECRET_NAME = re.compile(
    rf".*{_NOUN}|(?:.*[\W_])?{_SHORT_NOUN}|ssl_passphrase_command", re.IGNORECASE | re.DOTALL
)
_VARIABLE = re.compile(r"\w*(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|SECRET_ACCESS_KEY|_TOKEN|API_KEY)|MYSQL_PWD")
"""Names of environment variables; PWD is the working folder."""

_HINTS = re.compile(
    r"pass|pwd|pw|secret|token|api_key|identified|authorization|%[2-7][0-9a-f]|://", re.IGNORECASE
)
"""A text without any of these holds nothing that a pattern would find."""
_WORDS = ("pass", "pw", "secret", "token", "api_key", "identified", "authorization", "://")
"""What `_HINTS` finds in ASCII without a percent sign, in lower case."""

# In free text a URL ends at white space; a password written without escapes may hold anything else, so the
# last "@" ends it: rather a host name too few than a password too many.
_TO_LAST_AT = re.compile(r"(?<!\S)\S*@")
_URL = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]++://[^\s:/@]*+:(?P<secret>.*)@\Z", re.DOTALL)
_URL_WHOLE = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]++://[^\s:/@]*+:(?P<secret>.*)@", re.DOTALL)
_QUERY_IN_TEXT = re.compile(r"[?&](?P<name>[^\s=&#?]{1,80})=(?P<secret>[^&#\s]*)")
_QUERY_WHOLE = re.compile(r"[?&](?P<name>[^\s=&#?]{1,80})=(?P<secret>[^&#]*)")

_AGAIN = r"""(?P<quotes>'{2,8})(?=[^'\s,);]).*?(?P=quotes)|\\+'.*?\\+'"""
"""A literal within a literal."""
_QUOTED = r"""(?:'(?:\\.|[^'\\])*(?:'|\Z)|"[^"]*")"""
_UNQUOTED = r"(?:\\.|\\|[^\s'\\]|'(?=[^\s,);]))"
"""Up to white space, or the end of a literal around it."""
_LIBPQ_VALUE = rf"(?:{_AGAIN}|{_QUOTED}*{_UNQUOTED}*)"
_ASSIGNED = re.compile(
    rf"(?<![?&\w.-])(?P<key>{_KEY})\s*=\s*(?P<secret>{_LIBPQ_VALUE})", re.IGNORECASE | re.DOTALL
)
_JSON = re.compile(rf'"{_KEY}"\s*:\s*"(?P<secret>(?:\\.|[^"\\])*)(?:"|\Z)', re.IGNORECASE | re.DOTALL)

_GAP = r"(?:\s|/\*.{0,200}?\*/|--[^\n]{0,200}\n)"
_PLAIN = r"'(?P<{0}>(?:''|\\.|[^'])*)(?:'|\Z)"
_LITERAL = (
    rf"(?:(?:E|N|U&)?(?:(?P<again>{_AGAIN})|{_PLAIN.format('secret')})"
    r"|\$(?P<tag>\w*)\$(?P<dollars>.*?)(?:\$(?P=tag)\$|\Z))"
)
_SQL = re.compile(
    rf"""(?:\b(?:\w*{_NOUN}|{_SHORT_NOUN})"?(?:{_GAP}+|\s*\({_GAP}*)"""
    rf"|\bidentified{_GAP}+(?:with{_GAP}+\w+{_GAP}+)?by{_GAP}+){_LITERAL}"
    rf"(?:{_GAP}+replace{_GAP}+{_PLAIN.format('former')})?",
    re.IGNORECASE | re.DOTALL,
)
_HEADER = re.compile(r"\bauthorization:\s*\w+\s+(?P<secret>[^\s'\"]+)", re.IGNORECASE)
_IN_TEXT = (_QUERY_IN_TEXT, _ASSIGNED, _JSON, _SQL, _HEADER)

_FLAG = rf"-{{1,2}}(?:[\w.-]+\.)?{_KEY}"
_OPTION = re.compile(_FLAG, re.IGNORECASE)
_OPTION_WITH_VALUE = re.compile(rf"{_FLAG}=(?P<secret>.*)", re.IGNORECASE | re.DOTALL)
_NAME_WITH_VALUE = re.compile(rf"(?:--?\w+=)?{_KEY}=(?P<secret>.*)", re.IGNORECASE | re.DOTALL)
_CONNINFO = re.compile(
    r".*?(?:\A|\s)(?:host|hostaddr|port|dbname|user|sslmode|options|service)\s*=", re.DOTALL
)
_WITHOUT_SCHEME = re.compile(r"[\w.+-]+:(?!/)(?P<secret>\S+)@[\w.\[]\S*")
_IN_ARGUMENT = (_URL_WHOLE, _QUERY_WHOLE, _ASSIGNED, _JSON, _SQL, _HEADER)
_SECRETS = ("secret", "again", "dollars", "former")
"""Names of groups that are hidden."""


class _Known:
    """The secrets that this process has met."""

    def __init__(self) -> None:
        self._patterns: dict[str, re.Pattern[str] | None] = {}
        self._lock = threading.Lock()

    def add(self, secret: str) -> None:
        with self._lock:
            if secret not in self._patterns:
                # The longest first: one secret may be the beginning of another.
                self._patterns = dict(sorted({**self._patterns, secret: None}.items(), key=_longest_first))

    def drop(self, secret: str) -> None:
        with self._lock:
            self._patterns = {name: pattern for name, pattern in self._patterns.items() if name != secret}

    def clear(self) -> None:
        with self._lock:
            self._patterns = {}

    def hide(self, text: str) -> str:
        patterns = self._patterns
        is_plain = not may_be_spelled(text)
        for secret, pattern in patterns.items():
            if is_plain and secret.isalnum() and secret not in text:
                continue
            if len(text) >= len(secret):  # no spelling is shorter
                found = pattern or re.compile(pattern_of(secret))
                patterns[secret] = found
                text = found.sub(HIDDEN, text)
        return text


def _longest_first(known: tuple[str, object]) -> int:
    return -len(known[0])


_known = _Known()


def remember(secret: str | None, names: Iterable[str] = ()) -> None:
    """Hide this secret from now on wherever it turns up, except one that cannot be distinguished from a word.

    `names` must stay readable, such as the user's: a password may be the same.
    """
    if not secret:
        return
    if secret.casefold() in {name.casefold() for name in names}:
        _known.drop(secret)
    elif _is_distinct(secret):
        _known.add(secret)


def remember_environment(variables: Mapping[str, str]) -> None:
    """Remember what variables such as PGPASSWORD hold."""
    for name, value in variables.items():
        if _VARIABLE.fullmatch(name.upper()):
            remember(value)


def learn(value: object) -> None:
    """Remember the secrets in a document of plain values: in SQL and scripts, and behind telling names."""
    if isinstance(value, str):
        _learn_text(value)
    elif isinstance(value, dict):
        for name, item in value.items():
            for text in _scalars(item) if is_secret_name(str(name)) else ():
                remember(text)
            learn(item)
    elif isinstance(value, list | tuple):
        for item in value:
            learn(item)


def _learn_text(text: str) -> None:
    if has_hints(text):
        urls = [_URL.search(ending[0]) for ending in _TO_LAST_AT.finditer(text)]
        for match in (*filter(None, urls), *_matches(text, _IN_TEXT)):
            _learn_match(match)


def learn_command(arguments: Sequence[str]) -> None:
    """Remember the secrets of a command line."""
    before = ""
    for argument in arguments:
        if _OPTION.fullmatch(before):
            remember(argument)
        for match in _argument_matches(argument):
            _remember_readings(match)
        before = argument


def forget() -> None:
    """Forget all secrets."""
    _known.clear()


def is_secret_name(name: str) -> bool:
    """Return whether the name of a value says that it is a secret: `db_password`."""
    return _SECRET_NAME.fullmatch(name) is not None


def has_hints(text: str) -> bool:
    """Return whether a text may hold a secret that can be told as one."""
    if not text.isascii() or "%" in text:
        return _HINTS.search(text) is not None
    lower = text.lower()  # plain searches take a tenth of the pattern's time
    return any(word in lower for word in _WORDS)


def redact(text: str) -> str:
    """Return the text with every secret that is known or can be told as one replaced by `***`."""
    text = redact_known(text)
    if has_hints(text):
        text = _TO_LAST_AT.sub(lambda ending: _URL.sub(_hidden_in, ending[0], count=1), text)
        for pattern in _IN_TEXT:
            text = pattern.sub(_hidden_in, text)
    return text


def redact_known(text: str) -> str:
    """Return the text without the secrets that are known, whatever stands around them."""
    return _known.hide(text)


def redact_document(value: Any) -> Any:
    """Return a document of plain values with the secrets in its texts hidden; names and figures stay.

    What has a telling name is hidden whole, be it a text or a number.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redact_document(item) for item in value]
    if not isinstance(value, dict):
        return value
    shown = {
        name: _hide_all(item) if is_secret_name(name) else redact_document(item)
        for name, item in value.items()
    }
    if isinstance(value.get("name"), str) and is_secret_name(value["name"]) and "value" in value:
        shown["value"] = _hide_all(value["value"])
    return shown


def redact_command(arguments: Sequence[str]) -> list[str]:
    """Return a command line fit to be recorded: options, URLs and libpq strings without their passwords.

    An argument is known as a whole here, so a password may hold white space.
    """
    shown: list[str] = []
    hide_next = False
    for argument in arguments:
        shown.append(HIDDEN if hide_next else _redact_argument(argument))
        hide_next = not hide_next and _OPTION.fullmatch(argument) is not None
    return shown


def _redact_argument(argument: str) -> str:
    patterns = _whole(argument)
    if patterns is not None:
        return patterns.sub(_hidden_in, argument)
    for pattern in _IN_ARGUMENT:
        argument = pattern.sub(_hidden_in, argument)
    return argument


def _argument_matches(argument: str) -> list[re.Match[str]]:
    whole = _whole(argument)
    return _matches(argument, _IN_ARGUMENT if whole is None else (whole,))


def _whole(argument: str) -> re.Pattern[str] | None:
    """Return the pattern that says where the secret of this whole argument is; None where none does."""
    for pattern in (_OPTION_WITH_VALUE, _NAME_WITH_VALUE, _WITHOUT_SCHEME):
        match = pattern.fullmatch(argument)
        if match and not _CONNINFO.match(match["secret"]) and "://" not in argument[: match.start("secret")]:
            return pattern
    return None


def _matches(text: str, patterns: Iterable[re.Pattern[str]]) -> list[re.Match[str]]:
    found = [match for pattern in patterns for match in pattern.finditer(text)]
    return [match for match in found if _is_secret(match)]


def _is_secret(match: re.Match[str]) -> bool:
    """In the query of a URL it is the name that tells, in whatever spelling."""
    return "name" not in match.re.groupindex or is_secret_name(unquote(match["name"]))


def _hidden_in(match: re.Match[str]) -> str:
    """Return what was matched with its secrets replaced."""
    if not _is_secret(match):
        return match[0]
    text, start = match[0], match.start()
    spans = [
        match.span(name) for name in _SECRETS if match.re.groupindex.get(name) and match[name] is not None
    ]
    for begin, end in sorted(spans, reverse=True):
        text = text[: begin - start] + HIDDEN + text[end - start :]
    return text


def _hide_all(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return {name: _hide_all(item) for name, item in value.items()}
    return [_hide_all(item) for item in value] if isinstance(value, list) else HIDDEN


def _scalars(value: object) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _scalars(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _learn_match(match: re.Match[str]) -> None:
    """Remember a secret in a text that may be SQL: there `password = other.column` is none."""
    is_quoted = match.re is not _ASSIGNED or match["secret"][:1] in "'\"\\$"
    told = is_quoted or match["key"][:1] == "-" or match["key"].isupper()
    if told or match.string.count("'", 0, match.start()) % 2:
        _remember_readings(match)


def _remember_readings(match: re.Match[str]) -> None:
    for name in _SECRETS:
        raw = match.groupdict().get(name)
        for reading in _readings(raw) if raw else ():
            remember(reading)


def _readings(raw: str) -> set[str]:
    """Return what a secret may be that is written like this."""
    inner = re.sub(r"""\A(['"]+|\\+['"])(.*?)\1?\Z""", r"\2", raw, flags=re.DOTALL)
    ends = [at.start() for at in islice(re.finditer("@", inner), _LIKELY_ENDS)]
    found = {raw, inner, raw.partition("'")[0], *(inner[:end] for end in ends)}
    for undo in (_undouble, _unescape, unquote, unquote_plus, html.unescape, _decode):
        found |= {undo(text) for text in found}
    return found


def _undouble(text: str) -> str:
    return re.sub(r"'{2,}", "'", text)


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _decode(text: str) -> str:
    r"""Read escapes such as \x73 and \u0073."""
    with contextlib.suppress(UnicodeError):
        return text.encode("ascii").decode("unicode_escape") if "\\" in text else text
    return text


def _is_distinct(secret: str) -> bool:
    least = _LEAST_DIGITS if _NUMBER.fullmatch(secret) else _LEAST
    if not least <= len(secret) <= _MOST:
        return False
    return not _WORD.fullmatch(secret) or secret.casefold() not in _vocabulary()


@cache
def _vocabulary() -> frozenset[str]:
    """Return the words of the scenarios that are built in, of engines and of our documents."""
    here = Path(__file__).parents[1]
    texts = [path.read_text(encoding="utf-8") for path in (here / "scenarios").rglob("*.*")]
    texts += [*(path.stem for path in (here / "engines").iterdir()), _OUR_WORDS]
    texts += [path.read_text(encoding="utf-8") for path in (here / "scenario" / "tables").glob("*.py")]
    return frozenset(word for text in texts for word in _WORD.findall(text.casefold()))
