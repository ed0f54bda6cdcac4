"""The ASGI application: pages and API over HTTP, browsers and agents over WebSockets."""

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django import setup

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
setup(set_prefix=False)  # first: the routes import rows

from portal.limits import BodyLimit  # noqa: E402
from portal.listening import lifespan  # noqa: E402
from portal.origins import SameOrigin  # noqa: E402
from portal.routing import websocket_urlpatterns  # noqa: E402
from portal.serving import PooledHandler  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": BodyLimit(PooledHandler()),
        "lifespan": lifespan,
        "websocket": SameOrigin(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
