"""Crash tests of several values: what is chosen, how results are joined, and what each way to end leaves."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from loadstone.cli.group import loadstone
from loadstone.crash import joint_texts, texts
from loadstone.crash import session as sessions
from loadstone.crash.choices import choices_of
from loadstone.crash.documents import CommitCounts, Crash, Crashes, CrashesOfValue, Cycle, Moment, Recovery
from loadstone.crash.joint import FIGURES, joined, spread
from loadstone.crash.joint_page import axis, page
from loadstone.crash.levels import ProcessLevel
from loadstone.crash.moments import Goal, late_moments
from loadstone.crash.recovery import before_replay
from loadstone.crash.serverlog import kept
from loadstone.crash.session import Session
from loadstone.crash.setup import prepare
from loadstone.crash.sweep import CrashSweep
from loadstone.crash.verdict import verdict_of
from loadstone.errors import ExitCode, LoadstoneError
from loadstone.scenario.scenario import find_scenario, load_scenario

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Sandbox

    from loadstone.private_server import EmbeddedServer

MB = 1 << 20
SMALL = ("recovery-time", "--size=tiny", "--set=rows=100", "--setting=fsync=off",
         "--setting=shared_buffers=128MB", "--cycles=1", "--set=max_wal_size=32,64MB")  # fmt: skip
"""Killed processes lose nothing that was written, synced or not."""

seconds = st.floats(0, 1e4)
recoveries = st.builds(
    Recovery, down_s=seconds, connection_s=st.none() | seconds, commit_s=st.none() | seconds,
    rate_s=st.none() | seconds, rate_before=st.none() | seconds,
    wal_bytes=st.none() | st.integers(0, 1 << 40),
    replay_s=st.none() | seconds, before_replay_s=st.none() | seconds, watched_s=st.none() | seconds,
)  # fmt: skip


def cycle(number: int, recovery: Recovery) -> Cycle:
    counts = dict.fromkeys(("lost", "corrupt", "twice", "phantom", "holes", "unknown_present"), 0)
    return Cycle(
        number=number, folder="", moment=Moment(kind="late", after_s=1.0), killed_ns=1, upto=[1],
        allowed_s=0.0, recovery=recovery, restarted=True,
        found=CommitCounts(acknowledged=10, lost_allowed=1, unknown=0, **counts),
    )  # fmt: skip


def words(shown: str) -> str:
    """Return what a terminal shows, its lines joined."""
    return " ".join(shown.split())


def crash_of(recoveries: list[Recovery], **changes: Any) -> Crash:
    values: dict[str, Any] = {
        "format": 1, "loadstone": "0", "id": "x", "state": "complete", "started_at": "", "command": [],
        "scenario": "s", "phase": "p", "size": "tiny", "seed": 1, "target": "pg18", "parameters": {},
        "settings": {}, "level": "process", "clients": 8, "wanted": len(recoveries), "window_s": 5.0,
        "cycles": [cycle(number, one) for number, one in enumerate(recoveries, 1)],
    }  # fmt: skip
    made = Crash(**(values | changes))
    made.verdict = verdict_of(made)
    return made


def crashes(*entries: CrashesOfValue, **changes: Any) -> Crashes:
    values: dict[str, Any] = {
        "format": 1, "loadstone": "0", "id": "x", "state": "complete", "started_at": "", "command": [],
        "scenario": "s", "parameter": "max_wal_size", "unit": "MB", "level": "process", "wanted": 2,
        "values": list(entries),
    }  # fmt: skip
    return Crashes(**(values | changes))


@given(st.lists(seconds, min_size=1), st.randoms())
def test_a_spread_is_of_all_values_in_any_order(values: list[float], chance: Any) -> None:
    found = spread(values)
    assert found is not None
    assert (found.low, found.high, found.crashes) == (min(values), max(values), len(values))
    assert found.low <= found.median <= found.high
    assert sum(one <= found.median for one in values) * 2 >= len(values)
    chance.shuffle(values)
    assert spread(values) == found


@given(st.lists(recoveries, max_size=6))
def test_each_figure_of_each_crash_is_joined_or_has_a_reason(seen: list[Recovery]) -> None:
    entry = joined(64, "f", crash_of(seen))
    assert (entry.crashes, entry.acknowledged, entry.lost) == (len(seen), 10 * len(seen), len(seen))
    for key in FIGURES:
        found = getattr(entry, key)
        without = len(seen) - (found.crashes if found else 0)
        assert (key in entry.missing) == (without > 0)
        if found is not None and without:
            assert f" of {len(seen)}: " in entry.missing[key]
    cells = joint_texts.line(crashes(entry), entry)
    assert len(cells) == len(joint_texts.heads(crashes(entry)))
    assert cells[0] == "64 MB"


def test_a_dash_has_its_reason() -> None:
    up = Recovery(down_s=0.1, connection_s=2.0, commit_s=2.1, rate_before=500.0, wal_bytes=60_000_000,
                  replay_s=0.5, before_replay_s=1.0, watched_s=15.0)  # fmt: skip
    slow = msgspec.structs.replace(up, connection_s=4.0, rate_s=9.0, wal_bytes=0)
    entry = joined(64, "f", crash_of([up, slow]))
    later = CrashesOfValue(value=1024, folder="")
    document = crashes(entry, later, state="interrupted", reason="stopped by SIGINT")
    assert joint_texts.line(document, entry) == [
        "64 MB", "2", "2", "30.0 (0–60.0)", "1.00", "120", "3.00 (2.00–4.00)", "2.10 (2.10–2.10)", "9.00",
        "500 (500–500)",
    ]  # fmt: skip
    assert joint_texts.line(document, later) == ["1024 MB", "0", *["–"] * 8]
    notes = list(joint_texts.notes(document, [crash_of([up, slow])]))
    assert "max_wal_size = 64 MB, 95 % rate, s: in 1 of 2: not within 15.0 s after the log-in." in notes
    assert "max_wal_size = 64 MB, Replay, MB/s: in 1 of 2: there was no WAL to replay." in notes
    assert "max_wal_size = 1024 MB: not begun." in notes
    said = joint_texts.markdown(document, [crash_of([up, slow])])
    assert "1 of 2 values of max_wal_size, 2 crashes (process), 2 acknowledged commits lost." in said
    assert "Not all crashes were made: stopped by SIGINT." in said


def test_the_page_shows_words_as_words_and_no_chart_without_figures() -> None:
    none = crashes(CrashesOfValue(value="<b>off", folder=""), unit="", parameter="mode")
    assert axis(none)["x_type"] == "ordinal"
    shown = page(none, [], pytest.fail)
    assert "<figure" not in shown
    assert "<b>off" not in shown
    assert "mode = &lt;b&gt;off: not begun." in shown


@pytest.mark.parametrize(
    ("values", "kind"), [((64, 128), None), ((64, 256, 1024), "log"), ((0, 5), None), ((0.5, 4.0), "log")]
)
def test_values_far_apart_are_on_a_logarithmic_axis(values: tuple[float, ...], kind: str | None) -> None:
    found = axis(crashes(*(CrashesOfValue(value=value, folder="") for value in values)))
    assert found["x_scale"].get("type") == kind
    assert found["x_values"] == list(values)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"checker": False}, "This set-up cannot show a loss: see max_wal_size = 64 MB."),
        ({"data": "/x"}, "The server did not come up again: see max_wal_size = 64 MB."),
        ({}, "1 value of max_wal_size, 1 crash (power), 1 acknowledged commits lost."),
    ],
)
def test_what_a_value_could_not_show_is_in_the_answer(changes: dict[str, Any], said: str) -> None:
    seen = Recovery(down_s=0.1, rate_before=500.0)
    one = crash_of([seen], level="power", rate_plain=900.0, **changes)
    document = crashes(joined(64, "f", one), level="power")
    answer = joint_texts.answer(document, [one])
    assert answer.endswith(said)
    slow = "max_wal_size = 64 MB: On the file system that forgets, the load made 500 commits/s"
    assert any(note.startswith(slow) for note in joint_texts.notes(document, [one]))


def recoveries_of(*seconds: float) -> list[Recovery]:
    return [
        Recovery(down_s=0.1, connection_s=one, rate_s=one + 1, rate_before=500.0, wal_bytes=60_000_000)
        for one in seconds
    ]


def test_one_server_says_how_long_it_took_to_come_back() -> None:
    found = crash_of(recoveries_of(2.0), max_wal_size="64MB")
    assert (
        "Counted from the start of the server: a client could log in after 2.00 s and 95 % of the rate "
        "was back after 3.00 s, with 60.0 MB of WAL to replay (max_wal_size = 64MB). Indicative: one crash"
    ) in texts.answer(found)
    seen = recoveries_of(2.0, 5.0, 3.0)
    seen[1].rate_s = None
    said = texts.answer(crash_of(seen))
    assert (
        "in the median of 3 crashes (lowest to highest): a client could log in after 3.00 (2.00–5.00) s"
        in said
    )
    assert "95 % of the rate was back after 3.50 (3.00–4.00) s in 2 of 3, with 60.0" in said
    assert "Indicative" not in said
    assert "log in" not in texts.answer(crash_of([Recovery(down_s=0.1)])), "it did not come up"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ((4.0, 6.0, 5.0, 5.0), "256 MB: seconds until the log-in 2.50× against max_wal_size = 64 MB (the"),
        (
            (1.5, 2.5, 2.1, 1.9),
            "64 MB was shown (+0 %; the ranges overlap). To decide it, crash more often",
        ),
        ((4.0,), "(the ranges do not overlap). Indicative: to decide it takes at least 4 crashes of each"),
    ],
)
def test_the_last_value_is_compared_with_the_first(other: tuple[float, ...], said: str) -> None:
    first, last = crash_of(recoveries_of(1.9, 2.1, 2.0, 2.0)), crash_of(recoveries_of(*other))
    document = crashes(joined(64, "f", first), joined(256, "g", last))
    assert said in joint_texts.answer(document, [first, last])


@given(st.floats(0.1, 1), st.integers(1, 1 << 30), st.lists(st.integers(0, 1 << 31)))
def test_a_late_moment_has_its_share_of_wal(share: float, most: int, seen: list[int]) -> None:
    goal = Goal(share, most)
    for bytes_ in seen:
        reached = goal.reached_by(bytes_)
        assert reached == (bytes_ >= share * goal.most)
        assert goal.most <= most


def test_checkpoints_that_end_early_lower_the_goal_of_late_moments() -> None:
    goal = Goal(0.9, 100)
    seen = [10, 20, 1, 40, 70, 5, 60]
    assert not any(goal.reached_by(one) for one in seen), "the first cycle may be a short one"
    assert goal.most == 70
    assert goal.reached_by(63)


@given(st.integers(0, 2**63 - 1), st.integers(1, 30), st.floats(0.5, 3600))
def test_late_moments_follow_from_the_seed(seed: int, cycles: int, window_s: float) -> None:
    found = late_moments(seed, cycles, window_s)
    assert found == late_moments(seed, cycles + 5, window_s)[:cycles]
    assert all(one.kind == "late" and 0.8 <= one.share <= 0.9 for one in found)
    assert all(one.after_s <= window_s / 2 for one in found)


REFUSED = [
    b"2026-11-23 06:14:30.005 UTC [9] FATAL:  the database system is starting up\n",
    b"2026-11-23 06:14:30.005 UTC [9] FATAL:  the database system is not yet accepting connections\n",
    b"2026-11-23 06:14:30.005 UTC [9] DETAIL:  Consistent recovery state has not been yet reached.\n",
]
OTHERS = [
    b"2026-11-23 06:14:32.600 UTC [1] LOG:  redo starts at 0/1FB40B0\n",
    b"2026-11-23 06:14:32.600 UTC [1] FATAL:  could not open file\n",
    b"2026-11-23 06:14:32.600 UTC [1] DETAIL:  It is a file.\n",
    b"\tnext line of a statement\n",
    b"\xff not UTF-8\n",
]


@given(st.lists(st.sampled_from(REFUSED + OTHERS)))
def test_refused_log_ins_are_counted_in_place_of_their_lines(lines: list[bytes]) -> None:
    found = list(kept(lines))
    others = [line for line in lines if line in OTHERS]
    count = sum(line in REFUSED[:2] for line in lines)
    assert found[: len(others)] == others
    last = [f"[{count:,} lines left out: log-ins refused during the recovery]\n".encode()] if count else []
    assert found[len(others) :] == last


def test_the_time_before_the_replay_is_read_from_the_log() -> None:
    log = "a line\n2026-11-23 06:14:30.500 UTC [1] LOG:  starting\n" + OTHERS[0].decode()
    assert before_replay(log) == 2.1
    assert before_replay(OTHERS[2].decode()) is None
    assert before_replay("") is None


def options(**given_: Any) -> dict[str, Any]:
    return {"size": "tiny", "moments": None, "cycles": None, "window": None, "phase": None, "overrides": {},
            **given_}  # fmt: skip


def test_options_come_before_what_the_scenario_says() -> None:
    scenario = find_scenario("recovery-time")
    own = choices_of(options(size="small"), scenario)
    assert (own.moments, own.cycles, own.window_s) == ("late", 3, 120)
    assert own.sweep is not None
    assert own.sweep.values == ("64", "256", "1024")
    tiny = choices_of(options(), scenario)
    assert tiny.sweep is not None
    assert (tiny.cycles, tiny.sweep.values) == (1, ("32", "64"))
    given_ = options(
        moments="random", cycles=7, window=3.0, overrides={"recovery-time.max_wal_size": "64MB,1GB,1024"}
    )
    chosen = choices_of(given_, scenario)
    assert (chosen.moments, chosen.cycles, chosen.window_s) == ("random", 7, 3.0)
    assert chosen.sweep is not None
    assert (chosen.sweep.name, chosen.sweep.values) == ("recovery-time.max_wal_size", ("64", "1024"))
    assert choices_of(options(overrides={"max_wal_size": "64"}), scenario).sweep is None
    plain = choices_of(options(), find_scenario("pgbench-grid"))
    assert (plain.moments, plain.cycles, plain.window_s, plain.sweep) == ("random", 20, 5.0, None)


@pytest.mark.parametrize(
    ("scenario", "values", "loads"),
    [
        ("recovery-time", {"max_wal_size": "64,256"}, ["data-0", "data-0"]),
        ("recovery-time", {"rows": "10,20", "max_wal_size": "64"}, ["data-0", "data-1"]),
        ("pgbench-grid", {"clients": "1,8"}, ["data-0", "data-0"]),
    ],
)
def test_values_with_the_same_data_load_them_once(
    scenario: str, values: dict[str, str], loads: list[str], tmp_path: Path
) -> None:
    given_ = options(
        overrides=values, scenario=scenario, target="pg18", level="process", settings={}, seed=1,
        storage=None, allow_shell=False, out=tmp_path / "run",
    )  # fmt: skip
    sweep = prepare(given_, [], print)
    assert isinstance(sweep, CrashSweep)
    assert [test.bench.template for test in sweep.tests] == loads
    assert len({test.document.id for test in sweep.tests}) == 2


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("sweep = { wal = [1] }", "there is no parameter 'wal'"),
        ("sweep = { max_wal_size = [64, 1] }", "cannot be 1"),
        ("sweep = { max_wal_size = [64], rows = [1] }", "only one parameter has several values"),
        ('phase = "fil"', "there is no phase 'fil'"),
        ('moments = "early"', "crash.moments"),
        ("cycles = 0", "crash.cycles"),
        ("[crash.tiny]\nsweep = { max_wal_size = [true] }", "crash.tiny.sweep.max_wal_size"),
    ],
)
def test_a_wrong_table_is_refused_by_its_key(table: str, said: str, tmp_path: Path) -> None:
    own = find_scenario("recovery-time").folder
    for file in own.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    text = (own / "scenario.toml").read_text()
    begin, end = text.index("[crash]"), text.index("[[finding]]")
    crash_table = table if table.startswith("[") else f"[crash]\n{table}"
    (tmp_path / "scenario.toml").write_text(f"{text[:begin]}{crash_table}\n\n{text[end:]}")
    with pytest.raises(LoadstoneError) as refused:
        load_scenario(tmp_path)
    assert said in f"{refused.value.message} {refused.value.hint}"


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        (["--set=max_wal_size=64,1"], "'max_wal_size' cannot be 1"),
        (["--set=max_wal_size=64,,128"], "'max_wal_size' cannot be ''"),
        (["--set=max_wal_size=64,128", "--set=clients=1,2"], "one parameter can have several values"),
        (["--set=max_wal_size=64,128", "--set=clients=x"], "'clients' cannot be 'x'"),
        (["--setting=max_wal_size=1GB"], "'max_wal_size' is a setting of all servers"),
        (["--target=pg18?setting.max_wal_size=1GB"], "'max_wal_size' is a setting of all servers"),
        (["--moments=early"], "--moments"),
        (["--window=nan"], "--window"),
    ],
)
def test_wrong_values_are_refused_before_anything_is_touched(
    given_: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(loadstone, ["crash", "recovery-time", *given_])
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert said in ended.output
    assert not list(tmp_path.iterdir())


def check_value(entry: CrashesOfValue, folder: Path) -> None:
    one = msgspec.json.decode((folder / "crash.json").read_text(), type=Crash)
    assert one.max_wal_size == f"{entry.value}MB", "the server's own word"
    assert [cycle.moment.kind for cycle in one.cycles] == ["late"]
    assert (entry.crashes, entry.verdict, entry.lost) == (1, "kept", 0)
    assert entry.connection_s is not None
    assert entry.wal_bytes is not None
    log = (folder / "cycles" / "001" / "server.log").read_text()
    assert "redo done" in log
    assert "FATAL:  the database system is" not in log


@pytest.mark.usefixtures("own_registry")
def test_a_fresh_server_crashes_for_each_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_AFTER_S", 0.1)
    monkeypatch.setattr(sessions, "_AFTER_MOST_S", 0.6)
    out = tmp_path / "run"
    ended = CliRunner().invoke(loadstone, ["crash", *SMALL, "--window=1", f"--out={out}"])
    assert ended.exit_code == ExitCode.OK, ended.output
    document = msgspec.json.decode((out / "crashes.json").read_text(), type=Crashes)
    assert document.state == "complete"
    assert [entry.value for entry in document.values] == [32, 64]
    for entry in document.values:
        check_value(entry, out / entry.folder)
    assert [path.name for path in out.glob("*/template")] == ["template"], "loaded once for both"
    assert "2 values of max_wal_size, 2 crashes (process), 0 acknowledged commits lost." in words(
        ended.output
    )
    assert "| 64 MB | 1 | 0 |" in (out / "crashes.md").read_text()
    shown = (out / "crashes.html").read_text()
    assert shown.count('<figure class="chart') == 2, "seconds and WAL"
    assert "<svg" in shown
    assert '<th scope="row">64 MB</th>' in shown
    again = CliRunner().invoke(loadstone, ["crash", f"--verify={out}", "--format=json"])
    assert again.exit_code == ExitCode.OK
    assert msgspec.json.decode(again.stdout, type=Crashes) == document
    (out / document.values[1].folder / "cycles" / "001" / "table.npz").write_bytes(
        (out / document.values[0].folder / "cycles" / "001" / "table.npz").read_bytes()
    )
    spoiled = CliRunner().invoke(loadstone, ["crash", f"--verify={out}"])
    assert spoiled.exit_code == ExitCode.WRONG_ANSWER
    assert "Commits are not safe: see max_wal_size = 64 MB." in words(spoiled.output)


def lose_control_file(server: EmbeddedServer) -> None:
    (server.data_directory / "global" / "pg_control").unlink()


@pytest.mark.usefixtures("own_registry")
@pytest.mark.parametrize("at", ["", " at the second restart"])
def test_data_of_a_server_that_does_not_come_up_stay(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server without its control file can neither recover nor stop in order."""
    owner: Any = Session if at else ProcessLevel
    name = "_hashes" if at else "crash"
    before = getattr(owner, name)

    def destroyed(self: Any, *given: Any) -> Any:
        found = before(self, *given)
        lose_control_file(self.server if at else given[0])
        return found

    monkeypatch.setattr(owner, name, destroyed)
    monkeypatch.setattr(sessions, "_AFTER_MOST_S", 0.6)
    out = tmp_path / "run"
    ended = CliRunner().invoke(loadstone, ["crash", *SMALL, "--window=0.6", f"--out={out}"])
    assert ended.exit_code == ExitCode.WRONG_ANSWER, ended.output
    document = msgspec.json.decode((out / "crashes.json").read_text(), type=Crashes)
    assert [entry.verdict for entry in document.values] == ["did not come up", "undecided"]
    folder = out / document.values[0].folder
    one = msgspec.json.decode((folder / "crash.json").read_text(), type=Crash)
    assert one.data == str(folder / "data")
    assert (folder / "data" / "PG_VERSION").exists()
    assert [cycle.down_after for cycle in one.cycles] == ["second restart" if at else "crash"]
    assert (one.cycles[0].found is not None) == bool(at), "judged before the second restart"
    said = words(ended.output)
    assert f"The server did not come up again{at} after crash 1" in (folder / "crash.md").read_text()
    assert f"cycle 1: the server did not come up{at}: the private server does not start" in said
    assert words(one.data) in said
    again = CliRunner().invoke(loadstone, ["crash", f"--verify={out}"])
    assert again.exit_code == ExitCode.WRONG_ANSWER
    assert "The server did not come up again: see max_wal_size = 32 MB." in words(again.output)


