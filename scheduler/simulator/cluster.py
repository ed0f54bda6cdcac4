"""The simulated fleet: observed and acted upon like the live one, on a clock of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from scheduler.planner import (
    Decision,
    Hold,
    Migrate,
    MoveCost,
    Place,
    Plan,
    Policy,
    Preempt,
    Reason,
    Resize,
    Snapshot,
)
from scheduler.planner.roster import Roster
from scheduler.simulator.absences import Absences
from scheduler.simulator.arrivals import Arrival
from scheduler.simulator.chronicle import Chronicle
from scheduler.simulator.clock import Clock, What
from scheduler.simulator.fleets import Fleet, with_mixtures
from scheduler.simulator.floor import Floor
from scheduler.simulator.people import People
from scheduler.simulator.physics import Costs
from scheduler.simulator.splitting import Sensitivity, Splitter

HOUR = 3600.0
TICK_S = 300.0
"""After how long a policy that looks at the clock is asked again while nothing happens."""
LONGEST_TICK_S = HOUR
"""An answer that stays the same is asked for half as often each time, down to this."""
FRUITLESS_TICKS = 500
"""After so many ticks on an idle fleet those who wait are given up."""
BACKGROUND = frozenset({Reason.GAP, Reason.DEFRAGMENTED})
"""Reasons of the moves that count against the hourly budget."""

Witness = Callable[[float, Decision], None]
"""Told of each decision that changes something, with its moment in seconds from the start."""


class SimulatedCluster:
    """A fleet whose jobs come from a trace and whose moves take what the physics says."""

    def __init__(
        self,
        arrivals: Sequence[Arrival],
        fleet: Fleet,
        policy: Policy,
        *,
        costs: Costs,
        seed: int = 0,
        witness: Witness | None = None,
        sensitivity: Sensitivity | None = None,
    ) -> None:
        fleet = with_mixtures(fleet, ((one.partition, one.device_kinds) for one in arrivals))
        self.start = arrivals[0].submitted_at if arrivals else 0.0
        self.clock = Clock(self.start)
        self.people = People(fleet, arrivals, policy)
        self.floor = Floor(fleet, costs, self.clock, self.people)
        self.chronicle = Chronicle(self.start)
        self.holds: Counter[str] = Counter()
        """How often a waiting job was answered with each reason."""
        self._absences = Absences(fleet, self.clock, seed)
        self._arrivals = arrivals
        self._next_arrival = self.start if arrivals else float("inf")
        self._witness = witness
        self._splitter = Splitter(sensitivity, self.floor) if sensitivity else None
        self._roster = Roster()
        self._moved_at: list[float] = []
        self._looks_at_the_clock = looks_at_the_clock(policy)
        self._tick_s = TICK_S
        self._restless_s = max(policy.minimum_run_s, policy.cooling_s) + TICK_S
        self._restless_until = self.start
        self._next_tick = float("inf")
        self._fruitless = 0

    # -- the two verbs of a cluster ----------------------------------------------------------

    def observe(self) -> Snapshot:
        """The facts at this moment; jobs that did not change are the same objects as before."""
        now = self.clock.now
        if self._splitter is not None or self.floor.costs.nearness_counts:
            self.floor.measure()
        if changed := self.floor.changed:
            self._roster = self._roster.changed(
                [job for job in changed.values() if job is not None],
                [id_ for id_, job in changed.items() if job is None],
            )
            self.floor.changed = {}
        if self._moved_at and self._moved_at[0] < now - HOUR:
            self._moved_at = [at for at in self._moved_at if at >= now - HOUR]
        return Snapshot(
            now=now,
            nodes=self._absences.nodes,
            jobs=self._roster,
            tenants=self.people.tenants(now),
            tiers=self.people.tiers,
            moved_at=tuple(self._moved_at),
        )

    def enact(self, plan: Plan) -> None:
        """Do what was decided: who leaves first, then who comes."""
        coming: list[Place] = []
        acted = False
        moving: list[tuple[Migrate | Resize, MoveCost]] = []
        for decision in plan:
            match decision:
                case Hold():
                    self.holds[decision.why.reason] += 1
                    continue
                case Place():
                    coming.append(decision)
                case Preempt():
                    self.floor.preempt(self.floor.life(decision.job), decision.remedy)
                case Migrate() | Resize():
                    moving.append((decision, self._leave(decision)))
            acted = True
            if self._witness is not None:
                self._witness(self.clock.now - self.start, decision)
        for move, cost in moving:
            self.floor.go_on(self.floor.life(move.job), move.seats, cost)
        for place in coming:
            self.floor.place(self.floor.life(place.job), place.seats)
        if self._splitter is not None:
            self._splitter.split()
        self._set_tick(acted=acted)

    def _leave(self, decision: Migrate | Resize) -> MoveCost:
        life = self.floor.life(decision.job)
        if isinstance(decision, Migrate):
            life.migrations += 1
        else:
            life.resizes += 1
        if decision.why.reason in BACKGROUND:
            self._moved_at.append(self.clock.now)
        return self.floor.leave_for(life, decision.seats)

    # -- time --------------------------------------------------------------------------------

    def advance(self) -> bool:
        """Go to the next moment at which something changes; false when nothing will."""
        changed = False
        while not changed:
            at = min(self._next_arrival, self.clock.next_at, self._next_tick)
            if self._is_over(at):
                return False
            self._pass_to(at)
            self.clock.now = at
            changed = self._next_tick <= at
            while self.clock.next_at <= at:
                changed |= self._happen()
            while self._next_arrival <= at:
                self._arrive()
                changed = True
        return True

    def _pass_to(self, at: float) -> None:
        floor, used = self.floor, self.floor.occupancy
        if not floor.holding and self._next_arrival == float("inf"):
            self.chronicle.skip_to(at)
            return
        self.chronicle.pass_to(
            at,
            used.capacity,
            used.used,
            floor.computing,
            used.idle_in_part,
            floor.waiting,
            floor.wanted,
        )

    def _is_over(self, at: float) -> bool:
        if at == float("inf"):
            return True
        done = self._next_arrival == float("inf") and self.floor.finished == len(self._arrivals)
        return done or self._fruitless > FRUITLESS_TICKS

    def _arrive(self) -> None:
        arrivals, number = self._arrivals, len(self.floor.lives)
        self.floor.arrive(arrivals[number]).contention = self.chronicle.contention
        self._next_arrival = (
            arrivals[number + 1].submitted_at if number + 1 < len(arrivals) else float("inf")
        )
        self.chronicle.loaded = (self.chronicle.computing, self.chronicle.capacity)

    def _happen(self) -> bool:
        """Take one event off the clock; whether it changed anything."""
        _, what, _, subject, turn = self.clock.pop()
        if what is What.AWAY or what is What.BACK:
            self._change_node(what, subject)
            return True
        life = self.floor.lives[subject]
        if life.turn != turn:
            return False
        if what is What.END:
            self.floor.end(life)
            there = self.clock.now - life.job.submitted_at
            spent = self.chronicle.contention - life.contention
            life.contention = max(1.0, spent / there) if there else 1.0
        elif what is What.LEFT:
            self.floor.left(life)
        else:
            self.floor.arrived(life)
        return True

    def _change_node(self, what: int, number: int) -> None:
        if what == What.BACK:
            node, returned = self._absences.end(number)
            if returned:
                self.floor.occupancy.set_away(node, away=False)
            return
        node, lost = self._absences.begin(number)
        if lost:
            self.floor.lose_node(node)
            self.floor.occupancy.set_away(node, away=True)

    def _set_tick(self, *, acted: bool) -> None:
        """Ask again later where the policy looks at the clock and something may come of it."""
        now = self.clock.now
        idle = not self.floor.holding and self._next_arrival == float("inf")
        self._fruitless = self._fruitless + 1 if idle and not acted else 0
        if not self._looks_at_the_clock:
            return
        if acted or self._next_tick > now:
            self._restless_until = now + self._restless_s
            self._tick_s = TICK_S
        else:
            self._tick_s = min(2 * self._tick_s, LONGEST_TICK_S)
        restless = self.floor.waiting or now < self._restless_until
        self._next_tick = now + self._tick_s if restless else float("inf")


def looks_at_the_clock(policy: Policy) -> bool:
    """Whether the same facts may be answered differently some time later."""
    timed = policy.minimum_run_s or policy.cooling_s or policy.patience_s < float("inf")
    return bool(timed) or policy.ordering.value == "las" or policy.promises
