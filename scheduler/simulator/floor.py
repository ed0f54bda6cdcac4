"""The jobs on the simulated fleet, and each change of state with its time and its price."""

from __future__ import annotations

from scheduler.planner import Job, JobId, MoveCost, Node, NodeId, Phase, Remedy, Seat
from scheduler.simulator.arrivals import Arrival
from scheduler.simulator.clock import Clock, What
from scheduler.simulator.fleets import Fleet
from scheduler.simulator.lives import Intake, Life, altered, held
from scheduler.simulator.occupancy import Occupancy
from scheduler.simulator.people import People
from scheduler.simulator.physics import Costs, slowest_link


class Floor:
    """Which jobs are there, what they hold and how fast they work.

    A job gives its devices back in the books as soon as it is told to leave; whoever comes next to
    one of them starts only when the checkpoint on it is done.
    """

    def __init__(self, fleet: Fleet, costs: Costs, clock: Clock, people: People) -> None:
        self.fleet = fleet
        self.costs = costs
        self.clock = clock
        self.people = people
        self.occupancy = Occupancy(fleet.nodes)
        self.lives: list[Life] = []
        self.changed: dict[JobId, Job | None] = {}
        """What the planner has yet to be shown; ``None``: the job is gone."""
        self.waiting = 0
        self.wanted = 0
        """Devices that those who wait want."""
        self.computing = 0.0
        """Device-seconds of work a second."""
        self.finished = 0
        self.holding: dict[JobId, Life] = {}
        """Jobs that hold devices."""
        self._kept: dict[JobId, Life] = {}
        """Paused jobs, whose memory is still on their nodes."""
        self._nodes: dict[NodeId, Node] = {node.id: node for node in fleet.nodes}
        self._free_at: dict[str, float] = {}
        self._intake = Intake(fleet, costs)

    def life(self, job: JobId) -> Life:
        """The job of this id."""
        return self.lives[int(job)]

    # -- coming ------------------------------------------------------------------------------

    def arrive(self, arrival: Arrival) -> Life:
        """A user submits a job."""
        job = self._intake.job(len(self.lives), arrival)
        life = Life(arrival, job)
        self.lives.append(life)
        self.changed[job.id] = job
        self._count_waiting(life, 1)
        return life

    def place(self, life: Life, seats: tuple[Seat, ...]) -> None:
        """Start or restore a waiting job on these seats (none: on so many devices of a pool)."""
        self._count_waiting(life, -1)
        self._hold(life, seats)
        cost = self._restore_cost(life, seats) if life.job.has_image else self.costs.start_s
        self._come(life, seats, self.clock.now, cost)

    def leave_for(self, life: Life, seats: tuple[Seat, ...]) -> MoveCost:
        """Take a checkpoint of a running job that moves to other seats; what the move costs."""
        cost = self._move_cost(life, seats)
        self._stop(life)
        life.restored_work = life.worked
        life.moved_at = self.clock.now
        self._leave_devices(life, cost.checkpoint_s)
        return cost

    def go_on(self, life: Life, seats: tuple[Seat, ...], cost: MoveCost) -> None:
        """Carry the image to the seats and go on there."""
        self._hold(life, seats)
        self._come(
            life, seats, self.clock.now + cost.checkpoint_s, cost.transfer_s + cost.restore_s
        )

    def _come(self, life: Life, seats: tuple[Seat, ...], ready: float, seconds: float) -> None:
        """Wait until the image is stored and the devices are left, then restore."""
        now = self.clock.now
        if self._free_at:
            for device in held(seats):
                ready = max(ready, self._free_at.pop(device, 0.0))
        if ready + seconds <= now:
            self._start(life)
            return
        life.phase = Phase.MOVING
        life.since = life.moving_since = now
        self.clock.set(ready + seconds, What.ARRIVED, self._number(life), life.turn)
        self._show(life)

    def arrived(self, life: Life) -> None:
        """The restore is done."""
        life.moving_s += self.clock.now - life.moving_since
        self._start(life)

    def _start(self, life: Life) -> None:
        now = self.clock.now
        life.phase = Phase.RUNNING
        life.since = life.run_began = now
        if life.started_at is None:
            life.started_at = now
        self.set_pace(life, life.paced_from)

    def set_pace(self, life: Life, full_pace: float) -> None:
        """Let a running job work at ``full_pace`` times what its devices allow."""
        life.settle(self.clock.now)
        life.turn += 1
        before = life.pace
        life.paced_from = full_pace
        life.pace = full_pace * self.costs.pace(life.devices, life.arrival.gpus)
        if self.costs.nearness_counts and life.seats:
            life.nearness = self.costs.together([self._nodes[seat.node] for seat in life.seats])
            life.pace *= life.nearness
        self.computing += (life.pace - before) * life.arrival.gpus
        if not life.counted:
            life.counted = True
            self.people.hold(life.job.tenant, life.devices, self.clock.now)
        if life.pace:
            self.clock.set(life.ends_at, What.END, self._number(life), life.turn)
        self._show(life, started_at=life.run_began)

    def measure(self) -> None:
        """Show the work of jobs whose pace the planner cannot know from their devices."""
        for life in self.holding.values():
            if life.phase is Phase.RUNNING and life.paced_from * life.nearness != 1.0:
                life.settle(self.clock.now)
                self._show(life)

    # -- leaving -----------------------------------------------------------------------------

    def preempt(self, life: Life, remedy: Remedy) -> None:
        """Take a running job off its devices; it waits again once its checkpoint is stored."""
        self._stop(life)
        life.preemptions += 1
        kept: tuple[Seat, ...] = ()
        seconds = 0.0
        if remedy is Remedy.TRANSPARENT:
            seconds = self._checkpoint_cost(life)
            life.restored_work = life.worked
        elif remedy is Remedy.PAUSE:
            kept = life.seats
            self._kept[life.job.id] = life
            life.restored_work = life.worked
        else:
            self._forget(life, 0.0)
        self._leave_devices(life, seconds)
        if seconds:
            life.phase = Phase.MOVING
            life.moving_since = self.clock.now
            self.clock.set(self.clock.now + seconds, What.LEFT, self._number(life), life.turn)
            self._show(life, kept_on=kept)
        else:
            self._wait_again(life, kept)

    def left(self, life: Life) -> None:
        """The checkpoint of a preempted job is stored."""
        life.moving_s += self.clock.now - life.moving_since
        self._wait_again(life, ())

    def lose_node(self, node: NodeId) -> None:
        """A node is gone: the jobs on it go back to their last checkpoint."""
        for life in list(self.holding.values()):
            if any(seat.node == node for seat in life.seats):
                self._lose(life)
        for life in list(self._kept.values()):
            if any(seat.node == node for seat in life.job.kept_on):
                del self._kept[life.job.id]
                self._forget(life, 0.0)
                self._show(life, kept_on=())

    def _lose(self, life: Life) -> None:
        if life.phase is Phase.MOVING:
            life.moving_s += self.clock.now - life.moving_since
        self._stop(life)
        saved = 0.0
        if life.job.remedy is Remedy.TRANSPARENT:
            every = self.costs.checkpoint_every_s
            fresh = life.worked - life.restored_work
            saved = life.restored_work + (fresh // every * every if every else 0.0)
        self._forget(life, saved)
        self._leave_devices(life, 0.0)
        self._wait_again(life, ())

    def end(self, life: Life) -> None:
        """The job has done its work."""
        self._stop(life)
        life.worked = life.arrival.duration_s
        life.finished_at = self.clock.now
        self._leave_devices(life, 0.0)
        self.finished += 1
        self.changed[life.job.id] = None

    def _stop(self, life: Life) -> None:
        """Whatever it was doing, and whatever it was about to do, ends now."""
        life.settle(self.clock.now)
        self.computing -= life.pace * life.arrival.gpus
        life.pace = 0.0
        if life.counted:
            life.counted = False
            self.people.hold(life.job.tenant, -life.devices, self.clock.now)
        life.turn += 1

    def _forget(self, life: Life, saved: float) -> None:
        life.lost_s += life.worked - saved
        life.worked = life.restored_work = saved

    def _leave_devices(self, life: Life, seconds: float) -> None:
        if not life.devices:
            return
        if seconds:
            until = self.clock.now + seconds
            self._free_at.update(dict.fromkeys(held(life.seats), until))
            life.left = tuple({seat.node: None for seat in life.seats})
        self.occupancy.give(life.seats, life.devices)
        life.devices = 0
        life.seats = ()
        del self.holding[life.job.id]

    def _wait_again(self, life: Life, kept: tuple[Seat, ...]) -> None:
        life.phase = Phase.WAITING
        self._count_waiting(life, 1)
        self._show(
            life,
            kept_on=kept,
            has_image=life.restored_work > 0 and not kept,
            waiting_since=self.clock.now,
            started_at=None,
        )

    # -- books -------------------------------------------------------------------------------

    def _number(self, life: Life) -> int:
        return int(life.job.id)

    def _count_waiting(self, life: Life, sign: int) -> None:
        self.waiting += sign
        self.wanted += sign * life.arrival.gpus

    def _hold(self, life: Life, seats: tuple[Seat, ...]) -> None:
        life.devices = len(held(seats)) if seats else life.arrival.gpus
        self.holding[life.job.id] = life
        self._kept.pop(life.job.id, None)
        self.occupancy.take(seats, life.devices)
        life.seats = seats

    def _show(self, life: Life, **changes: object) -> None:
        """Replace what the planner sees of the job."""
        now, job = self.clock.now, life.job
        changes["phase"] = life.phase
        changes["seats"] = life.seats
        changes["worked_s"] = life.worked
        changes["delivered"] = life.delivered
        changes["entitled"] = life.arrival.gpus * (now - job.submitted_at)
        changes["measured_at"] = now
        changes["moves"] = life.migrations + life.resizes
        changes["last_moved_at"] = life.moved_at
        changes.setdefault("kept_on", ())
        if job.remedy is Remedy.REQUEUE:
            changes["at_stake_s"] = life.worked
        life.job = self.changed[job.id] = altered(job, changes)

    # -- prices ------------------------------------------------------------------------------

    def _checkpoint_cost(self, life: Life) -> float:
        nodes = len({seat.node for seat in life.seats})
        return self.costs.move(life.job.bytes, nodes, nodes).checkpoint_s

    def _restore_cost(self, life: Life, seats: tuple[Seat, ...]) -> float:
        cost = self._cost_between(life, life.left, seats)
        return cost.transfer_s + cost.restore_s

    def _move_cost(self, life: Life, seats: tuple[Seat, ...]) -> MoveCost:
        return self._cost_between(life, tuple({seat.node for seat in life.seats}), seats)

    def _cost_between(
        self, life: Life, sources: tuple[NodeId, ...], seats: tuple[Seat, ...]
    ) -> MoveCost:
        targets = {seat.node for seat in seats}
        link = slowest_link(
            self.fleet.links,
            [self._nodes[node] for node in sources if node not in targets],
            [self._nodes[node] for node in targets],
        )
        return self.costs.move(life.job.bytes, len(sources), len(targets), link)
