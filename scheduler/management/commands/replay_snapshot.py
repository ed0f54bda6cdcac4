"""``manage.py replay_snapshot FILE``: plan a saved case again, and say what differs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler.planner import PRESETS, Decision, plan
from scheduler.planner.codec import CodecError, load_case
from scheduler.planner.invariants import check


class Command(BaseCommand):
    help = "Plan a saved case again; exits 1 when the plan differs or breaks a rule."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--policy", choices=sorted(PRESETS), help="another policy than its own")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            snapshot, policy, before = load_case(options["file"].read_text(encoding="utf-8"))
        except (OSError, CodecError) as error:
            raise CommandError(f"{options['file']}: {error}") from None
        if options["policy"]:
            policy, before = PRESETS[options["policy"]], None
        chosen = policy or PRESETS["default"]
        began = time.perf_counter()
        decisions = plan(snapshot, chosen)
        seconds = time.perf_counter() - began
        for decision in decisions:
            self.stdout.write(_told(decision))
        self.stdout.write(f"{len(decisions)} decisions in {seconds:.4f} s, policy {chosen.name}")
        broken = check(snapshot, decisions, chosen)
        for rule in broken:
            self.stdout.write(f"BROKEN: {rule}")
        differs = before is not None and before != decisions
        if differs:
            self.stdout.write("The plan differs from the saved one.")
        if broken or differs:
            raise SystemExit(1)


def _told(decision: Decision) -> str:
    return f"{type(decision).__name__.lower():8} {decision.job:>8}  {decision.why}"
