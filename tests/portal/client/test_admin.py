"""Accounts, trail, policy and histories from the command line."""

from __future__ import annotations

import pytest
from django.utils import timezone

from portal.models import Checkpoint, Decision, Job, Node, Promise, User
from tests.portal.api.conftest import job, make_job, node, place  # noqa: F401 - fixtures
from tests.portal.client.conftest import Tidepool, told
from tests.portal.pages.test_gains import measure


@pytest.fixture
def as_admin(tidepool: Tidepool, alice: User) -> Tidepool:
    User.objects.filter(id=alice.id).update(is_staff=True)
    return tidepool


def test_accounts_are_made_and_ended(as_admin: Tidepool) -> None:
    made = as_admin("users", "add", "dora", "--password-stdin", "--json", input="long enough 7\n")
    assert told(made)["username"] == "dora"
    assert "dora" in as_admin("users").stdout
    assert told(as_admin("users", "change", "dora", "--inactive", "--json"))["active"] is False
    words = ("users", "change", "dora", "--password-stdin", "--json")
    assert as_admin(*words, input="another one 8\n").exit_code == 0
    assert User.objects.get(username="dora").check_password("another one 8")
    weak = as_admin("users", "add", "emil", "--password-stdin", input="x\n")
    assert "password: " in weak.stderr


def test_the_trail_is_shown_to_admins_only(tidepool: Tidepool, alice: User) -> None:
    assert "admin" in tidepool("audit").stderr
    User.objects.update(is_staff=True)
    tidepool("policy", "eager")
    assert "policy set" in tidepool("audit").stdout


def test_the_policy_is_shown_and_chosen(as_admin: Tidepool) -> None:
    assert "default" in as_admin("policy").stdout
    shown = told(as_admin("policy", "eager", "--set", "cooling_s=5", "--json"))
    assert shown["policy"] == "eager"
    kept = told(as_admin("policy", "--set", "migration=false", "--json"))
    assert kept["changes"] == {"cooling_s": 5, "migration": False}
    assert as_admin("policy", "--set", "cooling_s=long").exit_code == 2
    assert "changes.pool: " in as_admin("policy", "--set", "pool=true").stderr


def test_a_jobs_history_is_shown(tidepool: Tidepool, job: Job, node: Node) -> None:  # noqa: F811
    now = timezone.now()
    place(job, node)
    Decision.objects.create(job=job, at=now, kind="hold", reason="full", sentence="All taken.")
    Checkpoint.objects.create(job=job, number=4, began_at=now, bytes_raw=2**20)
    Promise.objects.create(
        job=job,
        tenant=job.tenant,
        tier=job.tier,
        hour=now.replace(minute=0, second=0, microsecond=0),
        delivered=30,
        entitled=60,
        promise=0.7,
    )
    assert "All taken." in tidepool("decisions", str(job.id)).stdout
    assert "1.0 MiB" in tidepool("checkpoints", str(job.id)).stdout
    assert "node-a" in tidepool("placements", str(job.id)).stdout
    shown = tidepool("promises").stdout
    for word in ("vision", "70%", "50%"):
        assert word in shown


def test_what_a_job_gains_from_cpus_is_told(tidepool: Tidepool, job: Job) -> None:  # noqa: F811
    assert "not measured" in tidepool("profile", str(job.id)).stdout
    measure(job)
    shown = tidepool("profile", str(job.id)).stdout
    for word in ("gains nothing beyond 2 CPUs", "98%", "on n1"):
        assert word in shown
    assert "Only a running job" in tidepool("profile", str(job.id), "--ask").stderr


def test_how_cpus_are_shared_is_chosen_by_name(as_admin: Tidepool) -> None:
    shown = told(as_admin("policy", "--set", "sharing=tune", "--json"))
    assert shown["in_force"]["sharing"] == "tune"
    assert "Choose one of" in as_admin("policy", "--set", "sharing=all").stderr
