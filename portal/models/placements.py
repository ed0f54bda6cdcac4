"""Where each replica of a job runs, one placement after the other, each at a higher epoch."""

from __future__ import annotations

from django.db import models

from agents.protocol import State, Want
from portal.choices import PlacementState, Then

WANTS = [(want.value, want.value) for want in Want]
STATES = [(state.value, state.value) for state in State]


class Placement(models.Model):
    """A gang's seats, what is wanted of them, and what follows once they are left."""

    job = models.ForeignKey("portal.Job", on_delete=models.CASCADE, related_name="placements")
    epoch = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=PlacementState, default=PlacementState.ACTIVE)
    want = models.CharField(max_length=8, choices=WANTS, default=Want.RUNNING.value)
    want_since = models.DateTimeField()
    then = models.CharField(max_length=8, choices=Then, blank=True, default=Then.STAY)
    hold = models.BooleanField(default=True)
    """Replicas stop at *ready* until all of them are."""
    checkpoint = models.ForeignKey(
        "portal.Checkpoint", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """What it was restored from; null: started from the beginning."""
    storing = models.ForeignKey(
        "portal.Checkpoint", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """The checkpoint that is being taken of it."""
    ahead_since = models.DateTimeField(null=True, blank=True)
    """Since when the nodes that it goes to fetch ahead while it runs on; null: they do not."""
    devices = models.PositiveIntegerField(default=0)
    """How many devices it holds in all."""
    created_at = models.DateTimeField()
    running_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["job_id", "epoch"]
        constraints = [
            models.UniqueConstraint(fields=["job", "epoch"], name="one_placement_an_epoch"),
            models.UniqueConstraint(
                fields=["job"],
                condition=models.Q(state__in=["active", "parked"]),
                name="one_present_placement_a_job",
            ),
            models.UniqueConstraint(
                fields=["job"], condition=models.Q(state="held"), name="one_held_placement_a_job"
            ),
        ]
        indexes = [models.Index(fields=["state"])]

    def __str__(self) -> str:
        return f"job {self.job_id} epoch {self.epoch} ({self.state}, {self.want})"

    @property
    def network_number(self) -> int:
        """VXLAN id and interface names: 1 to 2**24 - 2; the last one is for the agents' trials.

        A placement's own: what a superseded replica may still send reaches none of the new ones.
        """
        return (self.id - 1) % (2**24 - 2) + 1


class PlacedReplica(models.Model):
    """One replica of a placement: its seat, and the last fact that its agent reported."""

    placement = models.ForeignKey(Placement, on_delete=models.CASCADE, related_name="replicas")
    rank = models.PositiveIntegerField()
    node = models.ForeignKey("portal.Node", on_delete=models.CASCADE, related_name="replicas")
    devices = models.JSONField(default=list)
    """Ids (on the node) of the devices it holds; several replicas may share them."""
    sharers = models.PositiveIntegerField(default=1)
    cpus = models.FloatField(default=0.0)
    """CPUs that the planner allots to it now; 0: those of its devices, or what it asked for."""
    profile = models.PositiveIntegerField(default=0)
    """Number of the last profile that its agent told."""
    output_from = models.BigIntegerField(default=0)
    """Bytes of output that earlier placements had written."""
    state = models.CharField(max_length=10, choices=STATES, blank=True, default="")
    """Empty until its agent reports of it."""
    exit_code = models.IntegerField(null=True, blank=True)
    error = models.CharField(max_length=60, blank=True, default="")
    detail = models.TextField(blank=True, default="")
    checkpoint = models.PositiveIntegerField(default=0)
    manifest = models.CharField(max_length=120, blank=True, default="")
    fetched = models.CharField(max_length=120, blank=True, default="")
    """Of a promised seat: the manifest that its node has fetched ahead."""
    outputs = models.CharField(max_length=120, blank=True, default="")
    phases = models.JSONField(default=dict)
    bytes_raw = models.BigIntegerField(default=0)
    bytes_new = models.BigIntegerField(default=0)
    bytes_stored = models.BigIntegerField(default=0)
    started_at = models.FloatField(default=0.0)
    """Wall clock of its node, seconds since 1970."""
    stopped_at = models.FloatField(default=0.0)

    class Meta:
        ordering = ["placement_id", "rank"]
        constraints = [
            models.UniqueConstraint(fields=["placement", "rank"], name="one_replica_a_rank")
        ]
        indexes = [
            models.Index(fields=["cpus"], condition=models.Q(cpus__gt=0), name="allotted_cpus")
        ]

    def __str__(self) -> str:
        return f"rank {self.rank} of placement {self.placement_id}: {self.state or 'unknown'}"
