"""Icons, states, moments and figures for templates."""

from __future__ import annotations

import math
import shlex
import zoneinfo
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.choices import TONES, JobState
from portal.drawings import bars, figures, icons

register = template.Library()

register.simple_tag(icons.icon, name="icon")
register.filter("size", figures.size)
register.filter("span", figures.span)
register.simple_tag(figures.count, name="count")
register.filter("in_order", bars.in_order)
register.filter("phase_bar", bars.draw_phases)
register.simple_tag(figures.share, name="share")


@register.simple_tag
def state(value: str) -> SafeString:
    """A job's state as icon, word and colour."""
    known = JobState(value)
    return format_html(
        '<span class="state tone-{}">{}{}</span>',
        TONES[known],
        icons.icon(known.value),
        known.label,
    )


@register.simple_tag
def badge(tone: str, shape: str, words: str) -> SafeString:
    """Any other status as icon, word and colour."""
    return format_html('<span class="state tone-{}">{}{}</span>', tone, icons.icon(shape), words)


@register.simple_tag(takes_context=True)
def moment(context: template.Context, value: datetime | float | None) -> SafeString | str:
    """How long ago something was, with the exact time in the user's zone on hover."""
    if not value:
        return "—"
    if isinstance(value, int | float):
        value = datetime.fromtimestamp(value, tz=zoneinfo.ZoneInfo("UTC"))
    local = value.astimezone(zone_of(context.get("user")))
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        value.isoformat(),
        local.strftime("%a %d %b %Y, %H:%M:%S %Z"),
        figures.ago(value, timezone.now()),
    )


def zone_of(user: Any) -> zoneinfo.ZoneInfo:
    """The zone that a user chose; UTC for everyone else, and for a zone that is no more."""
    try:
        return zoneinfo.ZoneInfo(getattr(user, "time_zone", "") or "UTC")
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return zoneinfo.ZoneInfo("UTC")


@register.simple_tag(takes_context=True)
def exact(context: template.Context, value: datetime) -> str:
    """A moment in the user's zone, with the zone."""
    return value.astimezone(zone_of(context.get("user"))).strftime("%a %d %b, %H:%M %Z")


@register.filter
def percent(value: float | None, decimals: int = 0) -> str:
    """A fraction in per cent. It is rounded down: what falls short must not look whole."""
    if value is None:
        return "—"
    scale = 10**decimals
    return f"{math.floor(100 * scale * value + 1e-6) / scale:.{decimals}f} %"


@register.filter
def thousands(value: int) -> str:
    return f"{value:,}"


@register.filter
def joined(values: list[str]) -> str:
    return ", ".join(str(value) for value in values)


@register.filter
def item(values: dict[Any, Any], key: Any) -> Any:
    return values.get(key)


@register.simple_tag
def level(value: float, whole: int = 10) -> int:
    """A fraction in whole steps, as tiles are coloured by."""
    return round(min(1.0, max(0.0, value)) * whole)


@register.simple_tag(takes_context=True)
def sort_header(context: template.Context, name: str, label: str) -> SafeString:
    """A column's heading, which sorts by it and turns round when it is sorted already."""
    request = context["request"]
    present = str(context.get("sort", ""))
    asked = request.GET.copy()
    asked.pop("page", None)
    asked["sort"] = f"-{name}" if present == name else name
    aria = {name: "ascending", f"-{name}": "descending"}.get(present, "none")
    arrow = {"ascending": icons.icon("up"), "descending": icons.icon("down")}.get(aria, "")
    return format_html(
        '<th scope="col" aria-sort="{}"><a href="?{}">{} {}</a></th>',
        aria,
        asked.urlencode(),
        label,
        arrow,
    )


@register.filter
def nodes_of(placement: Any) -> list[str]:
    """Names of the nodes that a placement's replicas sit on."""
    return sorted({replica.node.name for replica in placement.replicas.all()})


@register.simple_tag
def move_badge(move: Any) -> SafeString:
    """A move's kind as icon, word and colour."""
    if move.called_off:
        return badge("quiet", "no", f"{move.get_kind_display()}: called off")
    if move.resumed_at is None:
        return badge("active", move.kind, f"{move.get_kind_display()}: under way")
    return badge("done", move.kind, move.get_kind_display())


@register.filter
def as_command(words: list[str]) -> str:
    """A command's words as one would type them."""
    return shlex.join(words)
