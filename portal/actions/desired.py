"""What should be on a node, as its agent is told."""

from __future__ import annotations

import logging

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
from portal.models import Checkpoint, CheckpointImage, Job, Node, PlacedReplica, Placement
from portal.sealing import SealError

log = logging.getLogger(__name__)

MASTER_PORT = 29500
SUBNET = "10.77.{}.{}/16"
"""Every job has a network of its own, so that all may use the same addresses."""


def desired_state(node_id: int) -> DesiredState:
    """Everything that should be on a node now."""
    # The number is read first: a change while the rows are read is sent again with the next number.
    number = Node.objects.values_list("desired_number", flat=True).get(pk=node_id)
    seats = (
        PlacedReplica.objects.filter(
            node_id=node_id,
            placement__state__in=(PlacementState.ACTIVE, PlacementState.PARKED),
        )
        .select_related("node", "placement__job__upload", "placement__checkpoint")
        .select_related("placement__storing")
        .order_by("placement_id", "rank")
    )
    return DesiredState(
        number=number,
        replicas=[_desired(seat) for seat in seats],
        prefetch=hints(node_id),
    )


def _desired(seat: PlacedReplica) -> Desired:
    placement = seat.placement
    job = placement.job
    wanted = Want(placement.want)
    restoring = placement.checkpoint
    storing = placement.storing
    return Desired(
        job=job.id,
        rank=seat.rank,
        epoch=placement.epoch,
        want=wanted,
        world=job.replicas,
        devices=list(seat.devices),
        sharers=seat.sharers,
        cpus=job.cpus_per_replica,
        memory=job.memory_per_replica,
        launch=launch_of(job, placement, seat),
        image=_image(restoring, seat) if restoring is not None else None,
        network=_network(job, placement, seat),
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


def _image(checkpoint: Checkpoint, seat: PlacedReplica) -> Image | None:
    image = CheckpointImage.objects.filter(checkpoint=checkpoint, rank=seat.rank).first()
    return Image(manifest=image.manifest) if image else None


def address_of(rank: int) -> str:
    """A replica's fixed address in its job's network, with prefix length."""
    host = rank + 2
    return SUBNET.format(host // 256, host % 256)


def _network(job: Job, placement: Placement, seat: PlacedReplica) -> Network | None:
    if not seat.node.able("network") or (job.replicas == 1 and not job.internet):
        return None
    others = placement.replicas.exclude(node_id=seat.node_id).select_related("node")
    peers = {address_of(other.rank).split("/")[0]: other.node.address for other in others}
    return Network(
        number=placement.network_number,
        address=address_of(seat.rank),
        peers=peers,
        internet=job.internet,
    )


def launch_of(job: Job, placement: Placement, seat: PlacedReplica) -> Launch | None:
    """How the replica is started from the beginning; nothing if its secrets cannot be opened."""
    try:
        secrets = job.secrets
    except SealError as error:
        log.error("job %d cannot be started: %s", job.id, error)
        return None
    networked = job.replicas > 1 and seat.node.able("network")
    world = {
        "RANK": str(seat.rank),
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
