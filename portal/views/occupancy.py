"""Who holds which device, as far as a user may know."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db.models import TextField
from django.db.models.functions import Cast

from portal.access import visible_tenants
from portal.choices import PlacementState
from portal.models import Device, PlacedReplica, User

Place = tuple[int, str]
"""A node's row and a device's id on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupant:
    """The job on a device. ``job`` is 0 where the user may not know more than that there is one."""

    job: int = 0
    name: str = ""
    tenant: str = ""
    state: str = ""


HIDDEN = Occupant()


COLOURS = 8
"""How many tenants have a colour of their own before colours come round again."""


def colour_tenants(user: User) -> dict[str, int]:
    """Answer a colour for each tenant that the user may see, the same on every page."""
    slugs = visible_tenants(user).order_by("id").values_list("slug", flat=True)
    return {slug: place % COLOURS for place, slug in enumerate(slugs)}


def find_occupants(
    known: Collection[str], nodes: Collection[int] | None = None
) -> dict[Place, Occupant]:
    """Answer the job on every held device, of these nodes or of all.

    Jobs of tenants that are not known stay nameless.
    """
    held = PlacedReplica.objects.filter(placement__state=PlacementState.ACTIVE)
    rows = (held if nodes is None else held.filter(node__in=nodes)).values_list(
        "node_id",
        "devices",
        "placement__job_id",
        "placement__job__name",
        "placement__job__tenant__slug",
        "placement__job__state",
    )
    found: dict[Place, Occupant] = {}
    for node, devices, job, name, slug, state in rows:
        seen = slug in known
        occupant = Occupant(job=job, name=name, tenant=slug, state=state) if seen else HIDDEN
        found.update(((node, uid), occupant) for uid in devices)
    return found


def count_use(tenants: Collection[int]) -> Mapping[tuple[int, str], int]:
    """Answer how many devices each of these tenants holds, by (tenant, device kind)."""
    first = PlacedReplica.objects.filter(
        placement__state=PlacementState.ACTIVE, placement__job__tenant_id__in=tenants, rank=0
    ).order_by()
    rows = first.values_list(
        "node_id", Cast("devices", TextField()), "placement__job__tenant_id", "placement__devices"
    )
    kinds: dict[int, set[str]] = {}
    for node, kind in Device.objects.order_by().values_list("node_id", "kind").distinct():
        kinds.setdefault(node, set()).add(kind)
    mixed = Device.objects.filter(node__in=[node for node in kinds if len(kinds[node]) > 1])
    of = {(node, uid): kind for node, uid, kind in mixed.values_list("node_id", "uid", "kind")}
    use: Counter[tuple[int, str]] = Counter()
    for node, devices, tenant, count in rows:
        known = kinds.get(node, {""})
        kind = min(known) if len(known) == 1 else of.get((node, json.loads(devices)[0]), "")
        use[tenant, kind] += count
    return use
