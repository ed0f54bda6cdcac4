"""Addresses of the WebSockets."""

from django.urls import URLPattern, URLResolver, path

from portal.consumers.agents import AgentConsumer
from portal.consumers.pages import FleetConsumer, JobConsumer, JobsConsumer

websocket_urlpatterns: list[URLPattern | URLResolver] = [
    path("agents/link/", AgentConsumer.as_asgi()),
    path("ws/fleet/", FleetConsumer.as_asgi()),
    path("ws/jobs/", JobsConsumer.as_asgi()),
    path("ws/jobs/<int:id>/", JobConsumer.as_asgi()),
]
