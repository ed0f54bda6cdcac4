"""What `make up` shows: the address, the accounts, and what each node can do."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from portal.models import Node

ABILITIES = ("run", "pause", "checkpoint", "migrate", "device_checkpoint", "network", "profile")


def show(console: Console, *, address: str, accounts: Mapping[str, str], home: str) -> None:
    """Print the one screen; the passwords are on it this once."""
    console.print()
    console.print(f"[bold]Tidepool is up at {address}[/]", highlight=False)
    console.print(f"State and logs: {home}", style="dim", highlight=False)
    if accounts:
        table = Table("Account", "Password", title="Shown only now", title_justify="left")
        for name, password in accounts.items():
            table.add_row(name, password)
        console.print(table)
    console.print(_nodes())
    console.print("Ctrl-C stops everything.", style="dim")


def _nodes() -> Table:
    table = Table("Node", "Devices", "Can", "Cannot, and why", title_justify="left")
    for node in Node.objects.prefetch_related("devices"):
        able = [name.replace("_", " ") for name in ABILITIES if node.able(name)]
        reasons: dict[str, list[str]] = {}
        for name in ABILITIES:
            if not node.able(name):
                reasons.setdefault(node.why_not(name), []).append(name.replace("_", " "))
        unable = [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
        kinds = [device.kind for device in node.devices.all()]
        devices = ", ".join(f"{kinds.count(kind)} x {kind}" for kind in sorted(set(kinds)))
        table.add_row(node.name, devices or "none yet", ", ".join(able), "\n".join(unable))
    return table
