"""What became of a job: interruptions, answers of the planner, checkpoints, places, promises."""

from __future__ import annotations

from typing import Any

import click

from portal.client.connection import Portal
from portal.client.telling import duration, size, table, told_by, when


def tell_receipts(rows: Any) -> None:
    table(
        ["began", "what", "from", "to", "down", "stored", "why"],
        [
            (
                *(when(row["began_at"]), row["kind"], row["from_nodes"], row["to_nodes"]),
                *(duration(row["downtime_s"]), size(row["bytes_stored"])),
                row["called_off"] or row["sentence"],
            )
            for row in rows
        ],
        "It was never interrupted.",
    )


@click.command()
@click.argument("job", type=int)
@click.pass_obj
@told_by(tell_receipts)
def receipts(portal: Portal, job: int) -> Any:
    """What interrupted JOB, why, and what each interruption cost."""
    return portal.pages(f"jobs/{job}/receipts/")


def tell_decisions(rows: Any) -> None:
    table(
        ["at", "answer", "reason", "sentence"],
        [(when(row["at"]), row["kind"], row["reason"], row["sentence"]) for row in rows],
        "The planner has not answered yet.",
    )


@click.command()
@click.argument("job", type=int)
@click.pass_obj
@told_by(tell_decisions)
def decisions(portal: Portal, job: int) -> Any:
    """What the planner answered for JOB, newest first."""
    return portal.pages(f"jobs/{job}/decisions/")


def tell_checkpoints(rows: Any) -> None:
    table(
        ["number", "state", "began", "work held", "memory", "new", "stored", "error"],
        [
            (
                *(row["number"], row["state"], when(row["began_at"]), duration(row["worked_s"])),
                *(size(row["bytes_raw"]), size(row["bytes_new"]), size(row["bytes_stored"])),
                row["error"],
            )
            for row in rows
        ],
        "It has no checkpoints.",
    )


@click.command()
@click.argument("job", type=int)
@click.pass_obj
@told_by(tell_checkpoints)
def checkpoints(portal: Portal, job: int) -> Any:
    """The consistent cuts through JOB, with bytes."""
    return portal.pages(f"jobs/{job}/checkpoints/")


def tell_placements(rows: Any) -> None:
    table(
        ["epoch", "state", "devices", "nodes", "from checkpoint", "began", "ended"],
        [
            (
                *(row["epoch"], row["state"], row["devices"]),
                sorted({seat["node"] for seat in row["seats"]}),
                *(row["checkpoint"], when(row["created_at"]), when(row["ended_at"])),
            )
            for row in rows
        ],
        "It has not been placed yet.",
    )


@click.command()
@click.argument("job", type=int)
@click.pass_obj
@told_by(tell_placements)
def placements(portal: Portal, job: int) -> Any:
    """Where JOB ran, one placement after the other."""
    return portal.pages(f"jobs/{job}/placements/")


def tell_profile(answer: Any) -> None:
    found = answer["profile"]
    if found is None:
        nothing = "It is about to be measured." if answer["asked"] else "It was not measured."
        click.echo(answer["last_error"] or nothing)
        return
    click.echo(found["sentence"])
    table(
        ["cpus", "pace", "used", "held back"],
        [
            (f"{p['cpus']:g}", f"{p['pace']:.0%}", f"{p['used']:.2f}", f"{p['held_back']:.0%}")
            for p in found["points"]
        ],
        "",
    )
    click.echo(f"Measured {when(found['at'])} on {found['node']} with job {found['job']}.")


@click.command()
@click.argument("job", type=int)
@click.option("--ask", is_flag=True, help="Have it measured now; it is slowed for some seconds.")
@click.pass_obj
@told_by(tell_profile)
def profile(portal: Portal, job: int, ask: bool) -> Any:
    """What JOB gains from CPUs, as measured while it ran."""
    if ask:
        return portal.post(f"jobs/{job}/profile/")
    return portal.get(f"jobs/{job}/profile/")


def tell_promises(rows: Any) -> None:
    table(
        ["hour", "tenant", "tier", "promised", "got", "jobs", "broken"],
        [
            (
                *(when(row["hour"]), row["tenant"], row["tier"], f"{row['promise']:.0%}"),
                f"{row['delivered'] / row['entitled']:.0%}" if row["entitled"] else "-",
                *(row["jobs"], row["broken"]),
            )
            for row in rows
        ],
        "Nothing was promised in that time.",
    )


@click.command()
@click.option("--hours", type=float, default=24, show_default=True, help="How far back.")
@click.option("--tenant")
@click.option("--tier")
@click.pass_obj
@told_by(tell_promises)
def promises(portal: Portal, hours: float, **query: Any) -> Any:
    """The ledger: what was promised, hour by hour, and what came of it."""
    return portal.get("promises/", hours=hours, **query)
