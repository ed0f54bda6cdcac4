"""The story: two trainings fill the fleet, a more important job comes, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portal.demo.fleet import Fleet

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
TRAIN = '["python", "train.py", "--steps", "{steps}", "--pace", "{pace}"]'


@dataclass(kw_only=True)
class Account:
    """What became of one training."""

    name: str
    job: int
    tier: str
    nodes: list[str] = field(default_factory=list)
    """Where it ran, in order."""
    steps: list[int] = field(default_factory=list)
    receipts: list[dict[str, Any]] = field(default_factory=list)
    weights: str = ""

    @property
    def lost(self) -> int:
        """Steps that were computed more than once."""
        return len(self.steps) - len(set(self.steps))


@dataclass(kw_only=True)
class Outcome:
    """All that the table shows; ``wrong`` is empty when everything came about."""

    accounts: list[Account]
    wrong: list[str]


def play(ana: Fleet, ben: Fleet, say: Callable[[str], None], *, steps: int, pace: float) -> Outcome:
    """Play it on an idle fleet of two nodes with two devices each."""
    say("A training without disturbance, to know the weights that must come out")
    reference = submit(ana, "reference", "standard", steps=steps)
    ana.wait_for_end(reference.job)

    say("Two trainings of tier basic fill the fleet")
    fillers = [
        submit(ana, f"training {letter}", "basic", steps=steps, pace=pace, gpus_per_replica=2)
        for letter in "ab"
    ]
    for filler in fillers:
        ana.wait_for_step(filler.job, steps // 8)

    say("A premium job arrives and pushes one of them off its devices")
    premium = submit(ben, "premium", "premium", steps=steps, pace=pace, gpus_per_replica=2)
    ben.wait_for_step(premium.job, 1)
    pushed = ana.wait("a training to be pushed off", lambda: pushed_off(ana, fillers))
    say(f"{pushed.name.capitalize()} goes on elsewhere, from the very step, once the other is done")
    for filler in fillers:
        ana.wait_for_end(filler.job)
    ben.wait_for_end(premium.job)

    say("Another training is moved to other devices while it runs")
    mover = submit(ana, "mover", "standard", steps=steps, pace=pace)
    ana.wait_for_step(mover.job, steps // 4)
    ana.migrate(mover.job)
    ana.wait_for_end(mover.job)

    for account in (reference, *fillers, mover):
        close(ana, account)
    return Outcome(
        accounts=[reference, *fillers, mover],
        wrong=judge(reference, fillers, mover, steps),
    )


def submit(
    fleet: Fleet, name: str, tier: str, *, steps: int, pace: float = 0.0, **more: Any
) -> Account:
    told = {"name": name, "tenant": fleet.tenant, "tier": tier, **more}
    job = fleet.submit(DIGITS, command=TRAIN.format(steps=steps, pace=pace), **told)
    return Account(name=name, job=job, tier=tier)


def pushed_off(fleet: Fleet, accounts: list[Account]) -> Account | None:
    """Answer the training that has a receipt for being preempted."""
    for account in accounts:
        if any(receipt["kind"] == "preempt" for receipt in fleet.receipts(account.job)):
            return account
    return None


def close(fleet: Fleet, account: Account) -> None:
    """Gather what became of a training that has ended."""
    account.weights = fleet.weights(account.job)
    account.steps = fleet.steps(account.job)
    account.receipts = fleet.receipts(account.job)
    for placement in fleet.placements(account.job):
        nodes = sorted({seat["node"] for seat in placement["seats"]})
        account.nodes.append(" ".join(nodes))


def judge(reference: Account, fillers: list[Account], mover: Account, steps: int) -> list[str]:
    """Answer a sentence for everything that is not as it must be."""
    wrong = []
    for account in (reference, *fillers, mover):
        if account.steps != list(range(1, steps + 1)):
            wrong.append(f"{account.name} did not compute every step once and in order.")
        if account.weights != reference.weights:
            wrong.append(f"{account.name} ended with other weights than the undisturbed run.")
    if reference.receipts:
        wrong.append("The reference was disturbed; run the demo on an idle fleet.")
    for filler in fillers:
        if filler.receipts and len(set(filler.nodes)) < 2:
            wrong.append(f"{filler.name} was pushed off and did not go on elsewhere.")
    moved = [receipt for receipt in mover.receipts if receipt["kind"] == "migrate"]
    if not moved or moved[-1]["called_off"]:
        reason = moved[-1]["called_off"] if moved else "nothing came of it"
        wrong.append(f"The mover was not moved: {reason}")
    elif moved[-1]["from_nodes"] == moved[-1]["to_nodes"]:
        wrong.append("The mover stayed on its node.")
    return wrong
