"""CPUs go to those who gain by them, and nobody runs slower than with an even part."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.planner import Job, Phase, Policy, Sharing, allot
from scheduler.planner.codec import dump_case, load_case
from scheduler.planner.sensitivity import Matrix, Point
from tests.planner.sketches import given, job, node

TUNE = Policy(sharing=Sharing.TUNE)
CPUS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0)


def gains(*paces: float) -> Matrix:
    """A job's paces with these CPUs a device; the last one holds for more."""
    rest = (paces[-1],) * (len(CPUS) - len(paces))
    return Matrix(cpus=CPUS, memory=(1e9,), paces=tuple((pace,) for pace in (*paces, *rest)))


CONTENT = gains(1.0)
HUNGRY = gains(0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


def allotted(*jobs: Job, policy: Policy = TUNE, cpus: float = 8.0, devices: int = 2) -> list[float]:
    """CPUs of each job's first replica on one node; 0: its own."""
    snapshot = given([node("n1", devices, cpus=cpus)], list(jobs))
    found = allot(snapshot, policy)
    return [found.get(one.id, {}).get(0, 0.0) for one in jobs]


def test_off_leaves_all_as_they_are() -> None:
    assert allotted(job("a", on="n1", matrix=HUNGRY), policy=Policy()) == [0.0]


def test_proportional_gives_each_device_its_part() -> None:
    policy = Policy(sharing=Sharing.PROPORTIONAL)
    jobs = job("a", on="n1", matrix=CONTENT), job("b", 3, each=3, on="n1")
    assert allotted(*jobs, policy=policy, devices=4) == [2.0, 6.0]


def test_who_gains_nothing_lends_to_who_gains_most() -> None:
    lender, gainer = job("a", on="n1", matrix=CONTENT), job("b", on="n1", matrix=HUNGRY)
    assert allotted(lender, gainer) == [2.0, 6.0]
    assert allotted(lender, gainer, policy=replace(TUNE, least_share=0.25)) == [1.0, 6.0]


def test_idle_devices_lend_too_until_somebody_sits_there() -> None:
    gainer = job("a", on="n1", matrix=HUNGRY)
    assert allotted(gainer) == [8.0]
    assert allotted(gainer, job("b", on="n1")) == [4.0, 4.0]


def test_whoever_is_not_measured_keeps_an_even_part() -> None:
    assert allotted(job("a", on="n1"), job("b", on="n1", matrix=HUNGRY)) == [4.0, 4.0]


def test_whoever_is_moving_keeps_an_even_part() -> None:
    moving = replace(job("a", on="n1", matrix=CONTENT), phase=Phase.MOVING)
    assert allotted(moving, job("b", on="n1", matrix=HUNGRY)) == [4.0, 4.0]


def test_whoever_asked_for_cpus_has_those() -> None:
    asked = job("a", on="n1", cpus_per_replica=6.0, matrix=CONTENT)
    assert allotted(asked, job("b", on="n1", matrix=HUNGRY)) == [0.0, 2.0]


def test_replicas_that_share_a_device_share_its_part() -> None:
    small = job("a", 2, on="n1", matrix=CONTENT)
    one = small.seats[0]
    seats = tuple(replace(one, rank=rank, devices=("n1/0",)) for rank in (0, 1))
    found = allot(given([node("n1", 2, cpus=8.0)], [replace(small, seats=seats)]), TUNE)
    assert found == {"a": {0: 2.0, 1: 2.0}}


def test_nodes_are_split_each_by_itself_and_lost_ones_not_at_all() -> None:
    nodes = [node("n1", 2, cpus=8.0), node("n2", 2, cpus=8.0), node("n3", 1, cpus=4.0, lost=True)]
    jobs = [
        job("gang", 2, on="n1*1 n2*1", matrix=HUNGRY),
        job("a", on="n1", matrix=CONTENT),
        job("b", on="n3", matrix=HUNGRY),
    ]
    assert allot(given(nodes, jobs), TUNE) == {"gang": {0: 6.0, 1: 4.0 + 4.0}, "a": {0: 2.0}}


@pytest.mark.parametrize("least", [0.1, 0.5, 1.0])
def test_nobody_runs_slower_than_with_an_even_part_and_no_cpu_is_given_twice(least: float) -> None:
    kinds = (CONTENT, HUNGRY, gains(0.5, 1.0), gains(0.3, 0.6, 0.9, 1.0, 1.05), None)
    for first in range(5):
        jobs = [
            job(f"j{place}", on="n1", matrix=kinds[(first + place * 2) % 5]) for place in range(4)
        ]
        found = allotted(*jobs, policy=replace(TUNE, least_share=least), cpus=16.0, devices=4)
        assert sum(found) <= 16.0 + 1e-6
        for one, cpus in zip(jobs, found, strict=True):
            assert cpus >= 4.0 * least - 1e-6
            if one.matrix is not None:
                assert one.matrix.pace(Point(cpus, 1e9)) >= one.matrix.pace(Point(4.0, 1e9))


def test_a_measured_job_comes_back_from_a_file() -> None:
    snapshot = given([node("n1", 2, cpus=8.0)], [job("a", on="n1", matrix=HUNGRY)])
    again, policy, _ = load_case(dump_case(snapshot, TUNE))
    assert (again, policy) == (snapshot, TUNE)
    assert allot(again, TUNE) == allot(snapshot, TUNE)
