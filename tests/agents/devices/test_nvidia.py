"""NVIDIA devices, against an NVML that is played from recorded answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agents.devices.nvidia import NvidiaDevices, NvidiaError, short_name

GIB = 1 << 30


class NVMLError(Exception):
    """As pynvml's own."""


class Nvml:
    """Two H100s as NVML of driver 570 describes them; ``change`` plays another answer."""

    NVMLError = NVMLError
    nvmlEventTypeXidCriticalError = 8  # noqa: N815

    def __init__(self, count: int = 2) -> None:
        self.count = count
        self.answers: dict[tuple[str, int], Any] = {}
        self.events: list[Any] = []

    def change(self, name: str, index: int, answer: Any) -> None:
        self.answers[name, index] = answer

    def _answer(self, name: str, index: int, usual: Any) -> Any:
        answer = self.answers.get((name, index), usual)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def nvmlInit(self) -> None:
        self._answer("init", 0, None)

    def nvmlDeviceGetCount(self) -> int:
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> bytes:
        return b"GPU-%04d" % handle

    def nvmlDeviceGetName(self, handle: int) -> str:
        return str(self._answer("name", handle, "NVIDIA H100 80GB HBM3"))

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return self._answer("memory", handle, SimpleNamespace(total=80 * GIB, used=3 * GIB))

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        return self._answer("use", handle, SimpleNamespace(gpu=37, memory=12))

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return int(self._answer("power", handle, 412_345))

    def nvmlDeviceGetMigMode(self, handle: int) -> tuple[int, int]:
        return self._answer("mig", handle, NVMLError("Not Supported"))  # type: ignore[no-any-return]

    def nvmlDeviceGetTotalEccErrors(self, handle: int, kind: int, counter: int) -> int:
        return int(self._answer("ecc", handle, 0))

    def nvmlDeviceGetRemappedRows(self, handle: int) -> tuple[int, int, int, int]:
        return self._answer("rows", handle, (0, 0, 0, 0))  # type: ignore[no-any-return]

    def nvmlEventSetCreate(self) -> object:
        return object()

    def nvmlDeviceRegisterEvents(self, handle: int, kinds: int, events: object) -> None:
        self._answer("register", handle, None)

    def nvmlEventSetWait(self, events: object, milliseconds: int) -> Any:
        if not self.events:
            raise NVMLError("Timeout")
        return self.events.pop(0)


def test_every_gpu_is_declared_by_its_uuid() -> None:
    infos = NvidiaDevices(Nvml()).probe()
    assert [(i.id, i.kind, i.memory, i.index, i.sick) for i in infos] == [
        ("GPU-0000", "H100", 80 * GIB, 0, ""),
        ("GPU-0001", "H100", 80 * GIB, 1, ""),
    ]


def test_use_memory_and_power_are_measured() -> None:
    use = NvidiaDevices(Nvml()).sample([], at=0.0)[1]
    assert (use.id, use.utilisation, use.memory) == ("GPU-0001", 0.37, 3 * GIB)
    assert use.power == pytest.approx(412.345)


def test_what_cannot_be_measured_is_zero() -> None:
    nvml = Nvml()
    for name in ("use", "power", "memory"):
        nvml.change(name, 0, NVMLError("Not Supported"))
    use = NvidiaDevices(nvml).sample([], at=0.0)[0]
    assert (use.utilisation, use.memory, use.power) == (0.0, 0, 0.0)


@pytest.mark.parametrize(
    ("name", "answer", "reason"),
    [
        ("memory", NVMLError("GPU is lost"), "GPU is lost"),
        ("mig", (1, 1), "MIG"),
        ("ecc", 3, "3 uncorrected memory errors"),
        ("rows", (2, 1, 0, 1), "could not be remapped"),
    ],
)
def test_sick_devices_say_why(name: str, answer: Any, reason: str) -> None:
    nvml = Nvml()
    nvml.change(name, 1, answer)
    well, sick = NvidiaDevices(nvml).probe()
    assert well.sick == ""
    assert reason in sick.sick


def test_a_critical_xid_makes_a_device_sick_and_an_application_s_does_not() -> None:
    nvml = Nvml()
    devices = NvidiaDevices(nvml)
    nvml.events = [
        SimpleNamespace(device=0, eventData=31),
        SimpleNamespace(device=1, eventData=79),
    ]
    well, sick = devices.probe()
    assert well.sick == ""
    assert "XID 79" in sick.sick


def test_counters_that_a_model_lacks_say_nothing() -> None:
    nvml = Nvml()
    for name in ("ecc", "rows", "mig", "register"):
        nvml.change(name, 0, NVMLError("Not Supported"))
    assert NvidiaDevices(nvml).probe()[0].sick == ""


def test_a_holder_sees_its_devices_only() -> None:
    assert NvidiaDevices(Nvml()).share(["GPU-0001"], 2).gpus == ("GPU-0001",)


def test_how_busy_a_holder_s_devices_are_is_told_only_when_all_are_known() -> None:
    nvml = Nvml()
    devices = NvidiaDevices(nvml)
    assert len(devices) == 2
    assert devices.busy(["GPU-0000", "GPU-0001"]) == pytest.approx(0.74)
    nvml.change("use", 1, NVMLError("Not Supported"))
    assert devices.busy(["GPU-0000"]) == pytest.approx(0.37)
    assert devices.busy(["GPU-0000", "GPU-0001"]) is None
    assert devices.busy([]) is None


def test_no_driver_and_no_device_are_told_apart() -> None:
    nvml = Nvml()
    nvml.change("init", 0, NVMLError("Driver Not Loaded"))
    with pytest.raises(NvidiaError, match="Driver Not Loaded"):
        NvidiaDevices(nvml)
    with pytest.raises(NvidiaError, match="no GPU"):
        NvidiaDevices(Nvml(count=0))


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA H200", "H200"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA RTX A6000", "RTXA6000"),
    ],
)
def test_names_in_short(name: str, short: str) -> None:
    assert short_name(name) == short
