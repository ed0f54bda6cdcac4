"""What a preemption, a migration and a resize cost, second by second."""

from dataclasses import replace

from scheduler.planner import (
    Migrate,
    Phase,
    Place,
    Preempt,
    Reason,
    Remedy,
    Resize,
    Seat,
    Snapshot,
    Why,
)
from scheduler.simulator.cluster import SimulatedCluster
from scheduler.simulator.fleets import Fleet, grid
from scheduler.simulator.physics import Costs
from scheduler.simulator.simulation import policy_named
from tests.simulator.scenes import scene

COSTS = Costs(checkpoint_s=3, restore_s=5, store_gb_s=0, image_gb_per_gpu=1, squeeze=0.1, start_s=0)
WHY = Why(reason=Reason.FITS)


class Hand:
    """Drives a simulated cluster by hand: any decision at any moment."""

    def __init__(self, fleet: Fleet, *lines: str, costs: Costs = COSTS, **every: object) -> None:
        policy = policy_named("fifo-backfill")
        trace = scene(*lines, **every)
        self.cluster = SimulatedCluster(trace.arrivals, fleet, policy, costs=costs)
        self.cluster.advance()

    @property
    def shown(self) -> Snapshot:
        return self.cluster.observe()

    def job(self, number: int = 0):
        return next(job for job in self.shown.jobs if int(job.id) == number)

    def enact(self, *decisions) -> None:
        self.cluster.enact(decisions)

    def until(self, moment: float) -> None:
        while self.cluster.clock.now < moment and self.cluster.advance():
            self.cluster.enact(())

    def seats(self, *places: str) -> tuple[Seat, ...]:
        """``"n0000/0"`` is one replica on that device."""
        return tuple(
            Seat(rank=rank, node=place.split("/")[0], devices=(place,))
            for rank, place in enumerate(places)
        )

    def place(self, number: int, *places: str, after: tuple[str, ...] = ()) -> Place:
        return Place(job=f"{number:07}", seats=self.seats(*places), why=WHY, after=after)


def preempt(number: int, remedy: Remedy) -> Preempt:
    return Preempt(job=f"{number:07}", remedy=remedy, why=WHY)


def test_a_preempted_job_leaves_in_three_seconds_and_comes_back_in_five():
    hand = Hand(grid(1, 1), "0 100 1", "10 1 1")
    hand.enact(hand.place(0, "n0000/0"))
    hand.until(10)
    hand.enact(preempt(0, Remedy.TRANSPARENT))
    assert (hand.job().phase, hand.job().seats) == (Phase.MOVING, ())
    hand.until(13)
    assert (hand.job().phase, hand.job().has_image) == (Phase.WAITING, True)
    assert (hand.job().worked_s, hand.job().delivered, hand.job().entitled) == (10, 10, 13)
    hand.enact(hand.place(0, "n0000/0"))
    assert hand.job().phase is Phase.MOVING
    hand.until(18)
    assert (hand.job().phase, hand.job().worked_s) == (Phase.RUNNING, 10)
    hand.until(108)
    assert hand.cluster.floor.finished == 1
    outcome = hand.cluster.floor.lives[0].outcome(0)
    assert (outcome.finished_at, outcome.moving_s, outcome.preemptions) == (108, 8, 1)
    assert outcome.delivered == 100


def test_who_comes_waits_for_the_checkpoint_of_who_leaves():
    hand = Hand(grid(1, 1), "0 100 1", "10 1 1")
    hand.enact(hand.place(0, "n0000/0"))
    hand.until(10)
    hand.enact(hand.place(1, "n0000/0", after=("0000000",)), preempt(0, Remedy.TRANSPARENT))
    assert hand.job(1).phase is Phase.MOVING
    hand.until(13)
    assert hand.job(1).phase is Phase.RUNNING


def test_a_requeued_job_starts_again_and_a_paused_one_stays_near_its_memory():
    hand = Hand(grid(1, 1), "0 100 1", "10 1 1", remedy=Remedy.REQUEUE)
    hand.enact(hand.place(0, "n0000/0"))
    hand.until(10)
    hand.enact(preempt(0, Remedy.REQUEUE))
    assert (hand.job().phase, hand.job().worked_s, hand.job().has_image) == ("waiting", 0, False)
    assert hand.cluster.floor.lives[0].lost_s == 10

    hand = Hand(grid(1, 1), "0 100 1", "10 1 1", remedy=Remedy.PAUSE)
    hand.enact(hand.place(0, "n0000/0"))
    hand.until(10)
    hand.enact(preempt(0, Remedy.PAUSE))
    assert (hand.job().phase, hand.job().worked_s) == (Phase.WAITING, 10)
    assert hand.job().kept_on[0].node == "n0000"


def test_a_migrated_job_goes_on_elsewhere_after_checkpoint_and_restore():
    hand = Hand(grid(2, 1), "0 100 1", "10 1 1")
    hand.enact(hand.place(0, "n0000/0"))
    hand.until(10)
    hand.enact(Migrate(job="0000000", seats=hand.seats("n0001/0"), why=WHY))
    assert (hand.job().phase, hand.job().seats[0].node) == (Phase.MOVING, "n0001")
    assert hand.job().last_moved_at == 10
    hand.until(18)
    assert (hand.job().phase, hand.job().worked_s) == (Phase.RUNNING, 10)
    assert hand.job().moves == 1


def test_a_shrunk_job_goes_on_at_the_pace_of_its_devices():
    hand = Hand(grid(1, 4), "0 100 4", "10 1 1", fewest_gpus=2)
    assert (hand.job().replicas, hand.job().gpus_per_replica) == (4, 1)
    hand.enact(hand.place(0, "n0000/0", "n0000/1", "n0000/2", "n0000/3"))
    hand.until(10)
    half = hand.seats("n0000/0", "n0000/0", "n0000/1", "n0000/1")
    hand.enact(Resize(job="0000000", seats=half, why=WHY))
    assert hand.cluster.floor.occupancy.used == 2
    hand.until(18)
    hand.until(1000)
    assert hand.cluster.floor.lives[0].finished_at == 18 + 90 / (0.5 * 0.9)


def test_a_job_across_nodes_works_more_slowly_if_that_counts_and_the_planner_sees_it():
    hand = Hand(grid(2, 2), "0 100 2", "40 1 1", costs=replace(COSTS, across_nodes=0.2))
    hand.enact(hand.place(0, "n0000/0", "n0001/0"))
    hand.until(40)
    assert hand.job().worked_s == 32
    hand.enact(Migrate(job="0000000", seats=hand.seats("n0000/0", "n0000/1"), why=WHY))
    hand.until(48 + 68)
    assert hand.cluster.floor.finished == 1


def test_unchanged_jobs_stay_the_same_objects():
    hand = Hand(grid(1, 2), "0 100 1", "10 1 1")
    hand.enact(hand.place(0, "n0000/0"))
    before = hand.job()
    hand.until(10)
    assert hand.job() is before
    assert before.measured_at == 0
