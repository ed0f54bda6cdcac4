"""The fleet at a glance."""

from __future__ import annotations

from typing import Any

import click

from portal.client.connection import Portal
from portal.client.nodes import percent
from portal.client.telling import fields, table, told_by


def tell_fleet(answer: Any) -> None:
    jobs = {state: count for state, count in answer["jobs"].items() if count}
    fields([("nodes", answer["nodes"]), ("jobs", jobs)])
    table(
        ["kind", "devices", "taken", "sick", "busy"],
        [
            (row["kind"], row["devices"], row["taken"], row["sick"], percent(row["utilisation"]))
            for row in answer["kinds"]
        ],
        "No devices.",
    )


@click.command()
@click.pass_obj
@told_by(tell_fleet)
def fleet(portal: Portal) -> Any:
    """Nodes, devices and jobs in numbers."""
    return portal.get("fleet/")
