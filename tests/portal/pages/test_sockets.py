"""Sockets of pages: who is let in, what is forwarded, and what happens when a right is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser

from portal.consumers import pages
from portal.events import JobEvent, NodeEvent, SimulationEvent, UseEvent, send
from portal.models import Job, Membership, User
from portal.routing import websocket_urlpatterns

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
SOON_S = 20.0


class Socket(ApplicationCommunicator):
    """A browser's end of a socket."""

    def __init__(self, path: str, user: User | AnonymousUser, query: bytes = b"") -> None:
        scope = {"type": "websocket", "path": path, "headers": [], "user": user}
        scope["query_string"] = query
        super().__init__(URLRouter(websocket_urlpatterns), scope)

    async def open(self) -> None:
        await self.send_input({"type": "websocket.connect"})
        assert (await self.receive_output(SOON_S))["type"] == "websocket.accept"

    async def hear(self) -> dict[str, Any]:
        message = await self.receive_output(SOON_S)
        assert message["type"] == "websocket.send"
        return dict(json.loads(message["text"]))

    async def closed_with(self) -> int:
        message = await self.receive_output(SOON_S)
        assert message["type"] == "websocket.close"
        return int(message["code"])

    async def close(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(SOON_S)


def tell(job: Job, state: str) -> None:
    event = JobEvent(kind="job", job=job.id, state=state, sentence="")
    send(event, f"job.{job.id}", f"tenant.{job.tenant.slug}", "admins")


async def assert_refused(socket: Socket) -> None:
    await socket.open()
    assert await socket.closed_with() == pages.REFUSED


async def test_strangers_are_refused(job: Job, charlie: User) -> None:
    for path in ("/ws/fleet/", "/ws/jobs/", f"/ws/jobs/{job.id}/"):
        await assert_refused(Socket(path, AnonymousUser()))
    await assert_refused(Socket(f"/ws/jobs/{job.id}/", charlie))
    await assert_refused(Socket("/ws/what-if/1/", charlie))


async def test_an_admin_hears_how_far_a_simulation_is(root: User) -> None:
    socket = Socket("/ws/what-if/7/", root)
    await socket.open()
    event = SimulationEvent(kind="simulation", simulation=7, state="running", share=0.5)
    await sync_to_async(send)(event, "simulation.7")
    assert await socket.hear() == event
    await socket.close()


async def test_everyone_hears_of_the_fleet_and_of_its_use_unless_they_decline(alice: User) -> None:
    all_of_it, quiet = Socket("/ws/fleet/", alice), Socket("/ws/fleet/", alice, b"use=no")
    for socket in (all_of_it, quiet):
        await socket.open()
    use = UseEvent(kind="use", node="node-a", at=1.0, devices={})
    await sync_to_async(send)(use, "use")
    await sync_to_async(send)(NodeEvent(kind="node", node="node-a"), "fleet")
    assert await all_of_it.hear() == use
    for socket in (all_of_it, quiet):
        assert await socket.hear() == {"kind": "node", "node": "node-a"}
        await socket.close()


@pytest.mark.parametrize("path", ["/ws/jobs/", "/ws/jobs/{}/"])
async def test_members_and_admins_hear_of_a_job(
    job: Job, alice: User, root: User, path: str
) -> None:
    for user in (alice, root):
        socket = Socket(path.format(job.id), user)
        await socket.open()
        await sync_to_async(tell)(job, "running")
        heard = await socket.hear()
        assert (heard["job"], heard["state"]) == (job.id, "running")
        await socket.close()


async def test_strangers_to_a_tenant_hear_nothing_of_its_jobs(job: Job, charlie: User) -> None:
    socket = Socket("/ws/jobs/", charlie)
    await socket.open()
    await sync_to_async(tell)(job, "running")
    assert await socket.receive_nothing()
    await socket.close()


async def test_a_lost_right_ends_the_socket(
    job: Job, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "RECHECK_S", 0.0)
    socket = Socket(f"/ws/jobs/{job.id}/", alice)
    await socket.open()
    await sync_to_async(Membership.objects.filter(user=alice).delete)()
    await sync_to_async(tell)(job, "running")
    assert await socket.closed_with() == pages.REFUSED
