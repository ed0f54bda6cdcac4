"""What if: the same plan on a changed snapshot.

Nothing here plans in a way of its own. Whoever asks again and again hands in the same ``memory``,
and snapshots of one fleet whose jobs are a roster: then a question costs what changed since the
last one, and its answer is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from scheduler.planner.decisions import Decision, Hold, Migrate, Place, Preempt, Resize, Why
from scheduler.planner.draft import Draft
from scheduler.planner.memory import Memory
from scheduler.planner.migration import move_as_asked
from scheduler.planner.outlook import Outlook
from scheduler.planner.passes import plan
from scheduler.planner.policy import Policy
from scheduler.planner.reasons import Reason
from scheduler.planner.roster import Roster
from scheduler.planner.snapshot import Job, JobId, NodeId, Phase, Quota, Snapshot, TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """When a job is expected to start, on the snapshot's clock; ``None``: not soon enough."""

    earliest: float | None
    """If all that runs needs half of its remaining time."""
    likely: float | None
    latest: float | None
    """If all that runs needs twice its remaining time."""
    why: Why | None = None
    """What keeps it waiting now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a change would do at once, beside the plan without it."""

    starts: tuple[JobId, ...] = ()
    """Who would start, and does not without the change."""
    waits: tuple[JobId, ...] = ()
    """Who would go on waiting, and starts without the change."""
    pushed_off: tuple[JobId, ...] = ()
    moved: tuple[JobId, ...] = ()
    resized: tuple[JobId, ...] = ()
    answers: Mapping[JobId, Decision] = field(default_factory=dict)
    """Every answer after the change."""


def effect(
    snapshot: Snapshot, changed: Snapshot, policy: Policy, memory: Memory | None = None
) -> Effect:
    """Compare what is planned for a snapshot and for the changed one."""
    before = {decision.job: decision for decision in plan(snapshot, policy, memory)}
    # What a new ground makes of a memory would have to be made again at the next question.
    same = changed.tenants is snapshot.tenants and len(changed.nodes) == len(snapshot.nodes)
    try:
        decided = plan(changed, policy, memory if same else None)
    finally:
        if isinstance(snapshot.jobs, Roster):
            snapshot.jobs.own()
    answers = {decision.job: decision for decision in decided}

    def only(kind: type[Decision] | tuple[type[Decision], ...]) -> tuple[JobId, ...]:
        return tuple(
            id_
            for id_, decision in answers.items()
            if isinstance(decision, kind) and not isinstance(before.get(id_), kind)
        )

    return Effect(
        starts=only(Place),
        waits=only(Hold),
        pushed_off=only(Preempt),
        moved=only(Migrate),
        resized=only(Resize),
        answers=answers,
    )


def with_quota(snapshot: Snapshot, tenant: TenantId, kind: str, quota: Quota) -> Snapshot:
    """The snapshot with another quota. Raises KeyError for an unknown tenant."""
    if all(one.id != tenant for one in snapshot.tenants):
        raise KeyError(tenant)
    tenants = tuple(
        replace(one, quotas={**one.quotas, kind: quota}) if one.id == tenant else one
        for one in snapshot.tenants
    )
    return replace(snapshot, tenants=tenants)


def with_drain(snapshot: Snapshot, nodes: Iterable[NodeId]) -> Snapshot:
    """The snapshot with these nodes draining."""
    drained = frozenset(nodes)
    return replace(
        snapshot,
        nodes=tuple(
            replace(node, draining=True) if node.id in drained else node for node in snapshot.nodes
        ),
    )


def with_nodes(snapshot: Snapshot, like: NodeId, count: int) -> Snapshot:
    """The snapshot with so many more nodes like one of its own. Raises KeyError if unknown."""
    model = next((node for node in snapshot.nodes if node.id == like), None)
    if model is None:
        raise KeyError(like)
    fresh = tuple(
        replace(
            model, id=NodeId(f"{like}+{index + 1}"), cordoned=False, draining=False, lost=False,
            devices=tuple(replace(device, sick=False) for device in model.devices),
        )
        for index in range(count)
    )  # fmt: skip
    return replace(snapshot, nodes=snapshot.nodes + fresh)


def with_job(snapshot: Snapshot, job: Job) -> Snapshot:
    """The snapshot with one more job that waits."""
    waits = replace(job, phase=Phase.WAITING)
    if isinstance(snapshot.jobs, Roster):
        return replace(snapshot, jobs=snapshot.jobs.changed([waits]))
    return replace(snapshot, jobs=(*snapshot.jobs, waits))


def expected_start(
    snapshot: Snapshot,
    policy: Policy,
    job: JobId,
    memory: Memory | None = None,
    outlook: Outlook | None = None,
) -> Start:
    """When a waiting job is expected to start, with a band. Raises KeyError if it does not wait.

    ``outlook`` is what was worked out of this fleet's future already, if anything.
    """
    if all(one.id != job or one.phase is not Phase.WAITING for one in snapshot.jobs):
        raise KeyError(job)
    answer = next(one for one in plan(snapshot, policy, memory) if one.job == job)
    return start_of(snapshot, policy, answer, outlook)


def start_of(
    snapshot: Snapshot, policy: Policy, answer: Decision, outlook: Outlook | None = None
) -> Start:
    """When a job starts that was answered so."""
    if isinstance(answer, Place):
        return Start(earliest=snapshot.now, likely=snapshot.now, latest=snapshot.now)
    if answer.why.reason.structural:
        return Start(earliest=None, likely=None, latest=None, why=answer.why)
    outlook = outlook or Outlook(snapshot, policy)
    return Start(**outlook.band(answer.job), why=answer.why)


def why_not_moved(snapshot: Snapshot, policy: Policy, job: JobId) -> Why | None:
    """Why a move that a person asked for cannot be made now; ``None`` if it can.

    Raises KeyError if the job does not run.
    """
    memory = Memory()
    memory.take_in(snapshot, policy)
    held = memory.ledger.held[job]
    draft = Draft(snapshot, policy, memory)
    if held.job.phase is Phase.RUNNING and move_as_asked(draft, held):
        return None
    numbers = {"wanted": held.count}
    reason = Reason.NO_OTHER_PLACE if held.leavable else Reason.CANNOT_MOVE
    return Why(reason=reason, numbers=numbers)
