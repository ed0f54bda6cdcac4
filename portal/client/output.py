"""What jobs print and leave behind."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from portal.client.connection import Portal, Refusal, Unreachable
from portal.client.telling import size, table, told_by, when

LOOK_S = 0.3
PATIENCE_S = 60.0
"""How long a portal may stay away while its output is followed."""
PIECE = 1024 * 1024


@click.command()
@click.argument("job", type=int)
@click.option("--rank", type=int, default=0, show_default=True, help="Of which replica.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the job ends.")
@click.option("--tail", type=int, help="Begin this many bytes before the end.")
@click.pass_obj
def logs(portal: Portal, job: int, rank: int, follow: bool, tail: int | None) -> None:
    """What JOB prints, stdout and stderr as one text."""
    read_on(portal, job, rank, offset=-tail if tail else 0, follow=follow)


def follow_to_the_end(portal: Portal, job: int) -> None:
    """Show a job's output until it ends, and exit as it did."""
    read_on(portal, job, 0, follow=True)
    ended = portal.get(f"jobs/{job}/")
    if ended["state"] == "succeeded":
        return
    reason = ended["detail"] or ended["sentence"]
    click.echo(f"Job {job} {ended['state']}. {reason}".rstrip(), err=True)
    sys.exit(ended["exit_code"] or 1)


def read_on(portal: Portal, job: int, rank: int, *, offset: int = 0, follow: bool = False) -> None:
    """Print output from ``offset`` on; a portal that is away for a while is waited for."""
    quiet = 0
    away_since: float | None = None
    while True:
        try:
            query = {"offset": offset, "limit": PIECE}
            answer = portal.send("GET", f"jobs/{job}/output/{rank}/", params=query)
        except Unreachable:
            away_since = away_since or time.monotonic()
            if not follow or time.monotonic() - away_since > PATIENCE_S:
                raise
            time.sleep(1)
            continue
        away_since = None
        offset = int(answer.headers["X-Next-Offset"])
        sys.stdout.buffer.write(answer.content)
        sys.stdout.buffer.flush()
        if answer.content:
            quiet = 0
            continue
        # Asked once more after the end: the last piece may have come in between.
        quiet += answer.headers["X-Ended"] == "true"
        if not follow or quiet > 1:
            return
        time.sleep(LOOK_S)


def tell_files(answer: Any) -> None:
    rows = [
        (file["rank"], file["path"], size(file["size"]), when_seconds(file["mtime"]))
        for file in answer["files"]
    ]
    table(["rank", "file", "size", "changed"], rows, "No files; they are stored when the job ends.")


def when_seconds(at: float) -> str:
    from datetime import UTC, datetime

    return when(datetime.fromtimestamp(at, UTC).isoformat())


@click.command()
@click.argument("job", type=int)
@click.pass_obj
@told_by(tell_files)
def files(portal: Portal, job: int) -> Any:
    """The files that JOB left in its workspaces."""
    return portal.get(f"jobs/{job}/files/")


def tell_download(answer: Any) -> None:
    for file in answer:
        click.echo(f"{file['written']}  {size(file['size'])}")


@click.command()
@click.argument("job", type=int)
@click.argument("path", required=False)
@click.option("--rank", type=int, help="Of which replica; else of all (0 with a PATH).")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="File to write to.")
@click.pass_obj
@told_by(tell_download)
def download(
    portal: Portal, job: int, path: str | None, rank: int | None, output: Path | None
) -> Any:
    """Download the file PATH of JOB; without a PATH all files, a zip archive a replica."""
    if path is not None:
        where = output or Path(Path(path).name)
        return [fetch(portal, f"jobs/{job}/files/{rank or 0}/{quote(path)}", where)]
    ranks = [rank] if rank is not None else portal.get(f"jobs/{job}/files/")["ranks"]
    if not ranks:
        raise Refusal(404, "not-found", f"No files of job {job} are stored.", {})
    if output is not None and len(ranks) > 1:
        raise click.UsageError("With --output name one --rank: each replica is an archive.")
    return [
        fetch(
            portal,
            f"jobs/{job}/files.zip",
            output or Path(f"job-{job}-rank-{number}.zip"),
            rank=number,
        )
        for number in ranks
    ]


def fetch(portal: Portal, path: str, where: Path, **query: Any) -> dict[str, Any]:
    """Write a download to a file, whole or not at all."""
    part = where.with_name(f".{where.name}.part")
    try:
        with portal.stream(path, **query) as answer, part.open("wb") as file:
            for piece in answer.iter_bytes(PIECE):
                file.write(piece)
        part.replace(where)
    except OSError as error:
        raise click.ClickException(f"{where} can't be written: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)
    return {"written": str(where), "size": where.stat().st_size}
