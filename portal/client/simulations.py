"""What if, played out: ask for a simulation, follow it, read what it showed; as admin."""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from portal.client.connection import Portal
from portal.client.telling import cell, counted, fields, table, told_by, when

OPEN = {"queued", "running"}
HOURS = 3600.0
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
MEASURES: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("jobs finished", lambda m: m["finished"]),
    ("jobs that never ended", lambda m: m["jobs"] - m["finished"]),
    ("mean completion, h", lambda m: hours(m["completion_s"].get("mean"))),
    ("completion p99, h", lambda m: hours(m["completion_s"].get("p99"))),
    ("mean wait, h", lambda m: hours(m["wait_s"].get("mean"))),
    ("makespan, h", lambda m: hours(m["makespan_s"])),
    ("utilisation, %", lambda m: 100 * m["utilisation"]),
    ("idle on partly used nodes, %", lambda m: 100 * m["fragmentation"]),
    ("preemptions", lambda m: m["moves"]["preemptions"]),
    ("migrations", lambda m: m["moves"]["migrations"]),
    ("resizes", lambda m: m["moves"]["resizes"]),
)


def hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / HOURS


def tell_simulations(rows: Any) -> None:
    table(
        ["id", "question", "jobs of", "state", "asked", "by"],
        [
            (
                *(row["id"], row["title"], source(row), row["state"]),
                *(when(row["created_at"]), row["owner"]),
            )
            for row in rows
        ],
        "Nothing was asked yet.",
    )


def source(row: Any) -> str:
    return f"the last {counted(row['days'], 'day')}" if row["days"] else str(row["filename"])


def tell_simulation(row: Any) -> None:
    learned = (row["costs"] or {}).get("moves")
    fields(
        [
            *(("id", row["id"]), ("question", row["title"]), ("jobs of", source(row))),
            *(("state", row["state"]), ("told", row["detail"])),
            ("costs", f"learned from {counted(learned, 'move')}" if learned else ""),
        ]
    )
    for line in row["broken"]:
        click.echo(f"  {line}")
    runs = row.get("results") or []
    if runs:
        table(
            ["measure", *(run["name"] for run in runs)],
            [(name, *(cell(read(run["measures"])) for run in runs)) for name, read in MEASURES],
        )


@click.group(invoke_without_command=True)
@click.pass_context
def simulations(context: click.Context) -> None:
    """What if, played out on jobs that were or a trace, as admin."""
    if context.invoked_subcommand is None:
        context.invoke(list_simulations)


@simulations.command("list")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True)
@click.pass_obj
@told_by(tell_simulations)
def list_simulations(portal: Portal, limit: int) -> Any:
    """What was asked, newest first."""
    return portal.pages("simulations/", limit)


@simulations.command()
@click.argument(
    "trace", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--days", type=click.IntRange(1), help="Play the fleet's last days; 7 unless told.")
@click.option("--policy", help="A preset to compare with.")
@click.option(
    "--sharing", type=click.Choice(["off", "proportional", "tune"]),
    help="How CPUs of a node are shared.",
)  # fmt: skip
@click.option("--quota", help="tenant=NAME,reserved=N[,borrow=N|unlimited][,kind=K][,lend=no]")
@click.option(
    "--tier", "tiers", multiple=True, metavar="NAME:KEY=VALUE,...",
    help="promise (0 to 1), rank, preemptible (yes or no); repeat for others.",
)  # fmt: skip
@click.option("--more-nodes", type=click.IntRange(1), help="So many nodes more.")
@click.option("--like", help="A node that they resemble.")
@click.option("--pricing", type=click.Choice(["learned", "default", "off"]), help="Cost of moves.")
@click.option("--strict", is_flag=True, help="Refuse a trace with a line that can't be read.")
@click.option("--title")
@click.option("--follow", is_flag=True, help="Wait, and show the results.")
@click.pass_obj
@told_by(tell_simulation)
def ask(portal: Portal, trace: Path | None, follow: bool, **told: Any) -> Any:
    """Play TRACE, or the fleet's last days, as it is and with something changed."""
    question: dict[str, Any] = {
        name: told[name] for name in ("days", "policy", "sharing", "more_nodes", "pricing", "title")
    }
    question |= {"strict": told["strict"], "like_node": told["like"], "quota": None}
    question["tiers"] = dict(tier_of(text) for text in told["tiers"])
    if told["quota"]:
        question["quota"] = quota_of(told["quota"])
    if trace is not None:
        question["upload"] = send_trace(portal, trace)
    elif not question["days"]:
        question["days"] = 7
    wanted = {name: value for name, value in question.items() if value not in (None, "", {})}
    row = portal.post("simulations/", wanted)
    return follow_to_the_end(portal, row["id"]) if follow else row


def send_trace(portal: Portal, trace: Path) -> int:
    with trace.open("rb") as file:
        sent = portal.send("POST", "uploads/", files={"file": (trace.name, file, "text/csv")})
    return int(sent.json()["id"])


def follow_to_the_end(portal: Portal, simulation: int) -> Any:
    """Answer a simulation once it has ended; how far it is goes to the error stream."""
    told = ""
    while True:
        row = portal.get(f"simulations/{simulation}/")
        said = f"Simulation {simulation}: {row['state']}, {100 * row['share']:.0f} %"
        if said != told:
            click.echo(said, err=True)
            told = said
        if row["state"] not in OPEN:
            return row
        time.sleep(1.0)


def pairs(text: str, option: str) -> dict[str, str]:
    found = dict(word.split("=", 1) for word in text.split(",") if "=" in word)
    if len(found) != len(text.split(",")):
        raise click.UsageError(f"{option} {text}: write KEY=VALUE, with commas between them.")
    return found


def number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"{option}: {text!r} is no number.") from None


