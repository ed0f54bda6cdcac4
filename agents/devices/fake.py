"""Devices that exist only by name, for the fake driver: tests, simulations and demonstrations."""

from __future__ import annotations

from collections.abc import Sequence

from agents.devices.base import NO_GPU, Holder, Share, refuse_unknown
from agents.protocol import Ability, DeviceInfo, DeviceUse

MEMORY = 80 << 30


class FakeDevices:
    """``count`` devices of a ``kind``; one that is held is busy."""

    def __init__(self, count: int, kind: str) -> None:
        self._infos = {
            f"{kind.lower()}{i}": DeviceInfo(
                id=f"{kind.lower()}{i}", kind=kind, memory=MEMORY, index=i
            )
            for i in range(count)
        }
        self.sick: dict[str, str] = {}
        """Reasons by id; set by whoever plays a failing device."""

    def __len__(self) -> int:
        return len(self._infos)

    def probe(self) -> list[DeviceInfo]:
        """Every device, with the sickness that was put on it."""
        return [
            DeviceInfo(
                id=i.id, kind=i.kind, memory=i.memory, index=i.index, sick=self.sick.get(i.id, "")
            )
            for i in self._infos.values()
        ]

    def checkpoint(self) -> Ability:
        """The fake driver says what it plays."""
        return NO_GPU

    def share(self, ids: Sequence[str], sharers: int) -> Share:
        """Nothing of the machine."""
        refuse_unknown(ids, self._infos)
        return Share()

    def busy(self, ids: Sequence[str]) -> float | None:
        """All of them are."""
        return float(len(ids))

    def sample(self, holders: Sequence[Holder], at: float) -> list[DeviceUse]:
        """Fully used where a replica holds it, else idle."""
        held = {id for holder in holders for id in holder.devices}
        return [DeviceUse(id=id, utilisation=float(id in held)) for id in self._infos]
