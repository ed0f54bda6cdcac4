"""The story: two trainings fill the fleet, a more important job comes, and nothing is lost.

Each scene begins on an idle fleet. One into which somebody else's job came so that it could not
come about is played again, ``TRIES`` times in all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from portal.demo.fleet import ENDED, Fleet, NotNowError, NotSoError
from portal.demo.room import wait_for_room

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
TRAIN = '["python", "train.py", "--steps", "{steps}", "--pace", "{pace}"]'
TRIES = 3
T = TypeVar("T")


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
    """Play it. Raises ``NotSoError`` when the fleet has no room for it, or when it gets stuck."""
    stage = Stage(ana, ben, say)
    reference = stage.until_it_comes_about(lambda: rehearse(stage, steps))
    fillers, premium = stage.until_it_comes_about(lambda: push(stage, steps, pace))
    mover = stage.until_it_comes_about(lambda: move(stage, steps, pace))
    for account in (reference, *fillers, mover):
        close(ana, account)
    close(ben, premium)
    accounts = [reference, *fillers, premium, mover]
    return Outcome(accounts=accounts, wrong=judge(accounts, steps))


@dataclass
class Stage:
    """Two people's views of one fleet, and who listens."""

    ana: Fleet
    ben: Fleet
    say: Callable[[str], None]
    nodes: int = 0
    devices: int = 0
    """On each node."""

    def until_it_comes_about(self, scene: Callable[[], T | None]) -> T:
        """Play a scene on an idle fleet until it comes about. Raises ``NotSoError``."""
        for _ in range(TRIES):
            self.nodes, self.devices = wait_for_room((self.ana, self.ben))
            if (outcome := scene()) is not None:
                return outcome
            for fleet in (self.ana, self.ben):
                fleet.cancel_submitted()
        raise NotSoError(
            f"{TRIES} times other jobs came in between. Play the demo when nobody else uses the "
            "fleet, or with longer trainings: .venv/bin/python manage.py demo --steps 600"
        )


def rehearse(stage: Stage, steps: int) -> Account | None:
    """Train without disturbance; nothing when somebody disturbed it."""
    stage.say("A training without disturbance, to know the weights that must come out")
    reference = submit(stage.ana, "reference", "standard", steps=steps)
    stage.ana.wait_for_end(reference.job)
    if stage.ana.receipts(reference.job):
        stage.say("It was disturbed by another job; once more")
        return None
    return reference


def push(stage: Stage, steps: int, pace: float) -> tuple[list[Account], Account] | None:
    """Fill the fleet and have a training pushed off; nothing when the fleet did not stay full."""
    ana, ben = stage.ana, stage.ben
    stage.say(f"{stage.nodes} trainings of tier basic fill the fleet, one a node")
    whole: dict[str, Any] = {"steps": steps, "pace": pace, "gpus_per_replica": stage.devices}
    fillers = [
        submit(ana, f"training {letter}", "basic", **whole) for letter in "abcdefgh"[: stage.nodes]
    ]
    for filler in fillers:
        ana.wait_for_step(filler.job, steps // 8)

    stage.say("A premium job arrives and pushes one of them off its devices")
    premium = submit(ben, "premium", "premium", **whole)
    ben.wait_for_step(premium.job, 1)
    pushed = pushed_off(ana, fillers)
    if pushed is None:
        stage.say("It found devices that were free already; once more")
        return None
    stage.say(f"{pushed.name.capitalize()} goes on from the very step once devices are free again")
    for filler in fillers:
        ana.wait_for_end(filler.job)
    ben.wait_for_end(premium.job)
    return fillers, premium


def move(stage: Stage, steps: int, pace: float) -> Account | None:
    """Have a training moved while it runs; nothing when it was over too early."""
    stage.say("Another training is moved to another node while it runs")
    mover = submit(stage.ana, "mover", "standard", steps=steps, pace=pace)
    stage.ana.wait_for_step(mover.job, steps // 4)
    if not have_moved(stage.ana, mover.job):
        stage.say("It was over before it could be moved; once more")
        return None
    stage.ana.wait_for_end(mover.job)
    return mover


def have_moved(fleet: Fleet, job: int) -> bool:
    """Ask for a move until one is done; false when the job ended before.

    One that the planner has pushed off or moves already is asked again when it runs.
    """
    refusal = ""

    def over() -> str:
        nonlocal refusal
        told, moves = fleet.job(job), fleet.receipts(job)
        if any(move["kind"] == "migrate" and move["resumed_at"] for move in moves):
            return "moved"
        if told["state"] in ENDED:
            return "ended"
        under_way = any(not move["resumed_at"] and not move["called_off"] for move in moves)
        if told["state"] == "running" and not told["move_asked"] and not under_way:
            try:
                fleet.migrate(job)
            except NotNowError as error:
                refusal = str(error)
        return ""

    outcome: str = fleet.wait(
        f"job {job} to be moved", over, why=lambda: refusal or fleet.standing(job)
    )
    return outcome == "moved"


def submit(
    fleet: Fleet, name: str, tier: str, *, steps: int, pace: float = 0.0, **more: Any
) -> Account:
    told = {"name": name, "tenant": fleet.tenant, "tier": tier, **more}
    job = fleet.submit(DIGITS, command=TRAIN.format(steps=steps, pace=pace), **told)
    return Account(name=name, job=job, tier=tier)


def pushed_off(fleet: Fleet, accounts: Sequence[Account]) -> Account | None:
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


def judge(accounts: Sequence[Account], steps: int) -> list[str]:
    """Answer a sentence for everything that is not as it must be."""
    wrong = []
    for account in accounts:
        name = account.name.capitalize()
        if account.steps != list(range(1, steps + 1)):
            wrong.append(f"{name} did not compute every step once and in order.")
        if account.weights != accounts[0].weights:
            wrong.append(f"{name} ended with other weights than the undisturbed run.")
    return wrong
