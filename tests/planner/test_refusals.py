"""What was refused to one is refused to all who ask for the same by the same right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.planner import Hold, Place, Policy, Preempt, Snapshot, Tenant, passes, plan
from tests.planner.sketches import NOW, given, job, node

TENANTS = tuple(Tenant(id=name) for name in ("a", "b", "c"))  # type: ignore[arg-type]
SILENT = Policy(explain=False)


def searched(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot, policy: Policy) -> list[str]:
    """For which jobs others are looked for who might leave."""
    asked: list[str] = []
    push_off = passes.push_off

    def told(line, job, draft):  # type: ignore[no-untyped-def]
        asked.append(str(job.id))
        return push_off(line, job, draft)

    monkeypatch.setattr(passes, "push_off", told)
    plan(snapshot, policy)
    return asked


@pytest.mark.parametrize("explain", [True, False])
def test_one_search_is_enough_for_all_who_ask_the_same(
    monkeypatch: pytest.MonkeyPatch, explain: bool
) -> None:
    running = job("r", 8, tier="premium", on="n1")
    waiting = [
        job(f"w{at}", 2, tier="premium", tenant=TENANTS[at].id, submitted_at=NOW - 9 + at)
        for at in range(3)
    ]
    snapshot = given([node("n1")], [running, *waiting], tenants=TENANTS)
    policy = Policy(explain=explain, migration=False, elasticity=False)
    assert searched(monkeypatch, snapshot, policy) == ["w0"]


def test_what_a_leaver_leaves_over_goes_to_whom_nothing_could_be_given_before() -> None:
    running = job("r", 8, tier="basic", on="n1")
    high = job("p", 4, tier="premium", tenant="a")
    low = [job(f"b{at}", 2, tier="basic", tenant="b", submitted_at=NOW - 9 + at) for at in range(3)]
    snapshot = given([node("n1")], [running, high, *low], tenants=TENANTS)
    acts = plan(snapshot, SILENT)
    assert [each.job for each in acts if isinstance(each, Preempt)] == ["r"]
    assert [each.job for each in acts if isinstance(each, Place)] == ["p", "b0", "b1"]
    told = plan(snapshot, replace(SILENT, explain=True))
    assert acts == tuple(each for each in told if not isinstance(each, Hold))
