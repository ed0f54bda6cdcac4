"""The networks of jobs on this node: a bridge a job, a gated port a replica, VXLAN between nodes.

Names are made from the fleet, the job's network number and the task's key, so that what was made
before a crash is found again. Agents of one fleet on one machine share the bridges; a lock on the
network namespace keeps them out of each other's way.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from hashlib import blake2b
from ipaddress import ip_interface
from pathlib import Path
from threading import Timer
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from agents.containers import egress, netns
from agents.drivers.base import DriverError
from agents.protocol import Network

MTU = 1450
"""The same everywhere, VXLAN or not: a connection that moves must find the size that it knows."""
VXLAN_PORT = 4789
EVERYONE = "00:00:00:00:00:00"
INSIDE = "eth0"
LOOPBACK = 1
IDLE_S = 1.0
"""Seconds that a bridge without ports is kept."""
NTF_MASTER = 0x04
NUD_STATIC = 0x40


class JobNetworks:
    """Ports and gates of one agent's replicas. Every verb may be repeated."""

    def __init__(self, fleet: str, agent: str, underlay: str) -> None:
        self._fleet = _digest(fleet, 2)
        self._agent = agent
        self._underlay = underlay

    def make(self, key: str, place: Path, network: Network | None) -> None:
        """Make the namespace at ``place``: loopback, and ``eth0`` behind a closed gate."""
        netns.make(place)
        if network is None:
            netns.inside(place, _raise_loopback)
            return
        port = self._port(key)
        with _own_descriptor() as own, _routes() as routes:
            _drop_named(routes, port)
            netns.inside(place, lambda: _furnish(network, port, own))
            # Up already now: the kernel lets a port through only some time after that.
            routes.link("set", index=_index(port), state="up")
            if network.internet:
                address = str(ip_interface(network.address).ip)
                egress.make(self._name(key), place, own, address)

    def open(self, key: str, network: Network | None) -> None:
        """Put the port on its job's bridge, which is made if need be."""
        if network is None:
            return
        with _bridges_locked(), _routes() as routes:
            bridge = self._ensure_bridge(routes, network.number)
            self._ensure_overlay(routes, network, bridge)
            port = _index(self._port(key))
            routes.link("set", index=port, master=bridge)
            _pin(routes, port, _mac(network.address), NTF_MASTER)

    def close(self, key: str) -> None:
        """Take the port off its bridge: nothing is sent or answered any more."""
        if port := _known(self._port(key)):
            with _routes() as routes:
                routes.link("set", index=port, master=0)

    def remove(self, key: str, place: Path) -> None:
        """Remove port and namespace, and the bridges that nobody is on.

        The kernel takes tens of ms to end an interface. Nobody waits for it: the port ends with
        its namespace, an idle bridge a moment later, and what a crash leaves, the next ``sweep``.
        """
        self.close(key)
        if netns.kept(place):
            # What ended processes have not got rid of is sent for minutes, and keeps a namespace.
            netns.inside(place, lambda: _set("ipv4/tcp_orphan_retries", "1"))
        netns.remove(place)
        Timer(IDLE_S, self.sweep).start()

    def sweep(self) -> None:
        """Remove the bridges that nobody is on, and the translation that nobody needs."""
        with _bridges_locked(), _routes() as routes:
            self._remove_idle(routes)
            egress.sweep()

    def _ensure_bridge(self, routes: Any, number: int) -> int:
        name = self._bridge(number)
        if found := _known(name):
            return found
        routes.link("add", ifname=name, kind="bridge", br_stp_state=0, br_mcast_snooping=0)
        _set(f"ipv6/conf/{name}/disable_ipv6", "1")
        index = _index(name)
        routes.link("set", index=index, state="up", mtu=MTU)
        return index

    def _ensure_overlay(self, routes: Any, network: Network, bridge: int) -> None:
        """Reach the replicas on other nodes: one VXLAN port with an entry for each of them."""
        far = {a: node for a, node in network.peers.items() if node != self._underlay}
        name = self._overlay(network.number)
        known = _known(name)
        wanted = "tidepool " + _digest(repr(sorted(far.items())), 8)
        if known and (not far or _alias(routes, known) != wanted):
            _drop(routes, known)
            known = 0
        if known or not far:
            return
        if not self._underlay:
            raise DriverError(
                "network-unavailable",
                "This node has no underlay address, so replicas on other nodes cannot be reached: "
                "give the agent one with --underlay.",
            )
        routes.link(
            "add",
            ifname=name,
            kind="vxlan",
            vxlan_id=network.number,
            vxlan_local=self._underlay,
            vxlan_port=VXLAN_PORT,
            vxlan_learning=0,
        )
        _set(f"ipv6/conf/{name}/disable_ipv6", "1")
        overlay = _index(name)
        routes.link("set", index=overlay, master=bridge, mtu=MTU, ifalias=wanted, state="up")
        for node in sorted(set(far.values())):
            routes.fdb("append", ifindex=overlay, lladdr=EVERYONE, dst=node)
        for address, node in sorted(far.items()):
            mac = _mac(address)
            routes.fdb("append", ifindex=overlay, lladdr=mac, dst=node)
            _pin(routes, overlay, mac, NTF_MASTER)

    def _remove_idle(self, routes: Any) -> None:
        links = {link["index"]: link for link in routes.get_links()}
        for index, link in links.items():
            name = link.get("ifname")
            if not name.startswith(f"tp{self._fleet}b"):
                continue
            ports = [link for link in links.values() if link.get("master") == index]
            overlays = [p for p in ports if p.get("ifname").startswith(f"tp{self._fleet}x")]
            if len(overlays) == len(ports):
                for overlay in overlays:
                    _drop(routes, overlay["index"])
                _drop(routes, index)

    def _port(self, key: str) -> str:
        return "tpv" + _digest(self._name(key), 6)

    def _name(self, key: str) -> str:
        return f"{self._fleet}/{self._agent}/{key}"

    def _bridge(self, number: int) -> str:
        return f"tp{self._fleet}b{number:06x}"

    def _overlay(self, number: int) -> str:
        return f"tp{self._fleet}x{number:06x}"


