"""The policy page: what is in force, what it does, and switching it."""

from __future__ import annotations

from typing import Any

from portal.actions.planning import live_presets, policy_in_force
from portal.forms.planning import PRESETS_TOLD
from portal.models import AuditEntry, Job, Node, Settings, User
from scheduler.planner import Sharing
from tests.portal.pages.conftest import Browser
from tests.portal.pages.test_gains import measure
from tests.portal.pages.test_queries import count


def test_sharing_and_measuring_are_switched_beside_the_policy(
    browser: Browser, root: User, settings: Any
) -> None:
    client = browser(root)
    assert "As the environment says: off" in client.get("/policy/").content.decode()
    Settings.objects.create(pk=1, changes={"cooling_s": 60, "profiling": False})
    values = {"policy": "eager", "sharing": "tune", "profiling": "yes", "least": "40"}
    assert client.post("/policy/", values)["Location"] == "/policy/"
    now = policy_in_force()
    assert (now.name, now.sharing, now.profiling) == ("eager", Sharing.TUNE, True)
    assert (now.least_share, now.cooling_s) == (0.4, 60)
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.actor) == ("policy set", root)
    page = client.get("/policy/").content.decode()
    for words in ("chosen here", "cooling_s", "by need", "by themselves", "policy set"):
        assert words in page, words
    client.post("/policy/", {"policy": "", "sharing": "", "profiling": "", "least": ""})
    assert Settings.objects.get().changes == {"cooling_s": 60}
    settings.SHARING, settings.PROFILING = "proportional", True
    assert (policy_in_force().sharing, policy_in_force().profiling) == (Sharing.PROPORTIONAL, True)


def test_what_it_does_now_is_counted(
    browser: Browser, root: User, node: Node, job: Job, make_job: Any
) -> None:
    client = browser(root)
    assert "No job runs now" in client.get("/policy/").content.decode()
    Job.objects.update(state="running")
    Settings.objects.create(pk=1, changes={"sharing": "tune"})
    page = client.get("/policy/").content.decode()
    assert "Of 1 running job, 0 were measured" in page
    assert "Let jobs be measured too" in page
    queries = count(client, "/policy/")
    measure(job)
    make_job(state="running")
    page = client.get("/policy/").content.decode()
    assert "Of 2 running jobs, 1 was measured" in page
    assert count(client, "/policy/") == queries


def test_what_is_wrong_changes_nothing(browser: Browser, root: User, alice: User) -> None:
    client = browser(root)
    for values in ({"policy": "pool-fifo"}, {"sharing": "all"}, {"least": "200"}):
        assert client.post("/policy/", values).status_code == 422
    assert browser(alice).get("/policy/").status_code == 403
    assert browser(alice).post("/policy/", {}).status_code == 403
    assert "/policy/" not in browser(alice).get("/tenants/").content.decode()
    assert not Settings.objects.exists()


def test_every_preset_is_explained() -> None:
    assert set(PRESETS_TOLD) == set(live_presets())
