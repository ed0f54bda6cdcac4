"""What questions to the planner cost: ``python -m tests.benchmarks.questions --json``.

On the fleet of `tests.benchmarks.observing`, once its first plan has been carried out on paper, a
worker is asked one question of each kind after the other, a hundred jobs changing between them.
``first_cpu_s`` is its very first question, which reads everything; ``..._cpu_s`` are the medians
of those after it, ``..._alone_cpu_s`` the same by a worker that knows nothing; ``asked`` of each.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from typing import Any

from tests.benchmarks.observing import CHANGES, peak_mb, round_off, run, timed

ROUNDS = 5


def main() -> None:
    run("questions", questions, settled=True, about=__doc__ or "")


def questions(options: Any) -> dict[str, Any]:
    from unittest.mock import patch

    from django.db import connection
    from django.utils import timezone

    from scheduler.live.asking import Informed, answer_question
    from tests.benchmarks.planner import NOW
    from tests.benchmarks.rows import Life, moment

    life, informed = Life(options.seed), Informed()
    figures: dict[str, Any] = {}
    known: dict[str, list[float]] = {}
    alone: dict[str, list[float]] = {}
    for round in range(ROUNDS + 1):
        now = moment(NOW + 10 * round)
        for kind, question in asked(random.Random(round)):
            life.change(CHANGES, now)
            times: dict[str, float] = {}
            with patch.object(timezone, "now", lambda: now):  # noqa: B023
                timed("known", times, lambda: answer_question(question, informed))  # noqa: B023
                if round == ROUNDS:
                    timed("alone", times, lambda: answer_question(question, Informed()))  # noqa: B023
                    alone.setdefault(kind, []).append(times["alone cpu_s"])
            if not figures:
                figures = {"first_s": times["known s"], "first_cpu_s": times["known cpu_s"]}
            elif round:
                known.setdefault(kind, []).append(times["known cpu_s"])
    for kind, seen in known.items():
        figures[f"{kind}_cpu_s"] = round_off(statistics.median(seen))
        figures[f"{kind}_most_cpu_s"] = max(seen)
        figures[f"{kind}_alone_cpu_s"] = alone[kind][0]
    return {"benchmark": "questions", "database": connection.vendor, "asked": ROUNDS} | figures | {
        "peak_mb": peak_mb()
    }  # fmt: skip


def asked(dice: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """One question of each kind, about something that is there."""
    from portal.models import Job, Node, Quota

    waiting = list(Job.objects.filter(state="waiting").values_list("id", flat=True))
    node = dice.choice(Node.objects.values_list("name", flat=True)[:1000])
    quota = Quota.objects.select_related("tenant").first()
    assert quota is not None
    yield "start", {"question": "start", "job": dice.choice(waiting)}
    yield "another_start", {"question": "start", "job": dice.choice(waiting)}
    like = Job.objects.select_related("tenant", "tier").get(pk=dice.choice(waiting))
    yield "submit", {"question": "submit", "job": {
        "tenant": like.tenant.slug, "tier": like.tier.slug, "replicas": like.replicas,
        "gpus_per_replica": like.gpus_per_replica, "device_kind": like.device_kind,
        "remedy": "transparent", "expected_s": 3600.0,
    }}  # fmt: skip
    yield "drain", {"question": "drain", "nodes": [node]}
    yield "quota", {
        "question": "quota", "tenant": quota.tenant.slug, "device_kind": quota.device_kind,
        "reserved": quota.reserved + 8, "borrow": quota.borrow, "lend": True,
    }  # fmt: skip
    yield "nodes", {"question": "nodes", "like": node, "count": 10}


if __name__ == "__main__":
    main()
