"""What `loadstone tsbs generate-data` understands, and what it refuses."""

from __future__ import annotations

import hashlib
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.sandbox import COMMAND
from support.tsbs_sandbox import HOUR, IOT_DIGEST

if TYPE_CHECKING:
    from support.tsbs_sandbox import Place

MADE = "--use-case=iot --format=timescaledb"
NATIVE = "--use-case=iot --format=csv --file=x --native"
REFUSED = {
    "--format=timescaledb": "invalid use case specified: ''\n  Choose iot, devops, ",
    "--use-case=iot": "invalid format specified: ''\n  Choose timescaledb, clickhouse, influx, ",
    "--use-case=iox --format=timescaledb": "invalid use case specified: 'iox'\n  Choose iot, ",
    "--use-case=iot --format=mongo": "TSBS's format mongo is not supported\n  Choose timescaledb, ",
    "MADE --scale=0": "scale cannot be 0\n  Set the number of hosts or trucks with --scale.\n",
    "MADE --log-interval=0": "the log interval must be above zero\n  Set --log-interval to ",
    "MADE --log-interval=-5s": "the log interval must be above zero\n",
    "MADE --timestamp-end=2015-01-01T00:00:00Z": "the time range ends before it begins\n  Set --timest",
    "MADE --timestamp-start=2016": "'2016' is not a time of RFC 3339\n",
    "MADE --timestamp-end=2016-02-30T00:00:00Z": "'2016-02-30T00:00:00Z' is not",
    "MADE --interleaved-generation-group-id=1": "interleaved group 1 does not exist",
    "MADE --compress=lz4": "unknown compression 'lz4'\n  Choose gzip or zstd.\n",
    "--use-case=iot --format=parquet": "the format parquet has one file per table and cannot",
    "MADE --slice=0/2": "TSBS's data cannot be generated in slices: ",
    "NATIVE --slice=2/2": "--slice=2/2 is not a slice\n",
    "MADE --native": "native data cannot be written in TSBS's format timescaledb\n",
    "NATIVE --initial-scale=3": "--initial-scale works only with TSBS's data\n",
    "MADE --file=nosuch/x": "the folder of 'nosuch/x' does not exist\n  Create it, or choose",
    "MADE --threads=300": "--threads=300 is too many\n",
    "--use-case=devops-generic --format=timescaledb --max-metric-count=0": "at most 0 fields per host",
}


@pytest.mark.parametrize("flags", REFUSED)
def test_what_cannot_be_made_is_refused_in_words(place: Place, flags: str) -> None:
    made = place.make("--seed=1", *flags.replace("MADE", MADE).replace("NATIVE", NATIVE).split())
    assert made.err.startswith(f"loadstone tsbs generate-data: {REFUSED[flags]}")
    assert (made.code, made.out, place.names()) == (1, b"", [])


@pytest.mark.slow
def test_flags_are_pflags(place: Place) -> None:
    def complaint(*arguments: str) -> str:
        made = place.make(*arguments)
        assert (made.code, made.out) == (2, b"")
        first, usage = made.err.split("\n", 1)
        assert usage.startswith("Usage of loadstone tsbs generate-data:\n")
        return first

    assert complaint("--foo") == "unknown flag: --foo"
    assert complaint("--scale") == "flag needs an argument: --scale"
    assert complaint("--scale=-1") == (
        'invalid argument "-1" for "--scale" flag: strconv.ParseUint: parsing "-1": invalid syntax'
    )
    assert complaint("-x") == "unknown shorthand flag: 'x' in -x"
    assert complaint("iot") == "unknown argument: iot"
    assert complaint("--native=perhaps").startswith('invalid argument "perhaps" for "--native" flag')
    assert complaint("--log-interval=10").startswith('invalid argument "10" for "--log-interval" flag')
    asked = place.make("--help")
    assert (asked.code, asked.err) == (0, "")
    assert (
        b'--timestamp-end string                   End of the time range, exclusive (RFC3339) (default "2016'
        in asked.out
    )


CONFIGS = {
    "config.yaml": "use-case: iot\nscale: 10\nseed: '123'\nformat: influx\n"
    "timestamp-end: 2016-01-01T01:00:00Z\nworkers: 8\n",
    "config.yml": "use-case: iot\nscale: 10\nseed: 123\n"
    'timestamp-end: "2016-01-01T01:00:00Z"\nlog-interval: 10s\n',
    "config.json": '{"use-case": "iot", "Scale": 10, "seed": 123, "db": {},'
    '"timestamp-end": "2016-01-01T01:00:00Z"}',
    "config.toml": 'use-case = "iot"\nscale = 10\nseed = 123\ntimestamp-end = "2016-01-01T01:00:00Z"\n',
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_file_gives_what_no_flag_does(place: Place, name: str) -> None:
    (place.folder / name).write_text(CONFIGS[name])
    digest = hashlib.md5(place.made("--format=timescaledb")).hexdigest()
    assert digest == IOT_DIGEST
    assert hashlib.md5(place.made("--format=timescaledb", "--seed", "5")).hexdigest() != digest


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("config.yaml", "scale: many\n", "config.yaml sets scale to 'many': strconv.ParseUint"),
        ("config.yaml", "a: [", "config.yaml in this folder cannot be read"),
        ("config.json", "[1]", "config.json in this folder has no names with values"),
        ("config.hcl", "scale = 10", "Loadstone cannot read the format of config.hcl in this folder"),
        ("config.yaml", "scale: [1]\n", "config.yaml sets scale to [1]: it is not of type uint"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(place: Place, name: str, text: str, words: str) -> None:
    (place.folder / name).write_text(text)
    made = place.make("--use-case=iot", "--format=timescaledb", HOUR)
    assert (made.code, made.out) == (1, b"")
    assert words in made.err


def test_a_seed_by_the_clock_is_told(place: Place) -> None:
    made = place.make("--use-case=cpu-only", "--format=timescaledb", HOUR)
    assert made.code == 0
    seed = made.err.split("--seed=")[1].split()[0]
    assert f"the seed is {seed}, from the clock" in made.err
    assert place.made("--use-case=cpu-only", "--format=timescaledb", HOUR, f"--seed={seed}") == made.out


def test_an_unknown_command_names_those_there_are() -> None:
    ended = subprocess.run([COMMAND, "tsbs", "frobnicate"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "there is no command 'frobnicate'" in ended.stderr
    assert "generate-data" in ended.stderr
    helped = subprocess.run([COMMAND, "tsbs", "--help"], capture_output=True, text=True, check=True)
    assert "generate-data" in helped.stdout
