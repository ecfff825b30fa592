"""Templates in scenarios: jinja2 in a sandbox, where an unknown name is an error and never an empty text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.model import Value


def _finalize(value: object) -> object:
    """Booleans as TOML and SQL spell them."""
    return str(value).lower() if isinstance(value, bool) else value


def _identifier(name: object) -> str:
    """Return a name quoted for SQL."""
    return '"' + str(name).replace('"', '""') + '"'


def _literal(text: object) -> str:
    """Return a text quoted for SQL (standard_conforming_strings is on since PostgreSQL 9.1)."""
    return "'" + str(text).replace("'", "''") + "'"


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalize,
    )
    environment.globals = {"range": environment.globals["range"]}
    environment.filters |= {"identifier": _identifier, "literal": _literal}
    return environment


_ENVIRONMENT = _environment()


def names_in(text: str, where: str) -> frozenset[str]:
    """Return the names that a template takes from outside.

    Raises LoadstoneError, with `where` and the line, when the template's own syntax is broken.
    """
    try:
        found = meta.find_undeclared_variables(_ENVIRONMENT.parse(text))
    except TemplateSyntaxError as error:
        raise _broken(error, where) from error
    return frozenset(found) - frozenset(_ENVIRONMENT.globals)


def render(text: str, values: Mapping[str, Value], where: str) -> str:
    """Fill in a template; raises LoadstoneError with `where` when it cannot be."""
    try:
        return _ENVIRONMENT.from_string(text).render(values)
    except TemplateSyntaxError as error:
        raise _broken(error, where) from error
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise LoadstoneError(
            f"{where}: the template cannot be filled in: {error}.",
            "Templates know the scenario's parameters, `size`, `seed` and `repeat`.",
        ) from error


def _broken(error: TemplateSyntaxError, where: str) -> LoadstoneError:
    return LoadstoneError(
        f"{where}, line {error.lineno}: broken template: {(error.message or '').rstrip('.')}.",
        "Text that holds {{, {% or {# without being a template goes between {% raw %} and {% endraw %}.",
    )
