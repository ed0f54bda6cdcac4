"""What should be on a node, as its agent is told."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from django.urls import reverse

from agents.protocol import (
    Desired,
    DesiredState,
    Image,
    Launch,
    Network,
    Source,
    Want,
)
from portal.actions.prefetching import hints
from portal.choices import PlacementState
from portal.models import Checkpoint, CheckpointImage, Job, Node, PlacedReplica
from portal.sealing import SealError

log = logging.getLogger(__name__)

MASTER_PORT = 29500
SUBNET = "10.77.{}.{}/16"
"""Every job has a network of its own, so that all may use the same addresses."""


def desired_state(node_id: int) -> DesiredState:
    """Everything that should be on a node now."""
    states = desired_states([node_id])
    if not states:
        raise Node.DoesNotExist(f"There is no node {node_id}.")
    return states[node_id]


def desired_states(nodes: Collection[int]) -> dict[int, DesiredState]:
    """Everything that should be on some nodes now, in as many queries for many as for one.

    A node that does not exist is left out.
    """
    # Numbers are read first: a change while the rows are read is sent again with the next number.
    rows = (
        Node.objects.filter(pk__in=nodes).order_by().only("desired_number", "abilities").in_bulk()
    )
    seats = PlacedReplica.objects.filter(node_id__in=nodes).exclude(
        placement__state=PlacementState.ENDED
    )
    held: list[PlacedReplica] = []
    present: list[PlacedReplica] = []
    for seat in seats.select_related("placement").order_by("placement_id", "rank"):
        (held if seat.placement.state == PlacementState.HELD else present).append(seat)
    replicas = defaultdict[int, list[Desired]](list)
    surroundings = Surroundings(rows, present)
    for seat in present:
        if seat.node_id in rows:
            replicas[seat.node_id].append(_desired(seat, surroundings))
    prefetch = hints(held)
    return {
        id: DesiredState(
            number=node.desired_number, replicas=replicas[id], prefetch=prefetch.get(id, [])
        )
        for id, node in rows.items()
    }


class Surroundings:
    """What seats are told beside their own rows, of jobs, of images and of peers."""

    def __init__(self, nodes: Mapping[int, Node], seats: Sequence[PlacedReplica]) -> None:
        self.nodes = nodes
        placements = {seat.placement_id: seat.placement for seat in seats}
        jobs = Job.objects.select_related("tenant", "upload").order_by()
        self.jobs = jobs.in_bulk({placement.job_id for placement in placements.values()})
        self.storing = Checkpoint.objects.only("number", "periodic").in_bulk(
            {row.storing_id for row in placements.values() if row.storing_id is not None}
        )
        restored = {row.checkpoint_id for row in placements.values()} - {None}
        images = CheckpointImage.objects.filter(checkpoint__in=restored).order_by()
        self.manifests = {
            (checkpoint, rank): manifest
            for checkpoint, rank, manifest in images.values_list(
                "checkpoint_id", "rank", "manifest"
            )
        }
        self.peers = self._peers(
            id for id, placement in placements.items() if self.jobs[placement.job_id].replicas > 1
        )

    def _peers(self, placements: Iterable[int]) -> dict[int, list[tuple[int, int, str]]]:
        """Rank, node and the node's address of all replicas of placements."""
        rows = PlacedReplica.objects.filter(placement__in=list(placements)).order_by("rank")
        found = defaultdict[int, list[tuple[int, int, str]]](list)
        for placement, rank, node, address in rows.values_list(
            "placement_id", "rank", "node_id", "node__address"
        ):
            found[placement].append((rank, node, address))
        return found


def _desired(seat: PlacedReplica, surroundings: Surroundings) -> Desired:
    placement = seat.placement
    job = surroundings.jobs[placement.job_id]
    storing = surroundings.storing.get(placement.storing_id or 0)
    networked = surroundings.nodes[seat.node_id].able("network")
    return Desired(
        job=job.id,
        rank=seat.rank,
        epoch=placement.epoch,
        want=Want(placement.want),
        world=job.replicas,
        devices=list(seat.devices),
        sharers=seat.sharers,
        cpus=job.cpus_per_replica,
        memory=job.memory_per_replica,
        launch=launch_of(job, seat.rank, networked=networked and job.replicas > 1),
        image=_image(seat, surroundings),
        network=_network(job, seat, surroundings) if networked else None,
        hold=placement.hold,
        run_on=bool(storing and storing.periodic),
        checkpoint=storing.number if storing else 0,
        output_from=seat.output_from,
        allotted=seat.cpus,
        profile=_profile(job, seat),
    )


def _profile(job: Job, seat: PlacedReplica) -> int:
    """The first replica is measured for all: whoever is slowest sets the pace of the others."""
    return job.profile_asked if seat.rank == 0 and job.profile_asked > job.profiled else 0


def _image(seat: PlacedReplica, surroundings: Surroundings) -> Image | None:
    restored = seat.placement.checkpoint_id
    manifest = surroundings.manifests.get((restored, seat.rank)) if restored else None
    return Image(manifest=manifest) if manifest is not None else None


def address_of(rank: int) -> str:
    """A replica's fixed address in its job's network, with prefix length."""
    host = rank + 2
    return SUBNET.format(host // 256, host % 256)


def _network(job: Job, seat: PlacedReplica, surroundings: Surroundings) -> Network | None:
    if job.replicas == 1 and not job.internet:
        return None
    peers = {
        address_of(rank).split("/")[0]: address
        for rank, node, address in surroundings.peers.get(seat.placement_id, ())
        if node != seat.node_id
    }
    return Network(
        number=seat.placement.network_number,
        address=address_of(seat.rank),
        peers=peers,
        internet=job.internet,
    )


def launch_of(job: Job, rank: int, *, networked: bool) -> Launch | None:
    """How the replica is started from the beginning; nothing if its secrets cannot be opened."""
    try:
        secrets = job.secrets
    except SealError as error:
        log.error("job %d cannot be started: %s", job.id, error)
        return None
    world = {
        "RANK": str(rank),
        "WORLD_SIZE": str(job.replicas),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": address_of(0).split("/")[0] if networked else "127.0.0.1",
        # Without networks of their own, jobs of one node share its ports.
        "MASTER_PORT": str(MASTER_PORT if networked else 20000 + job.id % 20000),
        "TIDEPOOL_JOB": str(job.id),
        "TIDEPOOL_JOB_NAME": job.name,
        "TIDEPOOL_TENANT": job.tenant.slug,
    }
    source = Source(git=job.git, ref=job.ref)
    if job.upload is not None:
        source = Source(
            upload=reverse("agent-source", args=[job.upload.id]),
            filename=job.upload.filename,
            sha256=job.upload.sha256,
        )
    return Launch(
        command=list(job.command),
        environment={**world, **job.environment},
        secrets=secrets,
        source=source,
    )
