"""Who is pushed off: the fewest, the cheapest, never in vain, never without a right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.planner import PRESETS, Quota, Remedy, Tenant, Tier, plan
from scheduler.planner.decisions import Place, Preempt
from scheduler.planner.invariants import check
from tests.planner.sketches import NOW, TIERS, given, job, node, told

POLICY = PRESETS["default"]


def answers(nodes, jobs, policy=POLICY, **fields) -> dict[str, str]:
    return told(plan(given(nodes, jobs, **fields), policy))


def test_a_higher_tier_pushes_off_a_lower_one_and_waits_for_it_to_leave() -> None:
    decided = plan(
        given([node("n1", 4)], [job("low", 4, on="n1"), job("high", 2, tier="premium")]), POLICY
    )
    preempt, place = decided
    assert isinstance(preempt, Preempt)
    assert preempt.beneficiary == "high"
    assert isinstance(place, Place)
    assert place.after == ("low",)


def test_equal_tiers_leave_each_other_alone() -> None:
    found = answers([node("n1", 4)], [job("a", 4, on="n1"), job("b", 2)])
    assert found == {"b": "hold busy"}


def test_the_fewest_are_pushed_off() -> None:
    jobs = [
        *[job(f"one{index}", 1, on="n1") for index in range(8)],
        job("four", 4, on="n2"),
        job("other", 4, on="n2"),
        job("high", 4, tier="premium"),
    ]
    found = answers([node("n1"), node("n2")], jobs)
    assert [id_ for id_, what in found.items() if what.startswith("preempt")] == ["four"]


def test_of_as_few_the_cheapest() -> None:
    jobs = [
        job("dear", 4, on="n1", remedy=Remedy.REQUEUE, at_stake_s=50_000.0),
        job("cheap", 4, on="n2"),
        job("high", 4, tier="premium"),
    ]
    found = answers([node("n1", 4), node("n2", 4)], jobs)
    assert found["cheap"] == "preempt outranked"
    assert "dear" not in found


def test_lower_tiers_go_first() -> None:
    jobs = [
        job("middle", 4, on="n1", tier="standard"),
        job("bottom", 4, on="n2"),
        job("high", 4, tier="premium"),
    ]
    assert "bottom" in answers([node("n1", 4), node("n2", 4)], jobs)


def test_a_gang_pushes_off_what_it_needs_and_no_more() -> None:
    nodes = [node(f"n{index}", 4) for index in range(4)]
    jobs = [job(f"j{index}", 4, on=f"n{index}") for index in range(3)]
    jobs += [job("a", 2, on="n3"), job("high", 8, each=4, tier="premium")]
    found = answers(nodes, jobs)
    assert sum(what.startswith("preempt") for what in found.values()) == 2


def test_a_new_run_is_left_alone_for_a_while() -> None:
    young = job("young", 4, on="n1", started_at=NOW - 100.0)
    found = answers([node("n1", 4)], [young, job("high", 4, tier="premium")])
    assert found == {"high": "hold protected"}
    found = answers([node("n1", 4)], [young, job("high", 4, tier="premium")], PRESETS["eager"])
    assert found["young"] == "preempt outranked"


def test_a_tier_that_is_not_preemptible_stays() -> None:
    firm = (*TIERS, Tier(id="firm", rank=-1, preemptible=False))
    found = answers(
        [node("n1", 4)],
        [job("a", 4, on="n1", tier="firm"), job("b", 4, tier="premium")],
        tiers=firm,
    )
    assert found == {"b": "hold busy"}


OWN = (
    Tenant(id="team", quotas={"a100": Quota(reserved=4, borrow=4)}),
    Tenant(id="other", quotas={"a100": Quota(reserved=4, borrow=4)}),
)


def test_what_was_lent_comes_back() -> None:
    jobs = [
        job("own", 4, on="n1", tenant="other"),
        job("lent", 4, on="n1", tenant="other", tier="premium"),
        job("mine", 4, tenant="team"),
    ]
    found = answers([node("n1")], jobs, tenants=OWN)
    # Either job of the borrower would do; the lesser tier goes.
    assert found["own"] == "preempt reclaimed"
    assert found["mine"].startswith("place")


def test_what_was_lent_comes_back_within_the_protected_time() -> None:
    policy = replace(POLICY, minimum_run_s=300.0)
    jobs = [
        job("own", 4, on="n1", tenant="other", started_at=NOW - 299.0),
        job("lent", 4, on="n1", tenant="other", started_at=NOW - 200.0, tier="premium"),
        job("mine", 4, tenant="team"),
    ]
    snapshot = given([node("n1")], jobs, tenants=OWN)
    assert told(plan(snapshot, policy))["mine"].startswith("hold")
    later = told(plan(replace(snapshot, now=NOW + 1.0), policy))
    assert later["own"] == "preempt reclaimed" and later["mine"].startswith("place")


def test_only_what_was_lent_comes_back() -> None:
    jobs = [job("own", 4, on="n1", tenant="other"), job("x", 4, on="n1"), job("mine", 2)]
    assert answers([node("n1")], jobs, tenants=OWN) == {"mine": "hold busy"}


def test_the_reserved_gives_way_to_its_own_tenant_only() -> None:
    jobs = [
        job("theirs", 4, on="n1", tenant="other"),
        job("ours", 4, on="n1", tenant="team"),
        job("high", 4, tenant="team", tier="premium"),
    ]
    found = answers([node("n1")], jobs, tenants=OWN)
    assert found["ours"] == "preempt outranked"
    assert "theirs" not in found


def test_within_a_full_quota_the_higher_tier_pushes_off_its_own() -> None:
    tight = (Tenant(id="team", quotas={"a100": Quota(reserved=4)}),)
    jobs = [job("a", 3, on="n1"), job("b", 1, on="n1"), job("high", 2, tier="premium")]
    found = answers([node("n1")], jobs, tenants=tight)
    assert found == {"a": "preempt outranked", "high": "place n1*2 made_room"}


def test_above_its_promise_gives_to_below() -> None:
    rich = job("rich", 4, on="n1", tier="standard", delivered=9000.0, entitled=9000.0)
    poor = job("poor", 4, tier="standard", delivered=100.0, entitled=9000.0)
    found = answers([node("n1", 4)], [rich, poor])
    assert found["rich"] == "preempt promise"
    fair = job("rich", 4, on="n1", tier="standard", delivered=6300.0, entitled=9000.0)
    assert answers([node("n1", 4)], [fair, poor]) == {"poor": "hold busy"}


@pytest.mark.parametrize("name", ["srtf", "srsf"])
def test_the_order_alone_may_push_off(name: str) -> None:
    jobs = [
        job("long", 4, on="n1", expected_s=9000.0),
        job("short", 4, expected_s=100.0),
    ]
    found = answers([node("n1", 4)], jobs, PRESETS[name])
    assert found == {"long": "preempt order", "short": "place n1*4 made_room"}


def test_pause_gives_the_devices_back() -> None:
    jobs = [job("low", 4, on="n1", remedy=Remedy.PAUSE), job("high", 4, tier="premium")]
    decided = plan(given([node("n1", 4)], jobs), POLICY)
    assert isinstance(decided[0], Preempt)
    assert decided[0].remedy is Remedy.PAUSE


def test_nobody_is_let_stay_beyond_the_limit_of_its_tenant() -> None:
    """One who leaves makes room in a quota too; once others use that, it cannot come back."""
    tight = (
        Tenant(id="team", quotas={"a100": Quota(reserved=2)}),
        Tenant(id="other", quotas={"a100": Quota(reserved=8)}),
    )
    jobs = [
        job("mine", 2, on="n1", expected_s=90_000.0),
        job("theirs", 2, on="n1", tenant="other", expected_s=80_000.0),
        job("first", 1, tenant="other", expected_s=10.0),
        job("second", 2, expected_s=20.0),
    ]
    policy = PRESETS["srtf"]
    snapshot = given([node("n1", 4)], jobs, tenants=tight)
    assert check(snapshot, plan(snapshot, policy), policy) == []
