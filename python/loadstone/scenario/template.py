"""Templates in scenarios: jinja2 in a sandbox, where an unknown name is an error and never an empty text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinja2 import StrictUndefined, TemplateRuntimeError, TemplateSyntaxError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2.runtime import Context

    from loadstone.model import Value

_LARGEST_BYTES = 8 << 20


def _finalize(value: object) -> object:
    """Booleans as TOML and SQL spell them."""
    return str(value).lower() if isinstance(value, bool) else value


class _Sandbox(ImmutableSandboxedEnvironment):
    """A sandbox where no operator makes more than a template can use: `10 ** (10 ** 10)` would take hours."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Multiply, or raise to a power."""
        if _result_bytes(operator, left, right) > _LARGEST_BYTES:
            raise TemplateRuntimeError(f"the result of {operator} is too large")
        return super().call_binop(context, operator, left, right)


def _result_bytes(operator: str, left: object, right: object) -> int:
    """Return about how large a result would be; 0 for what is small whatever the operands are."""
    if operator == "**":
        return left.bit_length() * right // 8 if isinstance(left, int) and isinstance(right, int) else 0
    for repeated, times in ((left, right), (right, left)):
        if isinstance(repeated, (str, list, tuple)) and isinstance(times, int):
            return len(repeated) * times
    return 0


def _environment() -> ImmutableSandboxedEnvironment:
    environment = _Sandbox(
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalize,
    )
    environment.globals = {"range": environment.globals["range"]}
    environment.filters |= {
        "identifier": lambda name: quoted(str(name)),
        "literal": lambda text: literal(str(text)),
    }
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
    except RecursionError as error:
        raise _not_filled_in("it is nested too deeply", where) from error
    return frozenset(found) - frozenset(_ENVIRONMENT.globals)


def render(text: str, values: Mapping[str, Value], where: str) -> str:
    """Fill in a template; raises LoadstoneError with `where` when it cannot be."""
    try:
        return _ENVIRONMENT.from_string(text).render(values)
    except TemplateSyntaxError as error:
        raise _broken(error, where) from error
    except RecursionError as error:
        raise _not_filled_in("it is nested too deeply, or a macro calls itself without end", where) from error
    except Exception as error:  # whatever it raises, the template does: nothing of ours runs in it
        raise _not_filled_in(str(error) or type(error).__name__, where) from error


def _not_filled_in(reason: str, where: str) -> LoadstoneError:
    return LoadstoneError(
        f"{where}: the template cannot be filled in: {reason.rstrip('.')}",
        "Templates know the scenario's parameters, `size`, `seed` and `repeat`.",
    )


def _broken(error: TemplateSyntaxError, where: str) -> LoadstoneError:
    return LoadstoneError(
        f"{where}, line {error.lineno}: broken template: {(error.message or '').rstrip('.')}",
        "Put text that contains {{, {% or {# without being a template between {% raw %} and {% endraw %}.",
    )
