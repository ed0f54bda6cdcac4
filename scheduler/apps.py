"""The scheduler as a Django application: its tasks and management commands, no rows of its own."""

from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    name = "scheduler"