@contextlib.contextmanager
def _own_descriptor() -> Iterator[int]:
    own = os.open(netns.OWN, os.O_RDONLY)
    try:
        yield own
    finally:
        os.close(own)


@contextlib.contextmanager
def _bridges_locked() -> Iterator[None]:
    """Hold the lock on the network namespace that this agent is in."""
    with _own_descriptor() as own:
        fcntl.flock(own, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _routes() -> Iterator[Any]:
    try:
        with IPRoute() as routes:
            yield routes
    except NetlinkError as error:
        raise DriverError("network-failed", f"The job's network cannot be made: {error}") from error


def _furnish(network: Network, port: str, own: int) -> None:
    mac = _mac(network.address)
    interface = ip_interface(network.address)
    with _routes() as routes:
        routes.link("set", index=LOOPBACK, state="up")
        _drop_named(routes, INSIDE)
        outer = {"ifname": port, "net_ns_fd": own, "mtu": MTU}
        routes.link("add", ifname=INSIDE, kind="veth", address=mac, mtu=MTU, peer=outer)
        index = _index(INSIDE)
        routes.addr(
            "add", index=index, address=str(interface.ip), prefixlen=interface.network.prefixlen
        )
        # Ask for a peer's hardware address every 10 ms, not every second: its gate may be closed.
        _set("ipv4/neigh/eth0/retrans_time_ms", "10")
        _set("ipv4/neigh/eth0/mcast_solicit", "3000")
        routes.link("set", index=index, state="up")


def _raise_loopback() -> None:
    with _routes() as routes:
        routes.link("set", index=LOOPBACK, state="up")


def _known(name: str) -> int:
    """The index of an interface of the namespace that this thread is in; 0 if it is not there.

    Asked for a dozen times in a move; a query by netlink would take a millisecond each time.
    """
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return 0


def _index(name: str) -> int:
    if index := _known(name):
        return index
    raise DriverError("network-failed", f"The interface {name} is not there.")


def _alias(routes: Any, index: int) -> str:
    return str(routes.get_links(index)[0].get("ifalias") or "")


def _pin(routes: Any, port: int, mac: str, flags: int) -> None:
    """Tell the bridge which port an address is at, so that it need not learn it from traffic."""
    routes.fdb("replace", ifindex=port, lladdr=mac, flags=flags, state=NUD_STATIC)


def _drop(routes: Any, index: int) -> None:
    with contextlib.suppress(NetlinkError):
        routes.link("del", index=index)


def _drop_named(routes: Any, name: str) -> None:
    if index := _known(name):
        _drop(routes, index)


def _set(name: str, value: str) -> None:
    """Set a network sysctl of the namespace that this thread is in."""
    with contextlib.suppress(OSError):
        Path("/proc/sys/net", name).write_text(value)


def _mac(address: str) -> str:
    """A replica's hardware address follows from its address, so that it moves with it."""
    plain = address.partition("/")[0]
    return "02:" + bytes.fromhex(_digest(plain, 5)).hex(":")


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode(), digest_size=size).hexdigest()
