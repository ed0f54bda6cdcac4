"""Rows into the planner's snapshot, in a fixed number of queries whatever the fleet's size."""

from __future__ import annotations

import gc
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

from django.db import connection, transaction

from portal import changes
from portal.models import Partition, Tenant, Tier
from scheduler import planner
from scheduler.live import machines, reading
from scheduler.live.naming import job_id
from scheduler.live.telling import job_of, tenants_of, tier_of
from scheduler.planner.sensitivity import Matrix

PROMISE_WINDOW = timedelta(days=7)
HOUR = timedelta(hours=1)
MANY = 5000
"""With more jobs to read again than this, everything is read."""
AFRESH_S = 600.0
"""Everything is read again after so long, for changes that no trigger sees."""

NO_GAINS: Mapping[str, Matrix] = {}

Same = TypeVar("Same")


class Slugs(NamedTuple):
    """What tenants, tiers and partitions are called, by id."""

    tenants: Mapping[int, planner.TenantId]
    tiers: Mapping[int, planner.TierId]
    partitions: Mapping[int, str]

    def stand_in(self, now: Slugs) -> bool:
        """Whether all that had a name still have it."""
        return all(
            after.get(id) == name
            for before, after in zip(self, now, strict=True)
            for id, name in before.items()
        )


def observe(now: datetime) -> planner.Snapshot:
    """The fleet as its rows tell it at ``now``."""
    return Watch().observe(now)


@contextmanager
def one_moment() -> Iterator[bool]:
    """See all tables as they are at one moment, without keeping others from writing.

    False within a transaction of someone's: what is seen there may yet be undone.
    """
    with connection.cursor() as cursor:
        if connection.in_atomic_block:
            yield False
        elif connection.vendor == "postgresql":
            with transaction.atomic():
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield True
        else:
            # Django's own transactions are immediate: they would hold the only pen.
            cursor.execute("BEGIN DEFERRED")
            try:
                yield True
            finally:
                cursor.execute("ROLLBACK")


