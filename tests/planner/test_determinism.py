"""The same facts give the same plan in every process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
from scheduler.planner import plan
from tests.planner.strategies import a_policy, a_snapshot
for seed in range(120):
    print(plan(a_snapshot(seed), a_policy(seed)))
"""


def said(seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_the_plan_does_not_depend_on_how_strings_are_hashed() -> None:
    first = said("0")
    assert first
    assert first == said("4711")
