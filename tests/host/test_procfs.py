"""The counters of /proc agree with what real processes did."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.host.procfs import Host, Monotone, ProcessTree, count_as_ours, disks_of, own_process

Process = subprocess.Popen[str]
Start = Callable[[str], Process]
Sample = dict[str, Any]

# Burns the CPU seconds it is told to on standard input, says "done", and ends with its input.
BURNER = """
import sys, time
for line in sys.stdin:
    end = time.process_time() + float(line)
    while time.process_time() < end:
        pass
    print("done", flush=True)
"""
# Starts a burner for each line, waits for it, says "done".
PARENT = f"""
import subprocess, sys
for line in sys.stdin:
    command = [sys.executable, "-c", {BURNER!r}]
    subprocess.run(command, input=line.encode(), stdout=subprocess.DEVNULL, check=True)
    print("done", flush=True)
"""


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[Process] = []

    def begin(code: str) -> Process:
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        with process:
            process.kill()


def tell(process: Process, line: object) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def cpu_s(sample: Sample) -> float:
    return float(sample["cpu_user_s"] + sample["cpu_system_s"])


def take(tree: ProcessTree) -> Sample:
    sample = tree.sample()
    assert sample is not None
    return sample


class TestProcessTree:
    def test_cpu_time_of_a_living_process(self, start: Start) -> None:
        burner = start(BURNER)
        tell(burner, 0)
        tree = ProcessTree(burner.pid)
        before = cpu_s(take(tree))
        tell(burner, 0.3)
        assert cpu_s(take(tree)) - before == pytest.approx(0.3, abs=0.05)

    def test_cpu_time_of_a_child_that_ended_between_samples(self, start: Start) -> None:
        parent = start(PARENT)
        tell(parent, 0)
        tree = ProcessTree(parent.pid)
        before = take(tree)
        tell(parent, 0.3)
        after = take(tree)
        assert after["processes"] == before["processes"] == 1
        # The child's own start takes CPU time too, however long that is on this machine.
        assert cpu_s(after) - cpu_s(before) >= 0.28

    def test_the_sum_is_what_the_kernel_bills_for_the_whole_tree(self) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(
            [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with process:
            tree = ProcessTree(process.pid)
            for _ in range(3):
                tell(process, 0.1)
            counted = cpu_s(take(tree))
            process.communicate()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        billed = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        assert 0.25 < counted <= billed + 0.02
        assert counted == pytest.approx(billed, abs=0.1)  # its exit costs something as well

    def test_descendants_count(self, start: Start) -> None:
        code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURNER!r}], check=True)"
        parent = start(code)
        tell(parent, 0.2)
        sample = take(ProcessTree(parent.pid))
        assert sample["processes"] == 2
        assert cpu_s(sample) >= 0.18

    def test_bytes_written(self, start: Start, tmp_path: Path) -> None:
        code = (
            "import os, sys\n"
            "for line in sys.stdin:\n"
            f"    f = os.open({str(tmp_path / 'f')!r}, os.O_WRONLY | os.O_CREAT)\n"
            "    os.write(f, bytes(int(line))); os.fsync(f); print('done', flush=True)\n"
        )
        writer = start(code)
        tell(writer, 0)
        tree, host = ProcessTree(writer.pid), Host([tmp_path])
        before, disk_before = take(tree), host.sample()["disk"]
        tell(writer, 8 << 20)
        grown = take(tree)["write_bytes"] - before["write_bytes"]
        assert 8 << 20 <= grown < 9 << 20
        if host.disks:
            assert host.sample()["disk"]["write_bytes"] - disk_before["write_bytes"] >= 8 << 20

    def test_shared_memory_is_counted_once(self, start: Start) -> None:
        # As PostgreSQL does: a shared segment that the parent and all children have touched.
        code = (
            "import mmap, os, sys\n"
            "shared = mmap.mmap(-1, 64 << 20); shared[:] = bytes(64 << 20)\n"
            "for _ in range(4):\n"
            "    if os.fork() == 0:\n"
            "        shared[:] = bytes(64 << 20); os.write(1, b'x'); os.read(0, 1); os._exit(0)\n"
            "sys.stdin.readline()"
        )
        process = start(code)
        assert process.stdout is not None
        assert process.stdout.read(4) == "xxxx"
        sample = take(ProcessTree(process.pid))
        assert sample["processes"] == 5
        assert 64 << 20 < sample["rss_bytes"] < 2 * (64 << 20)

    def test_a_process_that_is_gone(self, start: Start) -> None:
        burner = start(BURNER)
        tree = ProcessTree(burner.pid)
        assert take(tree)["processes"] == 1
        burner.kill()
        os.waitid(os.P_PID, burner.pid, os.WEXITED | os.WNOWAIT)
        assert tree.sample() is None  # dead, not waited for
        burner.wait()
        assert tree.sample() is None

    @pytest.mark.slow
    def test_counters_go_on_after_a_restart(self, start: Start) -> None:
        first, second = start(BURNER), start(BURNER)
        tell(first, 0.3)
        tell(second, 0)
        tree = ProcessTree(first.pid)
        before = cpu_s(take(tree))
        tree.watch(second.pid)
        assert cpu_s(take(tree)) == pytest.approx(before)
        tell(second, 0.2)
        assert cpu_s(take(tree)) - before == pytest.approx(0.2, abs=0.05)

    def test_many_processes_are_read_in_turns_and_none_is_forgotten(self) -> None:
        code = (
            "import os, sys, time\n"
            "told, tell = os.pipe()\n"
            "for _ in range(200):\n"
            "    if os.fork() == 0:\n"
            "        os.write(tell, b'x'); time.sleep(600)\n"
            "    os.read(told, 1)\n"
            "print('done', flush=True); sys.stdin.readline(); import signal; os.killpg(0, signal.SIGKILL)"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == "done\n"
            tree = ProcessTree(process.pid)
            samples = [take(tree) for _ in range(4)]
            process.communicate()
        assert {sample["processes"] for sample in samples} == {201}
        sizes = [sample["rss_bytes"] for sample in samples]
        assert max(sizes) < 1.1 * min(sizes)


class TestMonotone:
    @given(st.lists(st.floats(0, 1e9)))
    def test_never_goes_backwards(self, values: list[float]) -> None:
        counter = Monotone()
        given = [counter.next(value) for value in values]
        assert given == sorted(given)

    @given(st.lists(st.integers(0, 10**9)))
    def test_a_counter_that_grows_is_left_as_it_is(self, values: list[float]) -> None:
        counter = Monotone()
        assert [counter.next(value) for value in sorted(values)] == sorted(values)

    def test_a_short_dip_is_held_and_a_lasting_one_becomes_the_base(self) -> None:
        counter = Monotone()
        assert [counter.next(value) for value in (10, 8, 11)] == [10, 10, 11]
        assert [counter.next(value) for value in (1, 1, 1, 2, 5)] == [11, 11, 11, 12, 15]


class TestHost:
    def test_cpu_time_is_all_the_time_of_all_cores(self) -> None:
        host = Host()
        before, begin = host.sample(), time.monotonic()
        time.sleep(0.5)  # the time whose CPU is counted
        after, passed = host.sample(), time.monotonic() - begin
        total = sum(after["cpu_s"].values()) - sum(before["cpu_s"].values())
        assert total == pytest.approx(passed * after["cores"], rel=0.25)
        assert set(after["cpu_s"]) == {"user", "nice", "system", "iowait", "irq", "softirq", "steal", "idle"}
        assert after["cores"] == os.cpu_count()
        assert 0 < after["memory_available_bytes"] < after["memory_total_bytes"]

    def test_a_machine_made_of_files(self, tmp_path: Path) -> None:
        proc = tmp_path / "proc"
        (proc / "net").mkdir(parents=True)
        (proc / "pressure").mkdir()
        (proc / "stat").write_text("cpu  100 2 300 4000 50 6 7 8 0 0\ncpu0 1\ncpu1 1\nintr 1 2\n")
        (proc / "meminfo").write_text(
            "MemTotal: 10 kB\nMemAvailable: 4 kB\nSwapTotal: 8 kB\nSwapFree: 5 kB\n"
        )
        (proc / "diskstats").write_text(
            "   8 0 sda 5 0 20 0 7 0 40 0 0 1500 0\n   8 1 sda1 5 0 20 0 7 0 40 0 0 1500 0\n"
            "   7 0 loop0 9 9 9 9 9 9 9 9 9 9 9\n 253 0 dm-0 5 0 20 0 7 0 40 0 0 1500 0\n"
            "   8 16 sdb 1 0 2 0 1 0 2 0 0 500 0\n"
        )
        for name in ("sda", "sdb", "loop0", "dm-0", "zram0"):
            (tmp_path / "sys/block" / name).mkdir(parents=True)
        row = " 100 3 0 0 0 0 0 0 200 4 0 0 0 0 0 0\n"
        (proc / "net/dev").write_text(f"head\nhead\n lo:{row} eth0:{row} br0:{row}")
        (tmp_path / "sys/class/net/eth0/device").mkdir(parents=True)
        for kind in ("cpu", "io", "memory"):
            (proc / "pressure" / kind).write_text("some avg10=0.00 total=1500000\nfull avg10=0.00 total=9\n")

        sample = Host(root=tmp_path).sample()
        assert sample["cpu_s"]["idle"] == pytest.approx(40.0)
        assert sample["cpu_s"]["steal"] == pytest.approx(0.08)
        assert sample["cores"] == 2
        assert sample["swap_used_bytes"] == 3 * 1024
        assert sample["disk"] == {
            "read_ops": 6,
            "write_ops": 8,
            "read_bytes": 22 * 512,
            "write_bytes": 42 * 512,
            "busy_s": 2.0,
        }
        assert sample["network"] == {"rx_bytes": 100, "rx_packets": 3, "tx_bytes": 200, "tx_packets": 4}
        assert sample["pressure"] == {"cpu_some_s": 1.5, "io_some_s": 1.5, "memory_some_s": 1.5}
        assert sample["throttled_s"] is None

    def test_what_a_kernel_lacks_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc/stat").write_text("cpu  1 2 3 4\ncpu0 1 2 3 4\n")
        sample = Host(root=tmp_path).sample()
        assert (
            sample["disk"] is sample["network"] is sample["pressure"] is sample["memory_total_bytes"] is None
        )
        assert set(sample["cpu_s"]) == {"user", "nice", "system", "idle"}

    def test_no_loop_or_ram_devices(self) -> None:
        assert not [name for name in disks_of([]) if name.startswith(("loop", "ram", "zram"))]
        assert disks_of([Path("/proc")]) == disks_of([])


def test_own_process() -> None:
    before = own_process()
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    after = own_process()
    assert cpu_s(after) - cpu_s(before) == pytest.approx(0.2, abs=0.05)
    assert after["rss_bytes"] > 1 << 20


def test_a_child_that_drives_load_is_ours_also_when_it_has_ended(start: Start) -> None:
    child = start(BURNER)
    count_as_ours(child.pid)
    before, mine = own_process(), cpu_s_of_this_process()
    tell(child, 0.2)
    driven = own_process()
    with child:
        child.kill()
    after = own_process()
    spent = cpu_s_of_this_process() - mine
    assert 0.1 < cpu_s(driven) - cpu_s(before) <= spent + 0.4
    assert cpu_s(after) >= cpu_s(driven)


def cpu_s_of_this_process() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
