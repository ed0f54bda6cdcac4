"""Synergy's OPT: the best split there can be, by a linear program that HiGHS solves.

An upper bound and off the live path: it sees all nodes as one and may give a task a mixture of
points. SciPy is imported only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.planner.sensitivity import Host, Point, Slice, Task


class NoOptimumError(RuntimeError):
    """The solver found no split, although the proportional one always exists."""


def optimal(tasks: Sequence[Task], hosts: Sequence[Host]) -> dict[str, Slice]:
    """Maximise the sum of the paces, nobody slower than with the proportional share."""
    import numpy as np
    from scipy.optimize import linprog

    share = hosts[0].proportional
    known = [task for task in tasks if task.matrix is not None]
    others = [task for task in tasks if task.matrix is None]
    cpus = sum(host.cpus for host in hosts) - sum(task.gpus * share.cpus for task in others)
    memory = sum(host.memory for host in hosts) - sum(task.gpus * share.memory for task in others)
    answer = {task.id: Slice(host="", given=share, pace=1.0) for task in others}
    if not known:
        return answer
    columns = [
        (row, task.gpus, point, pace)
        for row, task in enumerate(known)
        if task.matrix is not None
        for point, pace in task.matrix.points()
    ]
    floors = [task.matrix.pace(share) if task.matrix else 1.0 for task in known]
    once = np.zeros((len(known), len(columns)))
    slow = np.zeros((len(known), len(columns)))
    for column, (row, _, _, pace) in enumerate(columns):
        once[row, column], slow[row, column] = 1.0, -pace
    used = np.array(
        [
            [gpus * point.cpus for _, gpus, point, _ in columns],
            [gpus * point.memory / 1e9 for _, gpus, point, _ in columns],
        ]
    )
    solved = linprog(
        [-pace for *_, pace in columns],
        A_ub=np.vstack([used, slow]),
        b_ub=[cpus, memory / 1e9, *(-floor for floor in floors)],
        A_eq=once,
        b_eq=np.ones(len(known)),
        bounds=(0, 1),
        method="highs",
    )
    if not solved.success:
        raise NoOptimumError(solved.message)
    for row, task in enumerate(known):
        parts = [(x, c) for x, c in zip(solved.x, columns, strict=True) if c[0] == row]
        given = Point(
            sum(x * point.cpus for x, (_, _, point, _) in parts),
            sum(x * point.memory for x, (_, _, point, _) in parts),
        )
        pace = float(sum(x * pace for x, (_, _, _, pace) in parts))
        answer[task.id] = Slice(host="", given=given, pace=pace)
    return answer
