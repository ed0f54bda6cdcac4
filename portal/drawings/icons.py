"""The icons, as strokes on a 16 x 16 grid; every status has its own shape, not only a colour."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

SHAPES = {
    # states of jobs
    "waiting": '<circle cx="8" cy="8" r="6"/><path d="M8 4.6V8l2.3 1.6"/>',
    "starting": '<path d="M8 13.5V6.2M4.8 9.2 8 6l3.2 3.2M3.5 2.6h9"/>',
    "running": '<path class="fill" d="M5 3.2v9.6L12.6 8z"/>',
    "moving": '<path d="M2 5.5h10.2M9.4 2.7l2.9 2.8-2.9 2.8M14 10.8H3.8M6.6 8 3.7 10.8l2.9 2.8"/>',
    "paused": '<path class="bold" d="M5.3 3.6v8.8M10.7 3.6v8.8"/>',
    "succeeded": '<circle cx="8" cy="8" r="6"/><path d="m5.3 8.2 1.9 1.9 3.5-3.9"/>',
    "failed": '<circle cx="8" cy="8" r="6"/><path d="m5.9 5.9 4.2 4.2m0-4.2-4.2 4.2"/>',
    "cancelled": '<circle cx="8" cy="8" r="6"/><path d="m3.9 3.9 8.2 8.2"/>',
    # kinds of moves
    "preempt": '<path d="M2 12.5h12M8 10V3M5 6l3-3 3 3"/>',
    "migrate": '<path d="M2 5.5h10.2M9.4 2.7l2.9 2.8-2.9 2.8M14 10.8H3.8M6.6 8 3.7 10.8l2.9 2.8"/>',
    "resize": '<path d="M9.5 2.5h4v4M13.5 2.5l-4.6 4.6M6.5 13.5h-4v-4M2.5 13.5l4.6-4.6"/>',
    "pause": '<path class="bold" d="M5.3 3.6v8.8M10.7 3.6v8.8"/>',
    "recover": '<path d="M2.6 8a5.4 5.4 0 1 0 1.8-4M2.4 2.2v3h3"/>',
    "retry": '<path d="M13.4 8a5.4 5.4 0 1 1-1.8-4M13.6 2.2v3h-3"/>',
    # nodes and devices
    "well": '<circle cx="8" cy="8" r="6"/><path d="m5.3 8.2 1.9 1.9 3.5-3.9"/>',
    "cordoned": '<circle cx="8" cy="8" r="6"/><path d="M4.6 8h6.8"/>',
    "draining": '<path d="M3 3h10M8 5.4v7.4M4.9 9.8 8 12.9l3.1-3.1"/>',
    "lost": '<circle cx="8" cy="8" r="6" stroke-dasharray="2.5 2"/><path d="m3 3 10 10"/>',
    "new": '<path d="M8 2.5v11M2.5 8h11" stroke-dasharray="2.2 1.6"/>',
    "sick": '<path d="M8 2.4 14.4 13.4H1.6zM8 6.6v3.2"/><path class="bold" d="M8 11.6v.1"/>',
    # the furniture
    "plus": '<path d="M8 3v10M3 8h10"/>',
    "search": '<circle cx="7" cy="7" r="4.4"/><path d="m10.3 10.3 3.4 3.4"/>',
    "copy": '<rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M10.5 5.5v-3h-8v8h3"/>',
    "download": '<path d="M8 2.5v7.2M4.9 6.8 8 9.9l3.1-3.1M2.8 13.2h10.4"/>',
    "upload": '<path d="M8 10V2.8M4.9 5.7 8 2.6l3.1 3.1M2.8 13.2h10.4"/>',
    "file": '<path d="M9 2H3.5v12h9V5.5zM9 2v3.5h3.5"/>',
    "folder": '<path d="M2 13V3h4.2l1.5 1.7H14V13z"/>',
    "user": '<circle cx="8" cy="5.4" r="2.7"/><path d="M2.8 13.6c1-5.6 9.4-5.6 10.4 0"/>',
    "keys": '<rect x="1.6" y="4" width="12.8" height="8.4" rx="1.6"/><path d="M4.5 7h7M5 9.7h6"/>',
    "close": '<path d="m4 4 8 8m0-8-8 8"/>',
    "right": '<path d="m6 3.5 4.5 4.5L6 12.5"/>',
    "left": '<path d="M10 3.5 5.5 8l4.5 4.5"/>',
    "up": '<path d="M3.5 10 8 5.5l4.5 4.5"/>',
    "down": '<path d="M3.5 6 8 10.5 12.5 6"/>',
    "edit": '<path d="m10.6 2.9 2.5 2.5-7.6 7.6-3 .5.5-3z"/>',
    "checkpoint": '<path d="M3 2.8h8.2l1.8 1.8v8.6H3zM5.4 2.8v3.4h4.4V2.8M5.4 13.2V9.4h5.2v3.8"/>',
    "cancel": '<rect class="fill" x="4" y="4" width="8" height="8" rx="1.2"/>',
    "resume": '<path class="fill" d="M5 3.2v9.6L12.6 8z"/>',
    "info": '<circle cx="8" cy="8" r="6"/><path d="M8 7.4v3.4"/><path class="bold" d="M8 5.1v.1"/>',
    "yes": '<path d="m3.2 8.6 3.1 3.1 6.5-7.2"/>',
    "no": '<path d="m4 4 8 8m0-8-8 8"/>',
    "bolt": '<path d="M9 1.8 3.5 9.2h4L7 14.2l5.5-7.4h-4z"/>',
}


def icon(name: str, label: str = "") -> SafeString:
    """Draw an icon; without a label it is decoration and hidden from screen readers."""
    shape = mark_safe(SHAPES[name])
    if label:
        return format_html(
            '<svg class="icon" viewBox="0 0 16 16" role="img" aria-label="{}">{}</svg>',
            label,
            shape,
        )
    return format_html('<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">{}</svg>', shape)
