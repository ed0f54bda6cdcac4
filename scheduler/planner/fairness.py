"""Shares of the tenants: who may use how much, who borrows, who has had the least."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log
from typing import NamedTuple

from scheduler.planner.needs import natural
from scheduler.planner.reasons import Reason
from scheduler.planner.snapshot import Quota, Tenant, TenantId

NONE = Quota()
Share = tuple[float, ...]


class Refusal(NamedTuple):
    """Why a tenant may not use so many devices, now or ever."""

    reason: Reason
    numbers: dict[str, object]
    account: Account | None = None
    short: int = 0
    """Devices that the account must give back first."""


class Account:
    """A tenant with what it and all below it use, by device kind."""

    __slots__ = ("neutral", "path", "tenant", "used")

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.used: dict[str, int] = {}
        self.path: tuple[Account, ...] = (self,)
        """From itself up to the root."""
        self.neutral = not tenant.quotas
        """Whether no quota in its branch says anything."""

    def charge(self, kind: str, count: int) -> None:
        """Let it and all above it use so many devices more."""
        for account in self.path:
            used = account.used
            used[kind] = used.get(kind, 0) + count

    def renew(self, tenant: Tenant) -> None:
        """Take in another decayed usage; quotas and place in the tree are the same."""
        self.tenant = tenant

    def quota(self, kind: str) -> Quota | None:
        """Its quota of a kind; ``None`` means it has no quota at all, that is no limit."""
        if not self.tenant.quotas:
            return None
        return self.tenant.quotas.get(kind, NONE)

    def over(self, kind: str) -> int:
        """Devices it borrows at this moment."""
        quota = self.quota(kind)
        return 0 if quota is None else self.used.get(kind, 0) - quota.reserved

    def exceeds(self, kind: str) -> bool:
        """Whether it or one above it uses more than its hard limit."""
        return any(
            account.used.get(kind, 0) > quota.reserved + quota.borrow
            for account in self.path
            if (quota := account.quota(kind)) is not None and quota.borrow is not None
        )

    def entitled(self, kind: str, count: int) -> bool:
        """Whether ``count`` more devices are its own: reserved where the tree first speaks."""
        for account in () if self.neutral else self.path:
            quota = account.quota(kind)
            if quota is not None:
                return account.used.get(kind, 0) + count <= quota.reserved
        return False

    def borrows(self, kind: str) -> bool:
        """Whether what it uses goes beyond what is reserved, where the tree first speaks."""
        for account in () if self.neutral else self.path:
            if account.tenant.quotas:
                return account.over(kind) > 0
        return False

    def ceiling(self, kind: str) -> tuple[int, TenantId] | None:
        """The hard limit of its branch, and who sets it; ``None`` if there is none."""
        limits = [
            (quota.reserved + quota.borrow, account.tenant.id)
            for account in self.path
            if (quota := account.quota(kind)) is not None and quota.borrow is not None
        ]
        return min(limits, default=None)

    def weighed(self, devices: int, half_life_s: float) -> float:
        """Weighted use if it has so many devices: these, plus the decayed mean until now."""
        used = devices + self.tenant.usage * log(2) / half_life_s
        return used / max(self.tenant.weight, 1e-9)


class Accounts:
    """The tree of tenants."""

    def __init__(self, tenants: Iterable[Tenant]) -> None:
        self.tenants: Sequence[Tenant] = tuple(tenants)
        self.by_id = {tenant.id: Account(tenant) for tenant in self.tenants}
        for account in self.by_id.values():
            account.path = tuple(self._up(account))
            account.neutral = not any(one.tenant.quotas for one in account.path)
        self.silent = all(account.neutral for account in self.by_id.values())
        """Whether nobody has a quota."""
        ordered = sorted(self.by_id.values(), key=lambda one: natural(one.tenant.id))
        self.keepers = [
            (account, kind)
            for account in ordered
            for kind, quota in sorted(account.tenant.quotas.items())
            if not quota.lend and quota.reserved
        ]
        self._keeping = set(self.keepers)
        self._below: dict[Account | None, list[Account]] = {}
        """The tree above the keepers, from ``None`` above its roots."""
        for account in ordered:
            if any(account in keeper.path for keeper, _ in self.keepers):
                above = account.path[1] if len(account.path) > 1 else None
                self._below.setdefault(above, []).append(account)

    def _up(self, account: Account) -> list[Account]:
        path = [account]
        while (parent := path[-1].tenant.parent) is not None:
            above = self.by_id.get(parent)
            if above is None or above in path:
                break
            path.append(above)
        return path

    def get(self, id_: TenantId) -> Account | None:
        return self.by_id.get(id_)

    def refusal(self, account: Account, kind: str, count: int, free: int | None) -> Refusal | None:
        """Why ``account`` may not take ``count`` more devices of ``kind``, ``free`` being idle.

        Without ``free`` only the limits are looked at: others would leave for it.
        """
        for above in () if account.neutral else account.path:
            quota = above.quota(kind)
            if quota is None or quota.borrow is None:
                continue
            used, limit = above.used.get(kind, 0), quota.reserved + quota.borrow
            if used + count > limit:
                reason = Reason.OVER_LIMIT if count > limit else Reason.QUOTA
                numbers = {
                    "tenant": above.tenant.id, "used": used, "limit": limit, "wanted": count,
                }  # fmt: skip
                return Refusal(reason, numbers, above, used + count - limit)
        if free is not None and self.keepers and not account.entitled(kind, count):
            aside = self.aside(account, kind)
            if aside and free - aside < count:
                return Refusal(Reason.SET_ASIDE, {"free": free, "aside": aside, "wanted": count})
        return None

    def aside(self, account: Account, kind: str) -> int:
        """Idle devices that others reserved and do not lend.

        What a tenant keeps includes what those below it keep: it is counted once.
        """
        return sum(self._kept(root, account, kind) for root in self._below.get(None, ()))

    def _kept(self, keeper: Account, account: Account, kind: str) -> int:
        below = sum(self._kept(one, account, kind) for one in self._below.get(keeper, ()))
        if keeper in account.path or (keeper, kind) not in self._keeping:
            return below
        return max(below, -keeper.over(kind))