def test_ctrl_c_leaves_the_values_before(sandbox: Sandbox) -> None:
    running = sandbox.start("crash", *SMALL, "--window=0.6", "--out=run", out="run")
    running.wait_for_words("max_wal_size = 64 MB")
    running.send(signal.SIGINT)
    ended = running.finish()
    assert ended.code == ExitCode.INTERRUPTED
    document = msgspec.json.decode((ended.folder / "crashes.json").read_text(), type=Crashes)
    assert document.state == "interrupted"
    assert [entry.state for entry in document.values] == ["complete", "interrupted"]
    assert [entry.crashes for entry in document.values] == [1, 0]
    assert "Not all crashes were made: stopped by SIGINT" in words(ended.out)
    again = CliRunner().invoke(loadstone, ["crash", f"--verify={ended.folder}"])
    assert "1 of 2 values of max_wal_size" in words(again.output)
    assert again.exit_code == ExitCode.UNDECIDED


def test_a_joint_document_names_folders_within_its_own(tmp_path: Path) -> None:
    entry = CrashesOfValue(value=1, folder="../other", state="complete")
    (tmp_path / "crashes.json").write_bytes(msgspec.json.encode(crashes(entry)))
    ended = CliRunner().invoke(loadstone, ["crash", f"--verify={tmp_path}"])
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "which is not in it" in ended.output
