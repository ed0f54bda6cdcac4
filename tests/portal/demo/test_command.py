"""However the story ends, its jobs and tokens do not outlive it."""

from __future__ import annotations

import signal
from typing import Any

import httpx
import pytest
from django.core.management import CommandError, call_command

from portal.actions.seeding import seed
from portal.demo.fleet import Fleet, NotSoError
from portal.management.commands import demo
from portal.models import AccessToken
from tests.portal.demo.stand_in import StandIn


@pytest.fixture
def product(db: None, portal: StandIn, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    seed(passwords=False)

    def view(address: str, token: str, tenant: str, **told: Any) -> Fleet:
        return Fleet(address, token, tenant, transport=httpx.MockTransport(portal.answer), **told)

    monkeypatch.setattr(demo, "Fleet", view)
    monkeypatch.setattr(signal, "signal", lambda *told: None)
    return portal


@pytest.mark.parametrize(
    ("end", "seen"), [(KeyboardInterrupt(), SystemExit), (NotSoError("no room"), CommandError)]
)
def test_its_jobs_are_cancelled_and_its_tokens_revoked(
    product: StandIn,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    end: BaseException,
    seen: type[BaseException],
) -> None:
    def play(ana: Fleet, *told: Any, **options: Any) -> None:
        ana.submitted.append(product.add(4))
        raise end

    monkeypatch.setattr(demo, "play", play)
    with pytest.raises(seen):
        call_command("demo")
    assert product.jobs[4]["state"] == "cancelled"
    assert "Cancelled what was left of it: job 4" in capsys.readouterr().out
    assert not AccessToken.objects.filter(revoked_at=None).exists()


def test_a_portal_that_is_away_keeps_its_sentence(
    product: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    product.away = True
    with pytest.raises(CommandError, match="Start everything with `make up`"):
        call_command("demo")
    assert capsys.readouterr().out == ""


def test_trainings_that_are_too_short_are_refused(product: StandIn) -> None:
    with pytest.raises(CommandError, match="40 or more"):
        call_command("demo", "--steps", "39")
