"""The first lines of a user's own files, looked at before anything is touched."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.table_loads import BULK

from loadstone.errors import LoadstoneError
from loadstone.model import PlainTable, Rows
from loadstone.workload.generate import Files, generate
from loadstone.workload.load import look
from loadstone.workload.load.first_lines import Lines, refuse_header, refuse_values

FLIGHTS = replace(BULK, rows=Rows(set="flights", rows=10), table=PlainTable("flights"), step_rows=0)
COLUMNS = [
    {"name": "id", "type": "int32"},
    {"name": "small", "type": "int16"},
    {"name": "real", "type": "float32"},
    {"name": "word", "type": "text"},
    {"name": "day", "type": "date"},
    {"name": "at", "type": "timestamp"},
    {"name": "is", "type": "bool"},
]
GOOD = '1,-32768,1e38,"a\nb",2008-01-03,2008-01-03 10:00,t'


def lines(path: Path, text: str | bytes, **more: Any) -> Lines:
    raw = text if isinstance(text, bytes) else text.encode()
    return replace(Lines(path, raw, format="csv", header=False, whole=True), **more)


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """Three rows of flights with a line of names."""
    path = tmp_path / "flights.csv"
    generate(Rows(set="flights", rows=3), Files(str(path), format="csv", header=True))
    return path


def refused(path: Path, *, header: bool = True, format_: Any = "csv") -> tuple[str, str]:
    rows = Rows(files=(str(path),), format=format_, header=header, set="flights")
    with pytest.raises(LoadstoneError) as error:
        look(replace(FLIGHTS, rows=rows))
    return str(error.value), error.value.hint


def changed(path: Path, line: int, column: str, value: str) -> Path:
    """Write another value into the file."""
    held = path.read_text().split("\n")
    fields = held[line - 1].split(",")
    fields[held[0].split(",").index(column)] = value
    held[line - 1] = ",".join(fields)
    path.write_text("\n".join(held))
    return path


@pytest.mark.parametrize(
    ("column", "value", "words", "hint"),
    [
        ("distance", "far", "distance is 'far', but a whole number of 16 bits", "Correct that value"),
        ("distance", "40000", "distance is '40000'", "Correct that value"),
        ("depdelay", "12.0", "depdelay is '12.0'", "without a fraction"),
        ("depdelay", "NA", "depdelay is 'NA'", "Write nothing between the commas"),
        ("depdelay", '""', "depdelay is ''", "Remove the quotes"),
        ("origin_lat", "north", "origin_lat is 'north', but a number that fits", "Correct that value"),
        ("plane_issue_date", "DL", "plane_issue_date is 'DL', but a date", "Correct that value"),
        ("dep_timestamp", "12.5", "dep_timestamp is '12.5', but a time", "Correct that value"),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_named_with_its_line(
    csv: Path, column: str, value: str, words: str, hint: str
) -> None:
    message, mend = refused(changed(csv, 3, column, value))
    assert f"flights.csv, line 3: {words}" in message
    assert hint in mend


def test_a_line_of_another_length_is_named(csv: Path) -> None:
    csv.write_text(csv.read_text().rsplit(",", 1)[0] + "\n")
    message, mend = refused(csv)
    assert "line 4: it has 55 fields, but 56 are needed" in message
    assert "Correct that line" in mend


def test_names_in_place_of_values_and_values_in_place_of_names_are_told_apart(csv: Path) -> None:
    message, mend = refused(csv, header=False)
    assert "the first line of" in message
    assert "contains the names of the columns, but values are expected" in message
    assert mend == "Set header=true."
    names, _, rest = csv.read_text().partition("\n")
    csv.write_text(rest)
    _, mend = refused(csv)
    assert "set header=false" in mend
    look(replace(FLIGHTS, rows=Rows(files=(str(csv),), format="csv", set="flights")))
    csv.write_text(f"{names.replace(',', ';')}\n{rest}")
    message, _ = refused(csv)
    assert "the columns of flights.csv are not those of the set flights" in message


def test_files_without_rows_are_refused(csv: Path, tmp_path: Path) -> None:
    names = csv.read_text().partition("\n")[0]
    for text in (names, f"{names}\r\n", f"{names}\n\n"):
        csv.write_text(text)
        assert "contains only the names of its columns" in refused(csv)[0]
    csv.write_text("")
    assert "is empty" in refused(csv)[0]
    nothing = tmp_path / "nothing.csv.gz"
    nothing.write_bytes(gzip.compress(f"{names}\n".encode()))
    assert "contains only the names of its columns" in refused(nothing)[0]


def test_every_file_is_looked_at_and_packed_ones_too(csv: Path, tmp_path: Path) -> None:
    packed = tmp_path / "good.csv.gz"
    packed.write_bytes(gzip.compress(csv.read_bytes()))
    bad = tmp_path / "bad.csv.gz"
    bad.write_bytes(gzip.compress(changed(csv, 2, "distance", "x").read_bytes()))
    rows = Rows(files=(str(packed), str(bad)), format="csv", header=True, set="flights")
    with pytest.raises(LoadstoneError, match=r"bad\.csv\.gz, line 2: distance is 'x'"):
        look(replace(FLIGHTS, rows=rows))
    look(replace(FLIGHTS, rows=replace(rows, files=(str(packed), str(packed)))))


def test_lines_are_counted_over_values_of_several_lines(tmp_path: Path) -> None:
    bad = GOOD.replace("-32768", "32768")
    for header in (False, True):
        text = ("names\n" if header else "") + f"{GOOD}\n{GOOD}\n{bad}\n"
        with pytest.raises(LoadstoneError, match=f"line {5 + header}: small is '32768'"):
            refuse_values(lines(tmp_path, text, header=header), COLUMNS)
        short = text.replace(bad, "7,8")
        with pytest.raises(LoadstoneError, match=f"line {5 + header}: it has 2 fields, but 7 are needed"):
            refuse_values(lines(tmp_path, short, header=header), COLUMNS)


def test_what_servers_read_is_not_refused(tmp_path: Path) -> None:
    bad = GOOD.replace("-32768", "32768")
    for field, values in {
        "1,": ("", "+5,", " 7 ,", "007,", "0x1F,"),
        "1e38": ("", "-.5", "NaN", "-Infinity", " 3 "),
        "2008-01-03,": ("", "1/3/2008,", "20080103,", "Jan 3 2008,", "infinity,", '"January 3, 2008",'),
        "2008-01-03 10:00": ("2008-01-03T10:00:00.5+01", "epoch", "03.01.2008 10:00"),
        ",t": (",", ",FALSE", ",yes", ",of", ",0"),
    }.items():
        for value in values:
            text = GOOD.replace(field, value or ",", 1) if field.endswith(",") else GOOD.replace(field, value)
            refuse_values(lines(tmp_path, f"{text}\r\n"), COLUMNS)
            with pytest.raises(LoadstoneError, match="small is '32768'"):
                refuse_values(lines(tmp_path, f"{text}\r\n{bad}\r\n"), COLUMNS)


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path: Path) -> None:
    for raw, words in (
        (b"1\n\xff\n", "line 2: there is a byte that is not UTF-8"),
        (b"a\0", "line 1: there is a zero"),
    ):
        with pytest.raises(LoadstoneError, match=words):
            refuse_values(lines(tmp_path, raw), COLUMNS[3:4])


def test_a_mark_before_the_names_does_no_harm_and_before_a_value_is_refused(csv: Path) -> None:
    names, _, rest = csv.read_text().partition("\n")
    csv.write_text(f"\ufeff{names}\n{rest}")
    look(replace(FLIGHTS, rows=Rows(files=(str(csv),), format="csv", header=True, set="flights")))
    csv.write_text(f"\ufeff{rest}")
    assert "begins with a byte order mark" in refused(csv, header=False)[0]


def test_tabs_part_the_values_of_text(tmp_path: Path) -> None:
    good = "1\t2\t\\N\ta\\tb\t2008-01-03\t\\N\tf\n"
    ours = lines(tmp_path, good * 3, format="text")
    refuse_header(ours, COLUMNS)
    refuse_values(ours, COLUMNS)
    wrong = lines(tmp_path, good + good.replace("2\t", "two\t", 1), format="text")
    with pytest.raises(LoadstoneError, match="line 2: small is 'two', but a whole number of 16 bits"):
        refuse_values(wrong, COLUMNS)


@given(st.lists(st.text(alphabet='ab\n",', max_size=6), min_size=1, max_size=30), st.data())
def test_a_beginning_cut_anywhere_is_looked_at_as_far_as_rows_are_whole(
    texts: list[str], data: st.DataObject
) -> None:
    text = "".join(
        f'{number},"{value.replace(chr(34), 2 * chr(34))}"\n' for number, value in enumerate(texts)
    ).encode()
    cut = data.draw(st.integers(0, len(text)))
    columns = [COLUMNS[0], COLUMNS[3]]
    refuse_values(lines(Path("rows"), text[:cut], whole=False), columns)
    if text[:cut].count(b'"') % 2 == 0 and text[:cut].endswith(b"\n"):
        with pytest.raises(LoadstoneError, match="id is 'x'"):
            refuse_values(lines(Path("rows"), text[:cut] + b"x,\n", whole=False), columns)
