"""Where a job stands, in the sentence at the top of its page."""

from __future__ import annotations

from portal.actions.receipts import nodes_of
from portal.choices import JobState
from portal.models import Job, Placement
from portal.wishes import sentence_of_wish

BROUGHT = "It is about to leave, and runs on while its image is brought to where it goes."


def standing_of(job: Job, present: Placement | None) -> str:
    """Say what a live job does, and why or what is to come; empty where the page says it itself."""
    if job.state == JobState.MOVING and present is not None:
        does = "Leaving" if present.then else "Coming back on"
        return f"{does} {', '.join(nodes_of(present))}. {job.sentence}".strip()
    if job.state == JobState.RUNNING and present is not None:
        return BROUGHT if present.ahead_since else wish_of(job, present.devices)
    return job.sentence


def wish_of(job: Job, held: int) -> str:
    """Say what was asked of a job that holds so many devices, and is still to come."""
    return sentence_of_wish(
        pause_asked=job.pause_asked,
        move_asked=job.move_asked,
        wanted_nodes=job.wanted_nodes,
        asked_devices=job.asked_devices,
        held=held,
    )
