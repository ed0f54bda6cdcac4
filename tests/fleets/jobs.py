"""A job over several replicas as its owner steers it, and what is told of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from portal.demo.fleet import ENDED, Fleet

SELDOM_S = 0.5
"""Between two looks at a move: each costs the portal time that the move itself needs."""
LOOKS = 10
"""After so many of them the job is looked at as well."""


class SpreadJob:
    """A job of several replicas, one a device, from a folder of files."""

    look_s = SELDOM_S

    def __init__(
        self, fleet: Fleet, folder: Path, command: Sequence[str], *, replicas: int, **more: Any
    ) -> None:
        self.fleet = fleet
        self.replicas = replicas
        told = {"name": folder.name, "tenant": fleet.tenant, "tier": "standard", **more}
        words = json.dumps(list(command))
        self.job = fleet.submit(
            folder, command=words, replicas=replicas, gpus_per_replica=1, **told
        )

    def told(self) -> dict[str, Any]:
        return self.fleet.job(self.job)

    def seats(self) -> dict[int, str]:
        """Answer the node of each rank in the newest placement."""
        newest = self.fleet.placements(self.job)[-1]
        return {seat["rank"]: seat["node"] for seat in newest["seats"]}

    def nodes(self) -> set[str]:
        return set(self.seats().values())

    def wait_for_step(self, step: int) -> None:
        self.fleet.wait_for_step(self.job, step)

    def wait_for_more(self, steps: int = 3) -> None:
        """Wait until it has computed so many steps from now on."""
        self.wait_for_step(len(self.fleet.steps(self.job)) + steps)

    def migrate(self) -> dict[str, Any]:
        """Move it to other hosts and answer the receipt."""
        return self._moved("migrate", {})

    def resize(self, devices: int) -> dict[str, Any]:
        """Spread it over so many devices and answer the receipt."""
        return self._moved("resize", {"devices": devices})

    def _moved(self, act: str, told: dict[str, Any]) -> dict[str, Any]:
        before = len(self.fleet.receipts(self.job))
        self.steer(act, told)

        looks = itertools.count(1)

        def over() -> dict[str, Any] | None:
            receipts = self.fleet.receipts(self.job)[before:]
            closed = [r for r in receipts if r["resumed_at"] or r["called_off"]]
            if closed:
                return closed[0]
            if next(looks) % LOOKS == 0 and (told := self.told())["state"] in ENDED:
                raise AssertionError(f"It ended: {told['detail']}")
            return None

        receipt: dict[str, Any] = self.fleet.wait(f"job {self.job} to {act}", over, self.look_s)
        return receipt

    def checkpoint(self) -> dict[str, Any]:
        """Take a checkpoint while it runs, and answer it once it is committed."""
        before = len(self.checkpoints())
        self.steer("checkpoint", {})
        found: dict[str, Any] = self.fleet.wait(
            "a checkpoint", lambda: (self.checkpoints()[before:] or [None])[0]
        )
        return found

    def checkpoints(self) -> list[dict[str, Any]]:
        """Answer the committed ones, oldest first."""
        return [each for each in self.cuts() if each["state"] == "committed"]

    def cuts(self) -> list[dict[str, Any]]:
        """Answer all checkpoints that were begun, oldest first."""
        answer = self.fleet.http.get(f"jobs/{self.job}/checkpoints/?page_size=500")
        answer.raise_for_status()
        found = answer.json()
        found = found["results"] if isinstance(found, dict) else found
        return sorted(found, key=lambda each: int(each["number"]))

    def steer(self, act: str, told: dict[str, Any]) -> None:
        answer = self.fleet.http.post(f"jobs/{self.job}/{act}/", json=told)
        assert answer.status_code == 202, answer.text

    def lines(self, rank: int) -> list[str]:
        output = self.fleet.output(self.job, rank)
        return [line for line in output.splitlines() if line.startswith("step ")]

    def fates(self) -> list[dict[str, Any]]:
        """Answer the receipts of what interrupted it, oldest first."""
        return self.fleet.receipts(self.job)

    def numbers(self, rank: int = 0) -> list[int]:
        """Answer the numbers of the steps that a rank tells of, in order."""
        return [int(line.split()[1]) for line in self.lines(rank)]
