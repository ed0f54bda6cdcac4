"""NVIDIA GPUs through NVML: what they are, how busy they are, and which of them are sick."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Sequence
from typing import Any

from agents.devices.base import Holder, Share, refuse_unknown
from agents.protocol import Ability, DeviceInfo, DeviceUse

# Errors of the program that runs, not of the device, by NVIDIA's catalogue of XIDs.
HARMLESS_XIDS = frozenset({13, 31, 43, 45, 68, 137})
MAKERS = re.compile(r"\b(NVIDIA|Tesla|GeForce|Quadro|Graphics Device)\b")


HOST_MEMORY_ONLY = "this agent keeps host memory only, not what lies in a GPU"


class NvidiaError(Exception):
    """There are no NVIDIA devices that can be used; the sentence says why."""


class NvidiaDevices:
    """Every GPU that the driver shows, by its UUID; ``nvml`` is the pynvml module."""

    def __init__(self, nvml: Any = None) -> None:
        self.nvml = nvml if nvml is not None else importlib.import_module("pynvml")
        try:
            self.nvml.nvmlInit()
            count = self.nvml.nvmlDeviceGetCount()
            handles = [self.nvml.nvmlDeviceGetHandleByIndex(i) for i in range(count)]
            self._handles = {self._text(self.nvml.nvmlDeviceGetUUID(h)): h for h in handles}
        except self.nvml.NVMLError as error:
            raise NvidiaError(f"NVML does not answer: {error}.") from error
        if not self._handles:
            raise NvidiaError("NVML knows of no GPU on this node.")
        self._xids: dict[str, int] = {}
        self._events = self._listen()

    def __len__(self) -> int:
        return len(self._handles)

    def probe(self) -> list[DeviceInfo]:
        """Every GPU in the driver's order, with why it must not be used, if so."""
        self._hear()
        infos = []
        for index, (id, handle) in enumerate(self._handles.items()):
            name = self._ask("nvmlDeviceGetName", handle, default="GPU")
            memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
            infos.append(
                DeviceInfo(
                    id=id,
                    kind=short_name(self._text(name)),
                    memory=memory.total if memory else 0,
                    index=index,
                    sick=self._sickness(id, handle),
                )
            )
        return infos

    def checkpoint(self) -> Ability:
        """Not by this agent yet, whatever the driver could do."""
        return Ability(able=False, reason=HOST_MEMORY_ONLY)

    def share(self, ids: Sequence[str], sharers: int) -> Share:
        """Sharers of a GPU all see it; they take turns."""
        refuse_unknown(ids, self._handles)
        return Share(gpus=tuple(ids))

    def busy(self, ids: Sequence[str]) -> float | None:
        """NVML's utilisation: the part of its last moments in which a kernel ran."""
        rates = [
            self._ask("nvmlDeviceGetUtilizationRates", self._handles[id])
            for id in ids
            if id in self._handles
        ]
        known = [rate.gpu / 100 for rate in rates if rate]
        return sum(known) if known and len(known) == len(ids) else None

    def sample(self, holders: Sequence[Holder], at: float) -> list[DeviceUse]:
        """What NVML measures; zeros where it measures nothing."""
        uses = []
        for id, handle in self._handles.items():
            rates = self._ask("nvmlDeviceGetUtilizationRates", handle)
            memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
            milliwatts = self._ask("nvmlDeviceGetPowerUsage", handle, default=0)
            uses.append(
                DeviceUse(
                    id=id,
                    utilisation=rates.gpu / 100 if rates else 0.0,
                    memory=memory.used if memory else 0,
                    power=milliwatts / 1000,
                )
            )
        return uses

    def _sickness(self, id: str, handle: Any) -> str:
        """The first reason that applies; counters that the model lacks say nothing."""
        try:
            self.nvml.nvmlDeviceGetMemoryInfo(handle)
        except self.nvml.NVMLError as error:
            return f"it does not answer: {error}"
        mig = self._ask("nvmlDeviceGetMigMode", handle, default=(0, 0))
        if mig[0]:
            return "MIG mode is on, which device checkpoints do not support"
        kind = getattr(self.nvml, "NVML_MEMORY_ERROR_TYPE_UNCORRECTED", 1)
        since_boot = getattr(self.nvml, "NVML_VOLATILE_ECC", 0)
        errors = self._ask("nvmlDeviceGetTotalEccErrors", handle, kind, since_boot, default=0)
        if errors:
            return f"{errors} uncorrected memory errors since boot"
        rows = self._ask("nvmlDeviceGetRemappedRows", handle, default=(0, 0, 0, 0))
        if rows[3]:
            return "a row of its memory could not be remapped"
        if id in self._xids:
            return f"the driver reported XID {self._xids[id]}"
        return ""

    def _listen(self) -> Any:
        with contextlib.suppress(self.nvml.NVMLError, AttributeError):
            events = self.nvml.nvmlEventSetCreate()
            for handle in self._handles.values():
                with contextlib.suppress(self.nvml.NVMLError):
                    critical = self.nvml.nvmlEventTypeXidCriticalError
                    self.nvml.nvmlDeviceRegisterEvents(handle, critical, events)
            return events
        return None

    def _hear(self) -> None:
        """Take in the critical errors reported since the last look, without waiting."""
        with contextlib.suppress(self.nvml.NVMLError):
            while self._events is not None:
                event = self.nvml.nvmlEventSetWait(self._events, 0)
                if event.eventData not in HARMLESS_XIDS:
                    id = self._text(self.nvml.nvmlDeviceGetUUID(event.device))
                    self._xids[id] = event.eventData

    def _ask(self, name: str, *arguments: Any, default: Any = None) -> Any:
        try:
            return getattr(self.nvml, name)(*arguments)
        except (self.nvml.NVMLError, AttributeError):
            return default

    @staticmethod
    def _text(value: str | bytes) -> str:
        return value.decode() if isinstance(value, bytes) else value


def short_name(name: str) -> str:
    """``NVIDIA H100 80GB HBM3`` -> ``H100``, ``NVIDIA GeForce RTX 4090`` -> ``RTX4090``."""
    words = re.split(r"[\s-]+", MAKERS.sub(" ", name).strip())
    if words[0] in ("RTX", "GTX", "TITAN") and len(words) > 1:
        return words[0] + words[1]
    return words[0] or "GPU"
