"""A ``cpu`` device: a fixed share of the cores, so that machines without GPUs make a fleet."""

from __future__ import annotations

from collections.abc import Sequence

import psutil

from agents.devices.base import NO_GPU, Holder, Share, refuse_unknown
from agents.devices.cores import format_cores
from agents.protocol import Ability, DeviceInfo, DeviceUse


class CpuDevices:
    """``count`` devices that divide ``cores`` between them.

    Where the cores divide evenly each device is a set of cores of its own; otherwise each is a
    quota over all of them. Utilisation comes from the CPU seconds of the replicas that hold the
    device.
    """

    def __init__(self, count: int, cores: Sequence[int]) -> None:
        if count < 1 or not cores:
            raise ValueError("at least one device and one core are needed")
        self.cores = tuple(cores)
        self.width = len(cores) / count
        self.memory = psutil.virtual_memory().total // count
        self._sets = {f"cpu{i}": self._cores_of(i) for i in range(count)}
        self._seen: dict[str, tuple[float, float]] = {}

    def _cores_of(self, index: int) -> tuple[int, ...]:
        if not self.width.is_integer():
            return self.cores
        width = int(self.width)
        return self.cores[index * width : (index + 1) * width]

    def __len__(self) -> int:
        return len(self._sets)

    def probe(self) -> list[DeviceInfo]:
        """Every device, in order; none is ever sick."""
        return [
            DeviceInfo(id=id, kind="cpu", memory=self.memory, index=index)
            for index, id in enumerate(self._sets)
        ]

    def checkpoint(self) -> Ability:
        """It has no memory of its own."""
        return NO_GPU

    def share(self, ids: Sequence[str], sharers: int) -> Share:
        """The devices' cores, divided among the sharers."""
        refuse_unknown(ids, self._sets)
        if not ids:
            return Share(cpuset=format_cores(self.cores))
        cores = {core for id in ids for core in self._sets[id]}
        return Share(cpus=self.width * len(ids) / max(1, sharers), cpuset=format_cores(cores))

    def busy(self, ids: Sequence[str]) -> float | None:
        """CPU time tells."""
        return None

    def sample(self, holders: Sequence[Holder], at: float) -> list[DeviceUse]:
        """CPU seconds used since the last sample, over those that the device could have given."""
        busy = dict.fromkeys(self._sets, 0.0)
        memory = dict.fromkeys(self._sets, 0)
        seen: dict[str, tuple[float, float]] = {}
        for holder in holders:
            seen[holder.key] = (at, holder.use.cpu_s)
            then, used = self._seen.get(holder.key, (at, holder.use.cpu_s))
            mine = [id for id in holder.devices if id in busy]
            for id in mine:
                memory[id] += holder.use.memory // len(mine)
                if at > then:
                    rate = max(0.0, holder.use.cpu_s - used) / (at - then)
                    busy[id] += rate / self.width / len(mine)
        self._seen = seen
        return [
            DeviceUse(id=id, utilisation=min(1.0, busy[id]), memory=memory[id]) for id in self._sets
        ]
