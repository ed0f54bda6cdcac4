"""The sample fleet: believable, whole, and never laid over real jobs."""

from __future__ import annotations

from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from portal.choices import ENDED_STATES, JobState
from portal.models import Job, Node, PlacedReplica, User


@pytest.fixture
def sample(db: None, settings: Any, tmp_path: Path) -> str:
    settings.OUTPUT = tmp_path
    said = StringIO()
    call_command("sample_fleet", stdout=said)
    return said.getvalue()


@pytest.mark.slow
def test_no_device_is_held_twice(sample: str) -> None:
    rows = PlacedReplica.objects.filter(placement__state="active")
    held = Counter((row.node_id, uid) for row in rows for uid in row.devices)
    assert held
    assert max(held.values()) == 1


@pytest.mark.slow
def test_every_state_is_there_and_every_page_shows_it(sample: str) -> None:
    assert set(Job.objects.values_list("state", flat=True)) == set(JobState.values)
    assert Node.objects.count() == 6
    client = Client()
    client.force_login(User.objects.get(username="admin"))
    pages = ["/", "/jobs/", "/nodes/", "/tenants/", "/jobs/new/"]
    for address in [*pages, *(f"/jobs/{id}/" for id in Job.objects.values_list("id", flat=True))]:
        assert client.get(address).status_code == 200, address


@pytest.mark.slow
def test_it_is_never_laid_over_what_is_there(sample: str) -> None:
    jobs = Job.objects.count()
    with pytest.raises(CommandError, match="has nodes or jobs"):
        call_command("sample_fleet")
    assert Job.objects.count() == jobs


@pytest.mark.slow
def test_it_can_be_made_larger(db: None, settings: Any, tmp_path: Path) -> None:
    settings.OUTPUT = tmp_path
    call_command("sample_fleet", nodes=40, ended=30, stdout=StringIO())
    assert Node.objects.count() == 46
    rows = PlacedReplica.objects.filter(placement__state="active", node__name__startswith="crowd-")
    held = Counter((row.node_id, uid) for row in rows for uid in row.devices)
    assert 100 < len(held) <= 320
    assert max(held.values()) == 1
    assert Job.objects.filter(name__startswith="run-", state__in=ENDED_STATES).count() == 30
