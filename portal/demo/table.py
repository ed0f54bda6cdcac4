"""The table at the end of the demo, narrow enough for 80 columns."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from portal.demo.story import Account, Outcome
from portal.drawings.bars import in_order

BRIEF_S = 0.05
"""Phases that took less are left out."""
COLUMNS = ("Job", "Tier", "Ran on", "Moved", "Steps lost", "Weights")


def show(console: Console, outcome: Outcome) -> None:
    """Print what was submitted and moved, what it cost, and whether all of it is so."""
    table = Table(*COLUMNS, box=box.SIMPLE_HEAD, pad_edge=False)
    reference = outcome.accounts[0].weights
    for account in outcome.accounts:
        table.add_row(*describe(account), "equal" if account.weights == reference else "OTHER")
    console.print(table)
    for account in outcome.accounts:
        for receipt in account.receipts:
            console.print(cost(account, receipt), highlight=False, soft_wrap=True)
    for sentence in outcome.wrong:
        console.print(sentence, style="bold red")
    if not outcome.wrong:
        console.print("Nothing was lost.", style="bold green")


def describe(account: Account) -> tuple[str, ...]:
    return (
        f"{account.job} {account.name}",
        account.tier,
        " → ".join(account.nodes),
        ", ".join(receipt["kind"] for receipt in account.receipts) or "never",
        str(account.lost),
    )


def cost(account: Account, receipt: dict[str, Any]) -> str:
    """Say in a line what one interruption took, in seconds and bytes."""
    told = [
        f"{name} {value:.2f}"
        for name, value in in_order(receipt["phases"]).items()
        if value >= BRIEF_S
    ]
    away = "" if receipt["downtime_s"] is None else f" stood still {receipt['downtime_s']:.2f} s"
    phases = f" ({', '.join(told)})" if told else ""
    stored = f", {receipt['bytes_stored'] / 2**20:.1f} MiB stored"
    end = f": called off, {receipt['called_off']}" if receipt["called_off"] else f"{away}{phases}"
    return f"{account.job} {receipt['kind']}:{end}{stored if receipt['bytes_stored'] else ''}"
