"""Cases to JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from scheduler.planner import PRESETS, Policy, Roster, Snapshot, plan
from scheduler.planner.codec import CodecError, dump_case, load_case
from tests.planner.strategies import policies, snapshots


@settings(max_examples=25, deadline=None, derandomize=True)
@given(snapshots, policies)
def test_a_case_comes_back_as_it_was(snapshot: Snapshot, policy: Policy) -> None:
    decided = plan(snapshot, policy)
    assert load_case(dump_case(snapshot, policy, decided)) == (snapshot, policy, decided)
    again, _, _ = load_case(dump_case(replace(snapshot, jobs=Roster(snapshot.jobs))))
    assert plan(again, policy) == decided


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_comes_back_as_it_was(name: str) -> None:
    empty = Snapshot(now=0.0, nodes=(), jobs=(), tenants=(), tiers=())
    assert load_case(dump_case(empty, PRESETS[name]))[1] == PRESETS[name]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nonsense", "not JSON"),
        ("[]", "version None"),
        ('{"version": 99}', "version 99"),
        ('{"version": 1}', "snapshot: missing"),
        ('{"version": 1, "snapshot": {"now": "soon"}}', "snapshot.now: not a number"),
        ('{"version": 1, "snapshot": {"now": 1, "moons": 2}}', "snapshot.moons: unknown"),
        ('{"version": 1, "snapshot": {"now": 1}}', "snapshot: "),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str) -> None:
    with pytest.raises(CodecError, match=says):
        load_case(text)


def test_what_is_wrong_deep_down_is_named() -> None:
    document = {
        "version": 1,
        "snapshot": {
            "now": 1, "nodes": [], "tenants": [], "tiers": [],
            "jobs": [{"id": "a", "tenant": "t", "tier": "b", "phase": "flying", "submitted_at": 0}],
        },
    }  # fmt: skip
    with pytest.raises(CodecError, match=r"snapshot\.jobs\[0\]\.phase"):
        load_case(json.dumps(document))
    document["plan"] = [{"decision": "pray"}]
    document["snapshot"]["jobs"] = []
    with pytest.raises(CodecError, match=r"plan\[0\]"):
        load_case(json.dumps(document))
