"""Whose turn it is: the lines of a queue one after the other, each as often as it is served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace

from scheduler.planner.ledger import Ledger
from scheduler.planner.ordering import Key, Line, Queue, standing
from scheduler.planner.policy import Policy


class Turns:
    """Lines in an order that only time changes: no more of them are looked at than asked for."""

    def __init__(self, queue: Queue) -> None:
        self._coming: Iterator[tuple[Key, Line]] = iter(queue.ordered)
        self._next = next(self._coming, None)
        self._again: list[tuple[Key, Line]] = []

    def next(self) -> Line | None:
        """The line whose turn it is; ``None`` when all had theirs."""
        first = self._next
        if self._again and (first is None or self._again[0][0] < first[0]):
            return heappop(self._again)[1]
        if first is None:
            return None
        self._next = next(self._coming, None)
        first[1].at = 0
        return first[1]

    def again(self, line: Line) -> None:
        """Let a line that was served come once more, with the next of its jobs."""
        heappush(self._again, (line.entries[line.at][0], line))


class ShiftingTurns:
    """Lines in an order that changes with what each tenant is given meanwhile."""

    def __init__(self, lines: Iterable[Line], policy: Policy, now: float, ledger: Ledger) -> None:
        self._policy, self._now, self._ledger = policy, now, ledger
        mark = ledger.mark
        self._heap = [(standing(line, policy, now), line, mark) for line in lines]
        heapify(self._heap)

    def next(self) -> Line | None:
        """The line whose turn it is; ``None`` when all had theirs."""
        heap, mark = self._heap, self._ledger.mark
        while heap:
            _, line, seen = heap[0]
            if seen == mark:
                heappop(heap)
                return line
            current = standing(line, self._policy, self._now)
            heapreplace(heap, (current, line, mark))
            if heap[0][1] is line:
                heappop(heap)
                return line
        return None

    def again(self, line: Line) -> None:
        """Let a line that was served come once more, with the next of its jobs."""
        key = standing(line, self._policy, self._now)
        heappush(self._heap, (key, line, self._ledger.mark))
