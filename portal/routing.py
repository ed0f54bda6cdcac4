"""Addresses of the WebSockets."""

from django.urls import URLPattern, URLResolver, path

from portal.consumers.agents import AgentConsumer

websocket_urlpatterns: list[URLPattern | URLResolver] = [
    path("agents/link/", AgentConsumer.as_asgi()),
]
