"""Tokens that are good, and those that are not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from portal.actions import signing
from portal.actions.tokens import create_token, find_token, revoke_token
from portal.models import AccessToken, Node, User
from portal.refusals import Refused
from tests.portal.api.conftest import Api


def show(secret: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


def test_a_token_acts_for_its_user(alice: User) -> None:
    _, secret = create_token(alice, "laptop")

    answer = show(secret).get("/api/v1/me/")

    assert answer.json()["username"] == "alice"
    assert answer.json()["memberships"] == [{"tenant": "vision", "role": "researcher"}]


def test_only_a_tokens_digest_is_kept(alice: User) -> None:
    token, secret = create_token(alice, "laptop")

    values = AccessToken.objects.filter(id=token.id).values().get().values()

    assert secret not in map(str, values)
    assert secret.startswith(token.prefix)


@pytest.mark.parametrize("spoilt", ["expired", "revoked", "inactive", "unknown", "empty"])
def test_a_token_that_is_not_good_is_refused(alice: User, spoilt: str) -> None:
    token, secret = create_token(alice, "laptop")
    match spoilt:
        case "expired":
            AccessToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        case "revoked":
            revoke_token(token)
        case "inactive":
            User.objects.update(is_active=False)
        case "unknown":
            secret = "tp_never-made"
        case "empty":
            secret = ""

    answer = show(secret).get("/api/v1/me/")

    assert answer.status_code == 401
    assert answer.json()["id"] == "not-authenticated"
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_a_nodes_token_opens_nothing_else(node: Node, root: User, api: Api) -> None:
    secret = api(root).post(f"/api/v1/nodes/{node.name}/token/").json()["token"]

    assert show(secret).get("/api/v1/jobs/").status_code == 401


def test_use_is_noted_at_most_once_a_minute(alice: User) -> None:
    token, secret = create_token(alice, "laptop")
    now = timezone.now()
    noted = []
    for seconds in (0, 30, 61):
        find_token(secret, now + timedelta(seconds=seconds))
        token.refresh_from_db()
        noted.append(token.used_at)

    assert noted == [now, now, now + timedelta(seconds=61)]


def test_a_live_name_is_taken_and_a_revoked_one_is_free(alice: User) -> None:
    token, _ = create_token(alice, "laptop")
    with pytest.raises(Refused) as refused:
        create_token(alice, "laptop")
    assert "name" in refused.value.fields
    revoke_token(token)
    create_token(alice, "laptop")


def test_a_session_needs_the_csrf_token(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)

    assert client.get("/api/v1/me/").status_code == 200
    refused = client.patch("/api/v1/me/", {"theme": "dark"}, content_type="application/json")
    assert refused.status_code == 403
    assert "CSRF" in refused.json()["detail"]


def test_a_password_is_changed_for_a_token(alice: User) -> None:
    told = {"username": "alice", "password": "alice", "name": "laptop"}

    first = APIClient().post("/api/v1/login/", told, format="json")
    second = APIClient().post("/api/v1/login/", told, format="json")

    assert first.status_code == second.status_code == 201
    assert show(second.json()["token"]).get("/api/v1/me/").status_code == 200
    # One token a machine: the second took the first one's place.
    assert show(first.json()["token"]).get("/api/v1/me/").status_code == 401


def test_a_wrong_password_is_refused_without_saying_what_is_wrong(alice: User) -> None:
    answers = [
        APIClient().post("/api/v1/login/", {"username": name, "password": "x"}, format="json")
        for name in ("alice", "nobody")
    ]

    assert [answer.status_code for answer in answers] == [400, 400]
    assert answers[0].json() == answers[1].json()


def test_guessing_passwords_is_slowed_down(alice: User) -> None:
    wrong = {"username": "alice", "password": "guess"}
    for _ in range(signing.GUESSES_AN_ACCOUNT):
        assert APIClient().post("/api/v1/login/", wrong, format="json").status_code == 400

    right = {"username": "alice", "password": "alice"}
    answer = APIClient().post("/api/v1/login/", right, format="json")

    assert answer.status_code == 429
    assert answer.json()["id"] == "too-many-attempts"
    assert int(answer["Retry-After"]) > 0


def test_guessing_tokens_is_slowed_down_but_good_ones_pass(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing, "WRONG_TOKENS", 2)
    _, secret = create_token(alice, "laptop")

    statuses = [show("tp_guess").get("/api/v1/me/").status_code for _ in range(4)]

    assert statuses == [401, 401, 429, 429]
    assert show(secret).get("/api/v1/me/").status_code == 200


def test_the_trail_and_the_list_never_show_a_secret(alice: User, api: Api) -> None:
    client = api(alice)
    made = client.post("/api/v1/tokens/", {"name": "ci", "days": None}, format="json").json()

    listed = client.get("/api/v1/tokens/").json()["results"]

    assert made["token"].startswith("tp_")
    assert made["expires_at"] is None
    assert made["token"] not in str(listed)
