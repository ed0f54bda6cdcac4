"""Each process is ended without warning while jobs run: nothing is lost, nothing runs twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.demo.fleet import Fleet
from portal.demo.story import submit
from tests.product import PARTS, Product, wait_for
from tests.story.conftest import undisturbed

pytestmark = [pytest.mark.slow, pytest.mark.criu, pytest.mark.timeout(600)]
STEPS = 1200


def test_every_process_is_killed_in_turn(product: Product, ana: Fleet, tmp_path: Path) -> None:
    jobs = [
        submit(ana, f"digits {node}", "standard", steps=STEPS, pace=0.03, gpus_per_replica=2)
        for node in "ab"
    ]
    for job in jobs:
        ana.wait_for_step(job.job, 10)
    for part in PARTS:
        product.kill(part)
        wait_for(product.healthy, f"health after {part} was killed", 120)
    wanted = undisturbed(tmp_path, STEPS)
    for job in jobs:
        ended = ana.wait_for_end(job.job)
        assert ana.weights(job.job) == wanted
        assert ana.steps(job.job) == list(range(1, STEPS + 1))
        assert ended["exit_code"] == 0
