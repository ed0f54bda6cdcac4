"""Which driver and which devices a node gets, from its settings and from what it finds."""

from __future__ import annotations

import hashlib
import secrets

from agents.config import Config, ConfigError
from agents.devices.base import Devices
from agents.devices.cpu import CpuDevices
from agents.devices.fake import FakeDevices
from agents.drivers.base import Driver


def choose_driver(config: Config) -> Driver:
    """The driver by name; ``auto`` is containers where they can be had, else plain processes."""
    from agents.drivers.process import CHOSEN, ProcessDriver

    if config.driver == "fake":
        from agents.drivers.fake import FakeDriver

        return FakeDriver(state=config.state)
    name, why = agent_name(config), CHOSEN
    if config.driver in ("auto", "container"):
        from agents.drivers.container import ContainerDriver
        from agents.toolchain import find

        driver = ContainerDriver(
            state=config.state,
            toolchain=find(config.prefix),
            agent=name,
            fleet=fleet_of(config),
            underlay=config.underlay,
        )
        if config.driver == "container" or (can := driver.probe()["run"]).able:
            return driver
        why = can.reason
    return ProcessDriver(agent=name, state=config.state, why=why)


def agent_name(config: Config) -> str:
    """The node's name with a word of this state folder's own.

    Agents of different installations on one machine may carry the same name, and must not take
    each other's containers and groups for leftovers.
    """
    file = config.state / "name"
    if not file.exists():
        config.state.mkdir(parents=True, exist_ok=True)
        file.write_text(secrets.token_hex(3))
    return f"{config.node}-{file.read_text().strip()}"


def fleet_of(config: Config) -> str:
    """A short word for the portal: agents of one fleet share their jobs' networks."""
    return hashlib.blake2s(config.portal.encode(), digest_size=3).hexdigest()


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
