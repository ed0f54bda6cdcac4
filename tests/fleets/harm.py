"""What goes wrong in a fleet, at random: processes killed, wires cut, the store's disk full."""

from __future__ import annotations

import collections
import contextlib
import os
import random
import signal
import time

from tests.fleets.disk import SmallDisk
from tests.fleets.fleet import LEASE_S, HostFleet
from tests.product import wait_for

PARTS = ("portal", "worker-cycle", "worker-work", "broker", "beat")
SHORT_CUT_S = (0.2, 0.4 * LEASE_S)
LONG_CUT_S = (1.2 * LEASE_S, 1.6 * LEASE_S)
FULL_S = (0.5, 4.0)
FULL = "full disk"


class Harm:
    """Breaks one thing at a time, by ``chance``, and counts what it has broken."""

    def __init__(self, fleet: HostFleet, disk: SmallDisk | None, chance: random.Random) -> None:
        self.fleet = fleet
        self.disk = disk
        self.chance = chance
        self.done: collections.Counter[str] = collections.Counter()

    def strike(self) -> str:
        """Do one thing, and answer what it was; a cut or a full disk has an end to it."""
        hosts = list(self.fleet.switch.hosts)
        acts = [*PARTS, *hosts, "cut", "cut", "long cut", "power"]
        acts += ["portal away", "broker away", "agent away"]
        act = self.chance.choice([*acts, *([FULL] if self.disk else [])])
        name = self.chance.choice(hosts)
        match act:
            case "cut":
                what = self._cut(name, SHORT_CUT_S, "cut")
            case "long cut":
                what = self._cut(name, LONG_CUT_S, "cut for longer than the lease")
            case "portal away" | "broker away":
                what = self._keep_away(act.removesuffix(" away"))
            case "agent away":
                what = self._hang(name)
            case "power":
                what = self._halt(name)
            case "full disk":
                what = self._fill()
            case part:
                self.fleet.kill(part)
                what = "agent" if part in hosts else part
        self.done[what] += 1
        return what

    def mend(self) -> None:
        """Make everything whole again."""
        for host in self.fleet.switch.hosts.values():
            host.join()
        if self.disk:
            self.disk.empty()

    def _cut(self, name: str, seconds: tuple[float, float], what: str) -> str:
        host = self.fleet.host(name)
        host.cut()
        time.sleep(self.chance.uniform(*seconds))
        host.join()
        return what

    def _keep_away(self, part: str) -> str:
        """Stop a part for longer than the lease, as a machine does that hangs."""
        pid = self.fleet.pid(part)
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(self.chance.uniform(*LONG_CUT_S))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: self.fleet.pid(part) != pid, f"{part} to be started again", 60)
        return f"{part} away for longer than the lease"

    def _hang(self, name: str) -> str:
        """Stop an agent for longer than the lease; it goes on as if nothing had been."""
        pid = self.fleet.pid(name)
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(self.chance.uniform(*LONG_CUT_S))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        return "agent away for longer than the lease"

    def _halt(self, name: str) -> str:
        """Power is away for longer than the lease: a host would take as long to come up again.

        Its kernel lives on here, and would tell the peers of the processes' end before.
        """
        self.fleet.halt(name)
        time.sleep(self.chance.uniform(*LONG_CUT_S))
        self.fleet.host(name).join()
        return "power lost"

    def _fill(self) -> str:
        assert self.disk is not None
        self.disk.fill()
        time.sleep(self.chance.uniform(*FULL_S))
        self.disk.empty()
        return FULL
