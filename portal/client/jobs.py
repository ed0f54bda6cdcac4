"""Look at jobs, and ask things of them."""

from __future__ import annotations

import shlex
from typing import Any

import click

from portal.client.connection import Portal
from portal.client.telling import ago, counted, fields, table, told_by, when
from portal.client.words import settings
from portal.wishes import sentence_of_wish

STATES = "waiting, starting, running, moving, paused, succeeded, failed, cancelled, live or ended"


def tell_jobs(rows: Any) -> None:
    table(
        ["id", "name", "state", "tenant", "tier", "owner", "devices", "nodes", "age"],
        [
            (
                *(job["id"], job["name"], job["state"], job["tenant"], job["tier"], job["owner"]),
                *(f"{job['devices_held']}/{job['devices']}", job["nodes"]),
                ago(job["submitted_at"]),
            )
            for job in rows
        ],
        "No jobs.",
    )


def tell_job(job: Any) -> None:
    source = job["source"]
    came_from = source["filename"] or " ".join(filter(None, (source["git"], source["ref"])))
    fraction = job["gpu_fraction"]
    rows: list[tuple[str, Any]] = [
        ("job", f"{job['id']} {job['name']}"),
        ("state", job["state"]),
        ("", standing_of(job)),
        ("error", job["error"]),
        ("", job["detail"]),
        ("exit code", job["exit_code"]),
        ("tenant", f"{job['tenant']} ({job['owner']})"),
        ("tier", job["tier"]),
        ("command", shlex.join(job["command"])),
        ("source", came_from),
        ("size", f"{job['replicas']} x {counted(job['gpus_per_replica'], 'device')}"),
        ("fewest", job["fewest_devices"]),
        ("nodes", job["nodes"]),
        ("devices held", job["devices_held"] or None),
        ("remedy", job["remedy"]),
        ("", job["verdict"]),
        ("tags", job["tags"]),
        ("submitted", when(job["submitted_at"])),
        ("started", when(job["started_at"]) if job["started_at"] else None),
        ("ended", when(job["ended_at"]) if job["ended_at"] else None),
        ("moves", job["moves"] or None),
        ("GPU fraction", None if fraction is None else f"{fraction:.0%}"),
    ]
    fields(rows)


@click.group(invoke_without_command=True)
@click.pass_context
def jobs(context: click.Context) -> None:
    """The jobs of your tenants."""
    if context.invoked_subcommand is None:
        context.invoke(list_jobs)


@jobs.command("list")
@click.option("--state", help=f"One or more of {STATES}; commas between.")
@click.option("--tenant")
@click.option("--tier")
@click.option("--owner", help="A username, or me.")
@click.option("--tag")
@click.option("--search", "q", help="Part of the name.")
@click.option("--order", "ordering", help="A field, - before it to turn it round.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@click.pass_obj
@told_by(tell_jobs)
def list_jobs(portal: Portal, limit: int, **query: Any) -> Any:
    """List them, newest first."""
    return portal.pages("jobs/", limit, **query)


@click.command()
@click.argument("job", type=int)
@click.pass_obj
@told_by(tell_job)
def show(portal: Portal, job: int) -> Any:
    """Where JOB stands, and why."""
    return portal.get(f"jobs/{job}/")


def tell_asked(job: Any) -> None:
    click.echo(f"Job {job['id']} is {job['state']}. {standing_of(job)}".rstrip())


def standing_of(job: Any) -> str:
    """Answer why a job stands where it does; of one that runs, what was asked and is to come."""
    if job["state"] != "running":
        return str(job["sentence"])
    names = ("pause_asked", "move_asked", "wanted_nodes", "asked_devices")
    return sentence_of_wish(held=job["devices_held"], **{name: job[name] for name in names})


def asking(verb: str, says: str) -> click.Command:
    """Make a command that asks one thing of a job."""

    @click.command(verb, help=says)
    @click.argument("job", type=int)
    @click.pass_obj
    @told_by(tell_asked)
    def ask(portal: Portal, job: int) -> Any:
        return portal.post(f"jobs/{job}/{verb}/")

    return ask


cancel = asking("cancel", "End JOB, wherever it stands.")
pause = asking("pause", "Take JOB off its devices until it is resumed.")
resume = asking("resume", "Let JOB go on at the step where it was paused.")
checkpoint = asking("checkpoint", "Take a checkpoint of JOB now; it runs on.")


@click.command()
@click.argument("job", type=int)
@click.option("--to", "node", default="", help="Name of a node; else anywhere else.")
@click.pass_obj
@told_by(tell_asked)
def migrate(portal: Portal, job: int, node: str) -> Any:
    """Move JOB to other devices while it runs."""
    return portal.post(f"jobs/{job}/migrate/", {"node": node})


@click.command()
@click.argument("job", type=int)
@click.argument("devices", type=int)
@click.pass_obj
@told_by(tell_asked)
def resize(portal: Portal, job: int, devices: int) -> Any:
    """Spread the replicas of JOB over this many DEVICES while it runs."""
    return portal.post(f"jobs/{job}/resize/", {"devices": devices})


def tell_clone(job: Any) -> None:
    click.echo(f"Submitted job {job['id']} ({job['name']}).")


@click.command()
@click.argument("job", type=int)
@click.option("--name", help="Another name.")
@click.option("--tier", help="Another tier.")
@click.option("--replicas", type=int, help="Another number of replicas.")
@click.option("--env", "-e", multiple=True, help="Another environment: NAME=value, repeated.")
@click.option("--secret", multiple=True, help="Other secrets.")
@click.pass_obj
@told_by(tell_clone)
def clone(
    portal: Portal, job: int, env: tuple[str, ...], secret: tuple[str, ...], **told: Any
) -> Any:
    """Submit JOB again, with what the options name instead of what it had."""
    told["environment"] = settings("--env", env)
    told["secrets"] = settings("--secret", secret)
    changes = {name: value for name, value in told.items() if value}
    return portal.post(f"jobs/{job}/clone/", changes)
