"""What a replica is on its node, and the next step from there toward what is wanted. Pure."""

from __future__ import annotations

from enum import StrEnum

from agents.protocol import Desired, State, Want


class Stage(StrEnum):
    """What one replica is, finer than the ``State`` that the portal is told."""

    NEW = "new"
    """Nothing but its folder."""
    PREPARED = "prepared"
    """Its files are there; the command was not started."""
    STARTING = "starting"
    """Written before the command is started, so that after a crash one knows to look for it."""
    RESTORING = "restoring"
    """Written before a restore; what a crash leaves of it is removed and begun again."""
    RESTORED = "restored"
    """Made from an image, frozen, gate closed; it has not run since."""
    RUNNING = "running"
    FROZEN = "frozen"
    STORED = "stored"
    PARKED = "parked"
    """Dumped into its own folder and ended, for as long as the agent is stopped."""
    EXITED = "exited"
    FAILED = "failed"
    GONE = "gone"


class Contact(StrEnum):
    """How the agent stands with the portal."""

    NONE = "none"
    """Not heard since the agent started: everything stays as it is."""
    GOOD = "good"
    CLOSING = "closing"
    """The agent was told to stop and to leave nothing running."""
    LAPSED = "lapsed"
    """Silent for most of the lease: it may have given this node up, so nothing may run."""


class Act(StrEnum):
    """One step of work on a replica."""

    PREPARE = "prepare"
    START = "start"
    RESTORE = "restore"
    FREEZE = "freeze"
    THAW = "thaw"
    STORE = "store"
    PARK = "park"
    COLLECT = "collect"
    END = "end"
    LIMIT = "limit"
    PROFILE = "profile"
    FORGET = "forget"
    REST = "rest"


STATES: dict[Stage, State] = {
    Stage.NEW: State.PREPARING,
    Stage.PREPARED: State.READY,
    Stage.STARTING: State.PREPARING,
    Stage.RESTORING: State.PREPARING,
    Stage.RESTORED: State.READY,
    Stage.RUNNING: State.RUNNING,
    Stage.FROZEN: State.FROZEN,
    Stage.STORED: State.STORED,
    Stage.PARKED: State.PREPARING,
    Stage.EXITED: State.EXITED,
    Stage.FAILED: State.FAILED,
    Stage.GONE: State.ABSENT,
}

ALIVE = frozenset({Stage.RUNNING, Stage.FROZEN, Stage.STORED, Stage.RESTORED})


def choose(
    desired: Desired | None,
    stage: Stage,
    *,
    checkpoint: int = 0,
    tried: int = 0,
    collected: bool = False,
    contact: Contact = Contact.GOOD,
    limited: bool = True,
    profiled: bool = True,
) -> Act:
    """Pick the next act; ``None`` desired means that the portal does not name the replica.

    ``checkpoint`` is the number of the last one stored here, ``tried`` the number of the last one
    tried: one that failed is not tried again under the same number. ``limited`` says that it is
    held to the CPUs it should have, ``profiled`` that there is nothing to measure. Without good
    ``contact`` nothing is begun or ended.
    """
    if contact in (Contact.LAPSED, Contact.CLOSING) and stage is Stage.RUNNING:
        return Act.FREEZE
    if contact is Contact.CLOSING:
        return Act.PARK if stage in ALIVE else Act.REST
    if contact is not Contact.GOOD:
        return _finish(stage, collected=collected)
    if desired is None or desired.want is Want.ABSENT:
        return Act.FORGET if stage is Stage.GONE else Act.END
    match stage:
        case Stage.NEW | Stage.RESTORING:
            return Act.RESTORE if desired.image is not None else Act.PREPARE
        case Stage.PARKED:
            return Act.RESTORE
        case Stage.PREPARED | Stage.STARTING:
            held = desired.hold and desired.want is Want.RUNNING
            return Act.REST if held else Act.START
        case Stage.RESTORED:
            if desired.want is not Want.RUNNING:
                return Act.FREEZE
            return Act.REST if desired.hold else Act.THAW
        case Stage.RUNNING:
            act = _from_running(desired, checkpoint, tried)
            if act is not Act.REST or desired.want is not Want.RUNNING or (limited and profiled):
                return act
            return Act.PROFILE if limited else Act.LIMIT
        case Stage.FROZEN | Stage.STORED:
            return _from_frozen(desired, checkpoint, tried)
    return _finish(stage, collected=collected)


def _finish(stage: Stage, *, collected: bool) -> Act:
    return Act.COLLECT if stage is Stage.EXITED and not collected else Act.REST


def _from_running(desired: Desired, checkpoint: int, tried: int) -> Act:
    if desired.want is Want.RUNNING:
        return Act.REST
    done = max(checkpoint, tried) >= desired.checkpoint
    if desired.want is Want.STORED and desired.run_on and done:
        return Act.REST
    return Act.FREEZE


def _from_frozen(desired: Desired, checkpoint: int, tried: int) -> Act:
    if desired.want is Want.RUNNING:
        return Act.THAW
    if desired.want is Want.FROZEN and desired.run_on:
        return Act.REST
    # One that is to leave is stored ahead: what it holds does not change any more, whether or not
    # the others stand still yet. The cut counts only once they all do.
    return Act.REST if max(checkpoint, tried) >= desired.checkpoint else Act.STORE


def recovered(stage: Stage, found: str) -> Stage:
    """What a replica is after the agent was restarted: its journalled stage against what is
    ``found``.

    ``found`` is the driver's word: running, frozen, exited or gone.
    """
    if stage in (Stage.EXITED, Stage.FAILED, Stage.GONE, Stage.PARKED):
        return stage
    match found:
        case "running":
            return Stage.RUNNING
        case "exited":
            return Stage.EXITED
        case "frozen":
            if stage in (Stage.RUNNING, Stage.STARTING):
                return Stage.FROZEN
            return stage
    return Stage.FAILED if stage in ALIVE else Stage.NEW
