"""A replica's way out of its job's network, where the job may have one: routed and translated.

Every job uses the same addresses, so a replica's own is translated twice: in its namespace to that
of a link to the node, made for it alone, and on the node to the node's. Its sockets keep their
fixed address, so that they can be restored elsewhere; connections to the outside are then reset.

The node forwards packets from then on (``net.ipv4.ip_forward``). No program is run for any of it.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable
from hashlib import blake2b
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.nfnetlink.nftsocket import Cmp, Meta
from pyroute2.nftables.expressions import genex, ipv4addr, masq, verdict
from pyroute2.nftables.main import NFTables

from agents.containers import netns

LINKS = "100.64.0.0/16"
"""Addresses of the links, of the range that is set apart for translation: 16,384 pairs."""
INSIDE = "out0"
TABLE = "tidepool"
DROP = 0
INPUT, FORWARD, POSTROUTING = "input", "forward", "postrouting"


def make(key: str, place: Path, own: int, address: str) -> None:
    """Lead ``address``, of the namespace at ``place``, out through the one open at ``own``."""
    port = port_of(key)
    with IPRoute() as routes:
        for stale in routes.link_lookup(ifname=port):
            routes.link("del", index=stale)
        netns.inside(place, lambda: _add_link(port, own))
        index = routes.link_lookup(ifname=port)[0]
        near = IPv4Address(LINKS.partition("/")[0]) + 4 * (index % 16384) + 1
        routes.addr("add", index=index, address=str(near), prefixlen=30)
        routes.link("set", index=index, state="up")
    netns.inside(place, lambda: _lead_out(address, str(near), str(near + 1)))
    _translate_on_node(own)


def port_of(key: str) -> str:
    """The name of the node's end of the link."""
    return "tpo" + blake2b(key.encode(), digest_size=6).hexdigest()


def sweep() -> None:
    """Take the node's table away when no link is left."""
    with IPRoute() as routes, NFTables(nfgen_family=2) as tables:
        if not any(link.get("ifname").startswith("tpo") for link in routes.get_links()):
            with contextlib.suppress(NetlinkError):
                tables.table("del", name=TABLE)


def _add_link(port: str, own: int) -> None:
    with IPRoute() as routes:
        peer = {"ifname": port, "net_ns_fd": own}
        routes.link("add", ifname=INSIDE, kind="veth", peer=peer)


def _lead_out(address: str, near: str, link: str) -> None:
    with IPRoute() as routes:
        index = routes.link_lookup(ifname=INSIDE)[0]
        routes.addr("add", index=index, address=link, prefixlen=30)
        routes.link("set", index=index, state="up")
        routes.route("replace", dst="default", gateway=near, oif=index, prefsrc=address)
    _define(
        lambda tables: _masquerade(tables, _named(Meta.NFT_META_OIFNAME, INSIDE.encode() + b"\0"))
    )


def _translate_on_node(own: int) -> None:
    """Let links through to the outside, but neither to each other nor to the node itself."""
    fcntl.flock(own, fcntl.LOCK_EX)
    try:
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        _define(_node_rules)
    finally:
        fcntl.flock(own, fcntl.LOCK_UN)


def _node_rules(tables: Any) -> None:
    _masquerade(tables, ipv4addr(src=LINKS), _named(Meta.NFT_META_OIFNAME, b"tpo", equal=False))
    for hook, *more in ((FORWARD, _named(Meta.NFT_META_OIFNAME, b"tpo")), (INPUT,)):
        tables.chain("add", table=TABLE, name=hook, hook=hook, type="filter", policy=1)
        rule = (_named(Meta.NFT_META_IIFNAME, b"tpo"), *more, verdict(code=DROP))
        tables.rule("add", table=TABLE, chain=hook, expressions=rule)


def _masquerade(tables: Any, *matches: list[Any]) -> None:
    chain = {"hook": POSTROUTING, "type": "nat", "priority": 100, "policy": 1}
    tables.chain("add", table=TABLE, name=POSTROUTING, **chain)
    tables.rule("add", table=TABLE, chain=POSTROUTING, expressions=(*matches, masq()))


def _define(rules: Callable[[Any], None]) -> None:
    """Make the table of this namespace with its rules, unless it is there."""
    with NFTables(nfgen_family=2) as tables:
        if any(table.get("name") == TABLE for table in tables.get_tables()):
            return
        tables.table("add", name=TABLE)
        rules(tables)


def _named(key: Meta, name: bytes, *, equal: bool = True) -> list[Any]:
    """Match packets whose interface's name begins with this."""
    load = genex("meta", {"dreg": 1, "key": key})
    operator = Cmp.NFT_CMP_EQ if equal else Cmp.NFT_CMP_NEQ
    data = {"attrs": [("NFTA_DATA_VALUE", name)]}
    return [load, genex("cmp", {"sreg": 1, "op": operator, "data": data})]
