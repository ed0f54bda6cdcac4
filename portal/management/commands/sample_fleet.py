"""Lay a believable fleet to look at; refuses where real jobs are."""

from __future__ import annotations

import secrets
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from portal.models import Job, Node, User
from portal.samples.crowd import lay_crowd
from portal.samples.fleet import lay_fleet
from portal.samples.jobs import lay_jobs
from portal.samples.promises import lay_promises
from portal.samples.use import lay_job_use, lay_output, lay_use


class Command(BaseCommand):
    """Rows only: no agent stands behind these nodes, and a running planner would give them up."""

    help = (
        "Lay a believable fleet to look at: six nodes of eight H100, tenants, jobs in every state."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--nodes", type=int, default=0, help="more nodes of eight devices, most of them busy"
        )
        parser.add_argument("--ended", type=int, default=0, help="more jobs that have ended")

    def handle(self, *args: Any, **options: Any) -> None:
        if Job.objects.exists() or Node.objects.exists():
            raise CommandError(
                "This database has nodes or jobs. Use an empty one: set TIDEPOOL_HOME to a new "
                "folder and run migrate there first."
            )
        now = timezone.now()
        password = secrets.token_urlsafe(12)
        with transaction.atomic():
            admin, _ = User.objects.get_or_create(username="admin", defaults={"is_staff": True})
            admin.set_password(password)
            admin.save()
            sample = lay_fleet(now, admin)
            jobs = lay_jobs(sample, now)
            lay_promises(jobs, now)
            lay_use(now)
            for job in jobs:
                lay_job_use(job, now)
            crowd = lay_crowd(sample, now, options["nodes"], options["ended"])
        for job in jobs:
            if job.started_at and not job.ended:
                lay_output(job)
        nodes = len(sample.nodes) + options["nodes"]
        count = len(jobs) + crowd + options["ended"]
        self.stdout.write(f"{nodes} nodes, {count} jobs. Log in as admin: {password}")
