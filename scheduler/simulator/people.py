"""The tenants and tiers of a simulation: those of the fleet, and those the trace names besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scheduler.planner import Ordering, Policy, Tenant, TenantId, Tier, TierId
from scheduler.simulator.arrivals import Arrival
from scheduler.simulator.fleets import Fleet

REFRESHED_EVERY_S = 300.0
"""How old the usage that fair share sees may be."""


class People:
    """Tenants with their usage, decayed with the half-life of the fleet's fair share."""

    def __init__(self, fleet: Fleet, arrivals: Sequence[Arrival], policy: Policy) -> None:
        known = {tenant.id for tenant in fleet.tenants}
        named = {TenantId(each.tenant): None for each in arrivals}
        self._tenants = fleet.tenants + tuple(
            Tenant(id=each) for each in sorted(named) if each not in known
        )
        ranked = {tier.id for tier in fleet.tiers}
        asked = {TierId(each.tier): None for each in arrivals if each.tier}
        self.tiers = fleet.tiers + tuple(
            Tier(id=each, rank=0) for each in sorted(asked) if each not in ranked
        )
        self._half_life_s = policy.half_life_s
        self._wanted = policy.ordering in (Ordering.TIERS, Ordering.FAIR)
        self._usage: dict[TenantId, float] = {tenant.id: 0.0 for tenant in self._tenants}
        self._rates: dict[TenantId, tuple[float, int]] = {}
        self._read_at = float("-inf")

    def hold(self, tenant: TenantId, devices: int, now: float) -> None:
        """A tenant's jobs compute on so many devices more (or less) from now on."""
        since, rate = self._rates.get(tenant, (now, 0))
        self._usage[tenant] += rate * (now - since)
        self._rates[tenant] = (now, rate + devices)

    def tenants(self, now: float) -> tuple[Tenant, ...]:
        """The tenants; the same objects until their usage is read anew."""
        if self._wanted and now - self._read_at >= REFRESHED_EVERY_S:
            if self._read_at != float("-inf"):
                fade = 0.5 ** ((now - self._read_at) / self._half_life_s)
                self._usage = {tenant: used * fade for tenant, used in self._usage.items()}
            self._read_at = now
            for tenant in self._rates:
                self.hold(tenant, 0, now)
            self._tenants = tuple(
                each
                if each.usage == self._usage[each.id]
                else replace(each, usage=self._usage[each.id])
                for each in self._tenants
            )
        return self._tenants
