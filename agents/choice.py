"""Which driver and which devices a node gets, from its settings and from what it finds."""

from __future__ import annotations

from agents.config import Config, ConfigError
from agents.devices.base import Devices
from agents.devices.cpu import CpuDevices
from agents.devices.fake import FakeDevices
from agents.drivers.base import Driver


def choose_driver(config: Config) -> Driver:
    """The driver by name; ``auto`` is containers where they can be had, else plain processes."""
    if config.driver == "fake":
        from agents.drivers.fake import FakeDriver

        return FakeDriver(state=config.state)
    if config.driver in ("auto", "container"):
        from agents.drivers.container import ContainerDriver
        from agents.toolchain import find

        driver = ContainerDriver(
            state=config.state,
            toolchain=find(config.prefix),
            agent=config.node,
            underlay=config.underlay,
        )
        if config.driver == "container" or driver.probe()["run"].able:
            return driver
    from agents.drivers.process import ProcessDriver

    return ProcessDriver(agent=config.node, state=config.state)


def choose_devices(config: Config) -> Devices:
    """The devices by name; ``auto`` is NVIDIA's where there are some, else a device a core."""
    kind, _, rest = config.devices.partition(":")
    try:
        if kind == "cpu":
            return CpuDevices(int(rest), config.cores)
        if kind == "fake":
            count, _, name = rest.partition(":")
            return FakeDevices(int(count), name or "H100")
    except ValueError as error:
        raise ConfigError(f"--devices {config.devices!r} cannot be read: {error}.") from error
    if kind not in ("auto", "nvidia"):
        raise ConfigError(
            f"--devices must be auto, nvidia, cpu:N or fake:N:KIND; it is {config.devices!r}."
        )
    from agents.devices.nvidia import NvidiaDevices, NvidiaError

    try:
        return NvidiaDevices()
    except NvidiaError as error:
        if kind == "nvidia":
            raise ConfigError(f"--devices nvidia: {error}") from error
    return CpuDevices(len(config.cores), config.cores)
