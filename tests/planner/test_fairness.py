"""Quotas in a tree: reserved, borrowed, lent; shares over time; promises in order."""

from __future__ import annotations

from scheduler.planner import PRESETS, Quota, Tenant, plan
from tests.planner.sketches import NOW, given, job, node, told

POLICY = PRESETS["default"]
NODES = [node("n1"), node("n2")]


def answers(jobs, tenants, nodes=NODES, policy=POLICY) -> dict[str, str]:
    return told(plan(given(nodes, jobs, tenants=tenants), policy))


def quota(reserved: int, borrow: int | None = 0, lend: bool = True) -> dict[str, Quota]:
    return {"a100": Quota(reserved=reserved, borrow=borrow, lend=lend)}


def test_nobody_gets_more_than_reserved_and_borrowed() -> None:
    team = (Tenant(id="team", quotas=quota(2, 2)),)
    jobs = [job("a", 2), job("b", 2, submitted_at=NOW - 10), job("c", 1, submitted_at=NOW - 5)]
    found = answers(jobs, team)
    assert found == {"a": "place n1*2 fits", "b": "place n1*2 fits", "c": "hold quota"}
    assert answers([job("a", 5)], team) == {"a": "hold over_limit"}


def test_limits_hold_along_the_whole_branch() -> None:
    tree = (
        Tenant(id="root", quotas=quota(6)),
        Tenant(id="team", parent="root", quotas=quota(4, None)),
        Tenant(id="other", parent="root"),
    )
    jobs = [job("a", 4), job("b", 3, tenant="other", submitted_at=NOW - 10)]
    assert answers(jobs, tree) == {"a": "place n1*4 fits", "b": "hold quota"}


def test_a_kind_without_a_quota_is_closed_to_who_has_quotas() -> None:
    team = (Tenant(id="team", quotas={"h100": Quota(reserved=8)}),)
    assert answers([job("a", 1)], team) == {"a": "hold over_limit"}


def test_what_is_not_lent_stays_idle() -> None:
    pair = (
        Tenant(id="keeper", quotas=quota(12, 0, lend=False)),
        Tenant(id="team", quotas=quota(2, None)),
    )
    jobs = [job("a", 2), job("b", 2, submitted_at=NOW - 20), job("c", 2, submitted_at=NOW - 10)]
    found = answers(jobs, pair)
    assert found["a"].startswith("place") and found["b"].startswith("place")
    assert found["c"] == "hold set_aside"


def test_the_reserved_goes_before_the_borrowed() -> None:
    pair = (
        Tenant(id="team", quotas=quota(0, None)),
        Tenant(id="other", quotas=quota(8)),
    )
    jobs = [job("early", 8, submitted_at=NOW - 900), job("own", 8, tenant="other")]
    found = answers(jobs, pair, nodes=[node("n1")])
    assert found == {"own": "place n1*8 fits", "early": "hold busy"}


def test_the_tenant_that_had_least_goes_first() -> None:
    pair = (Tenant(id="team", usage=1e7), Tenant(id="other", usage=1e3))
    jobs = [job("a", 8, submitted_at=NOW - 900), job("b", 8, tenant="other")]
    found = answers(jobs, pair, nodes=[node("n1")])
    assert found["b"].startswith("place")
    heavy = (Tenant(id="team", usage=1e7, weight=1e6), Tenant(id="other", usage=1e3))
    assert answers(jobs, heavy, nodes=[node("n1")])["a"].startswith("place")


def test_tenants_take_turns_within_one_cycle() -> None:
    jobs = [job(f"a{index}", 2, submitted_at=NOW - 900) for index in range(4)]
    jobs += [job(f"b{index}", 2, tenant="other") for index in range(4)]
    found = answers(jobs, (Tenant(id="team"), Tenant(id="other")), nodes=[node("n1")])
    started = sorted(id_[0] for id_, what in found.items() if what.startswith("place"))
    assert started == ["a", "a", "b", "b"]


def test_who_is_owed_more_goes_first_within_a_tier() -> None:
    jobs = [
        job("new", 8, tier="standard", submitted_at=NOW - 100),
        job("owed", 8, tier="standard", delivered=1000.0, entitled=8 * 90_000.0),
    ]
    found = answers(jobs, (Tenant(id="team"),), nodes=[node("n1")])
    assert found["owed"].startswith("place")
    assert found["new"] == "hold busy"


def test_the_higher_tier_goes_first() -> None:
    jobs = [job("old", 8, submitted_at=NOW - 90_000), job("new", 8, tier="premium")]
    found = answers(jobs, (Tenant(id="team"),), nodes=[node("n1")])
    assert found["new"].startswith("place")


def test_an_unknown_tenant_gets_nothing() -> None:
    assert answers([job("a", 1, tenant="nobody")], (Tenant(id="team"),)) == {
        "a": "hold no_such_tenant"
    }


def test_what_a_branch_keeps_is_counted_once() -> None:
    tree = (
        Tenant(id="root", quotas=quota(6, 0, lend=False)),
        Tenant(id="leaf", parent="root", quotas=quota(3, 0, lend=False)),
        Tenant(id="team", quotas=quota(0, None)),
    )
    found = answers([job("a", 2), job("b", 1, submitted_at=NOW - 1)], tree, nodes=[node("n1")])
    assert found == {"a": "place n1*2 fits", "b": "hold set_aside"}
