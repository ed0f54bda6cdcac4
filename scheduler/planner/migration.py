"""Move running jobs: away from nodes that drain or fail, where people want them, out of the way."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.planner.decisions import Preempt, Why
from scheduler.planner.draft import Draft
from scheduler.planner.elasticity import resize_as_asked
from scheduler.planner.fairness import Account
from scheduler.planner.fleet import Host, Pool
from scheduler.planner.layers import Yielders
from scheduler.planner.ledger import Held, Part
from scheduler.planner.needs import Need, Size, natural, need_of, sizes
from scheduler.planner.ordering import Line
from scheduler.planner.placement import NOT_BARRED, find, lowest
from scheduler.planner.promises import remaining
from scheduler.planner.reasons import Reason
from scheduler.planner.search import Search
from scheduler.planner.snapshot import Job, JobId, NodeId, Phase, Seat

TRIES = 12
"""Ways to make a gap that are tried for one job in one cycle."""


def clear_out(draft: Draft) -> None:
    """Empty nodes that drain, leave nodes that are lost, get off sick devices."""
    for id_ in sorted(draft.fleet.troubled, key=natural):
        host = draft.fleet.hosts[id_]
        jobs = {job for bin_ in host.bins for job in bin_.jobs}
        for job_id in sorted(jobs, key=natural):
            held = draft.ledger.held.get(job_id)
            if held is None or held.job.phase is not Phase.RUNNING or not draft.untouched(job_id):
                continue
            _leave(draft, held, host)


def _leave(draft: Draft, held: Held, host: Host) -> None:
    numbers = {"node": host.node.id}
    if host.node.lost:
        _give_up(draft, held, Why(reason=Reason.NODE_LOST, numbers=numbers))
        return
    if not draft.policy.drains:
        return
    if not host.node.draining and not _on_sick(held.job, host):
        return
    reason = Reason.DRAINED if host.node.draining else Reason.SICK_DEVICE
    why = Why(reason=reason, numbers=numbers)
    if not held.leavable:
        return
    for size in sizes(held.job):
        if size.devices <= held.count and move(draft, held, size, why):
            return
    if host.node.draining:
        _give_up(draft, held, why)


def _on_sick(job: Job, host: Host) -> bool:
    return any(
        host.where(device) is None
        for seat in job.seats
        if seat.node == host.node.id
        for device in seat.devices
    )


def _give_up(draft: Draft, held: Held, why: Why) -> None:
    """Queue a job again for whom there is no place."""
    job = held.job
    draft.ledger.take(job.id)
    draft.leaving[job.id] = Preempt(job=job.id, remedy=job.remedy, why=why)
    draft.pushed[job.id] = held
    draft.leave(held)


def move(
    draft: Draft,
    held: Held,
    size: Size,
    why: Why,
    need: Need | None = None,
    barred: Mapping[Pool, int] = NOT_BARRED,
    beneficiary: JobId | None = None,
) -> bool:
    """Move a running job to other devices of its kind; false if there are none."""
    job = held.job
    need = need or need_of(job)
    pools = [pool for pool in draft.fleet.suiting(need) if pool.kind == held.kind]
    with draft.ledger.tentatively() as attempt:
        draft.ledger.take(job.id)
        spots = find(pools, need, size, barred)
        if spots is None:
            return False
        draft.relocate(held, size, spots, why, beneficiary)
        attempt.keep()
    return True


def grant_wishes(draft: Draft) -> None:
    """Do what people asked for running jobs, where it can be done now."""
    for id_ in sorted(draft.memory.wishes, key=natural):
        held = draft.ledger.held.get(id_)
        if held is None or not draft.untouched(id_):
            continue
        # A move that nobody has room for must not keep a job from giving devices back.
        if not (held.job.move_asked and move_as_asked(draft, held)):
            resize_as_asked(draft, held)


def move_as_asked(draft: Draft, held: Held) -> bool:
    """Move a job to the wanted nodes, or else to any that it is not on."""
    job = held.job
    own = frozenset(seat.node for seat in job.seats)
    if not held.leavable or (job.wanted_nodes and own <= job.wanted_nodes):
        return False
    need = need_of(job)
    if job.wanted_nodes:
        need = need._replace(only=job.wanted_nodes)
    else:
        need = need._replace(avoid=need.avoid | own)
    size = next((one for one in sizes(job) if one.devices == held.count), None)
    return size is not None and move(draft, held, size, Why(reason=Reason.ASKED), need)


def come_back(job: Job, draft: Draft) -> bool:
    """Thaw a paused job on the nodes where its memory is; false if their devices are taken."""
    groups: dict[tuple[NodeId, tuple[str, ...]], list[int]] = {}
    for seat in job.kept_on:
        groups.setdefault((seat.node, seat.devices), []).append(seat.rank)
    seats: list[Seat] = []
    taken: dict[NodeId, Part] = {}
    milli, memory = round(job.cpus_per_replica * 1000), job.memory_per_replica
    for (node, devices), ranks in groups.items():
        host = draft.fleet.hosts.get(node)
        part = taken.get(node) or _first_part(host, job, len(devices))
        if host is None or not host.usable or part is None:
            return False
        free = part.bin.free & ~part.mask
        if free.bit_count() < len(devices):
            return False
        mask = lowest(free, len(devices))
        part.mask |= mask
        part.milli += milli * len(ranks)
        part.memory += memory * len(ranks)
        taken[node] = part
        ids = part.bin.devices(mask)
        seats += [Seat(rank=rank, node=node, devices=ids) for rank in ranks]
    parts = list(taken.values())
    count = sum(part.mask.bit_count() for part in parts)
    if not parts or any(part.milli > part.bin.host.milli for part in parts):
        return False
    kind = parts[0].bin.pool.kind
    if draft.refusal(draft.account(job), kind, count) or not draft.passes(job, kind, count):
        return False
    seats.sort(key=lambda seat: seat.rank)
    draft.place_on(job, tuple(seats), parts, count)
    return True


def _first_part(host: Host | None, job: Job, count: int) -> Part | None:
    """An empty part on the first bin of a host that suits the job."""
    for bin_ in host.bins if host is not None else ():
        suits = not job.device_kind or bin_.pool.kind == job.device_kind
        if suits and bin_.pool.memory >= job.device_memory and bin_.count >= count:
            return Part(bin_, 0, 0, 0)
    return None


class Mover:
    """The right to ask jobs to move aside for one that waits."""

    def __init__(self, line: Line, job: Job, draft: Draft) -> None:
        self.job = job
        self.draft = draft
        self.account: Account | None = line.account
        self.rank = draft.tier(job).rank

    def right(self, held: Held) -> Reason | None:
        """Whether a job may be asked: no higher in tier, able to move, not moved just now."""
        draft = self.draft
        if not held.leavable or held.cooling > draft.now or not draft.untouched(held.job.id):
            return None
        return Reason.GAP if draft.tier(held.job).rank <= self.rank else None


def make_gap(line: Line, job: Job, draft: Draft) -> bool:
    """Move others aside, so that the free devices lie together."""
    size = line.sizes[0]
    if sum([draft.fleet.free(kind) for kind in line.kinds]) < size.devices:
        return False
    pools = draft.permitted(job, line.need, size.devices)
    free = sum(pool.free for pool in pools)
    if not pools or free < size.devices:
        return False
    mover = Mover(line, job, draft)
    index = _index(draft, mover)
    if not index or draft.moves_left <= 0:
        return False
    search = Search(mover, line.need, size, index)
    for movers in search.alternatives(pools, TRIES):
        affordable = len(movers) <= draft.moves_left and _worth(movers, job, size, draft)
        if affordable and _step_aside(mover, line, size, movers):
            draft.moves_left -= len(movers)
            return True
    return False


def _index(draft: Draft, mover: Mover) -> Yielders:
    flavour = ("move", mover.rank)
    found = draft.yielders.get(flavour)
    if found is None:
        layers = [
            layer
            for tier, layer in sorted(draft.memory.movable.items())
            if draft.rank(tier) <= mover.rank
        ]
        found = draft.yielders[flavour] = Yielders(layers)
    return found


def _worth(movers: list[Held], job: Job, size: Size, draft: Draft) -> bool:
    """Whether the work gained exceeds the work that the moves cost."""
    cost = sum(draft.move_s(held.job) * held.count for held in movers)
    return cost < _gain(job, size, draft)


def _gain(job: Job, size: Size, draft: Draft) -> float:
    """Device-seconds of work that a job does within the horizon, once it is placed."""
    return min(remaining(job, draft.now), draft.policy.gain_horizon_s) * size.devices


def _step_aside(mover: Mover, line: Line, size: Size, movers: list[Held]) -> bool:
    """Try it on the ledger: the job comes in, and each of the movers lands elsewhere."""
    draft, job = mover.draft, mover.job
    ledger, gain = draft.ledger, _gain(job, size, draft)
    with draft.undoing() as attempt:
        for held in movers:
            if mover.right(held) is None:
                return False
            ledger.take(held.job.id)
        pools = draft.permitted(job, line.need, size.devices)
        spots = find(pools, line.need, size) if pools else None
        if spots is None:
            return False
        ids = tuple(sorted((held.job.id for held in movers), key=natural))
        why = Why(reason=Reason.MADE_ROOM, numbers={"count": len(movers)})
        draft.place(job, size, spots, why, ids)
        why = Why(reason=Reason.GAP, numbers={"beneficiary": job.id})
        for held in sorted(movers, key=lambda one: (-one.count, natural(one.job.id))):
            same = next((one for one in sizes(held.job) if one.devices == held.count), None)
            need = need_of(held.job)
            near = [pool for pool in draft.fleet.suiting(need) if pool.kind == held.kind]
            landing = find(near, need, same) if same is not None else None
            if landing is None or same is None:
                return False
            gain -= draft.move_s(held.job, landing) * held.count
            if gain <= 0:
                return False
            draft.relocate(held, same, landing, why, job.id)
        attempt.keep()
    return True
