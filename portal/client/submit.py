"""Submit a job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from math import prod
from pathlib import Path
from typing import IO, Any

import click

from portal.client.archive import pack
from portal.client.connection import Portal
from portal.client.output import follow_to_the_end
from portal.client.words import Duration, Size, settings

AT_ONCE = 1000
"""The most jobs that one request submits."""
Source = dict[str, tuple[str, IO[bytes], str]]


@click.command(context_settings={"ignore_unknown_options": False})
@click.option("--tenant", help="Slug of your tenant; may be left out if you have one only.")
@click.option("--tier", default="basic", show_default=True, help="Service tier.")
@click.option("--name", help="Name of the job.")
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="Folder to send along.")
@click.option("--file", type=click.Path(path_type=Path), help="File or archive to send along.")
@click.option("--git", help="URL of a repository to clone.")
@click.option("--ref", help="Branch, tag or commit of it.")
@click.option("--env", "-e", multiple=True, help="NAME=value, or NAME to take yours.")
@click.option("--secret", multiple=True, help="Like --env, but never shown again.")
@click.option("--replicas", "-n", type=int, help="Containers, one rank each.  [default: 1]")
@click.option("--gpus", "gpus_per_replica", type=int, help="Devices a replica.  [default: 1]")
@click.option("--fewest", "fewest_devices", type=int, help="Fewest devices it may run on.")
@click.option("--kind", "device_kind", help="Kind of device, e.g. H100.")
@click.option("--device-memory", type=Size(), help="Memory a device must have, e.g. 40GiB.")
@click.option("--cpus", "cpus_per_replica", type=float, help="Cores a replica.")
@click.option("--memory", "memory_per_replica", type=Size(), help="Memory a replica, e.g. 16GiB.")
@click.option("--partition", help="Set of nodes to run on.")
@click.option("--expected", "expected_s", type=Duration(), help="How long it takes, e.g. 2h.")
@click.option("--tag", "tags", multiple=True, help="A word to find it by; may be repeated.")
@click.option("--retries", type=int, help="How often it is tried again when it fails.")
@click.option("--checkpoint-every", type=Duration(), help="E.g. 10m; 0: never.")
@click.option("--internet", is_flag=True, help="Let it reach the internet.")
@click.option("--unprofiled", is_flag=True, help="Never measure what it gains from CPUs.")
@click.option(
    "--sweep",
    multiple=True,
    help="NAME=a,b,c: a job for each value, which it finds in its environment; repeated, for each"
    " combination.",
)
@click.option("--check", is_flag=True, help="Only say what would become of it.")
@click.option("--follow", "-f", is_flag=True, help="Show its output until it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("command", nargs=-1, required=True)
@click.pass_obj
def submit(
    portal: Portal,
    /,
    folder: Path | None,
    file: Path | None,
    env: tuple[str, ...],
    secret: tuple[str, ...],
    checkpoint_every: float | None,
    sweep: tuple[str, ...],
    check: bool,
    follow: bool,
    as_json: bool,
    **told: Any,
) -> None:
    """Submit COMMAND as a job; put -- before it.

    With --follow the exit status is the job's.
    """
    if sum(1 for source in (folder, file, told["git"]) if source) > 1:
        raise click.UsageError("Name one of --dir, --file and --git.")
    told["tenant"] = told["tenant"] or only_tenant(portal)
    told["environment"] = settings("--env", env)
    told["secrets"] = settings("--secret", secret)
    told["checkpoint_every_s"] = None if checkpoint_every is None else int(checkpoint_every)
    wanted = {name: value for name, value in told.items() if value not in (None, "", (), {})}
    if sweep:
        if check or follow:
            raise click.UsageError("--sweep goes with neither --check nor --follow.")
        with source_of(folder, file) as source:
            jobs = send_all(portal, swept(plain(wanted), sweep), source)
        if as_json:
            click.echo(json.dumps(jobs, indent=2))
        else:
            click.echo(f"Submitted {len(jobs)} jobs, {jobs[0]['id']} to {jobs[-1]['id']}.")
        return
    if check:
        click.echo(json.dumps(portal.post("jobs/check/", plain(wanted)), indent=2))
        return
    with source_of(folder, file) as source:
        job = send(portal, wanted, source)
    if as_json:
        click.echo(json.dumps(job, indent=2))
    else:
        click.echo(f"Submitted job {job['id']} ({job['name']}).", err=follow)
    if follow:
        follow_to_the_end(portal, int(job["id"]))


def only_tenant(portal: Portal) -> str:
    """Answer the caller's tenant where there is no choice."""
    slugs = [entry["tenant"] for entry in portal.get("me/")["memberships"]]
    if len(slugs) != 1:
        known = f"one of {', '.join(slugs)}" if slugs else "a tenant"
        raise click.UsageError(f"Name {known} with --tenant.")
    return str(slugs[0])


@contextmanager
def source_of(folder: Path | None, file: Path | None) -> Iterator[Source]:
    """Answer the file to send: a folder packed, a file as it is, or none."""
    if folder is not None:
        packed, count = pack(folder)
        with packed:
            if not count:
                raise click.UsageError(f"--dir {folder}: there is nothing to send in it.")
            yield {"file": (f"{folder.resolve().name}.tar.gz", packed, "application/gzip")}
    elif file is not None:
        try:
            opened = file.open("rb")
        except OSError as error:
            raise click.UsageError(f"--file {file}: {error.strerror}.") from None
        with opened:
            yield {"file": (file.name, opened, "application/octet-stream")}
    else:
        yield {}


def send(portal: Portal, wanted: dict[str, Any], source: Source) -> Any:
    if not source:
        return portal.post("jobs/", plain(wanted))
    form = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in plain(wanted).items()
    }
    return portal.send("POST", "jobs/", data=form, files=source).json()


def swept(wanted: dict[str, Any], sweep: tuple[str, ...]) -> list[dict[str, Any]]:
    """A job for each combination of values; they are in its environment and its name."""
    axes: dict[str, list[str]] = {}
    for axis in sweep:
        variable, _, listed = axis.partition("=")
        if not variable or not listed:
            raise click.BadParameter(f"{axis!r} is not NAME=a,b,c.", param_hint="--sweep")
        axes[variable] = listed.split(",")
    if (count := prod(map(len, axes.values()))) > AT_ONCE:
        raise click.UsageError(f"These are {count:,} jobs; submit at most {AT_ONCE:,} at once.")
    jobs = []
    for chosen in product(*axes.values()):
        values = dict(zip(axes, chosen, strict=True))
        told = " ".join(f"{axis}={value}" for axis, value in values.items())
        name = f"{wanted.get('name') or wanted['command'][0]} {told}"[:120]
        environment = {**wanted.get("environment", {}), **values}
        jobs.append({**wanted, "name": name, "environment": environment})
    return jobs


def send_all(portal: Portal, jobs: list[dict[str, Any]], source: Source) -> list[Any]:
    """Submit jobs, all or none; their source is sent once."""
    if source:
        upload = portal.send("POST", "uploads/", files=source).json()["id"]
        jobs = [{**job, "upload": upload} for job in jobs]
    return list(portal.post("jobs/", jobs))


def plain(wanted: dict[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in wanted.items()
    }
