"""The plan while it is being written: the ledger, the decisions so far, what is still allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType

from scheduler.planner.costs import move_s
from scheduler.planner.decisions import Decision, Migrate, Place, Preempt, Resize, Why
from scheduler.planner.fairness import Account, Refusal
from scheduler.planner.fleet import Bin, Pool
from scheduler.planner.layers import Yielders
from scheduler.planner.ledger import NEVER, Attempt, Held, Part
from scheduler.planner.memory import Memory
from scheduler.planner.needs import Need, Size, natural, need_of
from scheduler.planner.ordering import NO_TIER, Line
from scheduler.planner.placement import NOT_BARRED, Spot, find, free_on, seated
from scheduler.planner.policy import Policy
from scheduler.planner.promises import remaining
from scheduler.planner.reasons import Reason
from scheduler.planner.snapshot import Job, JobId, Remedy, Seat, Snapshot, Tier, TierId

MOST_PLACES = 8
"""Jobs for which certain nodes are kept at a time."""


class Reservation:
    """Devices kept for a job that has waited long: who may still go in between."""

    __slots__ = ("extra", "free", "job", "rank", "shadow", "where")

    def __init__(self, job: Job, rank: int, where: Mapping[Pool, int] | None) -> None:
        self.job = job
        self.rank = rank
        self.where = where
        """The bins that are kept; ``None``: so many of all devices of its kind."""
        self.free = 0
        """Devices that are free now."""
        self.shadow = NEVER
        """When enough devices are expected to be free."""
        self.extra = 0
        """Devices that will be left over then."""

    def holds(self, held: Held) -> int:
        """Devices of a job on what is kept."""
        if self.where is None:
            return held.count
        return sum(
            part.mask.bit_count()
            for part in held.parts
            if self.where.get(part.bin.pool, 0) & part.bin.bit
        )


class Draft:
    """One cycle's work in progress."""

    def __init__(self, snapshot: Snapshot, policy: Policy, memory: Memory) -> None:
        self.now = snapshot.now
        self.policy = policy
        self.memory = memory
        self.ledger = memory.ledger
        self.fleet = memory.fleet
        self.accounts = memory.accounts
        self.placed: dict[JobId, Place] = {}
        self.leaving: dict[JobId, Preempt] = {}
        self.moved: dict[JobId, Migrate | Resize] = {}
        self.pushed: dict[JobId, Held] = {}
        """What those who leave held."""
        self.plans: dict[JobId, tuple[Job, Size, Need]] = {}
        """How those were placed for whom others leave."""
        self.left: dict[Bin, list[tuple[JobId, int]]] = {}
        """Who held what before, of those who leave, move or change size."""
        self.reserved: dict[str, Reservation] = {}
        """What is kept by counting, by device kind."""
        self.places: list[Reservation] = []
        """What is kept on certain nodes."""
        self.behind: dict[Line, Reservation] = {}
        """The lines that would have been served but for a reservation."""
        self.in_vain = False
        """Whether some were chosen to leave for a job that found no place even so."""
        self.hungry: set[str] = set()
        """Device kinds for which someone waits who may have them."""
        self.shielded: dict[tuple[int, str], dict[JobId, Held]] | None = None
        """Jobs in their protected time by rank and kind, once that is worked out."""
        self.givers: list[tuple[int, bool, Held]] | None = None
        """Elastic jobs that may give devices, with their rank and whether they spare some."""
        self.reasons: dict[tuple[Need, Size], Why] = {}
        """Why there is no room now, by what is needed."""
        self.yielders: dict[tuple[object, ...], Yielders] = {}
        self.pushable: dict[tuple[int | None, tuple[str, ...]], int] = {}
        """Devices of those who could be pushed off by a rank, or by anybody, by kinds."""
        self.moves_left = policy.moves_per_hour - memory.recent

    def move_s(self, job: Job, spots: Iterable[Spot] = ()) -> float:
        """Seconds that a move of a job to these bins would take; without them to anywhere."""
        targets = (bin_.host.node.id for bin_, groups in spots for _ in range(groups))
        return move_s(job, self.policy, self.memory.roads, targets)

    def tier(self, job: Job) -> Tier:
        """The tier of a job; without tiers all are equal."""
        if not self.policy.tiers:
            return NO_TIER
        return self.memory.tier_by_id.get(job.tier, NO_TIER)

    def rank(self, tier: TierId) -> int:
        """The rank of a tier."""
        if not self.policy.tiers:
            return 0
        return self.memory.tier_by_id.get(tier, NO_TIER).rank

    def account(self, job: Job) -> Account | None:
        return self.accounts.by_id.get(job.tenant)

    def untouched(self, id_: JobId) -> bool:
        """Whether this plan says nothing about a job yet."""
        return id_ not in self.leaving and id_ not in self.moved and id_ not in self.placed

    def refusal(
        self, account: Account | None, kind: str, count: int, *, idle: bool = True
    ) -> Refusal | None:
        """Why the tenant may not take so many more devices of a kind (from the idle ones)."""
        if account is None or not self.policy.quotas:
            return None
        free = self.fleet.free(kind) if idle and self.accounts.keepers else None
        return self.accounts.refusal(account, kind, count, free)

    def permitted(self, job: Job, need: Need, count: int, *, idle: bool = True) -> Sequence[Pool]:
        """The pools whose kind the tenant and the reservations leave open for ``count`` devices."""
        pools = self.fleet.suiting(need)
        account = self.accounts.by_id.get(job.tenant) if self.policy.quotas else None
        if account is not None and account.neutral and not self.accounts.keepers:
            account = None
        if account is None and not self.reserved:
            return pools
        if need.kind or len(self.fleet.by_kind) == 1:
            kind = need.kind or pools[0].kind
            return pools if self._open(job, account, kind, count, idle=idle) else ()
        open_: dict[str, bool] = {}
        for pool in pools:
            if pool.kind not in open_:
                open_[pool.kind] = self._open(job, account, pool.kind, count, idle=idle)
        if all(open_.values()):
            return pools
        return [pool for pool in pools if open_[pool.kind]]

    def _open(
        self, job: Job, account: Account | None, kind: str, count: int, *, idle: bool
    ) -> bool:
        if self.reserved and not self.passes(job, kind, count):
            return False
        return self.refusal(account, kind, count, idle=idle) is None

    def passes(self, job: Job, kind: str, count: int) -> bool:
        """Whether a reservation lets ``job`` go first: it is done in time, or can be pushed off."""
        kept = self.reserved.get(kind)
        return kept is None or self._lets(kept, job, count)

    def _lets(self, kept: Reservation, job: Job, count: int) -> bool:
        if count <= kept.extra or kept.job.id == job.id:
            return True
        tier = self.tier(job)
        yields = self.policy.preemption and tier.rank < kept.rank and tier.preemptible
        if yields and job.remedy is not Remedy.REQUEUE:
            return True
        until = kept.shadow if kept.shadow < NEVER else self.now + self.policy.patience_s
        return self.now + remaining(job, self.now) <= until

    def barred(self, job: Job, count: int) -> Mapping[Pool, int]:
        """The bins that are kept for others who do not let it go first."""
        masks: dict[Pool, int] = {}
        for kept in self.places:
            if kept.where is not None and not self._lets(kept, job, count):
                for pool, mask in kept.where.items():
                    masks[pool] = masks.get(pool, 0) | mask
        return masks

    def fit(self, job: Job, need: Need, sizes: Iterable[Size]) -> tuple[Size, list[Spot]] | None:
        """The largest size for which there is room now, on wanted nodes if they have some."""
        for size in sizes:
            pools = self.permitted(job, need, size.devices)
            if not pools:
                continue
            spots, barred = None, self.barred(job, size.devices) if self.places else NOT_BARRED
            if job.wanted_nodes:
                spots = find(pools, need._replace(only=job.wanted_nodes), size, barred)
            if spots is None:
                spots = find(pools, need, size, barred)
            if spots is not None:
                return size, spots
        return None

    def hold(self, job: Job, parts: list[Part], count: int) -> None:
        """Let a job hold these parts in the ledger."""
        kind = parts[0].bin.pool.kind
        self.ledger.put(Held(job, parts, self.account(job), kind, count))

    def place(
        self, job: Job, size: Size, spots: list[Spot], why: Why, after: tuple[JobId, ...] = ()
    ) -> None:
        """Start a waiting job."""
        seats, parts = seated(job, size, spots)
        self.hold(job, parts, size.devices)
        self.placed[job.id] = Place(job=job.id, seats=seats, why=why, after=after)
        if after:
            self.plans[job.id] = (job, size, need_of(job))
        self.use(self.ledger.held[job.id])

    def use(self, held: Held, sign: int = 1) -> None:
        """Count what a job takes of what reservations have left over; -1: what it gives back."""
        kept = self.reserved.get(held.kind)
        for one in (*self.places, kept) if kept is not None else self.places:
            if self.now + remaining(held.job, self.now) >= one.shadow:
                one.extra -= sign * one.holds(held)

    def place_on(self, job: Job, seats: tuple[Seat, ...], parts: list[Part], count: int) -> None:
        """Start a job on given seats."""
        self.hold(job, parts, count)
        why = Why(reason=Reason.RESTORED, numbers={"devices": count})
        after = self._leavers(parts, ())
        self.placed[job.id] = Place(job=job.id, seats=seats, why=why, after=after)

    def relocate(
        self,
        held: Held,
        size: Size,
        spots: list[Spot],
        why: Why,
        beneficiary: JobId | None = None,
    ) -> None:
        """Give a running job, already taken off the ledger, other seats."""
        job = held.job
        seats, parts = seated(job, size, spots)
        self.hold(job, parts, size.devices)
        self.leave(held)
        kind = Migrate if size.devices == held.count else Resize
        self.moved[job.id] = kind(
            job=job.id, seats=seats, why=why, beneficiary=beneficiary,
            after=tuple(id_ for id_ in self._leavers(parts, ()) if id_ != job.id),
        )  # fmt: skip

    def resize(
        self, held: Held, seats: tuple[Seat, ...], why: Why, beneficiary: JobId | None
    ) -> None:
        """Write down that a job goes on with some of its devices; the ledger was told already."""
        id_ = held.job.id
        self.leave(held)
        self.moved[id_] = Resize(job=id_, seats=seats, why=why, beneficiary=beneficiary)

    def _leavers(self, parts: list[Part], known: tuple[JobId, ...]) -> tuple[JobId, ...]:
        """Those who leave or move in this plan and sat on these parts before."""
        if not self.left:
            return known
        found = set(known)
        for part in parts:
            for id_, mask in self.left.get(part.bin, ()):
                if mask & part.mask and (id_ in self.leaving or id_ in self.moved):
                    found.add(id_)
        return tuple(sorted(found, key=natural))

    def leave(self, held: Held) -> None:
        """Remember what a job held that leaves, moves or shrinks."""
        for part in held.parts:
            self.left.setdefault(part.bin, []).append((held.job.id, part.mask))

    def undoing(self) -> Undoing:
        """Undo ledger and decisions of the block, unless they are kept."""
        return Undoing(self)

    def push(self, held: Held, beneficiary: Job, reason: Reason) -> None:
        """Write down that a job leaves for another; the ledger was told already."""
        id_ = held.job.id
        tenant = beneficiary.tenant
        why = Why(reason=reason, numbers={"beneficiary": beneficiary.id, "tenant": tenant})
        self.leaving[id_] = Preempt(
            job=id_, remedy=held.job.remedy, why=why, beneficiary=beneficiary.id
        )
        self.pushed[id_] = held
        self.leave(held)

    def reserve(
        self, job: Job, kind: str, devices: int, where: Mapping[Pool, int] | None = None
    ) -> None:
        """Keep for ``job`` what will be free of ``kind``, or of some bins, when it can start."""
        kept = Reservation(job, self.tier(job).rank, where)
        free = self.fleet.free(kind) if where is None else free_on(where)
        kept.free = free
        for end, held in self.memory.ends.in_order(kind, self.now):
            if free >= devices:
                break
            if self.ledger.held.get(held.job.id) is held and (count := kept.holds(held)):
                free += count
                kept.shadow = end
        if free >= devices:
            kept.extra = free - devices
        else:
            kept.shadow = NEVER
        if where is None:
            self.reserved[kind] = kept
        else:
            self.places.append(kept)

    def why_placed(self, job: Job, size: Size) -> Why:
        """The reason of a place that needed no one to leave."""
        numbers = {"devices": size.devices, "wanted": job.devices}
        if size.devices < job.devices:
            return Why(reason=Reason.STARTED_SMALL, numbers=numbers)
        reason = Reason.RESTORED if job.has_image else Reason.FITS
        return Why(reason=reason, numbers=numbers)

    def decisions(self) -> list[Decision]:
        """All that was decided: first who leaves, then who moves, then who comes."""
        return [*self.leaving.values(), *self.moved.values(), *self.placed.values()]

    def promised(self) -> dict[JobId, tuple[Seat, ...]]:
        """The seats that this plan gives."""
        return {
            **{id_: decision.seats for id_, decision in self.moved.items()},
            **{id_: decision.seats for id_, decision in self.placed.items()},
        }


class Undoing(Attempt):
    """An attempt that takes back the decisions too."""

    __slots__ = ("_draft", "_extras", "_moved", "_placed")

    def __init__(self, draft: Draft) -> None:
        super().__init__(draft.ledger)
        self._draft = draft
        self._placed, self._moved = len(draft.placed), len(draft.moved)
        self._extras = [(one, one.extra) for one in (*draft.reserved.values(), *draft.places)]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, at)
        if not self.kept:
            draft = self._draft
            while len(draft.placed) > self._placed:
                draft.plans.pop(draft.placed.popitem()[0], None)
            while len(draft.moved) > self._moved:
                draft.moved.popitem()
            for reservation, extra in self._extras:
                reservation.extra = extra
