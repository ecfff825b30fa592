import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import LoadstoneError
from loadstone.scenario.parameter import Parameter

CLIENTS = Parameter("clients", "integer", 8, minimum=1, maximum=100, help="Connections")
DURATION = Parameter("duration", "number", 1.0, minimum=0, unit="s")
INDEX = Parameter("index", "enum", "brin", values=("none", "brin", "btree"))


@given(st.integers(1, 100))
def test_integers_within_the_range_come_back(value: int) -> None:
    assert CLIENTS.parse(f" {value} ") == value


@given(st.floats(0, allow_nan=False, allow_infinity=False))
def test_numbers_come_back_with_and_without_unit(value: float) -> None:
    assert DURATION.parse(f"{value!r}") == DURATION.parse(f"{value!r} s") == value


@given(st.text())
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    for parameter in (CLIENTS, DURATION, INDEX):
        try:
            value = parameter.parse(text)
        except LoadstoneError as error:
            refusal = error
        else:
            assert parameter.check(value) == value
            continue
        assert parameter.name in refusal.message
        assert parameter.allowed() in refusal.hint


@pytest.mark.parametrize(
    ("parameter", "text"),
    [
        (CLIENTS, "0"),
        (CLIENTS, "101"),
        (CLIENTS, "1.5"),
        (CLIENTS, ""),
        (Parameter("n", "integer", 1), str(2**63)),
        (DURATION, "nan"),
        (DURATION, "inf"),
        (INDEX, "bree"),
        (Parameter("b", "boolean", default=True), "maybe"),
        (Parameter("p", "path", ""), "a\0b"),
    ],
)
def test_refused(parameter: Parameter, text: str) -> None:
    with pytest.raises(LoadstoneError, match=f"'{parameter.name}' cannot be"):
        parameter.parse(text)


def test_types_are_kept_apart() -> None:
    with pytest.raises(LoadstoneError):
        CLIENTS.check(True)  # noqa: FBT003 - a boolean is not a number
    with pytest.raises(LoadstoneError):
        CLIENTS.check("8")
    assert isinstance(DURATION.check(3), float)
    assert Parameter("b", "boolean", default=False).parse("On") is True


def test_a_misspelt_value_gets_a_guess() -> None:
    with pytest.raises(LoadstoneError, match="Did you mean 'btree'"):
        INDEX.parse("btre")
