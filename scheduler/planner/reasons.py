"""Every reason a job waits, starts, moves or stops, with its sentence and what can be done."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from string import Formatter


class Reason(StrEnum):
    """One dominant reason of a decision; the value is stable and may be stored."""

    # Structural: as things are, it can never run.
    TOO_LARGE = "too_large"
    NO_SUCH_KIND = "no_such_kind"
    NO_SUCH_PARTITION = "no_such_partition"
    DEVICE_MEMORY = "device_memory"
    HOST_SIZE = "host_size"
    OVER_LIMIT = "over_limit"
    NO_SUCH_TENANT = "no_such_tenant"
    NO_JOINING_NODES = "no_joining_nodes"
    NO_RESTORING_NODE = "no_restoring_node"
    KEPT_NODE_GONE = "kept_node_gone"
    AVOIDS_ALL = "avoids_all"

    # Waiting: it can run, not now.
    QUOTA = "quota"
    SET_ASIDE = "set_aside"
    BUSY = "busy"
    FRAGMENTED = "fragmented"
    TOPOLOGY = "topology"
    HOST_BUSY = "host_busy"
    KEPT_NODE_BUSY = "kept_node_busy"
    NODES_AWAY = "nodes_away"
    BEHIND = "behind"
    RESERVED = "reserved"
    PROTECTED = "protected"
    MOVE_BUDGET = "move_budget"
    SENT = "sent"

    # Starting.
    FITS = "fits"
    RESTORED = "restored"
    STARTED_SMALL = "started_small"
    MADE_ROOM = "made_room"

    # Leaving, moving, resizing.
    OUTRANKED = "outranked"
    RECLAIMED = "reclaimed"
    PROMISE = "promise"
    ORDER = "order"
    GAP = "gap"
    DRAINED = "drained"
    SICK_DEVICE = "sick_device"
    NODE_LOST = "node_lost"
    DEFRAGMENTED = "defragmented"
    ASKED = "asked"
    GAVE_DEVICES = "gave_devices"
    GREW = "grew"
    NO_OTHER_PLACE = "no_other_place"
    CANNOT_MOVE = "cannot_move"

    @property
    def structural(self) -> bool:
        """Whether waiting longer cannot help: the job or the fleet has to change."""
        return self in STRUCTURAL

    @property
    def background(self) -> bool:
        """Whether a move for this reason counts against the hourly budget of moves."""
        return self in (Reason.GAP, Reason.DEFRAGMENTED)

    @property
    def next_step(self) -> str:
        """What a person can do about it."""
        return NEXT_STEPS.get(self, "Nothing to do.")

    def sentence(self, numbers: Mapping[str, object] | None = None) -> str:
        """The reason in words; a number that was not given reads as "some"."""
        said = _FORMATTER.vformat(SENTENCES[self], (), numbers or {})
        return said[0].upper() + said[1:]


class _Words(Formatter):
    """Formats plain words for numbers and tolerates missing ones.

    ``{name:# device|# devices|no device}`` chooses by the number, for which # stands; without the
    third, none is like many. ``{name:span}`` is seconds in their largest unit.
    """

    def get_value(self, key: int | str, args: object, kwargs: object) -> object:
        assert isinstance(kwargs, Mapping)
        return kwargs.get(str(key), "some")

    def format_field(self, value: object, format_spec: str) -> str:
        if isinstance(value, float):
            said = f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.2f}"
        else:
            said = str(value)
        if format_spec == "span" and isinstance(value, int | float):
            return _span(value)
        one, *many = format_spec.split("|")
        if not many:
            return said
        return {"1": one, "0": many[-1]}.get(said, many[0]).replace("#", said)


def _span(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


_FORMATTER = _Words()

STRUCTURAL = frozenset(
    {
        Reason.TOO_LARGE,
        Reason.NO_SUCH_KIND,
        Reason.NO_SUCH_PARTITION,
        Reason.DEVICE_MEMORY,
        Reason.HOST_SIZE,
        Reason.OVER_LIMIT,
        Reason.NO_SUCH_TENANT,
        Reason.NO_JOINING_NODES,
        Reason.NO_RESTORING_NODE,
        Reason.KEPT_NODE_GONE,
        Reason.AVOIDS_ALL,
    }
)

SENTENCES: dict[Reason, str] = {
    Reason.TOO_LARGE: (
        "It asks for {wanted:# device|# devices}; the largest place for it has {largest}."
    ),
    Reason.NO_SUCH_KIND: "No node has devices of kind {kind}.",
    Reason.NO_SUCH_PARTITION: "No node with such devices is in partition {partition}.",
    Reason.DEVICE_MEMORY: "No device has the {wanted} bytes of memory that it asks for.",
    Reason.HOST_SIZE: "No node has the CPUs or the memory that one replica asks for.",
    Reason.OVER_LIMIT: (
        "It asks for {wanted:# device|# devices}; tenant {tenant} may never use more than {limit}."
    ),
    Reason.NO_SUCH_TENANT: "Its tenant {tenant} is not known.",
    Reason.NO_JOINING_NODES: "It needs several nodes, and the nodes cannot run one job together.",
    Reason.NO_RESTORING_NODE: "No suitable node can restore its checkpoint.",
    Reason.KEPT_NODE_GONE: "It is paused on node {node}, which is gone.",
    Reason.AVOIDS_ALL: "Every suitable node is on its list of nodes to avoid.",
    Reason.QUOTA: (
        "Tenant {tenant} uses {used} of its limit of {limit:# device|# devices}; this job needs "
        "{wanted}."
    ),
    Reason.SET_ASIDE: (
        "{free:# device is|# devices are} idle, {aside:# of them is|# of them are} reserved by "
        "tenants that do not lend."
    ),
    Reason.BUSY: (
        "It needs {wanted:# device|# devices}; "
        "{free:# suitable one is|# suitable ones are|no suitable one is} free."
    ),
    Reason.FRAGMENTED: (
        "It needs {wanted:# device|# devices}; {free:# is|# are} free, but too scattered: room for "
        "{room} of {groups:# group|# groups} of {each}."
    ),
    Reason.TOPOLOGY: (
        "It needs {wanted:# device|# devices} close together; {free:# is|# are} free, at most "
        "{largest} in one {level}."
    ),
    Reason.HOST_BUSY: "Devices are free, but CPUs or memory of those nodes are in use.",
    Reason.KEPT_NODE_BUSY: "It is paused on node {node}, whose devices are in use.",
    Reason.NODES_AWAY: (
        "{away:# suitable device is|# suitable devices are} on nodes that are cordoned, draining, "
        "lost or sick; {free:# other is|# others are|no other is} free and it needs {wanted}."
    ),
    Reason.BEHIND: "Job {ahead} is ahead of it and goes first.",
    Reason.RESERVED: (
        "{free:# device is|# devices are} kept for job {ahead}, which has waited {waited:span}."
    ),
    Reason.PROTECTED: (
        "It could push off {count:# job, but it is|# jobs, but they are} protected for at least "
        "{seconds:span} more."
    ),
    Reason.MOVE_BUDGET: (
        "Moving others would make room, but the budget of {budget:# move|# moves} an hour is spent."
    ),
    Reason.SENT: "There is room in cluster {cluster}; the planner there gives it its devices now.",
    Reason.FITS: "{devices:# device was|# devices were} free.",
    Reason.RESTORED: (
        "{devices:# device was|# devices were} free; it goes on from its checkpoint."
    ),
    Reason.STARTED_SMALL: (
        "It starts on {devices} of {wanted:# device|# devices}, because more are not free."
    ),
    Reason.MADE_ROOM: "{count:# job|# jobs} made room for it.",
    Reason.OUTRANKED: "Job {beneficiary} has a higher service tier.",
    Reason.RECLAIMED: (
        "Tenant {tenant} takes back its reserved devices for job {beneficiary}; they were lent."
    ),
    Reason.PROMISE: (
        "It is above its promise; job {beneficiary} of the same tier is below its own."
    ),
    Reason.ORDER: "Job {beneficiary} goes first in the order of this policy.",
    Reason.GAP: "It moves aside, so that job {beneficiary} finds its devices together.",
    Reason.DRAINED: "Node {node} is being drained.",
    Reason.SICK_DEVICE: "A device of node {node} is sick.",
    Reason.NODE_LOST: "Node {node} is lost.",
    Reason.DEFRAGMENTED: (
        "It moves to tidy up: {gained:# device becomes|# devices become} free together."
    ),
    Reason.ASKED: "A person asked for it.",
    Reason.GAVE_DEVICES: (
        "It gives devices to job {beneficiary} and goes on with {devices} of {before}."
    ),
    Reason.GREW: "Idle devices let it grow from {before} to {devices}.",
    Reason.CANNOT_MOVE: "It cannot be checkpointed where it runs, so it cannot be moved.",
    Reason.NO_OTHER_PLACE: (
        "There is no other place for it now: it needs {wanted:# device|# devices}."
    ),
}

NEXT_STEPS: dict[Reason, str] = {
    Reason.TOO_LARGE: "Ask for fewer devices, or allow it to run on fewer.",
    Reason.NO_SUCH_KIND: "Choose a device kind that the fleet has.",
    Reason.NO_SUCH_PARTITION: "Choose another partition, or ask an admin to add nodes to it.",
    Reason.DEVICE_MEMORY: "Ask for less device memory, or choose another device kind.",
    Reason.HOST_SIZE: "Ask for fewer CPUs or less memory per replica.",
    Reason.OVER_LIMIT: "Ask for fewer devices, or ask an admin for a larger quota.",
    Reason.NO_SUCH_TENANT: "Ask an admin to create the tenant.",
    Reason.NO_JOINING_NODES: "Fit the job on one node, or ask an admin to enable job networks.",
    Reason.NO_RESTORING_NODE: "Ask an admin to enable checkpoints on these nodes.",
    Reason.KEPT_NODE_GONE: "Cancel it and submit it again.",
    Reason.AVOIDS_ALL: "Take nodes off its list of nodes to avoid.",
    Reason.QUOTA: "Wait for your tenant's other jobs, or ask an admin for a larger quota.",
    Reason.SET_ASIDE: "Wait, or ask an admin whether those tenants may lend.",
    Reason.BUSY: "Wait, allow it to run on fewer devices, or choose a higher tier.",
    Reason.FRAGMENTED: "Wait, or use smaller replicas that fit between others.",
    Reason.TOPOLOGY: "Wait, or ask for fewer devices.",
    Reason.HOST_BUSY: "Wait, or ask for fewer CPUs or less memory per replica.",
    Reason.KEPT_NODE_BUSY: "Wait until devices of that node are free.",
    Reason.NODES_AWAY: "Wait until the nodes come back, or ask an admin.",
    Reason.BEHIND: "Wait for its turn.",
    Reason.RESERVED: "Wait, or state a short expected time so that it may go in between.",
    Reason.PROTECTED: "Wait: they may be moved when their protected time ends.",
    Reason.MOVE_BUDGET: "Wait, or ask an admin for a larger budget of moves.",
    Reason.CANNOT_MOVE: "Let it end, or cancel it and submit it again.",
    Reason.NO_OTHER_PLACE: "Wait until devices elsewhere are free, or name other nodes.",
    Reason.OUTRANKED: "It is queued and comes back by itself.",
    Reason.RECLAIMED: "It is queued and comes back by itself.",
    Reason.PROMISE: "It is queued and comes back by itself.",
    Reason.ORDER: "It is queued and comes back by itself.",
    Reason.NODE_LOST: "It is queued and goes on from its last checkpoint.",
}
