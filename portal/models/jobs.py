"""What users submitted, and where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

from portal.choices import ENDED_STATES, TONES, JobState, Remedy
from portal.querysets import JobQuerySet
from portal.sealing import seal, unseal

if TYPE_CHECKING:
    from portal.models.placements import Placement


class Job(models.Model):
    """A command on ``replicas`` x ``gpus_per_replica`` devices, and everything decided about it."""

    name = models.CharField(max_length=120)
    tenant = models.ForeignKey("portal.Tenant", on_delete=models.PROTECT, related_name="jobs")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs"
    )
    tier = models.ForeignKey("portal.Tier", on_delete=models.PROTECT, related_name="jobs")
    partition = models.ForeignKey(
        "portal.Partition", on_delete=models.SET_NULL, null=True, blank=True, related_name="jobs"
    )
    command = models.JSONField(default=list)
    environment = models.JSONField(default=dict)
    sealed_secrets = models.TextField(blank=True, default="")
    """Handed to the replicas; never shown again, logged or cloned to another owner."""
    upload = models.ForeignKey(
        "portal.Upload", on_delete=models.SET_NULL, null=True, blank=True, related_name="jobs"
    )
    git = models.CharField(max_length=500, blank=True, default="")
    ref = models.CharField(max_length=200, blank=True, default="")
    replicas = models.PositiveIntegerField(default=1)
    gpus_per_replica = models.PositiveIntegerField(default=1)
    fewest_devices = models.PositiveIntegerField(null=True, blank=True)
    device_kind = models.CharField(max_length=60, blank=True, default="")
    device_memory = models.BigIntegerField(default=0)
    cpus_per_replica = models.FloatField(default=0.0)
    memory_per_replica = models.BigIntegerField(default=0)
    expected_s = models.FloatField(null=True, blank=True)
    tags = models.JSONField(default=list)
    retries = models.PositiveIntegerField(default=0)
    checkpoint_every_s = models.PositiveIntegerField(null=True, blank=True)
    """Null: as its tier says; 0: never."""
    internet = models.BooleanField(default=False)
    unprofiled = models.BooleanField(default=False)
    """Never slowed for a moment to measure what it gains from CPUs."""
    recipe = models.CharField(max_length=64, blank=True, default="", db_index=True)
    """The same for jobs that do the same; what is measured of one holds for the others."""
    cloned_from = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="clones"
    )

    state = models.CharField(
        max_length=12, choices=JobState, default=JobState.WAITING, db_index=True
    )
    remedy = models.CharField(max_length=12, choices=Remedy, default=Remedy.TRANSPARENT)
    """The verdict on the present (or last) placement."""
    verdict = models.CharField(max_length=300, blank=True, default="")
    """Why the verdict is not *transparent*; empty when it is."""
    epoch = models.PositiveIntegerField(default=0)
    submitted_at = models.DateTimeField(db_index=True)
    waiting_since = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    """When its command first ran."""
    running_since = models.DateTimeField(null=True, blank=True)
    """When the present run began; null while it does not compute."""
    ended_at = models.DateTimeField(null=True, blank=True, db_index=True)
    exit_code = models.IntegerField(null=True, blank=True)
    error = models.CharField(max_length=60, blank=True, default="")
    detail = models.TextField(blank=True, default="")
    retried = models.PositiveIntegerField(default=0)
    stumbles = models.PositiveIntegerField(default=0)
    """Starts and restores in a row that failed through no fault of its own."""

    reason = models.CharField(max_length=60, blank=True, default="")
    """The planner's last answer, by name; ``sentence`` is for people."""
    reason_numbers = models.JSONField(default=dict)
    sentence = models.TextField(blank=True, default="")

    home = models.CharField(max_length=60, null=True, blank=True, default=None)
    """The cluster whose planner it was sent to; empty: given back; null: not sent."""

    pause_asked = models.BooleanField(default=False)
    move_asked = models.BooleanField(default=False)
    wanted_nodes = models.JSONField(default=list)
    """Names of nodes that a person asked it to move to."""
    avoid_nodes = models.JSONField(default=dict)
    """Nodes where it failed to start -> until when it keeps away, in seconds of the epoch."""
    asked_devices = models.PositiveIntegerField(null=True, blank=True)
    """The size that a person asked for; the planner does not grow it beyond."""
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """Whose wish the pause, the move or the size is."""
    untouchable_until = models.DateTimeField(null=True, blank=True)
    """Leave it alone until then: a move of it was called off."""

    profile_asked = models.PositiveIntegerField(default=0)
    """Number of the last profile that was asked for; ``profiled`` of the last one that came."""
    profile_asked_at = models.DateTimeField(null=True, blank=True)
    profiled = models.PositiveIntegerField(default=0)

    moves = models.PositiveIntegerField(default=0)
    last_moved_at = models.DateTimeField(null=True, blank=True)
    worked_s = models.FloatField(default=0.0)
    """Seconds of work at full size, up to ``accounted_at``."""
    delivered = models.FloatField(default=0.0)
    """Device-seconds delivered, up to ``accounted_at``."""
    entitled = models.FloatField(default=0.0)
    accounted_at = models.DateTimeField(null=True, blank=True)

    objects = JobQuerySet.as_manager()

    standing: list[Placement]
    """Its placements that have not ended; only on a job whose row was locked."""

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["tenant", "state"]),
            models.Index(fields=["owner", "-id"]),
            models.Index(
                fields=["home"], condition=models.Q(home__isnull=False), name="sent_to_a_cluster"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.name}"

    @property
    def devices(self) -> int:
        """Devices at full size."""
        return self.replicas * self.gpus_per_replica

    @property
    def secrets(self) -> dict[str, str]:
        """What was sealed; raises ``SealError``."""
        return unseal(self.sealed_secrets)

    @secrets.setter
    def secrets(self, values: dict[str, str]) -> None:
        self.sealed_secrets = seal(values)

    @property
    def ended(self) -> bool:
        return self.state in ENDED_STATES

    @property
    def tone(self) -> str:
        return TONES[JobState(self.state)]
