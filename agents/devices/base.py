"""What every kind of device answers: what is there, how busy it is, what a holder may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agents.drivers.base import Use
from agents.protocol import Ability, DeviceInfo, DeviceUse

NO_GPU = Ability(able=False, reason="no NVIDIA device on this node")


class DeviceError(Exception):
    """The devices that were asked for are not on this node; the sentence says which are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one replica may use of the machine because of the devices it holds."""

    cpus: float = 0.0
    """Cores; 0 leaves it to what the job asked for."""
    cpuset: str = ""
    gpus: tuple[str, ...] = ()
    """UUIDs of the GPUs it may see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A running replica with the devices it holds and what it used at the moment of sampling."""

    key: str
    devices: tuple[str, ...]
    use: Use


class Devices(Protocol):
    """The devices of one kind on this node. Blocking calls, made one at a time."""

    def __len__(self) -> int:
        """How many there are."""

    def probe(self) -> list[DeviceInfo]:
        """Tell which devices there are, and which are sick."""

    def checkpoint(self) -> Ability:
        """Tell whether the devices' own memory can be kept and brought back, and why not."""

    def share(self, ids: Sequence[str], sharers: int) -> Share:
        """Tell what one of ``sharers`` replicas on these may use. Raises ``DeviceError``."""

    def busy(self, ids: Sequence[str]) -> float | None:
        """Tell how busy these devices are now, 0 to 1 each and added up.

        ``None`` where a device's work is what its holders' CPUs do.
        """

    def sample(self, holders: Sequence[Holder], at: float) -> list[DeviceUse]:
        """Measure the use of each device now; ``at`` is monotonic seconds."""


def refuse_unknown(ids: Sequence[str], known: Mapping[str, object]) -> None:
    """Raise ``DeviceError`` that names the devices of ``ids`` that are not on this node."""
    unknown = [id for id in ids if id not in known]
    if unknown:
        there = ", ".join(sorted(known)) or "none"
        raise DeviceError(f"No device {', '.join(unknown)} on this node; there are: {there}.")
