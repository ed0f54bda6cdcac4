"""Sockets of open pages: let in who may see what the page shows, then forward its events."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.http import Http404

from portal.access import access_job, visible_tenants
from portal.models import User

REFUSED = 4403
"""Close code of a socket that must not be tried again."""
RECHECK_S = 15.0
"""Seconds after which a right to see is looked at again before the next event is forwarded."""


class PageConsumer(AsyncWebsocketConsumer):
    """Forward the events of some groups; each kind of page says which, and who may."""

    async def connect(self) -> None:
        self.joined: set[str] = set()
        self.checked_at = time.monotonic()
        groups = await self.find_groups()
        # Joined before it is accepted: a page that is connected misses nothing from then on.
        await self.join(groups or set())
        await self.accept()
        if groups is None:
            await self.close(REFUSED)

    async def join(self, groups: set[str]) -> None:
        for group in sorted(groups - self.joined):
            await self.channel_layer.group_add(group, self.channel_name)
        for group in sorted(self.joined - groups):
            await self.channel_layer.group_discard(group, self.channel_name)
        self.joined = groups

    async def disconnect(self, code: int) -> None:
        await self.join(set())

    async def event(self, message: dict[str, Any]) -> None:
        """Forward one event, unless the user has lost the right to see it."""
        if time.monotonic() - self.checked_at > RECHECK_S:
            self.checked_at = time.monotonic()
            groups = await self.find_groups()
            if groups is None:
                await self.close(REFUSED)
                return
            await self.join(groups)
        await self.send(text_data=json.dumps(message["event"]))

    @database_sync_to_async
    def find_groups(self) -> set[str] | None:
        """The groups whose events the user may see here; None when nothing of it is theirs."""
        user = User.objects.filter(
            pk=getattr(self.scope["user"], "pk", None) or 0, is_active=True
        ).first()
        return None if user is None else self.groups_of(user)

    def groups_of(self, user: User) -> set[str] | None:
        raise NotImplementedError


class FleetConsumer(PageConsumer):
    """The fleet and the nodes: everyone who is signed in sees them.

    ``?use=no`` leaves out each node's seconds of use: of a large fleet they are thousands a second.
    """

    def groups_of(self, user: User) -> set[str] | None:
        asked = parse_qs(self.scope.get("query_string", b"").decode("latin-1"))
        return {"fleet"} if asked.get("use") == ["no"] else {"fleet", "use"}


class JobsConsumer(PageConsumer):
    """The list of jobs: those of the user's tenants."""

    def groups_of(self, user: User) -> set[str] | None:
        if user.is_admin:
            return {"admins"}
        return {f"tenant.{slug}" for slug in visible_tenants(user).values_list("slug", flat=True)}


class SimulationConsumer(PageConsumer):
    """One simulation: admins only, as its page."""

    def groups_of(self, user: User) -> set[str] | None:
        return {f"simulation.{self.scope['url_route']['kwargs']['id']}"} if user.is_admin else None


class JobConsumer(PageConsumer):
    """One job."""

    def groups_of(self, user: User) -> set[str] | None:
        id = int(self.scope["url_route"]["kwargs"]["id"])
        try:
            access_job(user, id)
        except Http404:
            return None
        return {f"job.{id}"}
