"""The ledger of promises: what each tier was promised, what it got, and who fell short."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.db.models import QuerySet
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.safestring import SafeString

from portal.access import access_job, visible_tenants
from portal.api.promises import parse_moment
from portal.api.streaming import stream
from portal.drawings.bars import draw_promise
from portal.drawings.figures import count
from portal.drawings.ledger import Cell, draw_row
from portal.ledger import HOUR, Account, by_hour, entries_of, shortfalls
from portal.models import Job, Promise, Tier
from portal.templatetags.tidepool import zone_of
from portal.views.tables import as_lines
from portal.views.visitors import Visitor, numbered, signed_in

RANGES = {24: ("24 h", 1), 168: ("7 d", 6), 720: ("30 d", 24), 2160: ("90 d", 24)}
"""Hours looked back -> label, and hours a cell."""
WORST = 20
LINES = 40
"""Rows of the ledger that are drawn; of more, those with most broken promises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The time that is shown, cut into cells."""

    hours: int
    starts: list[datetime]
    until: datetime
    latest: bool
    """Whether it ends now."""

    @property
    def since(self) -> datetime:
        return self.starts[0]

    def place(self, hour: datetime) -> int:
        return max(0, bisect_right(self.starts, hour) - 1)

    @property
    def earlier(self) -> str:
        return self.link(self.until - timedelta(hours=self.hours))

    @property
    def later(self) -> str:
        """Empty where the next period would lie ahead of now."""
        return "" if self.latest else self.link(self.until + timedelta(hours=self.hours))

    @staticmethod
    def link(until: datetime) -> str:
        return until.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One tier of one tenant over the period."""

    tenant: str
    tier: str
    account: Account
    hours: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A tier over all its tenants."""

    tier: Tier
    account: Account

    @property
    def bar(self) -> SafeString:
        fraction, promise = self.account.fraction or 0.0, self.account.promise
        words = f"{fraction:.1%} delivered, {promise:.0%} promised"
        return draw_promise(fraction=fraction, promise=promise, label=words)


@signed_in()
def promises(request: Visitor) -> HttpResponse:
    """The ledger of the tenants that the user belongs to; an admin sees all."""
    period, job = period_of(request), job_of(request)
    entries = narrow(request, period, job)
    tiers = {tier.slug: tier for tier in Tier.objects.all()}
    lines, more, totals = draw_lines(by_hour(entries), period, zone_of(request.user))
    context = {
        "page": "promises",
        "period": period,
        "ranges": {hours: label for hours, (label, _) in RANGES.items()},
        "job": job,
        "asked": request.GET,
        "tenants": visible_tenants(request.user),
        "tiers": tiers.values(),
        "totals": [
            Total(tier=tiers[slug], account=totals[slug]) for slug in tiers if slug in totals
        ],
        "lines": lines,
        "more": more,
        "worst": shortfalls(entries, period.since, period.until, WORST),
        "query": urlencode(fixed(request, period)),
    }
    return render(request, "promises/page.html", context)


def period_of(request: Visitor) -> Period:
    """The period that the address names; it ends now unless the address says when."""
    hours = numbered(request, "hours", 24)
    hours = hours if hours in RANGES else 24
    now = timezone.now()
    until = parse_moment(request.GET.get("until", "").replace(" ", "+")) or now
    latest = until >= now
    until = now if latest else until
    step = RANGES[hours][1]
    return Period(
        hours=hours,
        starts=cut(until, hours, step, zone_of(request.user)),
        until=until,
        latest=latest,
    )


def cut(until: datetime, hours: int, step: int, zone: ZoneInfo) -> list[datetime]:
    """The beginnings of the cells that end with the one ``until`` lies in, on the user's clock."""
    if step == 1:
        last = (until - timedelta(microseconds=1)).replace(minute=0, second=0, microsecond=0)
        return [last - HOUR * back for back in reversed(range(hours))]
    local = until.astimezone(zone).replace(tzinfo=None, minute=0, second=0, microsecond=0)
    last = local.replace(hour=local.hour // step * step)
    ahead = [last - HOUR * step * back for back in reversed(range(hours // step))]
    return [start.replace(tzinfo=zone).astimezone(UTC) for start in ahead]


def job_of(request: Visitor) -> Job | None:
    """The one job that the address asks for, if it does."""
    text = request.GET.get("job", "")
    if not text:
        return None
    id = numbered(request, "job", 0)
    if not id:
        raise Http404(f"There is no job {text!r}.")
    return access_job(request.user, id)


def narrow(request: Visitor, period: Period, job: Job | None) -> QuerySet[Promise]:
    entries = entries_of(request.user, period.since, period.until)
    if job:
        return entries.filter(job=job)
    for name in ("tenant", "tier"):
        if slug := request.GET.get(name):
            entries = entries.filter(**{f"{name}__slug": slug})
    return entries


def fixed(request: Visitor, period: Period) -> dict[str, str]:
    """The address's query with the moment it ends at, so that a download is what is shown."""
    kept = {name: request.GET[name] for name in ("tenant", "tier", "job") if request.GET.get(name)}
    until = period.until.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {"hours": str(period.hours), "until": until, **kept}


def draw_lines(
    rows: Iterable[dict[str, Any]], period: Period, zone: ZoneInfo
) -> tuple[list[Line], int, dict[str, Account]]:
    """Lines of a tenant and tier each, those with most broken promises first; how many more there
    would be; and sums by tier.
    """
    cells: dict[tuple[str, str], list[Account]] = {}
    sums: dict[tuple[str, str], Account] = {}
    totals: dict[str, Account] = {}
    for row in rows:
        key = (row["of_tenant"], row["of_tier"])
        if key not in cells:
            cells[key] = [Account() for _ in period.starts]
        cells[key][period.place(row["hour"])].add(row)
        sums.setdefault(key, Account()).add(row)
        totals.setdefault(row["of_tier"], Account()).add(row)
    order = sorted(sums, key=lambda key: (-sums[key].broken, -sums[key].promise, key))
    lines = [
        Line(
            tenant=tenant,
            tier=tier,
            account=sums[tenant, tier],
            hours=draw_row(
                tell_cells(cells[tenant, tier], period, zone), f"{tenant}, {tier}, over time"
            ),
        )
        for tenant, tier in order[:LINES]
    ]
    return lines, len(order) - len(lines), totals


def tell_cells(accounts: Sequence[Account], period: Period, zone: ZoneInfo) -> list[Cell]:
    shape = "%a %d %b, %H:%M" if RANGES[period.hours][1] < 24 else "%a %d %b"
    return [
        tell_cell(account, start.astimezone(zone).strftime(shape))
        for account, start in zip(accounts, period.starts, strict=True)
    ]


def tell_cell(account: Account, when: str) -> Cell:
    if account.fraction is None:
        return Cell(verdict="", words="")
    words = f"{when}: {account.fraction:.1%} delivered"
    if not account.bound:
        return Cell(verdict="free", words=f"{words}, nothing promised")
    words = f"{words} of {account.promise:.0%} promised; "
    if account.broken:
        told = f"broken for {account.broken} of {count(account.bound, 'job-hour')}"
        return Cell(verdict="broken", words=words + told)
    return Cell(verdict="kept", words=f"{words}kept for {count(account.bound, 'job-hour')}")


Read = Callable[[QuerySet[Promise]], Iterable[Sequence[Any]]]


@signed_in()
def ledger(request: Visitor) -> HttpResponseBase:
    """The ledger by hour, tenant and tier, as a table for other programs."""
    names = ("of_tenant", "of_tier", "promise", "owed", "got", "jobs", "broken")
    heads = ("hour", "tenant", "tier", "promise", "entitled_device_s", "delivered_device_s",
             "jobs", "broken")  # fmt: skip

    def read(entries: QuerySet[Promise]) -> Iterable[Sequence[Any]]:
        return ((row["hour"], *(row[name] for name in names)) for row in by_hour(entries))

    return as_csv(request, "promises.csv", heads, read)


@signed_in()
def by_job(request: Visitor) -> HttpResponseBase:
    """The ledger by hour and job, as a table for other programs."""
    names = ("hour", "job_id", "job__name", "job__owner__username", "tenant__slug", "tier__slug",
             "promise", "entitled", "delivered")  # fmt: skip
    heads = ("hour", "job", "name", "owner", "tenant", "tier", "promise", "entitled_device_s",
             "delivered_device_s")  # fmt: skip

    def read(entries: QuerySet[Promise]) -> Iterable[Sequence[Any]]:
        return entries.order_by("-hour", "job_id").values_list(*names)

    return as_csv(request, "promises-by-job.csv", heads, read)


def as_csv(request: Visitor, name: str, heads: Sequence[str], read: Read) -> HttpResponseBase:
    """Send a table a day at a time, newest first; a quarter's is too long to be held whole."""
    period = period_of(request)
    entries = narrow(request, period, job_of(request))

    def pieces() -> Iterator[bytes]:
        yield as_lines([heads])
        ends = period.until
        while ends > period.since:
            begins = max(period.since, ends - timedelta(days=1))
            yield as_lines(read(entries.filter(hour__gte=begins, hour__lt=ends)))
            ends = begins

    return stream(request, pieces(), filename=name, content_type="text/csv; charset=utf-8")
