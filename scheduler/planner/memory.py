"""What a planner remembers from cycle to cycle: only how not to work anything out twice.

The plan never depends on it. What is kept is a function of the last snapshot; a new snapshot is
compared with that one by identity, and only what differs is taken in.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from scheduler.planner.changes import same_hold, same_times
from scheduler.planner.costs import Roads
from scheduler.planner.crossings import Crossings
from scheduler.planner.decisions import Why
from scheduler.planner.ends import Ends
from scheduler.planner.fairness import Accounts
from scheduler.planner.fleet import Fleet, Pool
from scheduler.planner.layers import Layer
from scheduler.planner.ledger import NEVER, Held, Ledger
from scheduler.planner.needs import Need, Size, sizes
from scheduler.planner.ordering import NO_TIER, Queue
from scheduler.planner.policy import HOUR, Policy
from scheduler.planner.quiet import can_leave, quiet_until
from scheduler.planner.roster import Roster
from scheduler.planner.snapshot import (
    Job,
    JobId,
    Link,
    Node,
    Phase,
    Seat,
    Snapshot,
    Tenant,
    Tier,
    TierId,
)


class Memory:
    """One planner's memory of one fleet. Not for several threads at a time."""

    def __init__(self) -> None:
        self.policy: Policy | None = None
        self.now = 0.0
        self.nodes: tuple[Node, ...] = ()
        self.tenants: tuple[Tenant, ...] = ()
        self.tiers: tuple[Tier, ...] = ()
        self.roster: Roster | None = None
        self.jobs: dict[int, Job] = {}
        self.fleet: Fleet
        self.accounts: Accounts
        self.ledger: Ledger
        self.queue: Queue
        self.tier_by_id: dict[TierId, Tier] = {}
        self.links: tuple[Link, ...] = ()
        self.roads: Roads
        self.wishes: set[JobId] = set()
        """Running jobs of which a person asked something."""
        self.elastic: dict[JobId, int] = {}
        """Running jobs that may change size, and how many devices beyond their bound they hold."""
        self.spare: dict[str, int] = {}
        """The sum of these by device kind."""
        self.running = 0
        """Devices of all that runs, for the counted pool."""
        self.pushable: dict[TierId, Layer] = {}
        """Running jobs whose protected time is over, by tier."""
        self.movable: dict[TierId, Layer] = {}
        """Running jobs that may be moved, by tier."""
        self.ends = Ends()
        self.crossings = Crossings()
        self.loosened = 0
        """Counts what may have made room: as long as it stands, who was blocked stays blocked."""
        self.epoch = 0
        """Counts all that may change whom a search finds: as long as it stands, nobody new is."""
        self.acted = False
        """Whether the last plan changed anything, or tried what may work at another time."""
        self.recent = 0
        """Background moves of the last hour."""
        self.full_at: tuple[int, frozenset[str]] | None = None
        """The epoch in which no elastic job could grow, and the kinds that others waited for."""
        self.tidy_at = -1
        """The epoch in which there was nothing to tidy up."""
        self.ground = 0
        """Counts what may change whether a job can ever run: nodes, quotas."""
        self.hopeless: dict[tuple[Need, Size], Why | None] = {}
        """Why there is no place at all for such a job, while the ground stands."""
        self.suiting: dict[Need, tuple[tuple[str, ...], dict[Pool, int] | None]] = {}
        """Which kinds and bins suit a job, while the ground stands."""
        self.ripening: list[tuple[float, JobId]] = []
        """When protected jobs may be touched again."""
        self.expected: dict[JobId, tuple[Seat, ...]] = {}
        """Seats given by the last plan. Where they were not taken, room is left."""

    def take_in(self, snapshot: Snapshot, policy: Policy) -> None:
        """Become what ``snapshot`` says."""
        same = self._same_ground(snapshot, policy)
        if not same:
            self._begin(snapshot, policy)
        else:
            self._follow(snapshot)
        if snapshot.links is not self.links or not same:
            self.links, self.roads = snapshot.links, Roads(snapshot.links, self.fleet.hosts)
            self.epoch += 1
        self.now = snapshot.now
        self._pass_time(snapshot)
        for id_, seats in self.expected.items():
            held = self.ledger.held.get(id_)
            if held is None or held.job.seats != seats:
                self._loosen()
                break
        self.expected = {}
        self.ledger.settle()

    def _pass_time(self, snapshot: Snapshot) -> None:
        """See what time alone has changed."""
        now = snapshot.now
        while self.ripening and self.ripening[0][0] <= now:
            self._ripen(*heappop(self.ripening))
        recent = sum([at > now - HOUR for at in snapshot.moved_at])
        if self.acted or recent != self.recent or self.crossings.passed(now):
            self.epoch += 1
        self.acted, self.recent = False, recent

    def _loosen(self) -> None:
        """There may be room where there was none."""
        self.loosened += 1
        self.epoch += 1

    def forget(self) -> None:
        """Begin anew with the next snapshot: a cycle broke off in the middle."""
        self.policy = None

    def _same_ground(self, snapshot: Snapshot, policy: Policy) -> bool:
        """Whether the last state can be carried on: same policy, same places, time went on."""
        if self.policy is not policy and self.policy != policy:
            return False
        if snapshot.now < self.now or not self._same_tenants(snapshot.tenants):
            return False
        if snapshot.tiers is not self.tiers and snapshot.tiers != self.tiers:
            return False
        if snapshot.nodes is self.nodes:
            return True
        if len(snapshot.nodes) != len(self.nodes) or self.policy.pool:
            return snapshot.nodes == self.nodes
        known, hosts = set(map(id, self.nodes)), self.fleet.hosts
        fresh = [
            node
            for node in snapshot.nodes
            if id(node) not in known and (node.id not in hosts or hosts[node.id].node != node)
        ]
        if not self.fleet.renew(fresh):
            return False
        self.nodes = snapshot.nodes
        if fresh:
            self._loosen()
            self._new_ground()
            for node in fresh:
                for bin_ in self.fleet.hosts[node.id].bins:
                    for id_ in bin_.jobs:
                        held = self.ledger.held[id_]
                        self._unlayer(held)
                        self._unlist(held)
                        self._note(held)
                        self._layer(held)
        return True

    def _new_ground(self) -> None:
        self.ground += 1
        self.hopeless.clear()
        self.suiting.clear()

    def _same_tenants(self, tenants: tuple[Tenant, ...]) -> bool:
        """Take in new usage and quotas; false if the tree changed."""
        if tenants is self.tenants or tenants == self.tenants:
            return True
        old = {tenant.id: tenant for tenant in self.tenants}
        if len(tenants) != len(old):
            return False
        for tenant in tenants:
            before = old.get(tenant.id)
            if before is None or before.parent != tenant.parent or before.quotas != tenant.quotas:
                return False
        for tenant in tenants:
            self.accounts.by_id[tenant.id].renew(tenant)
        self.tenants = tenants
        return True

    def _begin(self, snapshot: Snapshot, policy: Policy) -> None:
        """Build everything from nothing."""
        self.policy = policy
        self.nodes, self.tenants, self.tiers = snapshot.nodes, snapshot.tenants, snapshot.tiers
        self.fleet = Fleet(snapshot.nodes)
        self.accounts = Accounts(snapshot.tenants)
        self.ledger = Ledger(self.fleet, self.accounts)
        self.queue = Queue(policy, silent=not policy.quotas or self.accounts.silent)
        self.tier_by_id = {tier.id: tier for tier in snapshot.tiers}
        self.wishes, self.elastic, self.spare, self.running = set(), {}, {}, 0
        self.ripening, self.expected = [], {}
        self.pushable, self.movable = {}, {}
        self.ends, self.crossings = Ends(), Crossings()
        self.now = snapshot.now
        self._loosen()
        self._new_ground()
        waiting: list[Job] = []
        for job in snapshot.jobs:
            if job.phase is Phase.WAITING:
                waiting.append(job)
            else:
                self._hold(job)
        get, tiers = self.accounts.by_id.get, self.tier_by_id
        self.queue.fill((job, get(job.tenant), tiers.get(job.tier, NO_TIER)) for job in waiting)
        self._remember(snapshot)

    def _remember(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot.jobs, Roster):
            self.roster, self.jobs = snapshot.jobs, {}
        else:
            self.roster, self.jobs = None, dict(zip(map(id, snapshot.jobs), snapshot.jobs))  # noqa: B905

    def _follow(self, snapshot: Snapshot) -> None:
        """Take in only the jobs that changed."""
        jobs = snapshot.jobs
        self.now = snapshot.now
        if isinstance(jobs, Roster) and self.roster is not None:
            changes = jobs.since(self.roster)
            if changes is not None:
                self.roster = jobs
                self._change(changes.items())
                return
        before = {job.id: job for job in (self.roster or self.jobs.values())}
        known = set(map(id, before.values()))
        changed: dict[JobId, Job | None] = {}
        after = set()
        for job in jobs:
            if id(job) not in known:
                changed[job.id] = job
            after.add(id(job))
        for id_, job in before.items():
            if id(job) not in after:
                changed.setdefault(id_, None)
        self._remember(snapshot)
        self._change(changed.items())

    def _change(self, changes: Iterable[tuple[JobId, Job | None]]) -> None:
        ledger, queue = self.ledger, self.queue
        arriving: list[Job] = []
        for id_, job in changes:
            held = ledger.held.get(id_)
            if held is not None:
                if job is not None and self._goes_on(held, job):
                    continue
                self._release(id_)
            elif id_ in queue.places:
                queue.remove(id_)
            if job is not None:
                arriving.append(job)
        for job in arriving:
            if job.phase is Phase.WAITING:
                account = self.accounts.by_id.get(job.tenant)
                queue.add(job, account, self.tier_by_id.get(job.tier, NO_TIER))
            else:
                self._hold(job)

    def _goes_on(self, held: Held, job: Job) -> bool:
        """Take in what is new about a job that holds what it held; false if it does not."""
        old = held.job
        if not same_hold(old, job):
            return False
        arrives = old.phase is Phase.MOVING and job.phase is Phase.RUNNING
        if not arrives and not same_times(old, job):
            return False
        self._unlist(held)
        held.job = job
        self._note(held)
        if arrives:
            self._show(held)
        else:
            self.epoch += 1
        return True

    def _release(self, id_: JobId) -> None:
        held = self.ledger.take(id_)
        self._unlayer(held)
        self.ends.forget(held)
        self.crossings.forget(id_)
        self.running -= held.count
        self._unlist(held)
        self._loosen()

    def _hold(self, job: Job) -> None:
        policy = self.policy
        assert policy is not None
        if policy.pool:
            held = Held(job, [], self.accounts.get(job.tenant), job.device_kind, job.devices)
        else:
            held = self.ledger.observed(job)
        if [part for part in held.parts if part.mask & ~part.bin.free]:
            # Of a device with two holders less is set aside, and nothing more is taken.
            self._loosen()
        self.ledger.put(held)
        self.epoch += 1
        self.running += held.count
        self._note(held)
        self._show(held)

    def _show(self, held: Held) -> None:
        """Let those find a job who could ask it to go, now or when its protected time is over."""
        policy = self.policy
        assert policy is not None
        remedies = policy.preemption or policy.migration or policy.elasticity
        if not (remedies or policy.defragmentation):
            return
        self._layer(held)
        for moment in (held.protected, held.cooling):
            if moment <= self.now:
                self.epoch += 1
            elif moment < NEVER:
                heappush(self.ripening, (moment, held.job.id))

    def _ripen(self, moment: float, id_: JobId) -> None:
        """A protected or cooling time has ended, unless the job has left or moved since."""
        held = self.ledger.held.get(id_)
        if held is not None and moment in (held.protected, held.cooling):
            self.epoch += 1
            self._layer(held)

    def _layer(self, held: Held) -> None:
        """Put a job where those look who could ask it to go."""
        policy, tier = self.policy, held.job.tier
        assert policy is not None
        if policy.preemption and held.protected <= self.now:
            layer = self.pushable.get(tier)
            if layer is None:
                layer = self.pushable[tier] = Layer()
            layer.add(held)
        if policy.migration and held.leavable and held.cooling <= self.now:
            layer = self.movable.get(tier)
            if layer is None:
                layer = self.movable[tier] = Layer()
            layer.add(held)

    def _unlayer(self, held: Held) -> None:
        for layers in (self.pushable, self.movable):
            layer = layers.get(held.job.tier)
            if layer is not None:
                layer.remove(held)

    def _note(self, held: Held) -> None:
        """Keep the lists of jobs that every cycle looks at, and how free each of them is."""
        job, policy = held.job, self.policy
        assert policy is not None
        if job.phase is not Phase.RUNNING:
            return
        held.protected, held.cooling = quiet_until(job, policy)
        held.leavable = can_leave(held)
        self.ends.note(held)
        promise = self.tier_by_id.get(job.tier, NO_TIER).promise
        if promise > 0 and policy.tiers:
            self.crossings.note(job, promise + policy.promise_margin, self.now)
        if job.move_asked or job.asked_devices is not None:
            self.wishes.add(job.id)
        if job.fewest_devices is not None:
            spare = max(0, held.count - sizes(job)[-1].devices)
            self.elastic[job.id] = spare
            self.spare[held.kind] = self.spare.get(held.kind, 0) + spare

    def _unlist(self, held: Held) -> None:
        """Take a job off the lists of those that every cycle looks at."""
        self.wishes.discard(held.job.id)
        spare = self.elastic.pop(held.job.id, 0)
        if spare:
            self.spare[held.kind] -= spare
