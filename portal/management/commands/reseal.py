"""``manage.py reseal``: seal every job's secrets with the present secret key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from portal.drawings.figures import count
from portal.models import Job
from portal.sealing import SealError, reseal


class Command(BaseCommand):
    help = "Seal every job's secrets with the present secret key, after it was changed."

    def handle(self, *_: Any, **__: Any) -> None:
        done, lost = 0, []
        sealed = Job.objects.exclude(sealed_secrets="").values_list("id", "sealed_secrets")
        for id, secrets in sealed.order_by("id").iterator():
            try:
                fresh = reseal(secrets)
            except SealError:
                lost.append(id)
                continue
            done += Job.objects.filter(pk=id, sealed_secrets=secrets).update(sealed_secrets=fresh)
        self.stdout.write(f"Sealed anew: the secrets of {count(done, 'job')}.")
        if lost:
            numbers = ", ".join(map(str, lost))
            self.stdout.write(f"No known key opens those of {numbers}; submit these jobs again.")
