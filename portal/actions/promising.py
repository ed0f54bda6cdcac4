"""Several planners at once: of two that promise the same device, only the first one does.

The row of a cluster's turn is locked while devices there are promised. So whoever comes second
sees what the first one promised, whatever either of them knew when it planned, and whether or not
the turn itself is still its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from agents.protocol import State, Want
from portal.choices import PlacementState
from portal.models import Lease, Node, PlacedReplica
from portal.unit import unit

GONE = (State.EXITED, State.ABSENT)


def turn_in(cluster: str) -> str:
    """The name of the turn of a cluster's planner."""
    return f"cycle:{cluster}"


class Promised:
    """Who was promised which devices of some nodes, and is not about to leave them."""

    def __init__(self, nodes: Iterable[int], away: Iterable[int]) -> None:
        self._away = frozenset(away)
        self._holders: dict[tuple[int, str], set[int]] = defaultdict(set)
        rows = PlacedReplica.objects.filter(
            node_id__in=list(nodes),
            placement__state__in=(PlacementState.ACTIVE, PlacementState.HELD),
        ).order_by()
        columns = ("node_id", "devices", "state", "placement__job_id", "placement__state",
                   "placement__then", "placement__want")  # fmt: skip
        for node, devices, state, job, standing, then, want in rows.values_list(*columns):
            leaving = then or want == Want.ABSENT or state in GONE
            if standing == PlacementState.HELD or not leaving:
                for device in devices:
                    self._holders[node, device].add(job)

    def give(self, job: int, seats: Sequence[tuple[int, int, Sequence[str]]]) -> bool:
        """Promise seats to a job; false, and nothing is promised, if others have one of them."""
        wanted = {(node, device) for _, node, devices in seats for device in devices}
        if any(node in self._away for node, _ in wanted):
            return False
        if any(self._holders[device] - {job} for device in wanted):
            return False
        for device in wanted:
            self._holders[device].add(job)
        return True


@contextmanager
def sole_promiser(nodes: Iterable[int], cluster: str | None = None) -> Iterator[Promised]:
    """Open a unit in which nobody else promises devices in the clusters of these nodes.

    With ``cluster`` only that one is held, and nodes that are no longer there are not given.
    """
    wanted = set(nodes)
    with unit():
        before = _clusters(wanted) if cluster is None else dict.fromkeys(wanted, cluster)
        lock_turns(before.values())
        after = _clusters(wanted)
        moved = [id for id in wanted if after.get(id) != before.get(id)]
        yield Promised(wanted, moved)


def lock_turns(clusters: Iterable[str]) -> None:
    """Keep everybody from promising devices in these clusters until the transaction ends."""
    names = sorted(set(map(turn_in, clusters)))
    rows = Lease.objects.select_for_update().filter(name__in=names).order_by("name")
    if len(rows.values_list("name")) < len(names):
        Lease.objects.bulk_create(map(Lease, names), ignore_conflicts=True)
        list(rows.values_list("name"))


def _clusters(nodes: Iterable[int]) -> dict[int, str]:
    rows = Node.objects.filter(id__in=list(nodes)).order_by()
    return dict(rows.values_list("id", "cluster"))
