"""The policy over the API."""

from __future__ import annotations

from typing import Any

import pytest

from portal.models import AuditEntry, Settings, User
from tests.portal.api.conftest import Api

API = "/api/v1"


def test_an_admin_chooses_a_policy(root: User, api: Api) -> None:
    client = api(root)
    before = client.get(f"{API}/policy/").json()
    told = {"policy": "eager", "changes": {"cooling_s": 5, "migration": False}}

    after = client.put(f"{API}/policy/", told, format="json").json()

    assert before["policy"] == ""
    assert before["in_force"]["name"] == "default"
    assert after["in_force"]["name"] == "eager"
    assert after["in_force"]["cooling_s"] == 5
    assert after["in_force"]["migration"] is False
    assert Settings.objects.get(pk=1).changes == told["changes"]
    assert AuditEntry.objects.get().act == "policy set"


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"policy": "pool-fifo"}, "policy"),
        ({"policy": "none"}, "policy"),
        ({"policy": "", "changes": {"pool": True}}, "changes.pool"),
        ({"policy": "", "changes": {"name": "x"}}, "changes.name"),
        ({"policy": "", "changes": {"migration": 1}}, "changes.migration"),
        ({"policy": "", "changes": {"cooling_s": "long"}}, "changes.cooling_s"),
        ({"policy": "", "changes": {"cooling_s": -1}}, "changes.cooling_s"),
        ({"policy": "", "changes": {"cooling_s": True}}, "changes.cooling_s"),
        ({"policy": "", "changes": {"moves_per_hour": 1.5}}, "changes.moves_per_hour"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(
    told: dict[str, Any], field: str, root: User, api: Api
) -> None:
    answer = api(root).put(f"{API}/policy/", told, format="json")
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == [field]
