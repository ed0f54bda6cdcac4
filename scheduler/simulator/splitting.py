"""Re-splitting CPUs and memory in a simulation, by the planner's own allocators."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scheduler.planner import Node, Phase, cpus_only
from scheduler.planner.sensitivity import (
    Allocator,
    Host,
    Matrix,
    Splits,
    Task,
    greedy,
    matrix_of,
    proportional,
    tune,
    tune_as_published,
)
from scheduler.simulator.arrivals import GIGABYTE
from scheduler.simulator.floor import Floor
from scheduler.simulator.lives import Life
from scheduler.simulator.opt import optimal

ALLOCATORS: Mapping[str, Allocator] = {
    "proportional": proportional,
    "greedy": greedy,
    "tune": tune,
    "tune-as-published": tune_as_published,
    "opt": optimal,
}


class UnreadableProfilesError(ValueError):
    """A file of sensitivity profiles that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Which jobs are sensitive to what, and how their nodes are split among them."""

    matrices: Mapping[str, Matrix]
    """By the model that a trace names."""
    allocator: str = "tune"
    hosts: tuple[Host, ...] = ()
    """For a counted pool: the nodes behind it. Empty: the nodes of the fleet."""
    least_share: float | None = None
    """As the live fleet does: CPUs alone are shared, and a job keeps this part of its own."""


class Splitter:
    """Keeps the split of one simulated fleet; a node is split anew only when its jobs changed."""

    def __init__(self, sensitivity: Sensitivity, floor: Floor) -> None:
        self._matrices = sensitivity.matrices
        self._allocate = ALLOCATORS[sensitivity.allocator]
        self._floor = floor
        self._hosts = sensitivity.hosts or hosts_of(floor.fleet.nodes)
        self._splits = Splits(self._hosts, self._allocate)
        self._least = sensitivity.least_share
        self._shares = {host.id: host.proportional.cpus for host in self._hosts}
        self._cut: dict[tuple[str, float], Matrix | None] = {}

    def split(self) -> None:
        """Give every running job the pace that its share of the host allows."""
        running = [each for each in self._floor.holding.values() if each.phase is Phase.RUNNING]
        tasks = {life.job.id: self._tasks(life) for life in running}
        placed = {task.host for parts in tasks.values() for task in parts}
        if None in placed:
            every = [task for parts in tasks.values() for task in parts]
            slices = self._allocate(every, self._hosts)
        else:
            slices = self._splits.of([task for parts in tasks.values() for task in parts])
        for life in running:
            parts = [slices.get(task.id) for task in tasks[life.job.id]]
            pace = min((part.pace if part else 0.0 for part in parts), default=1.0)
            if pace != life.paced_from:
                self._floor.set_pace(life, pace)

    def _tasks(self, life: Life) -> list[Task]:
        """One task a node of the job; without seats it goes wherever it fits."""
        model = life.arrival.model
        if not life.seats:
            matrix = self._matrices.get(model)
            return [Task(id=life.job.id, gpus=life.devices, matrix=matrix)]
        by_node: dict[str, set[str]] = {}
        for seat in life.seats:
            by_node.setdefault(seat.node, set()).update(seat.devices)
        return [
            Task(
                id=f"{life.job.id}@{node}",
                gpus=len(devices),
                matrix=self._matrix_on(node, model),
                host=node,
            )
            for node, devices in by_node.items()
        ]

    def _matrix_on(self, node: str, model: str) -> Matrix | None:
        matrix = self._matrices.get(model)
        if matrix is None or self._least is None:
            return matrix
        share = self._shares.get(node, 0.0)
        if (model, share) not in self._cut:
            self._cut[model, share] = cpus_only(matrix, share, self._least)
        return self._cut[model, share]


def hosts_of(nodes: Sequence[Node]) -> tuple[Host, ...]:
    """The nodes that say how many CPUs and how much memory they have."""
    return tuple(
        Host(id=node.id, gpus=len(node.devices), cpus=node.cpus, memory=float(node.memory))
        for node in nodes
        if node.devices and node.cpus and node.memory
    )


def read_profiles(path: Path) -> tuple[dict[str, Matrix], dict[str, float]]:
    """Matrices and seconds an iteration takes at the proportional share, by model.

    The columns are those of ``profiles_1gpu.csv``: model, iteration_s_at_proportional_share, batch,
    cpus, memory_gb, speedup_over_proportional_share.
    """
    paces: dict[str, dict[tuple[float, float], float]] = {}
    seconds: dict[str, float] = {}
    with path.open(newline="", encoding="utf-8-sig") as lines:
        for number, row in enumerate(csv.DictReader(lines), start=2):
            try:
                model = row["model"]
                seconds[model] = float(row["iteration_s_at_proportional_share"])
                point = float(row["cpus"]), float(row["memory_gb"]) * GIGABYTE
                pace = float(row["speedup_over_proportional_share"])
            except (KeyError, TypeError, ValueError) as error:
                raise UnreadableProfilesError(f"{path}, line {number}: {error}") from None
            paces.setdefault(model, {})[point] = pace
    try:
        return {model: matrix_of(points) for model, points in paces.items()}, seconds
    except ValueError as error:
        raise UnreadableProfilesError(f"{path}: {error}") from None
