"""Questions about the live fleet: the planner on a changed snapshot, told in plain values."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from portal.broker import broker
from portal.models import Quota
from scheduler import planner
from scheduler.live.cluster import LiveCluster, live_policy
from scheduler.live.naming import job_id, job_row
from scheduler.live.observing import Watch
from scheduler.planner import codec, questions
from scheduler.planner.outlook import Outlook

log = logging.getLogger(__name__)

ANSWER_KEPT_S = 60
PATIENCE_S = 4.0
"""Whoever asks has given up by then."""
OUTLOOK_KEPT_S = 60.0
OUTLOOK_CHANGES = 0.01
"""A forecast is told again for so long, and while no larger share of the jobs has changed."""
NEW_JOB = planner.JobId("0")
"""A job that was not submitted yet; no row has this number."""


def answer_to(key: str, question: dict[str, Any]) -> None:
    """Answer a question and leave the answer in the broker for whoever waits for it."""
    try:
        answer = answer_question(question, patience_s=PATIENCE_S)
    except TooBusyError:
        return
    except KeyError as missing:
        answer = {"error": f"The fleet has no {missing} now."}
    except Exception:
        log.exception("could not answer %s", question.get("question"))
        answer = {"error": "The planner could not answer; the log of the worker says why."}
    pipe = broker().pipeline()
    pipe.rpush(key, json.dumps(answer))
    pipe.expire(key, ANSWER_KEPT_S)
    pipe.execute()


class Informed:
    """What a process knows of the fleet and its plan from the last question.

    The next one then costs what changed since. One question at a time: the snapshots of a watch
    and the planner's memory are not for several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watch = Watch()
        self.memory = planner.Memory()
        self._outlook: Outlook | None = None

    @contextmanager
    def look(self, patience_s: float = -1) -> Iterator[planner.Snapshot]:
        """The fleet as it is now, for one question. Raises ``TooBusyError`` when others' last on.

        ``patience_s`` below zero is as long as it takes.
        """
        if not self._lock.acquire(timeout=patience_s):
            raise TooBusyError
        try:
            yield LiveCluster(watch=self._watch).observe()
        except BaseException:
            self._outlook = None  # it may have stopped half-way
            raise
        finally:
            self._lock.release()

    def outlook(self, snapshot: planner.Snapshot, policy: planner.Policy) -> Outlook:
        """The future of this very snapshot, or of one that was nearly the same a moment ago."""
        if self._outlook is None or not _holds(self._outlook, snapshot, policy):
            self._outlook = Outlook(snapshot, policy)
        return self._outlook


class TooBusyError(Exception):
    """Others' questions took longer than somebody waits for an answer."""


INFORMED = Informed()


def _holds(outlook: Outlook, snapshot: planner.Snapshot, policy: planner.Policy) -> bool:
    """Whether a future that was worked out from another snapshot can still be told."""
    base = outlook.snapshot
    if outlook.policy != policy or not 0 <= snapshot.now - base.now <= OUTLOOK_KEPT_S:
        return False
    if snapshot.nodes is not base.nodes or snapshot.tiers is not base.tiers:
        return False
    if _quotas(snapshot) != _quotas(base):
        return False
    changes = _roster(snapshot).since(_roster(base))
    return changes is not None and len(changes) <= OUTLOOK_CHANGES * len(snapshot.jobs)


def _roster(snapshot: planner.Snapshot) -> planner.Roster:
    assert isinstance(snapshot.jobs, planner.Roster)
    return snapshot.jobs


def _quotas(snapshot: planner.Snapshot) -> list[tuple[object, ...]]:
    return [(one.id, one.parent, one.weight, one.quotas) for one in snapshot.tenants]


def answer_question(
    question: dict[str, Any], informed: Informed = INFORMED, patience_s: float = -1
) -> dict[str, Any]:
    """Observe the fleet and answer. Times are seconds from now."""
    with informed.look(patience_s) as snapshot:
        return ANSWERS[question["question"]](Asked(snapshot, live_policy(), informed), question)


