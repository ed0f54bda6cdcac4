"""Who may import whom: the contracts, and the two cores that must load alone."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("django", "celery", "channels", "rest_framework", "redis")
ALONE = {
    "scheduler.planner": (*HEAVY, "portal", "agents", "msgspec"),
    "scheduler.simulator": (*HEAVY, "portal"),
    "agents.agent": (*HEAVY, "portal", "scheduler"),
}


def test_the_import_contracts_hold() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--no-logo", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", sorted(ALONE))
def test_a_fresh_interpreter_loads_it_without_what_it_must_not_know(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{n.split('.')[0] for n in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not set(done.stdout.split()) & set(ALONE[module])
