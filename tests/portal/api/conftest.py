"""What tests of the API share: clients with tokens, a node, and jobs at several stages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone
from rest_framework.test import APIClient

from portal.actions.nodes import new_secret
from portal.actions.tokens import create_token, digest
from portal.models import Device, Job, Node, PlacedReplica, Placement, Tenant, Tier, User

Api = Callable[[User | None], APIClient]


@pytest.fixture(autouse=True)
def own_folders(settings: Any, tmp_path: Path) -> None:
    settings.OUTPUT = tmp_path / "output"
    settings.STORE = str(tmp_path / "store")
    settings.MEDIA_ROOT = tmp_path / "uploads"
    cache.clear()


@pytest.fixture
def api(db: None) -> Api:
    """Answer a client that shows a user's token; None: a client that shows nothing."""

    def client_of(user: User | None) -> APIClient:
        client = APIClient()
        if user is not None:
            _, secret = create_token(user, f"test {timezone.now().timestamp()}")
            client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
        return client

    return client_of


@pytest.fixture
def node(db: None) -> Node:
    """A node that is well, with two cpu devices; its token is its name's secret."""
    return make_node("node-a")


def make_node(name: str, secret: str = "") -> Node:
    node = Node.objects.create(
        name=name,
        token_digest=digest(secret or new_secret()),
        heard_at=timezone.now(),
        connected=True,
        driver="container",
        cpus=8,
        memory=2**34,
        abilities={
            ability: {"able": True, "reason": ""}
            for ability in ("run", "pause", "checkpoint", "migrate", "network")
        },
    )
    for index in range(2):
        Device.objects.create(node=node, uid=f"cpu{index}", index=index, kind="cpu", memory=2**30)
    return node


@pytest.fixture
def make_job(tiers: dict[str, Tier], vision: Tenant, alice: User) -> Callable[..., Job]:
    """Make a job's row; alice's in vision unless told otherwise."""

    def make(name: str = "train", **fields: Any) -> Job:
        told = {
            "owner": alice,
            "tenant": vision,
            "tier": tiers["basic"],
            "command": ["python", "train.py"],
            "submitted_at": timezone.now(),
        }
        return Job.objects.create(name=name, **{**told, **fields})

    return make


@pytest.fixture
def job(make_job: Callable[..., Job]) -> Job:
    """A waiting job of alice's, with a secret."""
    return make_job(secrets={"TOKEN": "hush"}, environment={"EPOCHS": "3"}, tags=["night"])


def place(job: Job, node: Node, *, state: str = "active", devices: int = 1) -> Placement:
    """Seat a job's replicas on a node."""
    placement = Placement.objects.create(
        job=job,
        epoch=job.placements.count() + 1,
        state=state,
        want_since=timezone.now(),
        created_at=timezone.now(),
        devices=devices,
    )
    for rank in range(job.replicas):
        PlacedReplica.objects.create(
            placement=placement, rank=rank, node=node, devices=[f"cpu{rank}"], state="running"
        )
    return placement
