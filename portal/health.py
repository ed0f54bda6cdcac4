"""Tell whether database, broker, planner and agents answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from portal.celery import app
from portal.models import Lease, Node

CYCLE_SILENCE = timedelta(seconds=15)
"""A planner whose last cycle is older than this is not answering."""
NODE_SILENCE = timedelta(seconds=30)


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when every part answers, else 503; the body names each part and what is wrong."""
    parts = {name: answer(check) for name, check in CHECKS.items()}
    healthy = all(part == "ok" for part in parts.values())
    return JsonResponse({"healthy": healthy, "parts": parts}, status=200 if healthy else 503)


def answer(check: Callable[[], str]) -> str:
    """Answer ``ok``, or what a check found wrong, or the name of what it ran into."""
    try:
        return check() or "ok"
    except Exception as error:  # its name is the answer; details are no visitor's
        return f"does not answer ({type(error).__name__})"


def database() -> str:
    Lease.objects.exists()
    return ""


def broker() -> str:
    with app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=0, timeout=2)
    return ""


def planner() -> str:
    fresh = timezone.now() - CYCLE_SILENCE
    if Lease.objects.filter(name="cycle", beat_at__gte=fresh).exists():
        return ""
    return f"no cycle within the last {CYCLE_SILENCE.seconds} s"


def agents() -> str:
    fresh = timezone.now() - NODE_SILENCE
    if Node.objects.filter(connected=True, lost_at=None, heard_at__gte=fresh).exists():
        return ""
    return "no node was heard within its lease"


CHECKS = {"database": database, "broker": broker, "planner": planner, "agents": agents}
