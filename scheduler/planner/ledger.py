"""The scratch copy on which the planner tries what it has in mind, and takes it back."""

from __future__ import annotations

from types import TracebackType

from scheduler.planner.fairness import Account, Accounts
from scheduler.planner.fleet import Bin, Fleet
from scheduler.planner.needs import held_devices
from scheduler.planner.snapshot import Job, JobId, Seat

NEVER = float("inf")


class Part:
    """What a job holds on one bin: devices as bits, CPUs (thousandths) and host memory."""

    __slots__ = ("bin", "mask", "memory", "milli")

    def __init__(self, bin_: Bin, mask: int, milli: int, memory: int) -> None:
        self.bin = bin_
        self.mask = mask
        self.milli = milli
        self.memory = memory


class Held:
    """A job with all that it holds."""

    __slots__ = (
        "account", "cooling", "count", "job", "kind", "leavable", "parts", "protected",
    )  # fmt: skip

    def __init__(
        self, job: Job, parts: list[Part], account: Account | None, kind: str, count: int
    ) -> None:
        self.protected = NEVER
        """Until when it may not be pushed off; for ever if it does not run yet."""
        self.cooling = NEVER
        """Until when it may not be moved or resized."""
        self.leavable = False
        """Whether it can go on elsewhere at the same step."""
        self.job = job
        self.parts = parts
        self.account = account
        self.kind = kind
        self.count = count


class Ledger:
    """Who holds what, with a journal of what was tried."""

    def __init__(self, fleet: Fleet, accounts: Accounts) -> None:
        self.fleet = fleet
        self.accounts = accounts
        self.held: dict[JobId, Held] = {}
        self._journal: list[tuple[Held, bool]] = []

    def put(self, held: Held) -> None:
        """Let a job hold its parts."""
        self._journal.append((held, True))
        self._put(held)

    def take(self, id_: JobId) -> Held:
        """Let a job give back all it holds. Raises KeyError if it holds nothing."""
        held = self.held[id_]
        self._journal.append((held, False))
        self._take(held)
        return held

    def tentatively(self) -> Attempt:
        """Undo all that is done in the block, unless it is kept."""
        return Attempt(self)

    @property
    def mark(self) -> int:
        """Where the journal stands."""
        return len(self._journal)

    def undo(self, mark: int) -> None:
        """Go back to where the journal stood."""
        while len(self._journal) > mark:
            held, put = self._journal.pop()
            if put:
                self._take(held)
            else:
                self._put(held)

    def settle(self) -> None:
        """Make what was done the ground: it can no longer be undone."""
        self._journal.clear()

    def observed(self, job: Job) -> Held:
        """What a running job holds according to the snapshot."""
        return self.observed_as(job, job.seats)

    def observed_as(self, job: Job, seats: tuple[Seat, ...]) -> Held:
        """What a job would hold on these seats."""
        if len(seats) == 1 and (held := self._simple(job, seats[0])) is not None:
            return held
        parts: dict[int, Part] = {}
        milli, memory = round(job.cpus_per_replica * 1000), job.memory_per_replica
        hosts = self.fleet.hosts
        kind, troubled = "", False
        for seat in seats:
            host = hosts.get(seat.node)
            if host is None:
                troubled = True
                continue
            for bin_, mask in _masks(host.bins, seat.devices):
                kind = kind or bin_.pool.kind
                part = parts.get(id(bin_))
                if part is None:
                    parts[id(bin_)] = Part(bin_, mask, milli, memory)
                else:
                    part.mask |= mask
                    part.milli += milli
                    part.memory += memory
            troubled = troubled or seat.node in self.fleet.troubled
        account = self.accounts.get(job.tenant)
        if troubled or not parts:
            count = held_devices(job, seats)
        else:
            count = sum([part.mask.bit_count() for part in parts.values()])
        count = min(count, job.devices)
        return Held(job, list(parts.values()), account, kind or job.device_kind, count)

    def _simple(self, job: Job, seat: Seat) -> Held | None:
        """The same for the commonest case: one seat on a healthy node with devices of one kind."""
        host = self.fleet.hosts.get(seat.node)
        if host is None or len(host.bins) != 1 or seat.node in self.fleet.troubled:
            return None
        bin_, mask = _masks(host.bins, seat.devices)[0]
        part = Part(bin_, mask, round(job.cpus_per_replica * 1000), job.memory_per_replica)
        count = min(mask.bit_count(), job.devices)
        return Held(job, [part], self.accounts.get(job.tenant), bin_.pool.kind, count)

    def _put(self, held: Held) -> None:
        id_ = held.job.id
        self.held[id_] = held
        for part in held.parts:
            bin_ = part.bin
            bin_.jobs[id_] = part.mask
            bin_.host.milli -= part.milli
            bin_.host.memory -= part.memory
            bin_.pool.set_free(bin_, bin_.free & ~part.mask)
        if held.account is not None:
            held.account.charge(held.kind, held.count)

    def _take(self, held: Held) -> None:
        id_ = held.job.id
        del self.held[id_]
        for part in held.parts:
            bin_ = part.bin
            del bin_.jobs[id_]
            bin_.host.milli += part.milli
            bin_.host.memory += part.memory
            free = bin_.all
            # Devices in transit may have two holders: the one who leaves and the one who comes.
            for mask in bin_.jobs.values():
                free &= ~mask
            bin_.pool.set_free(bin_, free)
        if held.account is not None:
            held.account.charge(held.kind, -held.count)


class Attempt:
    """A block of tentative changes."""

    __slots__ = ("_ledger", "_mark", "kept")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._mark = 0
        self.kept = False

    def __enter__(self) -> Attempt:
        self._mark = self._ledger.mark
        return self

    def keep(self) -> None:
        """Let the changes stand when the block ends."""
        self.kept = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if not self.kept or error is not None:
            self._ledger.undo(self._mark)


def _masks(bins: list[Bin], devices: tuple[str, ...]) -> list[tuple[Bin, int]]:
    """The bits of some devices of a node, by bin; sick and unknown ones are left out."""
    if len(bins) == 1:
        bin_ = bins[0]
        if devices == bin_.ids:
            return [(bin_, bin_.all)]
        host = bin_.host
        mask = 0
        for device in devices:
            found = host.where(device)  # type: ignore[arg-type]
            if found is not None:
                mask |= found[1]
        return [(bin_, mask)]
    masks: dict[int, tuple[Bin, int]] = {}
    for device in devices:
        found = bins[0].host.where(device) if bins else None  # type: ignore[arg-type]
        if found is not None:
            bin_, bit = found
            masks[id(bin_)] = (bin_, masks.get(id(bin_), (bin_, 0))[1] | bit)
    return list(masks.values())
