"""Numbers have ranges, and words that say them; templates end, and are no larger than a text can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from loadstone.cli.group import loadstone
from loadstone.errors import LoadstoneError
from loadstone.personalities.pgbench.complaint import ComplaintError
from loadstone.personalities.pgbench.options import parse as parse_pgbench
from loadstone.personalities.tsbs.flags import parse_value
from loadstone.scenario.problems import phase_problems
from loadstone.scenario.schema import scenario_schema
from loadstone.scenario.template import names_in, render
from loadstone.target import parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DRIVE = {"id": "d", "kind": "script", "title": "d", "scripts": ["x.pgbench"], "clients": 1, "duration_s": 1}
DIGITS = "9" * 5000


def numbers_of(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every place of a schema where a quantity is meant, rather than any number at all."""
    if isinstance(node, dict):
        if node.get("type") in ("integer", "number"):
            yield path, node
        for key, value in node.items():
            if key != "anyOf" or [
                choice for choice in value if choice.get("type") in ("integer", "number")
            ] != [{"type": "integer"}, {"type": "number"}]:
                yield from numbers_of(value, f"{path}/{key}")
    elif isinstance(node, list):
        for place, value in enumerate(node):
            yield from numbers_of(value, f"{path}[{place}]")


def test_every_number_of_a_scenario_has_a_range() -> None:
    found = list(numbers_of(dict(scenario_schema())))
    assert len(found) > 40
    without = [
        path
        for path, schema in found
        if "maximum" not in schema or not {"minimum", "exclusiveMinimum"} & schema.keys()
    ]
    assert without == []


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("duration_s", float("nan"), "above 0 up to 31,536,000"),
        ("duration_s", float("inf"), "above 0 up to 31,536,000"),
        ("duration_s", 1e300, "above 0 up to 31,536,000"),
        ("timeout_s", -1, "above 0 up to 31,536,000"),
        ("clients", 1e1, "from 1 up to 1,000,000"),
        ("clients", 10**400, "from 1 up to 1,000,000"),
        ("duration_s", 10**400, "above 0 up to 31,536,000"),
        ("clients", -1, "from 1 up to 1,000,000"),
        ("rate_per_s", float("nan"), "above 0 up to 1,000,000,000"),
        ("clients", True, "from 1 up to 1,000,000"),
    ],
)
def test_what_is_out_of_range_is_refused_with_the_range(key: str, value: object, words: str) -> None:
    assert phase_problems(DRIVE, 0) == []
    (problem,) = phase_problems(DRIVE | {key: value}, 0)
    assert problem.path == f"phase[0].{key}"
    assert len(problem.message) < 200
    assert words in problem.hint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}", "a macro calls itself without end"),
        ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "nested too deeply"),
        ("{{ 10 ** (10 ** 10) }}", "too large"),
        ("{{ 'x' * 10 ** 11 }}", "too large"),
        ("{{ 10 ** 5000 }}", "4300 digits"),
        ("{{ 'x'.encode('nowhere') }}", "nowhere"),
    ],
)
def test_templates_that_do_not_end_well_are_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(LoadstoneError, match="here: the template cannot be filled in") as caught:
        render(text, {"n": 1}, "here") if names_in(text, "here") is not None else None
    assert words in caught.value.message


@given(st.integers(-(10**6), 10**6), st.integers(0, 300), st.text(max_size=9))
def test_usual_arithmetic_is_as_ever(left: int, right: int, text: str) -> None:
    values: dict[str, int | str] = {"a": left, "b": right, "t": text}
    assert render("{{ a * b }} {{ a ** 3 }}", values, "here") == f"{left * right} {left**3}"
    assert render("{{ t * b }}", values, "here") == text * right


def test_a_scenario_nested_without_end_and_one_with_an_endless_number(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    for text, words in (("x = " + "[" * 5000 + "]" * 5000, "nested"), (f"x = {DIGITS}", "too long")):
        file.write_text(text)
        shown = CliRunner().invoke(loadstone, ["plan", str(tmp_path)])
        assert shown.exit_code == 1
        assert words in shown.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--repeat", "0"),
        ("run", "--repeat", "1e3"),
        ("run", "--seed", "-1"),
        ("plan", "index-import", "--set", "rows=1e30"),
        ("plan", "index-import", "--set", f"rows={DIGITS}"),
        ("plan", "pgbench-grid", "--set", "clients=-1"),
        ("calibrate", "--seconds", "nan"),
        ("calibrate", "--seconds", "inf"),
        ("calibrate", "--clients", "-1"),
        ("generate", "import", "--out", "/nowhere/x", "--rows", "1" + "0" * 30),
        ("generate", "import", "--out", "/nowhere/x", "--seed", "1" + "0" * 30),
        ("generate", "import", "--out", "/nowhere/x", "--step-rows", "1" + "0" * 30),
        ("plan", "--target", f"host=h port={DIGITS}"),
        ("plan", "--target", "postgres://h/d?connect_timeout=1e400"),
        ("plan", "--target", "postgres://h/d?connect_timeout=nan"),
        ("tsbs", "load", "--workers", DIGITS),
        ("pgbench", "-c", DIGITS),
    ],
)
def test_numbers_of_the_command_line_are_refused_in_words(arguments: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(loadstone, arguments)
    assert shown.exit_code in (1, 2), shown.stderr
    assert "Traceback" not in shown.stderr
    assert "does not parse" not in shown.stderr


@pytest.mark.parametrize("text", ["nan", "inf", "1e400", "-inf"])
def test_rates_of_tsbs_are_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="out of range"):
        parse_value("float", text)


def test_pgbench_reads_numbers_of_any_length() -> None:
    with pytest.raises(ComplaintError, match="must be in range"):
        parse_pgbench(["-c", DIGITS], {})
    assert parse_pgbench([f"--random-seed={DIGITS}"], {}).seed == 2**64 - 1


@pytest.mark.parametrize("url", ["postgres://u%FF@h/d", "postgres://h/d%80", "postgres://h/d?options=%ff"])
def test_bytes_in_a_url_that_are_no_text_are_refused(url: str) -> None:
    with pytest.raises(LoadstoneError, match="is not UTF-8 text"):
        parse_target(url)
