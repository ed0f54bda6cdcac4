"""Figures as people read them: sizes, spans of time, shares."""

from __future__ import annotations

from datetime import datetime

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: float | None) -> str:
    """Bytes with a binary unit: ``1.4 GiB``."""
    if count is None:
        return "—"
    value = float(count)
    for unit in UNITS[:-1]:
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{_three(value)} {unit}"
        value /= 1024
    return f"{_three(value)} {UNITS[-1]}"


def _three(value: float) -> str:
    """Three figures at most, without trailing zeros: 1.25, 17.3, 640."""
    text = f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def span(seconds: float | None) -> str:
    """Seconds in the two largest units that matter: ``0.42 s``, ``3 min 20 s``, ``2 d 4 h``."""
    if seconds is None:
        return "—"
    if seconds < 0:
        seconds = 0.0
    if seconds < 10:
        return f"{_three(seconds)} s"
    whole = round(seconds)
    parts = (("d", whole // 86400), ("h", whole // 3600 % 24), ("min", whole // 60 % 60))
    named = [(unit, count) for unit, count in (*parts, ("s", whole % 60))]
    first = next((place for place, (_, count) in enumerate(named) if count), len(named) - 1)
    shown = [f"{count} {unit}" for unit, count in named[first : first + 2] if count]
    return " ".join(shown)


def ago(moment: datetime, now: datetime) -> str:
    """How far a moment lies from now, in one unit: ``3 min ago``, ``in 2 h``, ``just now``."""
    seconds = (now - moment).total_seconds()
    distance = abs(seconds)
    if distance < 5:
        return "just now"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if distance >= length:
            count = f"{int(distance // length)} {unit}"
            return f"{count} ago" if seconds > 0 else f"in {count}"
    return "just now"


def share(part: float, whole: float) -> str:
    """A share in per cent without decimals; a dash when there is nothing to share."""
    return f"{100 * part / whole:.0f} %" if whole else "—"


def count(number: float, noun: str, plural: str = "") -> str:
    """``1 device``, ``8 devices``, ``1.5 CPUs``."""
    told = f"{number:,}" if isinstance(number, int) else f"{number:,g}"
    return f"{told} {noun if number == 1 else plural or noun + 's'}"
