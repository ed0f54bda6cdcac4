"""Agents come, are heard of, fall silent, and are given up."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.protocol import DeviceInfo, Hello
from portal.actions.ending import lose
from portal.actions.locking import locked_job
from portal.actions.output import output_size
from portal.actions.placing import drop_held, held_placement, present_placement
from portal.choices import PlacementState
from portal.events import node_changed, renew, wake
from portal.models import Device, Job, Node, PlacedReplica, Placement, Settings

LEASE_S: float = settings.NODE_LEASE
"""A node silent for longer is given up."""

HEARD_EVERY_S = 2.0
"""A node's sign of life is written at most this often."""


def hello(node_id: int, message: Hello) -> Node:
    """Take an agent's declaration of what its node is and can do."""
    now = timezone.now()
    with transaction.atomic():
        node = Node.objects.select_for_update().get(pk=node_id)
        node.agent, node.boot, node.driver = message.agent, message.boot, message.driver
        node.address = message.address
        node.cpus, node.memory = message.cpus, message.memory
        node.abilities = {
            name: {"able": ability.able, "reason": ability.reason}
            for name, ability in sorted(message.abilities.items())
        }
        node.heard_at, node.connected, node.lost_at = now, True, None
        node.save()
        _declare_devices(node, message.devices)
        renew([node.id])
        node_changed(node)
        wake()
    return node


def _declare_devices(node: Node, declared: list[DeviceInfo]) -> None:
    for device in declared:
        Device.objects.update_or_create(
            node=node,
            uid=device.id,
            defaults={
                "index": device.index,
                "kind": device.kind,
                "memory": device.memory,
                "sick": device.sick,
            },
        )
    node.devices.exclude(uid__in=[device.id for device in declared]).delete()


def heard(node_id: int) -> bool:
    """Renew a node's lease. False when it had been given up: its agent must say hello again."""
    return bool(
        Node.objects.filter(pk=node_id, lost_at=None).update(
            heard_at=timezone.now(), connected=True
        )
    )


def unplugged(node_id: int) -> None:
    """The node's socket closed; it keeps its lease."""
    with transaction.atomic():
        Node.objects.filter(pk=node_id).update(connected=False)
        node_changed(Node.objects.get(pk=node_id))


def output_held(node_id: int) -> dict[str, int]:
    """For each replica placed on a node, ``job/rank`` -> bytes of output held."""
    seats = PlacedReplica.objects.filter(
        node_id=node_id, placement__state__in=(PlacementState.ACTIVE, PlacementState.PARKED)
    ).values_list("placement__job_id", "rank")
    return {f"{job}/{rank}": output_size(job, rank) for job, rank in seats}


def listen(now: datetime | None = None) -> None:
    """The portal can hear agents from now on: silence before this is not theirs."""
    Settings.objects.update_or_create(pk=1, defaults={"listening_since": now or timezone.now()})


def has_listened(now: datetime) -> bool:
    """Whether every agent has had a whole lease to be heard since the portal listens."""
    since = Settings.objects.filter(pk=1).values_list("listening_since", flat=True).first()
    return since is not None and now - since >= timedelta(seconds=LEASE_S)


def give_up_silent_nodes(now: datetime | None = None) -> list[str]:
    """Declare nodes lost that were silent for longer than their lease; their jobs go elsewhere.

    A portal that could not listen declares nobody lost until a whole lease has passed since it can.
    """
    now = now or timezone.now()
    lease = timedelta(seconds=LEASE_S)
    if not has_listened(now):
        return []
    return [node.name for node in silent_nodes(now) if _give_up(node, now, lease)]


def silent_nodes(now: datetime) -> QuerySet[Node]:
    """Nodes that were not heard of for a whole lease and are not given up yet."""
    return Node.objects.filter(lost_at=None, heard_at__lt=now - timedelta(seconds=LEASE_S))


def _give_up(node: Node, now: datetime, lease: timedelta) -> bool:
    with transaction.atomic():
        given_up = Node.objects.filter(pk=node.pk, lost_at=None, heard_at__lt=now - lease)
        if not given_up.update(lost_at=now, connected=False):
            return False
        node_changed(node)
    for id in _jobs_on(node):
        with locked_job(id) as job:
            _leave_lost(job, node, now)
    return True


def _jobs_on(node: Node) -> list[int]:
    seats = PlacedReplica.objects.filter(node=node).exclude(placement__state=PlacementState.ENDED)
    jobs: Any = seats.values_list("placement__job_id", flat=True).distinct()
    return sorted(set(jobs))


def _leave_lost(job: Job, node: Node, now: datetime) -> None:
    held, placement = held_placement(job), present_placement(job)
    if held is not None and _is_on(held, node):
        drop_held(job)
    if placement is not None and _is_on(placement, node):
        silent = (now - node.heard_at).total_seconds() if node.heard_at else 0
        lose(job, placement, f"{node.name} was not heard of for {silent:.0f} s.", now)


def _is_on(placement: Placement, node: Node) -> bool:
    return any(replica.node_id == node.id for replica in placement.replicas.all())