def yes(text: str) -> bool:
    return text.lower() in {"yes", "true", "on", "1"}


def quota_of(text: str) -> dict[str, Any]:
    told = pairs(text, "--quota")
    if unknown := set(told) - {"tenant", "reserved", "borrow", "kind", "lend"}:
        raise click.UsageError(f"--quota: there is no {sorted(unknown)[0]!r}.")
    if "tenant" not in told or "reserved" not in told:
        raise click.UsageError("--quota needs tenant=NAME and reserved=N.")
    borrow = told.get("borrow", "0")
    return {
        "tenant": told["tenant"],
        "device_kind": told.get("kind", ""),
        "reserved": int(number(told["reserved"], "--quota reserved")),
        "borrow": None if borrow == "unlimited" else int(number(borrow, "--quota borrow")),
        "lend": yes(told.get("lend", "yes")),
    }


def tier_of(text: str) -> tuple[str, dict[str, Any]]:
    name, colon, rest = text.partition(":")
    if not colon:
        raise click.UsageError(f"--tier {text}: write NAME:KEY=VALUE.")
    changes: dict[str, Any] = {}
    for key, value in pairs(rest, "--tier").items():
        if key == "preemptible":
            changes[key] = yes(value)
        elif key in {"promise", "rank"}:
            found = number(value, f"--tier {key}")
            changes[key] = int(found) if key == "rank" else found
        else:
            raise click.UsageError(f"--tier: there is no {key!r}.")
    return name, changes


@simulations.command()
@click.argument("simulation", type=int)
@click.pass_obj
@told_by(tell_simulation)
def show(portal: Portal, simulation: int) -> Any:
    """What SIMULATION asked, and what it showed."""
    return portal.get(f"simulations/{simulation}/")


@simulations.command()
@click.argument("simulation", type=int)
@click.pass_obj
@told_by(tell_simulation)
def cancel(portal: Portal, simulation: int) -> Any:
    """Call SIMULATION off."""
    return portal.post(f"simulations/{simulation}/cancel/")


@simulations.command()
@click.argument("simulation", type=int)
@click.pass_obj
def remove(portal: Portal, simulation: int) -> None:
    """Remove SIMULATION, with its trace and what it showed."""
    portal.delete(f"simulations/{simulation}/")
    click.echo(f"Simulation {simulation} is removed.")


def tell_comparison(answer: Any) -> None:
    table(
        ["measure", *(run["name"] for run in answer["runs"])],
        [
            (line["measure"], *(compared(each) for each in line["cells"]))
            for line in answer["measures"]
        ],
        "None of them is done yet.",
    )
    if answer["doubt"]:
        click.echo(answer["doubt"], err=True)


def compared(told: Any) -> str:
    """A value, a star where it is the best, and how far it lies from the first run's."""
    value = "-" if told["value"] is None else f"{told['value']:,g}"
    star = "*" if told["best"] else ""
    return f"{value}{star} ({told['change']})" if told["change"] else f"{value}{star}"


@simulations.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def compare(portal: Portal, runs: tuple[str, ...], *, as_csv: bool, as_json: bool) -> None:
    """Lay any number of RUNS side by side: 12 is a simulation, 12.1 one run of it.

    Differences are from the first; a star marks the best.
    """
    answer = portal.get("simulations/compare/", runs=",".join(runs))
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    elif as_csv:
        lines = csv.writer(sys.stdout, lineterminator="\n")
        lines.writerow(["measure", *(run["name"] for run in answer["runs"])])
        for line in answer["measures"]:
            lines.writerow([line["measure"], *(each["value"] for each in line["cells"])])
    else:
        tell_comparison(answer)
