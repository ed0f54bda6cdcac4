"""What if: questions to the planner."""

from __future__ import annotations

from typing import Any

import click

from portal.client.connection import Portal
from portal.client.telling import fields, told_by

NEVER = "not within a week"
GROUPS = {
    "starts": "would start",
    "waits": "would wait on",
    "pushed_off": "would be pushed off",
    "moved": "would move",
    "resized": "would be resized",
    "running_there": "run there now",
}


def tell_answer(answer: Any) -> None:
    rows: list[tuple[str, Any]] = []
    if "likely_s" in answer:
        names = {"likely_s": "starts in", "earliest_s": "at the earliest", "latest_s": "at last"}
        rows += [(title, _span(answer[name])) for name, title in names.items()]
        rows.append(("waits because", answer.get("sentence") or "-"))
    for name, title in GROUPS.items():
        if name in answer:
            rows.append((title, ", ".join(map(str, answer[name])) or "nobody"))
    fields(rows)


def _span(seconds: float | None) -> str:
    if seconds is None:
        return NEVER
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


@click.group("what-if")
def what_if() -> None:
    """Ask the planner; nothing is changed."""


@what_if.command()
@click.argument("job", type=int)
@click.pass_obj
@told_by(tell_answer)
def start(portal: Portal, job: int) -> Any:
    """When would JOB start?"""
    return portal.post("what-if/", {"question": "start", "job": job})


@what_if.command()
@click.argument("nodes", nargs=-1, required=True)
@click.pass_obj
@told_by(tell_answer)
def drain(portal: Portal, nodes: tuple[str, ...]) -> Any:
    """What would become of the jobs on NODES?"""
    return portal.post("what-if/", {"question": "drain", "nodes": list(nodes)})


@what_if.command("nodes")
@click.argument("count", type=click.IntRange(1, 10_000))
@click.option("--like", required=True, help="A node that they resemble.")
@click.pass_obj
@told_by(tell_answer)
def more_nodes(portal: Portal, count: int, like: str) -> Any:
    """What would COUNT more nodes change at once?"""
    return portal.post("what-if/", {"question": "nodes", "like": like, "count": count})


@what_if.command()
@click.argument("tenant")
@click.option("--kind", default="", help="Kind of device; empty: all kinds together.")
@click.option("--reserved", type=click.IntRange(0), required=True)
@click.option("--borrow", type=click.IntRange(0), default=0, show_default=True)
@click.option("--no-limit", is_flag=True, help="Borrow as many as others leave idle.")
@click.option("--lend/--no-lend", default=True)
@click.pass_obj
@told_by(tell_answer)
def quota(
    portal: Portal,
    tenant: str,
    kind: str,
    reserved: int,
    borrow: int,
    no_limit: bool,
    lend: bool,
) -> Any:
    """What would another quota of TENANT change at once?"""
    asked = {"question": "quota", "tenant": tenant, "device_kind": kind, "reserved": reserved}
    return portal.post("what-if/", {**asked, "borrow": None if no_limit else borrow, "lend": lend})
