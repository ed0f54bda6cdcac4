"""The simulator starts without the portal, and without what only some runs need."""

import subprocess
import sys

from tests.architecture.sources import ROOT

HEAVY = ["celery", "django", "numpy", "plotly", "portal", "scipy"]


def test_a_fresh_interpreter_loads_nothing_heavy():
    words = (
        f"import sys, scheduler.simulator.__main__; print([x for x in {HEAVY} if x in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"
