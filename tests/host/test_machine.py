"""Machines made of files are read as those who own them would describe them."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.host import machine


def make(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def cores(count: int, threads: int = 1) -> dict[str, str]:
    base = "sys/devices/system/cpu"
    files = {f"{base}/online": f"0-{count * threads - 1}\n"}
    for cpu in range(count * threads):
        files |= {
            f"{base}/cpu{cpu}/topology/physical_package_id": "0\n",
            f"{base}/cpu{cpu}/topology/core_id": f"{cpu % count}\n",
            f"{base}/cpu{cpu}/cpufreq/scaling_governor": "powersave\n",
        }
    return files


class TestCpu:
    def test_a_laptop(self, tmp_path: Path) -> None:
        base = "sys/devices/system/cpu"
        files = cores(4, threads=2) | {
            "proc/cpuinfo": "model name\t: Some CPU @ 3 GHz\n\nmodel name\t: Other\n",
            f"{base}/smt/active": "1\n",
            f"{base}/cpu0/cpufreq/cpuinfo_max_freq": "3000000\n",
            f"{base}/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
            f"{base}/intel_pstate/no_turbo": "0\n",
            "sys/devices/system/node/node0/meminfo": "",
        }
        facts = machine.cpu(make(tmp_path, files))
        assert facts["model"] == "Some CPU @ 3 GHz"
        assert (facts["cores_physical"], facts["cores_logical"], facts["cores_online"]) == (4, 8, 8)
        assert facts["smt"] is facts["turbo"] is True
        assert facts["frequency_max_hz"] == 3_000_000_000
        assert facts["governors"] == ["powersave"]
        assert facts["numa_nodes"] == 1

    def test_nothing_is_known(self, tmp_path: Path) -> None:
        facts = machine.cpu(tmp_path)
        assert facts["model"] is facts["smt"] is facts["turbo"] is facts["cores_physical"] is None
        assert facts["governors"] == []

    def test_this_machine(self) -> None:
        told = subprocess.run(["nproc"], capture_output=True, text=True, check=True).stdout
        assert machine.cpu()["cores_usable"] == int(told)
        assert machine.cpu()["cores_online"] == os.cpu_count()


class TestLists:
    @given(st.sets(st.integers(0, 500)))
    def test_single_numbers(self, numbers: set[int]) -> None:
        assert machine.expand_list(",".join(map(str, sorted(numbers)))) == sorted(numbers)

    @pytest.mark.parametrize(("text", "count"), [("0-3", 4), ("0-1,4,6-7", 5), ("", 0), ("7", 1)])
    def test_ranges(self, text: str, count: int) -> None:
        assert len(machine.expand_list(text)) == count


V2_MOUNT = "30 24 0:26 {root} /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


class TestCgroups:
    def check(self, root: Path, cpu_cores: float | None, memory_bytes: int | None) -> None:
        assert machine.cgroup_limits(root) == {"cpu_cores": cpu_cores, "memory_bytes": memory_bytes}

    def test_the_tightest_of_all_levels(self, tmp_path: Path) -> None:
        files = {
            "proc/self/mountinfo": V2_MOUNT.format(root="/"),
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/a/memory.max": "max\n",
            "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
            "sys/fs/cgroup/a/b/memory.max": "1048576\n",
        }
        self.check(make(tmp_path, files), 1.5, 1048576)

    def test_a_container_that_sees_its_own_part_only(self, tmp_path: Path) -> None:
        files = {
            "proc/self/mountinfo": V2_MOUNT.format(root="/docker/abc"),
            "proc/self/cgroup": "0::/docker/abc\n",
            "sys/fs/cgroup/cpu.max": "50000 100000\n",
        }
        self.check(make(tmp_path, files), 0.5, None)

    def test_version_1(self, tmp_path: Path) -> None:
        files = {
            "proc/self/mountinfo": (
                "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            ),
            "proc/self/cgroup": "4:memory:/m\n1:cpu:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/m/memory.limit_in_bytes": "4096\n",
        }
        self.check(make(tmp_path, files), 2.0, 4096)

    def test_no_limit(self, tmp_path: Path) -> None:
        self.check(tmp_path, None, None)
        files = {
            "proc/self/mountinfo": V2_MOUNT.format(root="/"),
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": "max 100000\n",
        }
        self.check(make(tmp_path, files), None, None)

    @pytest.mark.parametrize(("quota", "cores"), [("max", 64), ("450000", 4), ("50000", 1), ("9900000", 64)])
    def test_a_quota_limits_the_cores_at_a_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, cores: int
    ) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
        files = {
            "proc/self/mountinfo": V2_MOUNT.format(root="/"),
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": f"{quota} 100000\n",
        }
        assert machine.cores_at_a_time(make(tmp_path, files)) == cores


class TestStorage:
    def test_agrees_with_findmnt(self, tmp_path: Path) -> None:
        command = ["findmnt", "-no", "FSTYPE,TARGET", "-T", str(tmp_path)]
        kind, target = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        facts = machine.storage(tmp_path)
        assert (facts["filesystem"], facts["mount_point"]) == (kind, target)
        assert 0 < facts["free_bytes"] <= facts["total_bytes"]
        assert "rw" in facts["options"].split(",")

    def test_a_place_that_does_not_exist_yet(self, tmp_path: Path) -> None:
        new = machine.storage(tmp_path / "a" / "b")
        assert new["mount_point"] == machine.storage(tmp_path)["mount_point"]

    def test_a_partition_belongs_to_its_disk(self, tmp_path: Path) -> None:
        make(
            tmp_path,
            {
                "proc/self/mountinfo": (
                    "27 1 8:1 / / rw,noatime - ext4 /dev/sda1 rw,nobarrier\n"
                    "28 27 8:17 / /data rw - xfs /dev/sdb1 rw\n"
                    "29 27 8:33 / /with\\040space rw - xfs /dev/sdc1 rw\n"
                ),
                "sys/devices/sda/sda1/partition": "1",
                "sys/devices/sda/queue/rotational": "0\n",
                "sys/devices/sda/queue/scheduler": "mq-deadline [none]\n",
            },
        )
        (tmp_path / "sys/dev/block").mkdir(parents=True)
        (tmp_path / "sys/dev/block/8:1").symlink_to(tmp_path / "sys/devices/sda/sda1")
        (tmp_path / "sys/block").mkdir()
        (tmp_path / "sys/block/sda").symlink_to(tmp_path / "sys/devices/sda")
        facts = machine.storage(Path("/database"), tmp_path)  # not below /data
        assert (facts["disk"], facts["rotational"], facts["scheduler"]) == ("sda", False, "none")
        assert facts["options"] == "rw,noatime,nobarrier"
        mounts = {mount.point: mount for mount in machine.mounts(tmp_path)}
        for path, point in (("/data/x", "/data"), ("/with space", "/with space"), ("/", "/")):
            assert machine.mount_of(Path(path), tmp_path) == mounts[point]
        assert machine.disk_of(mounts["/data"], tmp_path) is None


class TestVirtualisation:
    @pytest.mark.skipif(os.uname().machine != "x86_64", reason="the hypervisor flag is x86's")
    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            ({"proc/cpuinfo": "flags : fpu\n"}, None),
            ({"proc/cpuinfo": "flags : fpu\n", "sys/class/dmi/id/sys_vendor": "Google"}, None),
            ({"proc/cpuinfo": "flags : fpu hypervisor\n"}, "unknown hypervisor"),
            (
                {"proc/cpuinfo": "flags : hypervisor\n", "sys/class/dmi/id/sys_vendor": "VMware, Inc."},
                "VMware",
            ),
        ],
    )
    def test_by_flag_and_vendor(self, tmp_path: Path, files: dict[str, str], expected: str | None) -> None:
        assert machine.virtualisation(make(tmp_path, files)) == expected

    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            ({}, None),
            ({".dockerenv": ""}, "docker"),
            ({"run/.containerenv": ""}, "podman"),
            ({"proc/1/environ": "PATH=/bin\0container=lxc\0"}, "lxc"),
            ({"proc/1/cgroup": "0::/kubepods/pod1\n"}, "kubepods"),
        ],
    )
    def test_containers(self, tmp_path: Path, files: dict[str, str], expected: str | None) -> None:
        assert machine.container(make(tmp_path, files)) == expected


def test_io_uring_says_why_not() -> None:
    facts = machine.io_uring()
    assert facts["available"] is (facts["reason"] is None)
    if facts["sysctl"] == 2:
        assert not facts["available"]


def test_battery(tmp_path: Path) -> None:
    assert not machine.on_battery(tmp_path)
    base = "sys/class/power_supply"
    make(
        tmp_path,
        {f"{base}/AC/type": "Mains\n", f"{base}/B/type": "Battery\n", f"{base}/B/status": "Charging\n"},
    )
    assert not machine.on_battery(tmp_path)
    make(tmp_path, {f"{base}/B/status": "Discharging\n"})
    assert machine.on_battery(tmp_path)


@pytest.mark.parametrize(
    ("mounts", "cgroup", "controllers", "expected"),
    [
        (
            "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "0::/user.slice/a\n",
            "cpu memory",
            (2, "/user.slice/a"),
        ),
        ("31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/\n", "cpu", (None, None)),
        ("32 31 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "4:memory:/\n", "", (1, "/")),
        ("", "", "", (None, None)),
    ],
)
def test_the_control_group_we_are_in(
    tmp_path: Path, mounts: str, cgroup: str, controllers: str, expected: tuple[int | None, str | None]
) -> None:
    proc = tmp_path / "proc/self"
    proc.mkdir(parents=True)
    (proc / "mountinfo").write_text(mounts)
    (proc / "cgroup").write_text(cgroup)
    group = tmp_path / "sys/fs/cgroup/user.slice/a"
    group.mkdir(parents=True)
    (group / "cgroup.controllers").write_text(controllers)
    found = machine.control_group(tmp_path)
    assert (found["version"], found["path"]) == expected
