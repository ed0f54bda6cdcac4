"""Cut the fleet into partitions and give them to tenants; admins only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import IntegrityError, transaction

from portal import events
from portal.access import require_admin
from portal.actions.audit import record
from portal.actions.tenants import check_slug
from portal.drawings.figures import count
from portal.models import Node, Partition, Tenant, User
from portal.refusals import Refused


def create_partition(
    user: User,
    slug: str,
    title: str = "",
    *,
    nodes: Iterable[Node] = (),
    tenants: Iterable[Tenant] = (),
) -> Partition:
    """Make a partition of these nodes for these tenants; without tenants it is open to all."""
    require_admin(user)
    partition = Partition(slug=check_slug(slug), title=check_title(title or slug))
    try:
        with transaction.atomic():
            partition.save()
            partition.nodes.set(nodes)
            partition.tenants.set(tenants)
            after = describe_partition(partition)
            record(user, "partition created", f"partition {slug}", {}, after)
            events.wake()
    except IntegrityError:
        raise Refused({"slug": f"There is a partition {slug!r} already."}, id="taken") from None
    return partition


def change_partition(
    user: User,
    partition: Partition,
    *,
    title: str | None = None,
    nodes: Iterable[Node] | None = None,
    tenants: Iterable[Tenant] | None = None,
) -> Partition:
    """Set a partition's title, nodes or tenants; None leaves each as it is."""
    require_admin(user)
    before = describe_partition(partition)
    with transaction.atomic():
        if title is not None:
            partition.title = check_title(title)
            partition.save(update_fields=["title"])
        if nodes is not None:
            partition.nodes.set(nodes)
        if tenants is not None:
            partition.tenants.set(tenants)
        after = describe_partition(partition)
        record(user, "partition changed", f"partition {partition.slug}", before, after)
        events.wake()
    return partition


def remove_partition(user: User, partition: Partition) -> None:
    """Remove a partition that no live job asked for; its nodes stay in the fleet."""
    require_admin(user)
    live = partition.jobs.live().count()
    if live:
        raise Refused(
            f"{partition.slug} is asked for by {count(live, 'live job')}; "
            "wait for them or cancel them.",
            id="in-use",
            conflict=True,
        )
    with transaction.atomic():
        before = describe_partition(partition)
        record(user, "partition removed", f"partition {partition.slug}", before, {})
        partition.delete()
        events.wake()


def check_title(title: str) -> str:
    if not 1 <= len(title) <= 80:
        raise Refused({"title": "Give a title of 1 to 80 characters."})
    return title


def describe_partition(partition: Partition) -> dict[str, Any]:
    return {
        "title": partition.title,
        "nodes": sorted(node.name for node in partition.nodes.all()),
        "tenants": sorted(tenant.slug for tenant in partition.tenants.all()),
    }
