"""A training over several hosts moves, shrinks and grows as one, and nobody can tell afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.demo.fleet import Fleet
from tests.fleets.training import Training, Undisturbed

pytestmark = [pytest.mark.slow, pytest.mark.criu, pytest.mark.timeout(600)]
STEPS = 1000
PACE = 0.04


def test_four_replicas_move_shrink_and_grow_and_end_with_the_same_weights(
    ana: Fleet, tmp_path: Path
) -> None:
    training = Training(ana, steps=STEPS, pace=PACE, replicas=4, fewest_devices=1)
    training.wait_for_step(5)
    assert len(training.nodes()) == 2
    receipt = training.migrate()
    assert not receipt["called_off"]
    assert not set(receipt["from_nodes"]) & set(receipt["to_nodes"])
    training.wait_for_more()
    sizes = []
    for devices in (2, 1, 4):
        receipt = training.resize(devices)
        sizes.append((receipt["from_devices"], receipt["to_devices"], receipt["called_off"]))
        training.wait_for_more()
    assert sizes == [(4, 2, ""), (2, 1, ""), (1, 4, "")]
    assert training.checkpoint()["bytes_raw"] > 0
    undisturbed = Undisturbed(tmp_path, steps=STEPS, replicas=4)
    assert training.weights() == {undisturbed.weights()}
    assert training.lost() == {}
