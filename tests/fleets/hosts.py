"""Hosts of a test fleet: network namespaces, each on a wire to one switch, to be cut and slowed."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import string
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from agents.containers import netns

UPLINK = "uplink"
"""A host's end of its wire."""

_LETTERS = itertools.cycle(string.ascii_lowercase)
"""One for each switch of this process: two fleets may stand side by side."""


class Switch:
    """A bridge with the hosts on it. A context manager: leaving it removes all of it."""

    def __init__(self, folder: Path, names: Sequence[str], *, bridge: str = "") -> None:
        self.bridge = bridge or f"tps{os.getpid()}{next(_LETTERS)}"
        self.network = free_network()
        self.address = f"{self.network}.1"
        self.hosts = {
            name: Host(name, folder / name, f"{self.network}.{number}", self.bridge, number)
            for number, name in enumerate(names, 2)
        }

    def __enter__(self) -> Self:
        try:
            with IPRoute() as routes:
                routes.link("add", ifname=self.bridge, kind="bridge", br_stp_state=0)
                index = routes.link_lookup(ifname=self.bridge)[0]
                routes.addr("add", index=index, address=self.address, prefixlen=24)
                routes.link("set", index=index, state="up")
            for host in self.hosts.values():
                host.make()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove wires, hosts and bridge, as far as they are there."""
        for host in self.hosts.values():
            host.remove()
        drop(self.bridge)


class Host:
    """One namespace. What is made in it ends with it."""

    def __init__(self, name: str, place: Path, address: str, bridge: str, number: int) -> None:
        self.name = name
        self.place = place
        self.address = address
        self.bridge = bridge
        self.port = f"{bridge}p{number}"
        """The switch's end of the wire."""

    def make(self) -> None:
        self.place.parent.mkdir(parents=True, exist_ok=True)
        netns.make(self.place)
        with IPRoute() as routes, self.place.open() as far:
            peer = {"ifname": UPLINK, "net_ns_fd": far.fileno()}
            routes.link("add", ifname=self.port, kind="veth", peer=peer)
            bridge = routes.link_lookup(ifname=self.bridge)[0]
            port = routes.link_lookup(ifname=self.port)[0]
            routes.link("set", index=port, master=bridge, state="up")
        netns.inside(self.place, self._raise)

    def _raise(self) -> None:
        with IPRoute() as routes:
            index = routes.link_lookup(ifname=UPLINK)[0]
            routes.addr("add", index=index, address=self.address, prefixlen=24)
            for each in (1, index):
                routes.link("set", index=each, state="up")

    def remove(self) -> None:
        drop(self.port)
        netns.remove(self.place)

    def cut(self) -> None:
        """Pull the wire: nothing gets in or out."""
        self._set_port(state="down")

    def join(self) -> None:
        """Put the wire back."""
        self._set_port(state="up")

    def slow(self, bits_per_s: int) -> None:
        """Let the wire carry no more than this towards the host."""
        with IPRoute() as routes:
            index = routes.link_lookup(ifname=self.port)[0]
            rate = bits_per_s // 8
            routes.tc("replace", "tbf", index, 0x10000, rate=rate, burst=65536, latency="400ms")

    def quicken(self) -> None:
        """Take the limit off the wire."""
        with IPRoute() as routes, contextlib.suppress(NetlinkError):
            routes.tc("del", index=routes.link_lookup(ifname=self.port)[0], handle=0x10000)

    def interfaces(self) -> list[str]:
        """What is on the host beside its own: bridges, overlays and ports of jobs."""
        names = netns.inside(self.place, lambda: [name for _, name in socket.if_nameindex()])
        return sorted(set(names) - {"lo", UPLINK})

    def _set_port(self, **told: Any) -> None:
        with IPRoute() as routes:
            routes.link("set", index=routes.link_lookup(ifname=self.port)[0], **told)


def drop(name: str) -> None:
    with IPRoute() as routes, contextlib.suppress(NetlinkError):
        for index in routes.link_lookup(ifname=name):
            routes.link("del", index=index)


def free_network() -> str:
    """Answer the first three numbers of a network that this machine does not use."""
    with IPRoute() as routes:
        used = {address.get("address", "") or "" for address in routes.get_addr()}
    for third in range(os.getpid() % 200, os.getpid() % 200 + 50):
        network = f"10.88.{third}"
        if not any(address.startswith(network + ".") for address in used):
            return network
    raise RuntimeError("Fifty test fleets are on this machine.")