class Asked(NamedTuple):
    """What a question is asked about."""

    snapshot: planner.Snapshot
    policy: planner.Policy
    informed: Informed

    def effect(self, changed: planner.Snapshot) -> questions.Effect:
        return questions.effect(self.snapshot, changed, self.policy, self.informed.memory)


def _start(asked: Asked, question: dict[str, Any]) -> dict[str, Any]:
    snapshot, policy, informed = asked
    outlook = informed.outlook(snapshot, policy)
    job = job_id(question["job"])
    start = questions.expected_start(snapshot, policy, job, informed.memory, outlook)
    return _told(start, snapshot.now)


def _submit(asked: Asked, question: dict[str, Any]) -> dict[str, Any]:
    snapshot = asked.snapshot
    facts = {**question["job"], "id": NEW_JOB, "phase": "waiting", "submitted_at": snapshot.now}
    changed = questions.with_job(snapshot, codec.read(planner.Job, facts, "job"))
    effect = asked.effect(changed)
    start = questions.start_of(changed, asked.policy, effect.answers[NEW_JOB])
    return _told(start, snapshot.now) | _effect(effect)


def _told(start: questions.Start, now: float) -> dict[str, Any]:
    band = {"earliest_s": start.earliest, "likely_s": start.likely, "latest_s": start.latest}
    return {
        name: None if moment is None else max(0.0, moment - now) for name, moment in band.items()
    } | {"sentence": str(start.why) if start.why else ""}


def _quota(asked: Asked, question: dict[str, Any]) -> dict[str, Any]:
    quota = planner.Quota(
        reserved=question["reserved"], borrow=question["borrow"], lend=question["lend"]
    )
    tenant = planner.TenantId(question["tenant"])
    changed = asked.snapshot
    for kind in kinds_of(changed, question["tenant"], question["device_kind"]):
        changed = questions.with_quota(changed, tenant, kind, quota)
    return _effect(asked.effect(changed))


def kinds_of(snapshot: planner.Snapshot, tenant: str, kind: str) -> list[str]:
    """The kinds that a quota holds for: without one, all that have no quota of their own."""
    if kind:
        return [kind]
    named = set(Quota.objects.filter(tenant__slug=tenant).values_list("device_kind", flat=True))
    kinds = {device.kind for node in snapshot.nodes for device in node.devices}
    return sorted(kinds - named)


def _drain(asked: Asked, question: dict[str, Any]) -> dict[str, Any]:
    names = frozenset(map(planner.NodeId, question["nodes"]))
    changed = questions.with_drain(asked.snapshot, names)
    here = [
        job
        for job in asked.snapshot.jobs
        if job.phase is not planner.Phase.WAITING and any(s.node in names for s in job.seats)
    ]
    return _effect(asked.effect(changed)) | {
        "running_there": [job_row(job.id) for job in here],
        "seconds_each": {
            str(job.id): round(job.cost.total_s, 1) for job in here if job.cost is not None
        },
    }


def _nodes(asked: Asked, question: dict[str, Any]) -> dict[str, Any]:
    like = planner.NodeId(question["like"])
    return _effect(asked.effect(questions.with_nodes(asked.snapshot, like, question["count"])))


def _effect(effect: questions.Effect) -> dict[str, Any]:
    """Who would start, wait, move and so on; the job that was not submitted is left out."""
    return {
        "starts": _rows(effect.starts),
        "waits": _rows(effect.waits),
        "pushed_off": _rows(effect.pushed_off),
        "moved": _rows(effect.moved),
        "resized": _rows(effect.resized),
    }


def _rows(jobs: Iterable[planner.JobId]) -> list[int]:
    return sorted(job_row(job) for job in jobs if job != NEW_JOB)


ANSWERS: dict[str, Callable[[Asked, dict[str, Any]], dict[str, Any]]] = {
    "start": _start,
    "submit": _submit,
    "quota": _quota,
    "drain": _drain,
    "nodes": _nodes,
}
