"""The machines of the fleet."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from portal.client.connection import Portal
from portal.client.telling import fields, size, table, told_by


def tell_nodes(rows: Any) -> None:
    table(
        ["node", "state", "cluster", "rack", "devices", "taken", "cannot", "note"],
        [
            (
                *(node["name"], node["state"], node["cluster"], node["rack"]),
                *(kinds(node), sum(device["taken"] for device in node["devices"])),
                *([name for name, it in node["abilities"].items() if not it["able"]], node["note"]),
            )
            for node in rows
        ],
        "No nodes.",
    )


def kinds(node: Any) -> str:
    found = [device["kind"] for device in node["devices"]]
    return ", ".join(f"{found.count(kind)} x {kind}" for kind in sorted(set(found)))


def tell_node(node: Any) -> None:
    rows: list[tuple[str, Any]] = [
        *((name, node[name]) for name in ("name", "state", "note", "region", "cluster", "rack")),
        *((name, node[name]) for name in ("address", "agent", "driver", "cpus")),
        ("memory", size(node["memory"])),
        ("partitions", node["partitions"]),
    ]
    for name, ability in node["abilities"].items():
        rows.append((name, "yes" if ability["able"] else f"no: {ability['reason']}"))
    fields(rows)
    table(
        ["device", "kind", "memory", "taken", "jobs", "busy", "sick"],
        [
            (
                *(device["uid"], device["kind"], size(device["memory"]), device["taken"]),
                *(device["jobs"], percent(device["utilisation"]), device["sick"]),
            )
            for device in node["devices"]
        ],
        "It has no devices.",
    )


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


@click.group(invoke_without_command=True)
@click.pass_context
def nodes(context: click.Context) -> None:
    """The machines of the fleet."""
    if context.invoked_subcommand is None:
        context.invoke(list_nodes)


@nodes.command("list")
@click.pass_obj
@told_by(tell_nodes)
def list_nodes(portal: Portal) -> Any:
    """List them."""
    return portal.pages("nodes/")


@nodes.command("show")
@click.argument("node")
@click.pass_obj
@told_by(tell_node)
def show_node(portal: Portal, node: str) -> Any:
    """What NODE is and can do, and what runs there."""
    return portal.get(address(node))


@nodes.command()
@click.argument("node")
@click.option("--note", default="", help="Why.")
@click.pass_obj
@told_by(tell_node)
def cordon(portal: Portal, node: str, note: str) -> Any:
    """Let nothing new land on NODE; what runs stays."""
    return portal.post(address(node, "cordon/"), {"note": note})


@nodes.command()
@click.argument("node")
@click.option("--note", default="", help="Why.")
@click.pass_obj
@told_by(tell_node)
def drain(portal: Portal, node: str, note: str) -> Any:
    """Let nothing new land on NODE and move away what runs."""
    return portal.post(address(node, "drain/"), {"note": note})


@nodes.command()
@click.argument("node")
@click.pass_obj
@told_by(tell_node)
def uncordon(portal: Portal, node: str) -> Any:
    """Let jobs land on NODE again."""
    return portal.post(address(node, "uncordon/"))


def tell_token(answer: Any) -> None:
    click.echo(answer["token"])
    click.echo(f"The token of {answer['name']}'s agent; it is shown this once.", err=True)


@nodes.command()
@click.argument("node")
@click.option("--region", default="")
@click.option("--cluster", default="")
@click.option("--rack", default="")
@click.pass_obj
@told_by(tell_token)
def add(portal: Portal, node: str, **places: str) -> Any:
    """Enrol NODE and print the token for its agent."""
    return portal.post("nodes/", {"name": node, **places})


@nodes.command("token")
@click.argument("node")
@click.pass_obj
@told_by(tell_token)
def renew_token(portal: Portal, node: str) -> Any:
    """Give NODE a new token; the old one is refused from now on."""
    return portal.post(address(node, "token/"))


@nodes.command()
@click.argument("node")
@click.pass_obj
def remove(portal: Portal, node: str) -> None:
    """Forget NODE, on which nothing runs."""
    portal.delete(address(node))


def address(node: str, verb: str = "") -> str:
    return f"nodes/{quote(node, safe='')}/{verb}"
