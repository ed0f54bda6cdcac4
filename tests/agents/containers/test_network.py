"""Replicas of one job reach each other wherever they are; nobody else does, and nothing is left."""

from __future__ import annotations

import contextlib
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyroute2 import IPRoute

from agents.containers import netns
from agents.containers.network import JobNetworks
from agents.protocol import Network
from tests.agents.contract import until

pytestmark = [pytest.mark.criu, pytest.mark.slow]

UNDERLAY = {"one": "192.0.2.1", "two": "192.0.2.2"}


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """Two machines: network namespaces joined by a wire."""
    if os.geteuid() != 0:
        pytest.skip("networks need root")
    places = {name: tmp_path / name for name in UNDERLAY}
    try:
        for place in places.values():
            netns.make(place)
        netns.inside(places["one"], lambda: wire(places["two"]))
        for name, place in places.items():
            netns.inside(place, lambda name=name: raise_wire(UNDERLAY[name]))
        yield places
    finally:
        for place in places.values():
            netns.remove(place)


def wire(other: Path) -> None:
    with IPRoute() as routes, other.open() as far:
        peer = {"ifname": "wire", "net_ns_fd": far.fileno()}
        routes.link("add", ifname="wire", kind="veth", peer=peer)


def raise_wire(address: str) -> None:
    with IPRoute() as routes:
        index = routes.link_lookup(ifname="wire")[0]
        routes.addr("add", index=index, address=address, prefixlen=24)
        for each in (1, index):
            routes.link("set", index=each, state="up")


class Replica:
    """A namespace with its port, without a container in it."""

    def __init__(self, host: Path, networks: JobNetworks, place: Path, network: Network) -> None:
        self.host, self.networks, self.place, self.network = host, networks, place, network
        self.key = place.name
        self.on_host(lambda: networks.make(self.key, place, network))

    def on_host(self, act: Callable[[], Any]) -> Any:
        return netns.inside(self.host, act)

    def open(self) -> None:
        self.on_host(lambda: self.networks.open(self.key, self.network))

    def close(self) -> None:
        self.on_host(lambda: self.networks.close(self.key))

    def remove(self) -> None:
        self.on_host(lambda: self.networks.remove(self.key, self.place))

    def hears(self, other: Replica, timeout_s: float = 10.0) -> bool:
        """Whether the other one is heard here."""
        address = self.network.address.partition("/")[0]
        with netns.inside(self.place, lambda: bound(address)) as listener:
            return heard(listener, other, address, timeout_s)


def heard(listener: socket.socket, sender: Replica, address: str, timeout_s: float = 10.0) -> bool:
    """Whether a datagram sent from that replica comes; it is sent again and again."""
    listener.settimeout(0.05)
    end = time.monotonic() + timeout_s
    with netns.inside(sender.place, lambda: socket.socket(type=socket.SOCK_DGRAM)) as speaker:
        while time.monotonic() < end:
            speaker.sendto(b"hello", (address, 7000))
            with contextlib.suppress(TimeoutError):
                return listener.recv(16) == b"hello"
    return False


def bound(address: str) -> socket.socket:
    listener = socket.socket(type=socket.SOCK_DGRAM)
    listener.bind((address, 7000))
    return listener


MakeReplica = Callable[..., Replica]


@pytest.fixture
def fleet_name() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def make(hosts: dict[str, Path], tmp_path: Path, fleet_name: str) -> Iterator[MakeReplica]:
    made: list[Replica] = []

    def make(host: str, address: str, number: int = 9, agent: str = "a", **more: Any) -> Replica:
        networks = JobNetworks(fleet_name, agent, UNDERLAY[host])
        place = tmp_path / f"replica-{len(made)}"
        network = Network(number=number, address=f"{address}/24", **more)
        made.append(Replica(hosts[host], networks, place, network))
        return made[-1]

    yield make
    for replica in made:
        replica.remove()


def interfaces(host: Path) -> set[str]:
    """What is on the host beside its own."""
    names = netns.inside(host, lambda: {name for _, name in socket.if_nameindex()})
    return names - {"lo", "wire"}


def test_two_agents_of_one_machine_share_a_jobs_bridge(make: MakeReplica) -> None:
    left, right = make("one", "10.77.0.2", agent="a"), make("one", "10.77.0.3", agent="b")
    left.open()
    right.open()
    assert left.hears(right)
    assert right.hears(left)


def test_nodes_are_joined_by_an_overlay(make: MakeReplica) -> None:
    left = make("one", "10.77.0.2", peers={"10.77.0.3": UNDERLAY["two"]})
    right = make("two", "10.77.0.3", peers={"10.77.0.2": UNDERLAY["one"]})
    left.open()
    right.open()
    assert left.hears(right)
    assert right.hears(left)


