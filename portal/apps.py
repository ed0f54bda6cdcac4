"""The portal as a Django application."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class PortalConfig(AppConfig):
    name = "portal"
    verbose_name = "Tidepool"

    def ready(self) -> None:
        """Have any process send tasks by our Celery application, and changes logged.

        The database keeps the log itself; the triggers that do it are put in place after every
        migration.
        """
        import portal.celery  # noqa: F401
        from portal import changes

        pre_migrate.connect(changes.before_migrating, sender=self)
        post_migrate.connect(changes.install, sender=self)
