"""The ledger of promises, read: what was entitled and delivered, and which jobs fell short."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum

from portal.choices import MoveKind
from portal.models import Job, Move, Promise, User

HOUR = timedelta(hours=1)
SLACK = 1e-6
"""Share of a promise that is forgiven: sums of seconds are not exact."""
BROKEN = Q(delivered__lt=F("promise") * F("entitled") * (1 - SLACK))


@dataclass(slots=True, kw_only=True)
class Account:
    """What some job-hours were entitled to and got, in device-seconds."""

    entitled: float = 0.0
    delivered: float = 0.0
    promised: float = 0.0
    """Device-seconds that would have kept the promise."""
    entries: int = 0
    """Job-hours: one entry of the ledger each."""
    bound: int = 0
    """Those of them that were promised something."""
    broken: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row of ``by_hour``."""
        self.entitled += row["owed"]
        self.delivered += row["got"]
        self.promised += row["owed"] * row["promise"]
        self.entries += row["jobs"]
        self.bound += row["jobs"] if row["promise"] else 0
        self.broken += row["broken"]

    @property
    def fraction(self) -> float | None:
        """The GPU fraction delivered; None where nothing was owed."""
        return self.delivered / self.entitled if self.entitled else None

    @property
    def promise(self) -> float:
        """The GPU fraction promised, weighed by what was owed under it."""
        return self.promised / self.entitled if self.entitled else 0.0

    @property
    def kept(self) -> int:
        return self.bound - self.broken


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """A job that got less than it was promised in some hours, and where the time went."""

    job: Job
    account: Account
    missing_s: float
    """Seconds at its full size that it was entitled to and did not get."""
    still_s: float
    """Seconds of them in which it stood still for moves; the rest it waited or ran smaller."""
    moves: list[tuple[str, int]] = field(default_factory=list)
    """Kinds of these moves in words, with how many."""
    last: Move | None = None
    """The longest of them."""

    @property
    def waited_s(self) -> float:
        return max(0.0, self.missing_s - self.still_s)


def entries_of(user: User, since: datetime, until: datetime) -> QuerySet[Promise]:
    """The entries of the hours that begin within a time, of the tenants that a user sees."""
    entries = Promise.objects.filter(hour__gte=since, hour__lt=until)
    return entries if user.is_admin else entries.filter(tenant__memberships__user=user)


def by_hour(entries: QuerySet[Promise]) -> QuerySet[Any, Any]:
    """Sum entries over the jobs of each hour, tenant and tier, newest first."""
    told = entries.order_by().annotate(of_tenant=F("tenant__slug"), of_tier=F("tier__slug"))
    rows = told.values("hour", "of_tenant", "of_tier", "promise").annotate(
        got=Sum("delivered"),
        owed=Sum("entitled"),
        jobs=Count("id"),
        broken=Count("id", filter=BROKEN),
    )
    return rows.order_by("-hour", "of_tenant", "of_tier")


def shortfalls(
    entries: QuerySet[Promise], since: datetime, until: datetime, most: int
) -> list[Shortfall]:
    """The jobs that lack most of what they were promised, those worst off first."""
    rows = (
        entries.order_by()
        .values("job")
        .annotate(
            got=Sum("delivered"),
            owed=Sum("entitled"),
            promised=Sum(F("entitled") * F("promise")),
            jobs=Count("id"),
            broken=Count("id", filter=BROKEN),
            lacking=Sum(F("entitled") * F("promise") - F("delivered"), filter=BROKEN),
        )
        .filter(broken__gt=0)
        .order_by("-lacking", "job")[:most]
    )
    found: dict[int, Any] = {row["job"]: row for row in rows}
    jobs = Job.objects.select_related("tenant", "tier", "owner").in_bulk(found)
    moves = interruptions(found, since, until)
    return [tell(jobs[id], row, moves[id], since, until) for id, row in found.items() if id in jobs]


def interruptions(
    jobs: Iterable[int], since: datetime, until: datetime
) -> defaultdict[int, list[Move]]:
    """The receipts of jobs that stood still at some time between two moments."""
    rows = Move.objects.filter(job__in=list(jobs), called_off="", stopped_at__lt=until.timestamp())
    rows = rows.filter(Q(resumed_at=None) | Q(resumed_at__gt=since.timestamp()))
    found: defaultdict[int, list[Move]] = defaultdict(list)
    for move in rows.exclude(kind=MoveKind.PAUSE).select_related("beneficiary__tenant"):
        found[move.job_id].append(move)
    return found


def tell(
    job: Job, row: Mapping[str, Any], moves: list[Move], since: datetime, until: datetime
) -> Shortfall:
    """A job's sums and receipts as its shortfall."""
    account = Account(
        entitled=row["owed"],
        delivered=row["got"],
        promised=row["promised"],
        entries=row["jobs"],
        bound=row["jobs"],
        broken=row["broken"],
    )
    missing_s = max(0.0, row["owed"] - row["got"]) / max(1, job.devices)
    still = {move.pk: stood_still(move, since, until) for move in moves}
    counts = Counter(MoveKind(move.kind).label.lower() for move in moves)
    return Shortfall(
        job=job,
        account=account,
        missing_s=missing_s,
        still_s=min(missing_s, sum(still.values())),
        moves=sorted(counts.items()),
        last=max(moves, key=lambda move: still[move.pk], default=None),
    )


def stood_still(move: Move, since: datetime, until: datetime) -> float:
    """Seconds between two moments in which an interruption kept its job from computing."""
    begins = max(since.timestamp(), move.stopped_at or 0.0)
    ends = min(until.timestamp(), move.resumed_at or until.timestamp())
    return max(0.0, ends - begins)
