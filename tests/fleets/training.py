"""A training over several replicas, as a job of a test fleet and undisturbed without one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from portal.demo.fleet import WEIGHTS, Fleet
from portal.demo.story import DIGITS
from tests.fleets.jobs import SpreadJob
from tests.product import free_port, wait_for

DDP = DIGITS.parent / "digits_ddp"
WITHIN_S = 240.0
"""Generous: the machine may have other things to do."""


class Training(SpreadJob):
    """It trains with PyTorch's DDP over gloo."""

    def __init__(
        self, fleet: Fleet, *, steps: int, pace: float, replicas: int, **more: Any
    ) -> None:
        command = ["python", "train.py", "--steps", str(steps), "--pace", str(pace)]
        super().__init__(fleet, DDP, command, replicas=replicas, **more)
        self.steps = steps

    def lost(self) -> dict[int, int]:
        """Answer for every rank with such steps how many it computed twice, or -1 for a gap."""
        found = {}
        for rank in range(self.replicas):
            numbers = self.numbers(rank)
            if numbers != list(range(1, self.steps + 1)):
                found[rank] = len(numbers) - len(set(numbers)) or -1
        return found

    def weights(self) -> set[str]:
        """Wait for the end and answer the weights that the ranks tell; one, if all is well."""
        wait_for(lambda: self.told()["ended_at"], f"job {self.job} to end", 4 * WITHIN_S)
        self.fleet.wait_for_end(self.job)
        self.fleet.weights(self.job)
        return {
            found[1] if (found := WEIGHTS.search(self.fleet.output(self.job, rank))) else ""
            for rank in range(self.replicas)
        }


class Undisturbed:
    """The same training without the product, begun at once; ``weights`` waits for it."""

    def __init__(self, folder: Path, *, steps: int, replicas: int) -> None:
        world = {
            **os.environ,
            "WORLD_SIZE": str(replicas),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
            "GLOO_SOCKET_IFNAME": "lo",
        }
        self.ranks = [
            subprocess.Popen(
                ["nice", sys.executable, str(DDP / "train.py"), "--steps", str(steps)],
                cwd=folder,
                env={**world, "RANK": str(rank)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                text=True,
            )
            for rank in range(replicas)
        ]

    def weights(self) -> str:
        try:
            said, _ = self.ranks[0].communicate(timeout=WITHIN_S)
        finally:
            self.end()
        found = WEIGHTS.search(said)
        assert found, said
        return found[1]

    def end(self) -> None:
        for rank in self.ranks:
            rank.kill()
            rank.wait()