class Watch:
    """Looks at the fleet again and again, and reads only what changed since the last look.

    What is unchanged is handed out as the same objects, by which the planner knows. Each look is
    as a first look would be: whoever wrote meanwhile, and whichever process planned.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Read everything at the next look."""
        self._mark: changes.Mark | None = None
        self._now: datetime | None = None
        self._afresh_at = 0.0
        self._start = datetime.min.replace(tzinfo=UTC)
        self._roster = planner.Roster()
        self._names: dict[int, planner.NodeId] = {}
        self._nodes: dict[int, planner.Node] = {}
        self._all_nodes: tuple[planner.Node, ...] = ()
        self._by_name: dict[planner.NodeId, planner.Node] = {}
        self._kinds: frozenset[str] = frozenset()
        self._tiers: tuple[planner.Tier, ...] = ()
        self._slugs = Slugs({}, {}, {})
        self._gains: reading.Gains = {}
        self._links: tuple[planner.Link, ...] = ()
        self._beyond: dict[int, tuple[float, float]] = {}
        self._due: list[tuple[float, int]] = []
        """When jobs look different by time alone, and their ids."""

    def observe(self, now: datetime) -> planner.Snapshot:
        """The fleet as its rows tell it at ``now``."""
        collecting = gc.isenabled()
        gc.disable()  # a hundred thousand new objects, and no circles among them
        try:
            with self._lock, one_moment() as lasting:
                return self._look(now, lasting=lasting)
        except BaseException:
            self.forget()
            raise
        finally:
            if collecting:
                gc.enable()

    def _look(self, now: datetime, *, lasting: bool) -> planner.Snapshot:
        mark = changes.mark() if lasting else None
        changed = self._changed(mark, now)
        tenants = list(Tenant.objects.prefetch_related("quotas").order_by("id"))
        tiers = list(Tier.objects.all())
        partitions = dict(Partition.objects.order_by().values_list("id", "slug"))
        slugs = Slugs(
            {row.id: planner.TenantId(row.slug) for row in tenants},
            {row.id: planner.TierId(row.slug) for row in tiers},
            partitions,
        )
        if changed is None or not self._slugs.stand_in(slugs) or not self._same_nodes(changed):
            changed = None
        self._slugs = slugs
        window = _next_hour(now - PROMISE_WINDOW)
        if changed is None:
            self._read_all(now, window)
        else:
            self._read_changed(changed, now, window)
        if changed is None or "move" in changed:
            self._links = _kept(self._links, self._ways())
        self._mark, self._now = mark, now
        self._tiers = _kept(self._tiers, tuple(map(tier_of, tiers)))
        return planner.Snapshot(
            now=now.timestamp(),
            nodes=self._all_nodes,
            jobs=self._roster,
            tenants=tuple(tenants_of(tenants, now, self._kinds)),
            tiers=self._tiers,
            links=self._links,
            moved_at=tuple(reading.background_moves(now - HOUR)),
        )

    def _changed(self, mark: changes.Mark | None, now: datetime) -> dict[str, set[int]] | None:
        """What was written since the last look; ``None`` if that can't be told."""
        if self._mark is None or mark is None or self._now is None or now < self._now:
            return None
        if now.timestamp() >= self._afresh_at:
            return None
        changed = changes.since(self._mark, mark)
        if changed is None or sum(map(len, changed.values())) > MANY:
            return None
        return changed

    def _same_nodes(self, changed: Mapping[str, set[int]]) -> bool:
        """Take in new nodes; false if one got another name, by which seats are known."""
        keys = changed.get("node", ())
        for id, name in machines.names(keys).items() if keys else ():
            if self._names.setdefault(id, name) != name:
                return False
        return True

    def _read_all(self, now: datetime, window: datetime) -> None:
        self._names = machines.names()
        nodes = self._machines(None)
        self._nodes = {id: _kept(self._nodes.get(id), node) for id, node in nodes.items()}
        self._list_nodes()
        self._due = []
        self._gains = self._learned(None)
        self._start, self._beyond = window, self._past(window, None)
        known = self._roster
        jobs = [_kept(known.get(job.id), job) for _, job in self._jobs(None, now) if job]
        gone = {job.id for job in known}.difference([job.id for job in jobs])
        fresh = [job for job in jobs if known.get(job.id) is not job]
        self._roster = known.changed(fresh, gone) if known else planner.Roster(jobs)
        self._afresh_at = now.timestamp() + AFRESH_S

    def _read_changed(
        self, changed: Mapping[str, set[int]], now: datetime, window: datetime
    ) -> None:
        keys: set[int] = set()
        if nodes := changed.get("node"):
            self._read_nodes(nodes)
            keys |= self._concerned(nodes)
        if profiled := changed.get("profile"):
            recipes, alike = reading.alike(profiled)
            keys |= alike
            for recipe in recipes:
                self._gains.pop(recipe, None)
        keys |= set(changed.get("job", ())) | changed.get("move", set())
        if placements := changed.get("placement"):
            keys |= reading.placed_jobs(placements)
        while self._due and self._due[0][0] <= now.timestamp():
            keys.add(heappop(self._due)[1])
        if window != self._start:
            keys |= self._later(window)
        elif keys:
            found = self._past(window, keys)
            for id in keys:
                self._beyond.pop(id, None)
            self._beyond |= found
        if not keys:
            return
        known, fresh, gone = self._roster, [], []
        for id, job in self._jobs(keys, now):
            name = job_id(id)
            old = known.get(name)
            if job is None:
                gone += [name] * (old is not None)
            elif _kept(old, job) is job:
                fresh.append(job)
        if fresh or gone:
            self._roster = known.changed(fresh, gone)

    def _later(self, window: datetime) -> set[int]:
        """Let the window of promises move on; answers the jobs for which that makes a change."""
        before = self._beyond
        self._start, self._beyond = window, self._past(window, None)
        return {id for id, sums in self._beyond.items() if before.get(id) != sums}

    def _read_nodes(self, keys: Collection[int]) -> None:
        fresh = self._machines(keys)
        changed = False
        for id in keys:
            node, old = fresh.get(id), self._nodes.get(id)
            if node is None:
                changed |= self._nodes.pop(id, None) is not None
            elif node != old:
                self._nodes[id], changed = node, True
        if changed:
            self._list_nodes()

    def _list_nodes(self) -> None:
        self._nodes = dict(sorted(self._nodes.items()))
        nodes = tuple(self._nodes.values())
        if list(map(id, nodes)) != list(map(id, self._all_nodes)):
            self._all_nodes = nodes
            self._by_name = {node.id: node for node in nodes}
            self._kinds = frozenset(device.kind for node in nodes for device in node.devices)

    def _jobs(self, keys: reading.Keys, now: datetime) -> Iterable[tuple[int, planner.Job | None]]:
        """Each job as the planner sees it; none where it is not the planner's any more."""
        stays = reading.stays(keys, self._names)
        images, receipts = reading.images(keys), reading.receipts(keys)
        tenants, tiers, partitions = self._slugs
        rest, rows = set(keys or ()), reading.jobs(keys, stays)
        if keys is not None and (news := {row.recipe for row in rows} - {"", *self._gains}):
            self._gains |= {recipe: {} for recipe in news} | self._learned(news)
        for row in rows:
            rest.discard(row.id)
            seated = stays.get(row.id, [])
            if row.state in reading.OVER and not any(stay.holding for stay in seated):
                yield row.id, None
                continue
            avoided: frozenset[planner.NodeId] = frozenset()
            if row.avoid_nodes != "{}":
                avoided, until = reading.avoided(row.avoid_nodes, now.timestamp())
                self._again(row.id, until, now)
            self._again(row.id, row.untouchable_until, now)
            yield row.id, job_of(
                row, seated, now.timestamp(), receipts.get(row.id, []), images.get(row.id),
                self._beyond.get(row.id, (0.0, 0.0)), avoided,
                self._gains.get(row.recipe, NO_GAINS), self._kind_of,
                tenants[row.tenant], tiers[row.tier],
                partitions[row.partition] if row.partition else "",
            )  # fmt: skip
        for id in rest:
            yield id, None

    # What is read; whoever looks at a part of the fleet reads less.

    def _machines(self, keys: reading.Keys) -> dict[int, planner.Node]:
        return machines.nodes(keys)

    def _concerned(self, nodes: Collection[int]) -> set[int]:
        """The jobs that look different when these nodes do."""
        return reading.seated_on(nodes) if self._gains else set()

    def _learned(self, recipes: Collection[str] | None) -> reading.Gains:
        return reading.gains(recipes)

    def _past(self, window: datetime, keys: reading.Keys) -> dict[int, tuple[float, float]]:
        return reading.beyond(window, keys)

    def _ways(self) -> tuple[planner.Link, ...]:
        return reading.links()

    def _kind_of(self, seat: planner.Seat) -> str:
        """The kind of the devices of a seat."""
        node = self._by_name.get(seat.node)
        devices = node.devices if node is not None else ()
        return next((one.kind for one in devices if one.id in seat.devices[:1]), "")

    def _again(self, job: int, at: float | None, now: datetime) -> None:
        """Read a job again at a moment that is still to come."""
        if at is not None and at > now.timestamp():
            heappush(self._due, (at, job))


def _kept(old: Same | None, new: Same) -> Same:
    """The old object if the new one says the same."""
    return old if old is not None and old == new else new


def _next_hour(moment: datetime) -> datetime:
    """The first full hour that is not before a moment."""
    hour = moment.replace(minute=0, second=0, microsecond=0)
    return hour if hour == moment else hour + HOUR
