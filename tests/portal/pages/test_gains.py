"""The panel of a job's page that tells what more CPUs bring."""

from __future__ import annotations

from django.utils import timezone

from portal.models import Job, Node, Profile, User
from tests.portal.api.conftest import place
from tests.portal.pages.conftest import Browser


def measure(job: Job, **more: object) -> Profile:
    Job.objects.filter(pk=job.pk).update(recipe="r")
    job.refresh_from_db()
    told = {
        "number": 1, "recipe": "r", "node": "n1", "device_kind": "cpu", "at": timezone.now(),
        "seconds": 12.0, "source": "cpu", "share": 4.0, "working": 2**30, "cached": 2**30,
        "read": 1e9, "storage": 1e8,
        "points": [[1.0, 0.4, 1.0, 1.0], [2.0, 0.98, 2.0, 0.3], [4.0, 1.0, 2.1, 0.0]],
    }  # fmt: skip
    return Profile.objects.create(job=job, **{**told, **more})


def panel(browser: Browser, user: User, job: Job) -> str:
    return browser(user).get(f"/jobs/{job.id}/panels/gains/").content.decode()


def test_it_tells_the_gain_in_a_sentence_a_curve_and_a_grid(
    browser: Browser, job: Job, node: Node, alice: User
) -> None:
    assert "Not measured" in panel(browser, alice, job)
    measure(job)
    shown = panel(browser, alice, job)
    assert "gains nothing beyond 2 CPUs a replica" in shown
    assert "98 % with 2 CPUs" in shown
    assert shown.count("<tr>") == 4, "a head and three amounts of memory"
    place(job, node).replicas.update(cpus=2.0)
    assert "now: 2" in panel(browser, alice, job)


def test_another_jobs_measurement_names_that_job(browser: Browser, job: Job, alice: User) -> None:
    measure(job)
    again = Job.objects.create(
        name="again", tenant=job.tenant, owner=alice, tier=job.tier, recipe="r",
        submitted_at=timezone.now(),
    )  # fmt: skip
    assert f'with <a href="/jobs/{job.id}/">job {job.id}</a>' in panel(browser, alice, again)


def test_a_running_job_can_be_measured_by_its_owner(
    browser: Browser, job: Job, alice: User, bob: User
) -> None:
    Job.objects.update(state="running")
    assert "/do/profile/" in panel(browser, alice, job)
    assert "/do/profile/" not in panel(browser, bob, job)
    asked = browser(alice).get(f"/jobs/{job.id}/do/profile/").content.decode()
    assert "Its results stay the same" in asked
    Job.objects.update(profile_asked=1)
    assert "about to be measured" in panel(browser, alice, job)
    Job.objects.update(profiled=1)
    measure(job, error="Its pace changed by itself.", points=[])
    assert "The last attempt found nothing: Its pace changed" in panel(browser, alice, job)
