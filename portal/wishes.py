"""What was asked of a job and is still to come, in a sentence for pages and the command line."""

from __future__ import annotations

from collections.abc import Sequence


def sentence_of_wish(
    *,
    pause_asked: bool,
    move_asked: bool,
    wanted_nodes: Sequence[str],
    asked_devices: int | None,
    held: int,
) -> str:
    """Say what the job will do as soon as it can; empty when nothing is to come.

    ``held`` is the number of devices that it has now.
    """
    if pause_asked:
        return "It is to be paused, as soon as it can be stopped."
    if move_asked:
        where = f"to {', '.join(wanted_nodes)}" if wanted_nodes else "elsewhere"
        return f"It is to move {where}, and runs on until there is room."
    if held and asked_devices not in (None, held):
        noun = "device" if asked_devices == 1 else "devices"
        return f"It is to run on {asked_devices} {noun}, and runs on until there is room."
    return ""
