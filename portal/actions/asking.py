"""Questions to the planner: asked by a task's name, answered through the broker."""

from __future__ import annotations

import hashlib
import json
import uuid
from contextlib import suppress
from typing import Any

import redis
from celery import current_app
from django.core.cache import cache
from kombu.exceptions import OperationalError

from portal.actions.submitting import JobRequest, check_request
from portal.broker import broker
from portal.models import User
from portal.refusals import Refused

PATIENCE_S = 4.0
"""The broker's sockets give up after 5 s; a longer question is asked again."""
AGAIN_S = 5
"""So long the same answer is given to the same question of a form."""


def ask(question: dict[str, Any], patience_s: float = PATIENCE_S) -> dict[str, Any]:
    """Put a question to the planner and wait for the answer.

    Raises ``Refused`` when there is none in time, or when the planner can't answer.
    """
    key = f"tidepool:answer:{uuid.uuid4().hex}"
    try:
        current_app.send_task(
            "scheduler.tasks.ask",
            args=[key, question],
            queue="work",
            expires=patience_s,
            ignore_result=True,
        )
        found: Any = broker().blpop([key], timeout=patience_s)
    except (redis.RedisError, OperationalError, OSError) as error:
        raise Refused("The broker is away; try again in a moment.", id="no-answer") from error
    if found is None:
        raise Refused("The planner is busy; try again in a moment.", id="no-answer", conflict=True)
    answer: dict[str, Any] = json.loads(found[1])
    if "error" in answer:
        raise Refused(answer["error"], id="no-answer")
    return answer


def ask_again(question: dict[str, Any]) -> dict[str, Any]:
    """Like ``ask``, for forms that ask with every change: what was answered just now will do.

    Most changes of a form, of its name or command, say, do not change the question.
    """
    told = json.dumps(question, sort_keys=True)
    key = f"answer-{hashlib.sha256(told.encode()).hexdigest()}"
    with suppress(redis.RedisError, OSError):
        known: dict[str, Any] | None = cache.get(key)
        if known is not None:
            return known
    answer = ask(question)
    with suppress(redis.RedisError, OSError):
        cache.set(key, answer, AGAIN_S)
    return answer


def question_of(user: User, request: JobRequest) -> dict[str, Any]:
    """The question when a request would start; ``Refused`` when it would not be accepted."""
    preview = check_request(user, request)
    job = {
        "tenant": request.tenant,
        "tier": request.tier,
        "replicas": request.replicas,
        "gpus_per_replica": request.gpus_per_replica,
        "fewest_devices": request.fewest_devices,
        "device_kind": request.device_kind,
        "device_memory": request.device_memory,
        "cpus_per_replica": request.cpus_per_replica,
        "memory_per_replica": request.memory_per_replica,
        "partition": request.partition,
        "remedy": preview.verdict.remedy.value,
        "expected_s": request.expected_s,
    }
    return {"question": "submit", "job": job}
