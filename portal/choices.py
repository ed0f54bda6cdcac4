"""States and kinds that rows can have, with the label and the tone that pages show."""

from __future__ import annotations

from django.db.models import TextChoices

from scheduler.planner import Remedy as PlannerRemedy


class JobState(TextChoices):
    """Where a job stands, as its owner sees it."""

    WAITING = "waiting", "Waiting"
    STARTING = "starting", "Starting"
    RUNNING = "running", "Running"
    MOVING = "moving", "Moving"
    PAUSED = "paused", "Paused"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


ENDED_STATES = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)
LIVE_STATES = tuple(state for state in JobState if state not in ENDED_STATES)

TONES = {
    JobState.WAITING: "waiting",
    JobState.STARTING: "active",
    JobState.RUNNING: "good",
    JobState.MOVING: "active",
    JobState.PAUSED: "quiet",
    JobState.SUCCEEDED: "done",
    JobState.FAILED: "bad",
    JobState.CANCELLED: "quiet",
}


class Role(TextChoices):
    """What a member may do within a tenant."""

    RESEARCHER = "researcher", "Researcher"
    MANAGER = "manager", "Manager"


class Remedy(TextChoices):
    """How a job can be taken off its devices; the planner's words with people's labels."""

    TRANSPARENT = PlannerRemedy.TRANSPARENT.value, "Transparent: goes on anywhere at the same step"
    PAUSE = PlannerRemedy.PAUSE.value, "Pause: frozen in place, goes on at the same node"
    REQUEUE = PlannerRemedy.REQUEUE.value, "Requeue: starts again from the beginning"


class PlacementState(TextChoices):
    """Where a placement stands."""

    HELD = "held", "Held"
    """Decided; its devices are promised, and others must leave them first."""
    ACTIVE = "active", "Active"
    PARKED = "parked", "Parked"
    """Frozen in place without devices."""
    ENDED = "ended", "Ended"


class Then(TextChoices):
    """What becomes of a job once its placement has been left."""

    STAY = "", "Stay"
    QUEUE = "queue", "Wait for devices again"
    MOVE = "move", "Go on at the next placement"
    PAUSE = "pause", "Stay paused"
    RETRY = "retry", "Try again"
    SUCCEED = "succeed", "Succeeded"
    FAIL = "fail", "Failed"
    CANCEL = "cancel", "Cancelled"


class CheckpointState(TextChoices):
    """A checkpoint counts only once every replica's image is stored."""

    UNDER_WAY = "under-way", "Under way"
    COMMITTED = "committed", "Committed"
    DISCARDED = "discarded", "Discarded"


class SimulationState(TextChoices):
    """Where a question of What if stands."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class Pricing(TextChoices):
    """Where a simulation's costs of moves come from."""

    LEARNED = "learned", "As learned here"
    DEFAULT = "default", "The defaults"
    OFF = "off", "Moves cost nothing"


class MoveKind(TextChoices):
    """Why a job left its devices, or came to them."""

    PREEMPT = "preempt", "Preempted"
    MIGRATE = "migrate", "Migrated"
    RESIZE = "resize", "Resized"
    PAUSE = "pause", "Paused"
    RECOVER = "recover", "Recovered"
    RETRY = "retry", "Retried"
