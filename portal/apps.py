"""The portal as a Django application."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "portal"
    verbose_name = "Tidepool"

    def ready(self) -> None:
        """Make our Celery application the current one, so that any process can send tasks."""
        import portal.celery  # noqa: F401
