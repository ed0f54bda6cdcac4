"""Whose turn it is: the lines of a queue one after the other, each as often as it is served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from scheduler.planner.claims import Claim, Key
from scheduler.planner.fairness import Account, Accounts, Share
from scheduler.planner.ledger import Ledger
from scheduler.planner.ordering import Line, Queue, standing
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
        return first[1]

    def again(self, line: Line) -> None:
        """Let a line that was served come once more, with the next of its jobs."""
        heappush(self._again, (line.entries[line.at][0], line))


class ShiftingTurns:
    """Lines in an order that changes with what each tenant is given meanwhile.

    What others give back for it moves nobody forward before the next cycle.
    """

    def __init__(
        self,
        lines: Iterable[Line],
        policy: Policy,
        now: float,
        ledger: Ledger,
        left_out: Sequence[Claim] = (),
    ) -> None:
        self._policy, self._now, self._ledger = policy, now, ledger
        lines = tuple(lines)
        self._shares = Shares(ledger.accounts, policy.half_life_s)
        self.left_out = left_out
        """Claims whose lines wait until they are recalled, but for those that are here."""
        self._here = frozenset(lines) if left_out else frozenset()
        self._last: Key = ()
        """The place of the line whose turn it was last."""
        self._passed: dict[Account | None, list[tuple[Share, Key]]] = {}
        """What the share of an account was, and how far the turns had come until it grew."""
        self._heap: list[tuple[Key, Line, int]] = []
        self._take_in(lines)

    def _take_in(self, lines: Iterable[Line]) -> None:
        mark = self._ledger.mark
        self._heap += [(self._standing(line), line, mark) for line in lines]
        heapify(self._heap)

    def _standing(self, line: Line) -> Key:
        return standing(line, self._policy, self._now, self._shares.of(line.account))

    def next(self) -> Line | None:
        """The line whose turn it is; ``None`` when all had theirs."""
        heap, mark = self._heap, self._ledger.mark
        while heap:
            key, line, seen = heap[0]
            if seen != mark:
                key = self._standing(line)
                heapreplace(heap, (key, line, mark))
                if heap[0][1] is not line:
                    continue
            heappop(heap)
            self._last = key
            return line
        return None

    def again(self, line: Line) -> None:
        """Let a line that was served come once more, with the next of its jobs."""
        heappush(self._heap, (self._standing(line), line, self._ledger.mark))

    def given(self, account: Account | None, devices: int) -> None:
        """Count what the line whose turn it is was given."""
        if account is None:
            return
        if self.left_out:
            for one in self._shares.beside(account):
                self._passed.setdefault(one, []).append((self._shares.of(one), self._last))
        self._shares.charge(account, devices)

    def recall(self) -> list[Line]:
        """Take in the lines that were left out, but for those whose turn has passed: these."""
        out = [line for claim in self.left_out for line in claim.lines if line not in self._here]
        self.left_out = ()
        over = {line for line in out if self._over(line)}
        self._take_in([line for line in out if line not in over])
        return list(over)

    def _over(self, line: Line) -> bool:
        now = (self._shares.of(line.account), self._last)
        return any(
            standing(line, self._policy, self._now, share) < last
            for share, last in (*self._passed.get(line.account, ()), now)
        )


class Shares:
    """The weighted use of each tenant when the cycle began, and with what it was given since."""

    def __init__(self, accounts: Accounts, half_life_s: float) -> None:
        self._half_life_s = half_life_s
        self._used = {one: sum(one.used.values()) for one in accounts.by_id.values()}
        self._known: dict[Account, dict[Account, Share]] = {}
        """By the root of the tree."""

    def of(self, account: Account | None) -> Share:
        """Weighted use from the root down to it: devices, plus the decayed mean until now."""
        if account is None:
            return ()
        known = self._known.setdefault(account.path[-1], {})
        share = known.get(account)
        if share is None:
            share = known[account] = tuple(
                [one.weighed(self._used[one], self._half_life_s) for one in reversed(account.path)]
            )
        return share

    def beside(self, account: Account) -> list[Account]:
        """All tenants of the same tree."""
        return [one for one in self._used if one.path[-1] is account.path[-1]]

    def charge(self, account: Account, devices: int) -> None:
        """Let it and all above it have more."""
        for one in account.path:
            self._used[one] += devices
        self._known.pop(account.path[-1], None)
