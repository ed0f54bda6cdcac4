"""``manage.py save_snapshot FILE``: take a live case home, to plan it again elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from portal.drawings.figures import count
from scheduler.live.cluster import LiveCluster, live_policy
from scheduler.planner import plan
from scheduler.planner.codec import dump_case


class Command(BaseCommand):
    help = "Write the fleet as the planner sees it, the policy, and the plan it makes of them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="JSON; no command or secret of a job is in it")

    def handle(self, *args: Any, **options: Any) -> None:
        snapshot, policy = LiveCluster().observe(), live_policy()
        decisions = plan(snapshot, policy)
        options["file"].write_text(dump_case(snapshot, policy, decisions), encoding="utf-8")
        self.stdout.write(
            f"{count(len(snapshot.nodes), 'node')}, {count(len(snapshot.jobs), 'job')},"
            f" {count(len(decisions), 'decision')}: {options['file']}"
        )
