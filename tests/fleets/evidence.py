"""What a fleet and its jobs tell of themselves, gathered for whoever looks into a failure."""

from __future__ import annotations

import collections
import re
from collections.abc import Sequence
from typing import Any

from tests.fleets.fleet import HostFleet
from tests.fleets.jobs import SpreadJob

LAST = 60
CHATTER = re.compile(r"no link to the portal|Connection refused|^\s*$")

LOUD = re.compile(r"\b(ERROR|CRITICAL)\b|^[\d-]+ [\d:,.]+ [WEC] ")
"""Lines that tell of something wrong: errors of the portal's processes, warnings of agents."""
PARTICULARS = re.compile(r"^[\d-]+ [\d:,.]+ |0x[0-9a-f]+|\d+|/tmp/\S+")
KINDS = 25


def complaints(fleet: HostFleet) -> dict[str, int]:
    """Answer what the parts have complained of, and how often; numbers and paths left out."""
    found: collections.Counter[str] = collections.Counter()
    for path in (fleet.home / "log").glob("*.log"):
        part = "agents" if path.stem in fleet.switch.hosts else path.stem
        for line in path.read_text(errors="replace").splitlines():
            if LOUD.search(line) and not CHATTER.search(line):
                found[f"{part}: {PARTICULARS.sub('#', line)[:160]}"] += 1
    return dict(found.most_common(KINDS))


def evidence(fleet: HostFleet, jobs: Sequence[SpreadJob]) -> dict[str, Any]:
    """Answer each job's rows and the last telling lines of every part's log."""
    logs = sorted((fleet.home / "log").glob("*.log"))
    return {
        "jobs": {each.job: _told(each) for each in jobs},
        "logs": {path.stem: _last(path.read_text(errors="replace")) for path in logs},
    }


def _told(job: SpreadJob) -> dict[str, Any]:
    keys = ("state", "error", "detail", "sentence", "remedy", "verdict", "retried")
    told = job.told()
    return {
        **{key: told.get(key) for key in keys},
        "placements": job.fleet.placements(job.job)[-4:],
        "receipts": job.fleet.receipts(job.job)[-6:],
        "output": [job.lines(rank)[-2:] for rank in range(job.replicas)],
    }


def _last(text: str) -> list[str]:
    return [line[:300] for line in text.splitlines() if not CHATTER.search(line)][-LAST:]
