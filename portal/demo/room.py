"""What the story needs of the fleet: nodes alike that can move jobs, and nobody else on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

from portal.demo.fleet import Fleet, NotSoError

ROOM_WITHIN_S = 60.0
FIRST_WORD_S = 1.0
"""What the story has just ended itself is gone before."""
MOST_NODES = 8
BUSY = "waiting,starting,running,moving"
"""States of jobs that hold devices, or will as soon as some are free."""
REMEDIES = {
    "draining": "let jobs land on it again on the Nodes page",
    "cordoned": "let jobs land on it again on the Nodes page",
}


def wait_for_room(views: Sequence[Fleet]) -> tuple[int, int]:
    """Return the numbers of nodes and of devices on each, once all of them are idle.

    Raises ``NotSoError``, with the remedy, when the fleet cannot play the story or does not become
    idle within a minute.
    """
    fleet = views[0]
    try:
        nodes = fleet.nodes()
    except httpx.TransportError:
        raise NotSoError(
            f"No portal answers at {fleet.address}. Start everything with `make up`, leave it "
            "running, and play the demo from a second terminal."
        ) from None
    in_the_way = obstacles(nodes, views)

    def idle() -> bool:
        nonlocal nodes, in_the_way
        if in_the_way:
            nodes = fleet.nodes()
            in_the_way = obstacles(nodes, views)
        return not in_the_way

    fleet.wait(
        "the whole fleet to be there and idle",
        idle,
        within_s=ROOM_WITHIN_S,
        first_word_s=FIRST_WORD_S,
        why=lambda: "; ".join(in_the_way),
    )
    return shape_of(nodes)


def shape_of(nodes: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """Return how many nodes there are and how many devices each has; ``NotSoError`` if unfit."""
    unable = [
        f"{node['name']}: {node['abilities'].get('migrate', {}).get('reason') or 'not said why'}"
        for node in nodes
        if not node["abilities"].get("migrate", {}).get("able")
    ]
    if unable:
        raise NotSoError(f"The demo moves jobs, and these nodes cannot: {'; '.join(unable)}")
    sizes = {len(node["devices"]) for node in nodes}
    if not 2 <= len(nodes) <= MOST_NODES or len(sizes) > 1:
        raise NotSoError(
            f"The demo is made for 2 to {MOST_NODES} nodes with equally many devices, as `make up` "
            f"has them; this fleet has {len(nodes)} with {' or '.join(map(str, sorted(sizes)))}."
        )
    return len(nodes), sizes.pop()


def obstacles(nodes: Sequence[dict[str, Any]], views: Sequence[Fleet]) -> list[str]:
    """Return a sentence, without its full stop, for everything that keeps the fleet from idling."""
    found = [
        f"{node['name']} is {node['state']}; "
        + REMEDIES.get(node["state"], "its agent's log says why")
        for node in nodes
        if node["state"] != "ready"
    ]
    jobs = {job["id"]: job for view in views for job in view.jobs(f"state={BUSY}")}
    if jobs:
        told = ", ".join(
            f"job {id} ({job['name']}, {job['owner']}, {job['state']})" for id, job in jobs.items()
        )
        found.append(f"shared with {told}; wait, or cancel at {views[0].address}/jobs/")
    for node in nodes:
        ill = [device["sick"] for device in node["devices"] if device["sick"]]
        taken = sum(device["taken"] for device in node["devices"])
        if ill:
            found.append(f"a device of {node['name']} is ill: {ill[0]}")
        elif taken and not jobs:
            found.append(f"{taken} of {node['name']}'s devices are still held")
    return found
