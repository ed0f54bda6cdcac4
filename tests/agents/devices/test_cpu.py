"""``cpu`` devices divide the cores and measure who uses them."""

from __future__ import annotations

import pytest

from agents.devices.base import DeviceError, Holder
from agents.devices.cores import every_core, format_cores, parse_cores
from agents.devices.cpu import CpuDevices
from agents.devices.fake import FakeDevices
from agents.drivers.base import Use


def test_cores_are_divided_into_sets_where_it_works_out() -> None:
    devices = CpuDevices(2, cores=(2, 3, 4, 5))
    assert [info.id for info in devices.probe()] == ["cpu0", "cpu1"]
    assert devices.share(["cpu1"], 1).cpuset == "4-5"
    assert devices.share(["cpu1"], 1).cpus == 2.0
    assert devices.share(["cpu0", "cpu1"], 1).cpuset == "2-5"


def test_otherwise_each_is_a_quota_over_all() -> None:
    devices = CpuDevices(4, cores=(0, 1))
    share = devices.share(["cpu3"], 1)
    assert (share.cpus, share.cpuset) == (0.5, "0-1")


def test_sharers_divide_a_device() -> None:
    devices = CpuDevices(1, cores=(0,))
    assert devices.share(["cpu0"], 4).cpus == 0.25


def test_without_devices_what_the_job_asked_for_holds() -> None:
    share = CpuDevices(1, cores=(0, 1)).share([], 1)
    assert (share.cpus, share.cpuset) == (0.0, "0-1")


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(DeviceError, match="No device cpu9 on this node; there are: cpu0"):
        CpuDevices(1, cores=(0,)).share(["cpu9"], 1)


def test_there_is_no_device_memory_to_keep_and_it_says_so() -> None:
    for devices in (CpuDevices(1, cores=(0,)), FakeDevices(1, "H100")):
        assert not devices.checkpoint().able
        assert devices.checkpoint().reason


def held(key: str, cpu_s: float, *devices: str, memory: int = 0) -> Holder:
    return Holder(key=key, devices=devices, use=Use(cpu_s=cpu_s, memory=memory))


def test_use_is_measured_over_what_the_device_could_have_given() -> None:
    devices = CpuDevices(2, cores=(0, 1, 2, 3))
    devices.sample([held("a", 10.0, "cpu0"), held("b", 5.0, "cpu0")], at=100.0)
    uses = devices.sample([held("a", 11.0, "cpu0", memory=7), held("b", 5.5, "cpu0")], at=101.0)
    assert [use.utilisation for use in uses] == [pytest.approx(0.75), 0.0]
    assert uses[0].memory == 7


def test_a_replica_over_two_devices_counts_half_on_each() -> None:
    devices = CpuDevices(2, cores=(0, 1))
    devices.sample([held("a", 0.0, "cpu0", "cpu1")], at=0.0)
    uses = devices.sample([held("a", 1.0, "cpu0", "cpu1")], at=1.0)
    assert [use.utilisation for use in uses] == [0.5, 0.5]


def test_a_newcomer_and_a_counter_set_back_count_nothing() -> None:
    devices = CpuDevices(1, cores=(0,))
    devices.sample([held("a", 50.0, "cpu0")], at=0.0)
    uses = devices.sample([held("a", 1.0, "cpu0"), held("b", 99.0, "cpu0")], at=1.0)
    assert uses[0].utilisation == 0.0


def test_utilisation_never_passes_one() -> None:
    devices = CpuDevices(1, cores=(0,))
    devices.sample([held("a", 0.0, "cpu0")], at=0.0)
    assert devices.sample([held("a", 9.0, "cpu0")], at=1.0)[0].utilisation == 1.0


@pytest.mark.parametrize(
    ("text", "cores"), [("0", (0,)), ("0-2,5", (0, 1, 2, 5)), ("3,1", (1, 3)), ("7-7", (7,))]
)
def test_lists_of_cores(text: str, cores: tuple[int, ...]) -> None:
    assert parse_cores(text) == cores
    assert parse_cores(format_cores(cores)) == cores


@pytest.mark.parametrize("text", ["", "a", "3-1", "-1", "1,,2"])
def test_what_is_no_list_of_cores(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_cores(text)


def test_this_process_has_cores() -> None:
    assert every_core()


def test_fake_devices_can_fall_sick() -> None:
    devices = FakeDevices(2, "H100")
    devices.sick["h1001"] = "played"
    assert [info.sick for info in devices.probe()] == ["", "played"]