def test_a_replica_that_has_moved_is_found_at_its_new_place(make: MakeReplica) -> None:
    left = make("one", "10.77.0.2", peers={"10.77.0.3": UNDERLAY["two"]})
    right = make("two", "10.77.0.3", peers={"10.77.0.2": UNDERLAY["one"]})
    for replica in (left, right):
        replica.open()
    assert left.hears(right)
    right.remove()
    moved = make("one", "10.77.0.3")
    left.network = Network(number=9, address="10.77.0.2/24")
    for replica in (left, moved):
        replica.open()
    assert moved.hears(left)
    assert left.hears(moved)
    moved.remove()
    back = make("two", "10.77.0.3", peers={"10.77.0.2": UNDERLAY["one"]})
    left.network = Network(number=9, address="10.77.0.2/24", peers={"10.77.0.3": UNDERLAY["two"]})
    for replica in (left, back):
        replica.open()
    assert back.hears(left)
    assert left.hears(back)


def test_jobs_do_not_hear_each_other(make: MakeReplica) -> None:
    left, stranger = make("one", "10.77.0.2", number=9), make("one", "10.77.0.3", number=10)
    left.open()
    stranger.open()
    assert not left.hears(stranger, timeout_s=0.3)


def test_behind_a_closed_gate_nothing_is_heard_until_it_opens(make: MakeReplica) -> None:
    left, right = make("one", "10.77.0.2"), make("one", "10.77.0.3")
    left.open()
    right.open()
    assert left.hears(right)
    left.close()
    left.close()
    assert not left.hears(right, timeout_s=0.3)
    left.open()
    assert left.hears(right)


def test_the_way_out_is_translated_and_leads_nowhere_else(
    make: MakeReplica, hosts: dict[str, Path]
) -> None:
    """Two jobs with equal addresses reach the outside, but neither each other nor the node."""
    first = make("one", "10.77.0.2", number=9, internet=True)
    second = make("one", "10.77.0.2", number=10, agent="b", internet=True)
    inner = make("one", "10.77.0.2", number=11)
    outside = netns.inside(hosts["two"], lambda: bound(UNDERLAY["two"]))
    node = netns.inside(hosts["one"], lambda: bound(UNDERLAY["one"]))
    (near,) = [address for address in addresses(second) if address.startswith("100.64.")]
    link = netns.inside(second.place, lambda: bound(near))
    with outside, node, link:
        for replica in (first, second):
            assert heard(outside, replica, UNDERLAY["two"])
        assert not heard(node, first, UNDERLAY["one"], timeout_s=0.3)
        assert not heard(link, first, near, timeout_s=0.3)
        with pytest.raises(OSError, match="unreachable"):
            heard(outside, inner, UNDERLAY["two"], timeout_s=0.3)
    first.remove()
    second.remove()
    inner.remove()
    until(lambda: not interfaces(hosts["one"]), "a link is kept")


def addresses(replica: Replica) -> list[str]:
    def read() -> list[str]:
        with IPRoute() as routes:
            return [str(entry.get("address")) for entry in routes.get_addr(family=socket.AF_INET)]

    return netns.inside(replica.place, read)


def test_everything_made_is_removed(make: MakeReplica, hosts: dict[str, Path]) -> None:
    left = make("one", "10.77.0.2", peers={"10.77.0.3": UNDERLAY["two"]})
    left.open()
    left.open()
    assert len(interfaces(hosts["one"])) == 3, "bridge, port and overlay"
    left.remove()
    assert not left.place.exists()
    until(lambda: not interfaces(hosts["one"]), "the bridge is kept")
    left.remove()


def test_what_was_left_unsent_keeps_nothing(make: MakeReplica, hosts: dict[str, Path]) -> None:
    left, right = make("one", "10.77.0.2"), make("one", "10.77.0.3")
    left.open()
    right.open()
    listener = netns.inside(left.place, lambda: socket.create_server(("10.77.0.2", 7000)))
    sender = netns.inside(right.place, socket.socket)
    # Not the guarded one: this address is one of the test's own namespaces.
    socket.SocketType.connect(sender, ("10.77.0.2", 7000))
    left.close()
    with listener, sender:
        sender.sendall(b"unsent")
    left.remove()
    right.remove()
    until(lambda: not interfaces(hosts["one"]), "unsent bytes keep an interface")


def test_what_a_crash_leaves_is_swept(make: MakeReplica, hosts: dict[str, Path]) -> None:
    left = make("one", "10.77.0.2", peers={"10.77.0.3": UNDERLAY["two"]})
    left.open()
    left.close()
    netns.remove(left.place)
    until(lambda: len(interfaces(hosts["one"])) == 2, "the port stays without its namespace")
    left.on_host(left.networks.sweep)
    assert not interfaces(hosts["one"])


def test_gates_open_and_bridges_go_at_the_same_time(make: MakeReplica) -> None:
    """Two agents: one opens its replica's gate again and again while the other removes its own."""
    steady = make("one", "10.77.0.2")
    rounds = 20

    def sweep() -> None:
        for _ in range(rounds):
            steady.on_host(steady.networks.sweep)

    thread = Thread(target=sweep)
    thread.start()
    for _ in range(rounds):
        steady.close()
        steady.open()
    thread.join()
    other = make("one", "10.77.0.3", agent="b")
    other.open()
    assert steady.hears(other)
