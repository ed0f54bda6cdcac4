"""A fleet's future on paper: who starts when, if all that runs ends as expected.

Jobs end when they are expected to, the planner plans again, and its plan comes true at once; nobody
new arrives. Where no expected time is known, a job is taken to need as long as is usual among those
that say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from typing import TypedDict

from scheduler.planner.decisions import Place, Plan
from scheduler.planner.memory import Memory
from scheduler.planner.needs import held_devices
from scheduler.planner.paper import after
from scheduler.planner.passes import plan
from scheduler.planner.policy import DAY, Policy
from scheduler.planner.promises import worked
from scheduler.planner.roster import Roster
from scheduler.planner.snapshot import Job, JobId, Phase, Snapshot

STEPS = 400
"""Moments that are looked at, at most."""
MANY = 400
"""With more running jobs than this, ends that lie close together count as one."""
GRAIN_S, GRAIN_SHARE = 600.0, 0.25
"""Close is less than this, or than this share of the time until then."""
HALF, TWICE = 0.5, 2.0


class Band(TypedDict):
    """When a job starts, on the snapshot's clock; ``None``: not before the horizon."""

    earliest: float | None
    likely: float | None
    latest: float | None


class Outlook:
    """The future from one snapshot on, looked at only as far ahead as is asked.

    ``stretch`` is what all jobs need of the time that is left to them.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        *,
        horizon_s: float = 7 * DAY,
        stretch: float = 1.0,
    ) -> None:
        self.snapshot = snapshot
        self.policy = policy
        self.stretch = stretch
        self.ends_at = snapshot.now + horizon_s
        self.starts: dict[JobId, float] = {}
        self._course = _Course(snapshot, replace(policy, explain=False), stretch)
        self._steps = 0

    def start(self, job: JobId) -> float | None:
        """When a waiting job starts."""
        while job not in self.starts and self._go_on():
            pass
        return self.starts.get(job)

    def all_starts(self) -> dict[JobId, float]:
        """When each job starts that waits now, as far as it does."""
        waiting = {job.id for job in self.snapshot.jobs if job.phase is Phase.WAITING}
        while not waiting <= self.starts.keys() and self._go_on():
            pass
        return {job: at for job, at in self.starts.items() if job in waiting}

    def band(self, job: JobId) -> Band:
        """When it starts, also if all that runs needs half or twice its remaining time.

        In a large fleet that is taken to be half or twice as far away; in a small one it is played.
        """
        now, likely = self.snapshot.now, self.start(job)
        horizon_s = self.ends_at - now
        if self._course.large:
            others = [
                None if likely is None else now + (likely - now) * stretch
                for stretch in (HALF, TWICE)
            ]
        else:
            others = [
                Outlook(self.snapshot, self.policy, horizon_s=horizon_s, stretch=stretch).start(job)
                for stretch in (HALF, TWICE)
            ]
        moments = (likely, *others)
        known = sorted(at for at in moments if at is not None and at <= self.ends_at)
        padded: list[float | None] = [*known, None, None, None]
        return Band(earliest=padded[0], likely=padded[1], latest=padded[2])

    def _go_on(self) -> bool:
        """Look at one more moment; false if there is none."""
        course = self._course
        if self._steps and (not course.advance() or course.now > self.ends_at):
            self._steps = STEPS
        if self._steps >= STEPS:
            return False
        self._steps += 1
        for decision in course.turn():
            if isinstance(decision, Place):
                self.starts.setdefault(decision.job, course.now)
        return True


def forecast(
    snapshot: Snapshot, policy: Policy, wanted: Iterable[JobId] | None = None
) -> dict[JobId, float]:
    """When waiting jobs start (``None``: all), those that do within a week."""
    outlook = Outlook(snapshot, policy)
    if wanted is None:
        return outlook.all_starts()
    found = {job: outlook.start(job) for job in wanted}
    return {job: at for job, at in found.items() if at is not None}


class _Course:
    """A fleet that does what is planned, on paper, with a clock of its own."""

    def __init__(self, snapshot: Snapshot, policy: Policy, stretch: float) -> None:
        self.policy = policy
        self.memory = Memory()
        self.roster = Roster(
            replace(job, phase=Phase.RUNNING) if job.phase is Phase.MOVING else job
            for job in snapshot.jobs
        )
        self.snapshot = replace(snapshot, jobs=self.roster)
        self.began = snapshot.now
        self.stretch = stretch
        known = [job.expected_s for job in self.roster if job.expected_s is not None]
        self.usual = median(known) if known else policy.gain_horizon_s
        self.ends = {job.id: self._end(job) for job in self.roster if job.phase is Phase.RUNNING}
        self.large = len(self.ends) > MANY

    @property
    def now(self) -> float:
        return self.snapshot.now

    def turn(self) -> Plan:
        """One cycle, whose plan comes true at once."""
        decided = plan(self.snapshot, self.policy, self.memory)
        came = []
        for decision in decided:
            job = self.roster.get(decision.job)
            assert job is not None
            job = after(job, decision, self.now)
            came.append(job)
            if job.phase is Phase.RUNNING:
                self.ends[job.id] = self._end(job)
            else:
                self.ends.pop(job.id, None)
        self.roster = self.roster.changed(came)
        self.snapshot = replace(self.snapshot, jobs=self.roster)
        return decided

    def advance(self) -> bool:
        """Go on to when the next job ends; false if none does."""
        if not self.ends:
            return False
        now = min(self.ends.values())
        if len(self.ends) > MANY:
            close = now + max(GRAIN_S, GRAIN_SHARE * (now - self.began))
            now = max(end for end in self.ends.values() if end <= close)
        over = [id_ for id_, end in self.ends.items() if end <= now]
        for id_ in over:
            del self.ends[id_]
        self.roster = self.roster.changed((), over)
        self.snapshot = replace(self.snapshot, jobs=self.roster, now=now, moved_at=())
        return True

    def _end(self, job: Job) -> float:
        """When a job ends; one that has run longer than it should needs half as long again."""
        done = worked(job, self.now)
        whole = self.usual if job.expected_s is None else job.expected_s
        left = (whole - done if whole > done else done / 2) * self.stretch
        return self.now + left * job.devices / max(1, held_devices(job))
