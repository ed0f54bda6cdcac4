"""Splitting CPUs and memory: proportional, greedy and tuned, and the bound above them."""

import random

import pytest

from scheduler.planner.sensitivity import (
    Host,
    Matrix,
    Point,
    Task,
    greedy,
    matrix_of,
    proportional,
    tune,
    tune_as_published,
)

GB = 10**9
HOST = Host(id="h", gpus=4, cpus=12, memory=100 * GB)


def matrix(*paces: float) -> Matrix:
    """Paces at 1, 3, 6 and 9 CPUs; memory does not matter."""
    return matrix_of({(cpus, 0.0): pace for cpus, pace in zip((1, 3, 6, 9), paces, strict=True)})


HUNGRY = matrix(0.4, 1.0, 1.8, 2.4)
FRUGAL = matrix(1.0, 1.0, 1.0, 1.0)


def test_a_matrix_answers_with_the_largest_point_within():
    assert HUNGRY.pace(Point(5, 0)) == 1.0
    assert HUNGRY.pace(Point(0.5, 0)) == 0.0
    assert HUNGRY.best() == Point(9, 0)
    assert FRUGAL.best() == Point(1, 0)
    with pytest.raises(ValueError, match="do not fill"):
        matrix_of({(1, 1): 1.0, (2, 2): 1.0})


def test_proportional_treats_all_gpus_alike():
    slices = proportional([Task(id=str(n), gpus=1, matrix=HUNGRY) for n in range(4)], [HOST])
    assert {each.given for each in slices.values()} == {Point(3, 25 * GB)}
    assert {each.pace for each in slices.values()} == {1.0}


def test_greedy_leaves_gpus_idle_where_tuning_does_not():
    tasks = [Task(id=str(n), gpus=1, matrix=HUNGRY) for n in range(4)]
    assert len(greedy(tasks, [HOST])) == 1
    assert len(tune(tasks, [HOST])) == 4


def test_tuning_gives_the_hungry_what_the_frugal_do_not_need():
    tasks = [
        Task(id="a", gpus=1, matrix=FRUGAL),
        Task(id="b", gpus=1, matrix=FRUGAL),
        Task(id="c", gpus=1, matrix=FRUGAL),
        Task(id="d", gpus=1, matrix=HUNGRY),
    ]
    slices = tune(tasks, [HOST])
    assert slices["d"].pace == 2.4
    assert [slices[id_].pace for id_ in "abc"] == [1, 1, 1]


def test_as_published_what_nobody_asked_for_stays_idle():
    hungry = [Task(id=str(n), gpus=1, matrix=HUNGRY) for n in range(2)]
    tasks = [*hungry, Task(id="f", gpus=1, matrix=FRUGAL), Task(id="g", gpus=1, matrix=FRUGAL)]
    plain, topped = tune_as_published(tasks, [HOST]), tune(tasks, [HOST])
    assert sum(each.pace for each in plain.values()) < sum(each.pace for each in topped.values())
    assert all(plain[id_].pace <= topped[id_].pace for id_ in plain)


def test_a_task_stays_on_its_host():
    hosts = [HOST, Host(id="i", gpus=4, cpus=12, memory=100 * GB)]
    slices = tune([Task(id="a", gpus=1, matrix=HUNGRY, host="i")], hosts)
    assert slices["a"].host == "i"


@pytest.mark.parametrize("seed", range(30))
def test_tuning_never_slows_anyone_nor_gives_more_than_there_is(seed: int):
    die = random.Random(seed)
    hosts = [Host(id=f"h{n}", gpus=4, cpus=12, memory=100 * GB) for n in range(3)]
    shapes = [HUNGRY, FRUGAL, matrix(0.5, 1.0, 1.1, 1.1), None]
    sizes = die.choice([[1] * 12, [2] * 6, [2, 1] * 4, [4, 2, 2, 1, 1, 1, 1]])
    tasks = [
        Task(id=f"{n:02}", gpus=gpus, matrix=die.choice(shapes)) for n, gpus in enumerate(sizes)
    ]
    slices = tune(tasks, hosts)
    assert set(slices) == {task.id for task in tasks}
    by_id = {task.id: task for task in tasks}
    assert all(slice_.pace >= 1.0 for slice_ in slices.values())
    for host in hosts:
        here = [(by_id[id_], each) for id_, each in slices.items() if each.host == host.id]
        assert sum(task.gpus for task, _ in here) <= host.gpus
        assert sum(task.gpus * each.given.cpus for task, each in here) <= host.cpus + 1e-6
        assert sum(task.gpus * each.given.memory for task, each in here) <= host.memory + 1


def test_the_linear_program_bounds_tuning():
    pytest.importorskip("scipy")
    from scheduler.simulator.opt import optimal

    die = random.Random(1)
    for _ in range(10):
        hosts = [Host(id=f"h{n}", gpus=4, cpus=12, memory=100 * GB) for n in range(2)]
        tasks = [
            Task(id=str(n), gpus=1, matrix=die.choice([HUNGRY, FRUGAL, matrix(0.5, 1, 1.2, 1.3)]))
            for n in range(8)
        ]
        best = sum(each.pace for each in optimal(tasks, hosts).values())
        tuned = sum(each.pace for each in tune(tasks, hosts).values())
        assert 0.85 * best <= tuned <= best + 1e-6
