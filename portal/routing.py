"""Addresses of the WebSockets."""

from typing import Any

from django.urls import path

from portal.consumers.agents import AgentConsumer
from portal.consumers.pages import FleetConsumer, JobConsumer, JobsConsumer, SimulationConsumer

SOCKETS: dict[str, Any] = {
    "agents/link/": AgentConsumer,
    "ws/fleet/": FleetConsumer,
    "ws/jobs/": JobsConsumer,
    "ws/jobs/<int:id>/": JobConsumer,
    "ws/what-if/<int:id>/": SimulationConsumer,
}
websocket_urlpatterns: list[Any] = [
    # Channels' applications are callables of ASGI's kind, which Django's types do not know.
    path(address, consumer.as_asgi())
    for address, consumer in SOCKETS.items()
]
