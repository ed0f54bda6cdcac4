"""What must never happen: `check` holds a plan against the snapshot it was made for.

It answers sentences, one for each rule that is broken; an empty list is a sound plan. The rules are
numbered as in the house style; those about several plans (settling, row order) are for the tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from scheduler.planner.decisions import Decision, Hold, Migrate, Place, Plan, Preempt, Resize
from scheduler.planner.draft import Draft
from scheduler.planner.fleet import Host
from scheduler.planner.ledger import Held
from scheduler.planner.memory import Memory
from scheduler.planner.needs import Need, Size, natural, need_of, sizes
from scheduler.planner.placement import find
from scheduler.planner.policy import HOUR, Policy
from scheduler.planner.quiet import quiet_until
from scheduler.planner.reasons import Reason
from scheduler.planner.snapshot import DeviceId, Job, JobId, NodeId, Phase, Remedy, Seat, Snapshot

FORCED = {Reason.DRAINED, Reason.SICK_DEVICE, Reason.NODE_LOST, Reason.ASKED}
"""Reasons that protected and cooling times do not hold up."""


def check(snapshot: Snapshot, plan: Plan, policy: Policy) -> list[str]:
    """Every broken rule in a sentence."""
    if policy.pool:
        return list(_answers(snapshot, plan, policy))
    audit = Audit(snapshot, plan, policy)
    return [
        *_answers(snapshot, plan, policy),
        *audit.shapes(),
        *audit.landings(),
        *audit.devices(),
        *audit.victims(),
        *audit.limits(),
        *audit.rests(),
    ]


def _answers(snapshot: Snapshot, plan: Plan, policy: Policy) -> Iterator[str]:
    """(2) one answer a job: exactly one for who waits, at most one for who runs."""
    answers = Counter(decision.job for decision in plan)
    phases = {job.id: job.phase for job in snapshot.jobs}
    for id_, count in answers.items():
        if count > 1:
            yield f"(2) job {id_} is answered {count} times"
        if id_ not in phases or phases[id_] is Phase.MOVING:
            yield f"(2) job {id_} is unknown or moving, yet it is answered"
    for decision in plan:
        waits = phases.get(decision.job) is Phase.WAITING
        if waits is not isinstance(decision, Place | Hold):
            yield f"(2) {type(decision).__name__} does not suit job {decision.job}"
    for id_, phase in phases.items():
        if phase is Phase.WAITING and id_ not in answers and policy.explain:
            yield f"(2) job {id_} waits without an answer"


class Audit:
    """The plan beside what it leads to."""

    def __init__(self, snapshot: Snapshot, plan: Plan, policy: Policy) -> None:
        self.snapshot = snapshot
        self.plan = plan
        self.policy = policy
        self.jobs = {job.id: job for job in snapshot.jobs}
        self.memory = Memory()
        self.memory.take_in(snapshot, policy)
        self.ledger = self.memory.ledger
        self.draft = Draft(snapshot, policy, self.memory)
        self.before = dict(self.ledger.held)
        self.seated: list[tuple[Decision, tuple[Seat, ...], Job]] = [
            (decision, decision.seats, self.jobs[decision.job])
            for decision in plan
            if isinstance(decision, Place | Migrate | Resize)
        ]
        self.used_before = self._used()
        for decision in plan:
            if not isinstance(decision, Hold | Place):
                self.ledger.take(decision.job)
        for _, seats, job in self.seated:
            self.ledger.put(self.ledger.observed_as(job, seats))

    def _used(self) -> dict[tuple[str, str], int]:
        return {
            (id_, kind): used
            for id_, account in self.draft.accounts.by_id.items()
            for kind, used in account.used.items()
        }

    def devices(self) -> Iterator[str]:
        """(1) no device promised twice; CPUs and memory neither."""
        owners: dict[tuple[NodeId, DeviceId], list[JobId]] = {}
        for held in self.ledger.held.values():
            seats = next((s for d, s, job in self.seated if job is held.job), held.job.seats)
            for place in {(seat.node, device) for seat in seats for device in seat.devices}:
                owners.setdefault(place, []).append(held.job.id)
        decided = {job.id for _, _, job in self.seated}
        for place, ids in owners.items():
            if len(ids) > 1 and decided & set(ids):
                yield f"(1) device {place[1]} of node {place[0]} is promised to {sorted(ids)}"
        for _, seats, job in self.seated:
            for node in {seat.node for seat in seats}:
                host = self.draft.fleet.hosts.get(node)
                if host and ((job.cpus_per_replica and host.milli < 0) or host.memory < 0):
                    yield f"(1) node {node} has not the CPUs or the memory for job {job.id}"

    def shapes(self) -> Iterator[str]:
        """(3) all or nothing, (7) within its own bounds."""
        for _, seats, job in self.seated:
            if sorted(seat.rank for seat in seats) != list(range(job.replicas)):
                yield f"(3) job {job.id} has not one seat per replica"
            groups = Counter((seat.node, seat.devices) for seat in seats)
            count = len({(node, device) for node, devices in groups for device in devices})
            legal = {size.devices: size for size in sizes(job)}
            kept = job.phase is Phase.WAITING and job.kept_on and job.remedy is Remedy.PAUSE
            if count not in legal and not kept:
                yield f"(7) job {job.id} gets {count} devices, not one of {sorted(legal)}"
            elif not kept and set(groups.values()) != {legal[count].share}:
                yield f"(7) replicas of job {job.id} are spread unevenly"
            elif not kept and sum(len(devices) for _, devices in groups) != count:
                yield f"(7) replicas of job {job.id} share devices in part"

    def landings(self) -> Iterator[str]:
        """(6), (8) only on healthy devices that suit, of usable nodes that may take it."""
        for decision, seats, job in self.seated:
            need = need_of(job)
            nodes = {seat.node for seat in seats}
            kinds = set()
            staying = (
                isinstance(decision, Resize) and nodes <= {seat.node for seat in job.seats}
            ) or (bool(job.kept_on) and job.remedy is Remedy.PAUSE)
            for seat in seats:
                host = self.draft.fleet.hosts.get(seat.node)
                if host is None:
                    yield f"(8) job {job.id} lands on an unknown node {seat.node}"
                    continue
                kinds |= {device.kind for device in host.node.devices if device.id in seat.devices}
                yield from self._lands(job, seat, host, need, staying=staying)
                if len(nodes) > 1 and not staying and not host.node.can_run_together:
                    yield f"(6) node {seat.node} cannot hold a part of job {job.id}"
            if len(kinds) > 1 or (job.device_kind and kinds != {job.device_kind}):
                yield f"(6) job {job.id} gets devices of kinds {sorted(kinds)}"
            wished = isinstance(decision, Migrate) and decision.why.reason is Reason.ASKED
            if wished and job.wanted_nodes and not nodes <= job.wanted_nodes:
                yield f"(6) job {job.id} moves elsewhere than a person asked"

    def _lands(
        self, job: Job, seat: Seat, host: Host, need: Need, *, staying: bool
    ) -> Iterator[str]:
        node = host.node
        if not host.usable and not (staying and job.phase is Phase.RUNNING):
            yield f"(8) job {job.id} lands on node {node.id}, which takes nobody"
        if any(host.where(device) is None for device in seat.devices):
            yield f"(8) job {job.id} lands on a sick or unknown device of {node.id}"
        if need.partition and need.partition not in node.partitions and not staying:
            yield f"(6) node {node.id} is not in partition {need.partition} of job {job.id}"
        if need.restore and not node.can_restore and not staying:
            yield f"(6) node {node.id} cannot restore job {job.id}"
        if node.id in job.avoid_nodes and not staying:
            yield f"(6) job {job.id} avoids node {node.id}"
        memory = {device.id: device.memory for device in node.devices}
        if any(memory.get(device, 0) < job.device_memory for device in seat.devices):
            yield f"(6) devices of {node.id} are too small for job {job.id}"

    def victims(self) -> Iterator[str]:
        """(4) preemptible, outranked, for someone who is placed; (5) not in vain."""
        placed = {decision.job: decision for decision in self.plan if isinstance(decision, Place)}
        for decision in self.plan:
            if not isinstance(decision, Preempt) or decision.why.reason in FORCED:
                continue
            job, place = self.jobs[decision.job], placed.get(decision.beneficiary or JobId(""))
            if place is None:
                yield f"(4) job {job.id} leaves for nobody"
                continue
            if job.id not in place.after:
                yield f"(4) job {place.job} does not wait for job {job.id} to leave"
            tier, other = self.draft.tier(job), self.draft.tier(self.jobs[place.job])
            if decision.why.reason is Reason.OUTRANKED and tier.rank >= other.rank:
                yield f"(4) job {job.id} leaves for {place.job}, which does not outrank it"
            if not tier.preemptible and decision.why.reason is not Reason.ORDER:
                yield f"(4) job {job.id} must not be pushed off"
            if self._in_vain(job, place):
                yield f"(5) job {job.id} leaves in vain: {place.job} fits without that"

    def _in_vain(self, job: Job, place: Place) -> bool:
        """Whether the beneficiary could be placed with this victim put back."""
        victim, mine = self.before[job.id], self.ledger.held[place.job]
        for part in victim.parts:
            for id_, mask in part.bin.jobs.items():
                if id_ != place.job and mask & part.mask:
                    return False
        beneficiary = self.jobs[place.job]
        with self.ledger.tentatively():
            self.ledger.take(place.job)
            self.ledger.put(victim)
            if self.policy.quotas and victim.account and victim.account.exceeds(victim.kind):
                return False
            size = self._size(beneficiary, mine)
            need = need_of(beneficiary)
            pools = self.draft.permitted(beneficiary, need, size.devices)
            return bool(pools) and find(pools, need, size) is not None

    def _size(self, job: Job, held: Held) -> Size:
        return next(size for size in sizes(job) if size.devices == held.count)

    def limits(self) -> Iterator[str]:
        """(9) no tenant is brought beyond its hard limit."""
        if not self.policy.quotas:
            return
        for id_, account in sorted(self.draft.accounts.by_id.items()):
            for kind, used in account.used.items():
                quota = account.quota(kind)
                if quota is None or quota.borrow is None:
                    continue
                limit = quota.reserved + quota.borrow
                if used > limit and used > self.used_before.get((id_, kind), 0):
                    yield f"(9) tenant {id_} gets {used} devices of {kind}, its limit is {limit}"

    def rests(self) -> Iterator[str]:
        """(12) nothing is pushed off in its protected time or moves twice in its cooling time."""
        moves = 0
        for decision in sorted(self.plan, key=lambda decision: natural(decision.job)):
            if isinstance(decision, Hold | Place) or decision.why.reason in FORCED:
                continue
            moves += isinstance(decision, Migrate) and decision.why.reason.background
            protected, cooling = quiet_until(self.jobs[decision.job], self.policy)
            until = protected if isinstance(decision, Preempt) else cooling
            if until > self.snapshot.now:
                yield f"(12) job {decision.job} is disturbed {until - self.snapshot.now} s early"
        recent = sum(moment > self.snapshot.now - HOUR for moment in self.snapshot.moved_at)
        if moves and moves + recent > self.policy.moves_per_hour:
            yield f"(12) {moves + recent} moves exceed the budget of {self.policy.moves_per_hour}"
