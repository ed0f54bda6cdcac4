"""What if: simulations that admins asked for, how far they are, and what they showed."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.choices import Pricing, SimulationState


class Simulation(models.Model):
    """A trace played on the fleet as it is, and on the fleet with something changed."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="simulations"
    )
    title = models.CharField(max_length=120)
    days = models.PositiveIntegerField(null=True, blank=True)
    """The fleet's own last days; null: a trace that was uploaded."""
    trace = models.FileField(upload_to="traces/%Y/%m/", max_length=255, blank=True)
    """Empty also once it was removed; see ``trace_size``."""
    filename = models.CharField(max_length=255, blank=True, default="")
    trace_size = models.BigIntegerField(default=0)
    """Bytes of the uploaded trace that are kept; 0 once it was removed."""
    strict = models.BooleanField(default=False)
    """Whether a trace with a line that cannot be read is refused."""
    policy = models.CharField(max_length=40, blank=True, default="")
    """Preset to compare with; empty: the present one."""
    sharing = models.CharField(max_length=12, blank=True, default="")
    """How CPUs are shared in what is changed; empty: as they are."""
    quota = models.JSONField(default=dict)
    """tenant, device_kind, reserved, borrow, lend; empty: as they are."""
    tiers = models.JSONField(default=dict)
    """Tier -> what of rank, promise (0 to 1) and preemptible is changed; empty: as they are."""
    more_nodes = models.PositiveIntegerField(default=0)
    like_node = models.CharField(max_length=120, blank=True, default="")
    pricing = models.CharField(max_length=8, choices=Pricing, blank=True, default="")
    """Where the costs of moves come from; empty: learned for own days, defaults for a trace."""

    state = models.CharField(
        max_length=12, choices=SimulationState, default=SimulationState.QUEUED, db_index=True
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    heard_at = models.DateTimeField(null=True, blank=True)
    """When whoever runs it last told how far it is."""
    attempts = models.PositiveIntegerField(default=0)
    """How often a worker took it; one that was lost is begun again."""
    share = models.FloatField(default=0.0)
    """0 to 1."""
    detail = models.TextField(blank=True, default="")
    """Why it failed, or what was played and what of the trace was left out."""
    broken = models.JSONField(default=list)
    """The first lines of the trace that could not be read, each with its number and why."""
    costs = models.JSONField(default=dict)
    """What moves were taken to cost, and from how many moves that was learned."""
    runs = models.JSONField(default=list)
    """Names of the runs, as they stand in the table."""
    table = models.JSONField(default=list)
    """Rows of a measure's name and its value in each run, as text; null where there is none."""
    measures = models.JSONField(default=list)
    """All measures of each run, as ``scheduler.simulator.measures`` has them."""
    figures = models.JSONField(default=list)
    """Plotly figures."""

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.id} {self.title}"

    @property
    def ended(self) -> bool:
        return self.state not in {SimulationState.QUEUED, SimulationState.RUNNING}
