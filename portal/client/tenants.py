"""Tenants with their quotas and members, and the service tiers."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from portal.client.connection import Portal
from portal.client.telling import table, told_by

UNLIMITED = "unlimited"


def tell_tenants(rows: Any) -> None:
    table(
        ["tenant", "title", "role", "held", "kind", "reserved", "borrow up to", "lend"],
        [
            (
                *(tenant["slug"], tenant["title"], tenant["role"], tenant["devices_held"]),
                *(quota["device_kind"] or "any", quota["reserved"]),
                *(borrow(quota["borrow"]), quota["lend"]),
            )
            for tenant in rows
            for quota in tenant["quotas"] or [NO_QUOTA]
        ],
        "You belong to no tenant.",
    )


NO_QUOTA = {"device_kind": "", "reserved": UNLIMITED, "borrow": None, "lend": True}


def borrow(value: int | None) -> str:
    return UNLIMITED if value is None else str(value)


@click.group(invoke_without_command=True)
@click.pass_context
def tenants(context: click.Context) -> None:
    """Your tenants."""
    if context.invoked_subcommand is None:
        context.invoke(list_tenants)


@tenants.command("list")
@click.pass_obj
@told_by(tell_tenants)
def list_tenants(portal: Portal) -> Any:
    """List them with their quotas."""
    return portal.pages("tenants/")


@tenants.command()
@click.argument("tenant")
@click.option("--title")
@click.option("--parent", help="Slug of the tenant above it.")
@click.option("--weight", type=float)
@click.pass_obj
@told_by(lambda tenant: tell_tenants([tenant]))
def add(portal: Portal, tenant: str, **told: Any) -> Any:
    """Make a TENANT, as admin."""
    given = {name: value for name, value in told.items() if value is not None}
    return portal.post("tenants/", {"slug": tenant, **given})


def tell_quota(quota: Any) -> None:
    tell_tenants([{"slug": "", "title": "", "role": "", "devices_held": "", "quotas": [quota]}])


@tenants.command()
@click.argument("tenant")
@click.option("--kind", default="any", show_default=True, help="Kind of device.")
@click.option("--reserved", type=int, required=True, help="Devices it can count on.")
@click.option("--borrow", "up_to", default="0", show_default=True, help=f"Or {UNLIMITED}.")
@click.option("--lend/--no-lend", default=True, show_default=True)
@click.pass_obj
@told_by(tell_quota)
def quota(portal: Portal, tenant: str, kind: str, reserved: int, up_to: str, lend: bool) -> Any:
    """Set what TENANT may use of one kind of device, as admin."""
    if up_to != UNLIMITED and not up_to.isdigit():
        raise click.UsageError(f"--borrow takes a number of devices or {UNLIMITED}.")
    told = {
        "reserved": reserved,
        "borrow": None if up_to == UNLIMITED else int(up_to),
        "lend": lend,
    }
    return portal.put(f"tenants/{part(tenant)}/quotas/{part(kind)}/", told)


def tell_members(rows: Any) -> None:
    table(["member", "role"], [(row["username"], row["role"]) for row in rows])


@tenants.command()
@click.argument("tenant")
@click.pass_obj
@told_by(tell_members)
def members(portal: Portal, tenant: str) -> Any:
    """Who belongs to TENANT."""
    return portal.get(f"tenants/{part(tenant)}/members/")


@tenants.command()
@click.argument("tenant")
@click.argument("username")
@click.option("--role", type=click.Choice(["researcher", "manager"]), default="researcher")
@click.pass_obj
@told_by(lambda member: tell_members([member]))
def member(portal: Portal, tenant: str, username: str, role: str) -> Any:
    """Make USERNAME a member of TENANT, or give them another role."""
    return portal.put(f"tenants/{part(tenant)}/members/{part(username)}/", {"role": role})


@tenants.command()
@click.argument("tenant")
@click.argument("username")
@click.pass_obj
def dismiss(portal: Portal, tenant: str, username: str) -> None:
    """End the membership of USERNAME in TENANT."""
    portal.delete(f"tenants/{part(tenant)}/members/{part(username)}/")


def tell_tiers(rows: Any) -> None:
    table(
        ["tier", "title", "rank", "promised", "preemptible"],
        [
            (tier["slug"], tier["title"], tier["rank"], tier["promise"], tier["preemptible"])
            for tier in rows
        ],
    )


@click.command()
@click.pass_obj
@told_by(tell_tiers)
def tiers(portal: Portal) -> Any:
    """The service tiers and the GPU fraction that each is promised."""
    return portal.pages("tiers/")


def part(text: str) -> str:
    return quote(text, safe="")
