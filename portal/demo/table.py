"""The table at the end of the demo."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from portal.demo.story import Account, Outcome
from portal.drawings.bars import in_order

BRIEF_S = 0.05
"""Phases that took less are left out."""
COLUMNS = (
    "Job",
    "Tier",
    "Ran on",
    "Moved",
    "Seconds of each phase",
    "Away",
    "Stored",
    "Steps lost",
)


def show(console: Console, outcome: Outcome) -> None:
    """Print what was submitted and moved, what it cost, and whether all of it is so."""
    table = Table(*COLUMNS, "Weights equal", title="The demo", title_justify="left")
    reference = outcome.accounts[0].weights
    for account in outcome.accounts:
        table.add_row(*describe(account), "yes" if account.weights == reference else "NO")
    console.print(table)
    for sentence in outcome.wrong:
        console.print(sentence, style="bold red")
    if not outcome.wrong:
        console.print("Nothing was lost.", style="bold green")


def describe(account: Account) -> tuple[str, ...]:
    receipts = account.receipts
    return (
        f"{account.job} {account.name}",
        account.tier,
        " → ".join(account.nodes),
        "\n".join(receipt["kind"] for receipt in receipts) or "never",
        "\n".join(phases(receipt) for receipt in receipts),
        "\n".join(seconds(receipt["downtime_s"]) for receipt in receipts),
        size(sum(receipt["bytes_stored"] for receipt in receipts)),
        str(account.lost),
    )


def phases(receipt: dict[str, Any]) -> str:
    told = in_order(receipt["phases"]).items()
    return ", ".join(f"{name} {value:.2f}" for name, value in told if value >= BRIEF_S)


def seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s"


def size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count else ""
