"""Secrets of jobs lie sealed in the database, and outlive a change of the portal's secret key."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import override_settings

from portal.actions.desired import desired_state
from portal.models import Job
from portal.sealing import SealError, seal, unseal
from tests.live.conftest import town
from tests.live.puppets import Town

__all__ = ["town"]

SECRETS = {"KEY": "open-sesame", "NAME": "Ōkāwa"}
OLD, NEW = "an-old-secret-key", "a-new-secret-key"


def test_what_is_sealed_is_opened_with_the_same_key_only() -> None:
    with override_settings(SECRET_KEY=OLD):
        sealed = seal(SECRETS)
        assert "open-sesame" not in sealed
        assert unseal(sealed) == SECRETS
        assert seal(SECRETS) != sealed, "equal secrets do not show"
    with override_settings(SECRET_KEY=NEW), pytest.raises(SealError, match="another secret key"):
        unseal(sealed)
    with override_settings(SECRET_KEY=NEW, SECRET_KEY_FALLBACKS=[OLD]):
        assert unseal(sealed) == SECRETS


def test_no_secrets_need_no_key() -> None:
    assert seal({}) == ""
    assert unseal("") == {}


def test_they_are_not_in_the_database_as_they_are(town: Town) -> None:
    job = town.submit(secrets=SECRETS)
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM portal_job WHERE id = %s", [job.id])
        assert "open-sesame" not in repr(cursor.fetchall())
    assert Job.objects.get(pk=job.id).secrets == SECRETS


def test_after_a_change_of_the_key_they_are_sealed_anew(town: Town) -> None:
    with override_settings(SECRET_KEY=OLD):
        job = town.submit(secrets=SECRETS)
    with override_settings(SECRET_KEY="unknown"):
        lost = town.submit(secrets=SECRETS)
    said = io.StringIO()
    with override_settings(SECRET_KEY=NEW, SECRET_KEY_FALLBACKS=[OLD]):
        call_command("reseal", stdout=said)
    assert "of 1 job." in said.getvalue()
    assert str(lost.id) in said.getvalue()
    with override_settings(SECRET_KEY=NEW):
        assert Job.objects.get(pk=job.id).secrets == SECRETS


def test_secrets_that_cannot_be_opened_harm_no_other_job(town: Town) -> None:
    puppet = town.node("n1", 2)
    job, other = town.submit(secrets=SECRETS), town.submit(secrets={"KEY": "another"})
    Job.objects.filter(pk=job.pk).update(sealed_secrets="rubbish")
    town.cycle()
    launches = {d.job: d.launch for d in desired_state(puppet.node.id).replicas}
    assert launches[job.id] is None
    launch = launches[other.id]
    assert launch is not None
    assert launch.secrets == {"KEY": "another"}
