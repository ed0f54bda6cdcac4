"""Questions about the live fleet: the planner on a changed snapshot, told in plain values."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from typing import Any

from portal.broker import broker
from portal.models import Quota
from scheduler import planner
from scheduler.live.cluster import LiveCluster, live_policy
from scheduler.live.naming import job_id, job_row
from scheduler.planner import codec, questions

log = logging.getLogger(__name__)

ANSWER_KEPT_S = 60
NEW_JOB = planner.JobId("0")
"""A job that was not submitted yet; no row has this number."""


def answer_to(key: str, question: dict[str, Any]) -> None:
    """Answer a question and leave the answer in the broker for whoever waits for it."""
    try:
        answer = answer_question(question)
    except KeyError as missing:
        answer = {"error": f"The fleet has no {missing} now."}
    except Exception:
        log.exception("could not answer %s", question.get("question"))
        answer = {"error": "The planner could not answer; the log of the worker says why."}
    pipe = broker().pipeline()
    pipe.rpush(key, json.dumps(answer))
    pipe.expire(key, ANSWER_KEPT_S)
    pipe.execute()


def answer_question(question: dict[str, Any]) -> dict[str, Any]:
    """Observe the fleet and answer. Times are seconds from now."""
    snapshot, policy = LiveCluster().observe(), live_policy()
    return ANSWERS[question["question"]](snapshot, policy, question)


def _start(
    snapshot: planner.Snapshot, policy: planner.Policy, question: dict[str, Any]
) -> dict[str, Any]:
    return _expected(snapshot, policy, job_id(question["job"]))


def _submit(
    snapshot: planner.Snapshot, policy: planner.Policy, question: dict[str, Any]
) -> dict[str, Any]:
    facts = {**question["job"], "id": NEW_JOB, "phase": "waiting", "submitted_at": snapshot.now}
    job = codec.read(planner.Job, facts, "job")
    changed = questions.with_job(snapshot, job)
    return {
        **_expected(changed, policy, NEW_JOB),
        **_effect(questions.effect(snapshot, changed, policy)),
    }


def _expected(
    snapshot: planner.Snapshot, policy: planner.Policy, job: planner.JobId
) -> dict[str, Any]:
    start = questions.expected_start(snapshot, policy, job)
    band = {"earliest_s": start.earliest, "likely_s": start.likely, "latest_s": start.latest}
    return {
        name: None if moment is None else max(0.0, moment - snapshot.now)
        for name, moment in band.items()
    } | {"sentence": str(start.why) if start.why else ""}


def _quota(
    snapshot: planner.Snapshot, policy: planner.Policy, question: dict[str, Any]
) -> dict[str, Any]:
    quota = planner.Quota(
        reserved=question["reserved"], borrow=question["borrow"], lend=question["lend"]
    )
    tenant = planner.TenantId(question["tenant"])
    changed = snapshot
    for kind in kinds_of(snapshot, question["tenant"], question["device_kind"]):
        changed = questions.with_quota(changed, tenant, kind, quota)
    return _effect(questions.effect(snapshot, changed, policy))


def kinds_of(snapshot: planner.Snapshot, tenant: str, kind: str) -> list[str]:
    """The kinds that a quota holds for: without one, all that have no quota of their own."""
    if kind:
        return [kind]
    named = set(Quota.objects.filter(tenant__slug=tenant).values_list("device_kind", flat=True))
    kinds = {device.kind for node in snapshot.nodes for device in node.devices}
    return sorted(kinds - named)


def _drain(
    snapshot: planner.Snapshot, policy: planner.Policy, question: dict[str, Any]
) -> dict[str, Any]:
    names = [planner.NodeId(name) for name in question["nodes"]]
    changed = questions.with_drain(snapshot, names)
    here = [
        job
        for job in snapshot.jobs
        if job.phase is not planner.Phase.WAITING and any(s.node in names for s in job.seats)
    ]
    told = _effect(questions.effect(snapshot, changed, policy))
    return told | {
        "running_there": [job_row(job.id) for job in here],
        "seconds_each": {
            str(job.id): round(job.cost.total_s, 1) for job in here if job.cost is not None
        },
    }


def _nodes(
    snapshot: planner.Snapshot, policy: planner.Policy, question: dict[str, Any]
) -> dict[str, Any]:
    like = planner.NodeId(question["like"])
    changed = questions.with_nodes(snapshot, like, question["count"])
    return _effect(questions.effect(snapshot, changed, policy))


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


ANSWERS: dict[str, Callable[[planner.Snapshot, planner.Policy, dict[str, Any]], dict[str, Any]]] = {
    "start": _start,
    "submit": _submit,
    "quota": _quota,
    "drain": _drain,
    "nodes": _nodes,
}
