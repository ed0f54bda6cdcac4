"""A newcomer's day: the demo, a stop and a start in the middle of a training, the demo again."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from portal.demo.fleet import Fleet
from portal.demo.story import DIGITS, submit
from tests.product import Product, wait_for
from tests.story.conftest import undisturbed

pytestmark = [pytest.mark.slow, pytest.mark.criu, pytest.mark.timeout(600)]
STEPS = 300


def test_the_demo_waits_for_another_job_and_loses_nothing(product: Product, ana: Fleet) -> None:
    other = ana.submit(DIGITS, name="other", tenant="vision", tier="standard", command="sleep 5")
    said = product.manage("demo", "--steps", "120")
    assert f"shared with job {other} (other, ana" in said
    assert "Nothing was lost." in said


def test_stopped_and_started_it_goes_on_where_it_was(
    product: Product, ana: Fleet, tmp_path: Path
) -> None:
    job = submit(ana, "digits", "standard", steps=STEPS, pace=0.05)
    ana.wait_for_step(job.job, 20)
    assert product.stop() == 0
    wait_for(lambda: not strays(product.home), "processes and mounts to be gone", 40)
    before = dict(product.accounts)
    product.start()
    assert product.accounts == before, "passwords are shown once"
    ana.wait_for_end(job.job)
    assert ana.weights(job.job) == undisturbed(tmp_path, STEPS)
    assert ana.steps(job.job) == list(range(1, STEPS + 1))
    assert "Nothing was lost." in product.manage("demo", "--steps", "120")


def test_a_second_one_in_the_same_home_is_refused_clearly(product: Product) -> None:
    with pytest.raises(RuntimeError, match="already running"):
        product.manage("up")


def strays(home: Path) -> list[str]:
    """Answer processes and mounts that still belong to a home."""
    mounts = [
        line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(home) in line
    ]
    processes = [
        " ".join(process.info["cmdline"])
        for process in psutil.process_iter(["cmdline"])
        if str(home) in " ".join(process.info["cmdline"] or [])
    ]
    return mounts + processes
