"""What if: the same plan on a changed snapshot, and the fleet rolled forward on paper.

Nothing here plans in a way of its own. A forecast lets jobs end when they are expected to, plans
again, and notes who starts when; nobody new arrives. Where no expected time is known, a job is
taken to need as long as is usual among those that say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median

from scheduler.planner.decisions import Decision, Hold, Migrate, Place, Plan, Preempt, Resize, Why
from scheduler.planner.draft import Draft
from scheduler.planner.memory import Memory
from scheduler.planner.migration import move_as_asked
from scheduler.planner.needs import held_devices
from scheduler.planner.paper import after
from scheduler.planner.passes import plan
from scheduler.planner.policy import DAY, Policy
from scheduler.planner.promises import worked
from scheduler.planner.reasons import Reason
from scheduler.planner.roster import Roster
from scheduler.planner.snapshot import Job, JobId, NodeId, Phase, Quota, Snapshot, TenantId

STEPS = 400
"""Moments that a forecast looks at, at most; ends that lie closer together count as one."""


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


def effect(snapshot: Snapshot, changed: Snapshot, policy: Policy) -> Effect:
    """Compare what is planned for a snapshot and for the changed one."""
    before = {decision.job: decision for decision in plan(snapshot, policy)}
    answers = {decision.job: decision for decision in plan(changed, policy)}

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
    return replace(snapshot, jobs=(*snapshot.jobs, replace(job, phase=Phase.WAITING)))


def expected_start(
    snapshot: Snapshot, policy: Policy, job: JobId, horizon_s: float = 7 * DAY
) -> Start:
    """When a waiting job is expected to start, with a band. Raises KeyError if it does not wait."""
    if all(one.id != job or one.phase is not Phase.WAITING for one in snapshot.jobs):
        raise KeyError(job)
    answer = next(one for one in plan(snapshot, policy) if one.job == job)
    if isinstance(answer, Place):
        return Start(earliest=snapshot.now, likely=snapshot.now, latest=snapshot.now)
    if answer.why.reason.structural:
        return Start(earliest=None, likely=None, latest=None, why=answer.why)
    bounds = [
        forecast(snapshot, policy, {job}, horizon_s=horizon_s, stretch=stretch).get(job)
        for stretch in (0.5, 1.0, 2.0)
    ]
    known = sorted(moment for moment in bounds if moment is not None)
    padded: list[float | None] = [*known, None, None, None]
    return Start(earliest=padded[0], likely=padded[1], latest=padded[2], why=answer.why)


def forecast(
    snapshot: Snapshot,
    policy: Policy,
    wanted: Iterable[JobId] | None = None,
    *,
    horizon_s: float = 7 * DAY,
    stretch: float = 1.0,
) -> dict[JobId, float]:
    """When waiting jobs start, if all that runs ends as expected (times ``stretch``).

    Stops when all of ``wanted`` (``None``: all that wait) have started, or at the horizon.
    """
    missing = {job.id for job in snapshot.jobs if job.phase is Phase.WAITING}
    if wanted is not None:
        missing &= set(wanted)
    course = _Course(snapshot, replace(policy, explain=False), stretch, horizon_s / STEPS)
    starts: dict[JobId, float] = {}
    for _ in range(STEPS):
        for decision in course.turn():
            if isinstance(decision, Place) and decision.job in missing:
                starts.setdefault(decision.job, course.now)
        missing -= starts.keys()
        if not missing or not course.advance() or course.now > snapshot.now + horizon_s:
            break
    return starts


class _Course:
    """A fleet that does what is planned, on paper, with a clock of its own."""

    def __init__(self, snapshot: Snapshot, policy: Policy, stretch: float, grain: float) -> None:
        self.policy = policy
        self.memory = Memory()
        self.roster = Roster(
            replace(job, phase=Phase.RUNNING) if job.phase is Phase.MOVING else job
            for job in snapshot.jobs
        )
        self.snapshot = replace(snapshot, jobs=self.roster)
        self.stretch = stretch
        self.grain = grain
        known = [job.expected_s for job in snapshot.jobs if job.expected_s is not None]
        self.usual = median(known) if known else policy.gain_horizon_s
        self.ends = {job.id: self._end(job) for job in self.roster if job.phase is Phase.RUNNING}

    @property
    def now(self) -> float:
        return self.snapshot.now

    def turn(self) -> Plan:
        """One cycle, whose plan comes true at once."""
        decided = plan(self.snapshot, self.policy, self.memory)
        came = []
        for decision in decided:
            job = self.roster.get(decision.job)
            assert job is not None
            job = after(job, decision, self.now)
            came.append(job)
            if job.phase is Phase.RUNNING:
                self.ends[job.id] = self._end(job)
            else:
                self.ends.pop(job.id, None)
        self.roster = self.roster.changed(came)
        self.snapshot = replace(self.snapshot, jobs=self.roster)
        return decided

    def advance(self) -> bool:
        """Go on to when the next job ends; false if none does."""
        if not self.ends:
            return False
        now = min(self.ends.values())
        if len(self.ends) > STEPS:
            now = max(end for end in self.ends.values() if end <= now + self.grain)
        over = [id_ for id_, end in self.ends.items() if end <= now]
        for id_ in over:
            del self.ends[id_]
        self.roster = self.roster.changed((), over)
        self.snapshot = replace(self.snapshot, jobs=self.roster, now=now, moved_at=())
        return True

    def _end(self, job: Job) -> float:
        """When a job ends; one that has run longer than it should needs half as long again."""
        done = worked(job, self.now)
        whole = self.usual if job.expected_s is None else job.expected_s
        left = (whole - done if whole > done else done / 2) * self.stretch
        return self.now + left * job.devices / max(1, held_devices(job))


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
