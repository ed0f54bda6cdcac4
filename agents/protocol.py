"""The words between portal and agent: desired state down; facts, telemetry and output up.

One WebSocket a node, one message a frame, MessagePack. Every message is a tagged struct; a field
that the other side does not know is ignored, a missing one takes its default, so that versions may
differ by one.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

VERSION = 1
SUBPROTOCOL = "tidepool.agent.v1"


class Want(StrEnum):
    """What the portal wants one replica to be."""

    RUNNING = "running"
    FROZEN = "frozen"
    """Gate closed, then frozen; memory stays. First half of a checkpoint, and a pause in place."""
    STORED = "stored"
    """Dumped into the chunk store; it stays frozen until it is wanted running or absent."""
    ABSENT = "absent"


class State(StrEnum):
    """What one replica is, as its agent sees it."""

    PREPARING = "preparing"
    """Fetching its source or its image, making its network."""
    READY = "ready"
    """Restored or made, gate closed, waiting for its peers before it goes on."""
    RUNNING = "running"
    FROZEN = "frozen"
    STORED = "stored"
    EXITED = "exited"
    """Its command ended; ``exit_code`` tells how."""
    FAILED = "failed"
    """The agent could not do what was wanted; ``error`` tells why."""
    ABSENT = "absent"


class Struct(msgspec.Struct, omit_defaults=True, kw_only=True, tag=True):
    """A message or a part of one."""


class Source(msgspec.Struct, omit_defaults=True, kw_only=True, frozen=True):
    """Where the files of a workspace come from: an upload, a git repository, or nothing."""

    upload: str = ""
    """Path at the portal, fetched with the node's token: a tar or zip archive, or a plain file."""
    filename: str = ""
    sha256: str = ""
    git: str = ""
    ref: str = ""


class Launch(msgspec.Struct, omit_defaults=True, kw_only=True):
    """How to start a replica from the beginning."""

    command: list[str]
    environment: dict[str, str] = {}
    secrets: dict[str, str] = {}
    """Added to the environment; never logged."""
    source: Source = Source()


class Network(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A replica's place in its job's own network, which is another one in each placement."""

    number: int
    """The network's number, 1 to 2**24 - 1, unique in the fleet: VXLAN id, interface names."""
    address: str
    """The replica's fixed address with prefix length, e.g. ``10.77.0.2/24``."""
    peers: dict[str, str] = {}
    """Addresses of the job's replicas on other nodes -> underlay address of their node."""
    internet: bool = False
    """Whether traffic beyond the job's network is let out by NAT."""


class Image(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One stored checkpoint of one replica: its manifest's key in the chunk store."""

    manifest: str
    network: Network | None = None


class Desired(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One replica that should be on this node."""

    job: int
    rank: int
    epoch: int
    want: Want
    world: int = 1
    devices: list[str] = []
    """Ids of the devices it holds on this node."""
    sharers: int = 1
    """How many replicas of this job share these devices by turns."""
    cpus: float = 1.0
    memory: int = 0
    """Bytes; 0 is no limit of its own."""
    pids: int = 1024
    launch: Launch | None = None
    image: Image | None = None
    """Restore from here instead of launching."""
    network: Network | None = None
    hold: bool = False
    """Stop at READY (made or restored, gate closed) until all peers are there."""
    run_on: bool = False
    """With ``want`` stored: go on running as soon as memory is captured (a periodic checkpoint)."""
    checkpoint: int = 0
    """Number of the checkpoint that ``want`` stored is for; a new number is a new dump."""
    output_from: int = 0
    """How many bytes of output the portal expects before the first byte of this placement."""
    allotted: float = 0.0
    """CPUs that the planner gives it now, in place of what its devices or itself say; 0: those."""
    profile: int = 0
    """Number of the profile that is asked for; one that was measured is not measured again."""


class Prefetch(msgspec.Struct, omit_defaults=True, kw_only=True, frozen=True):
    """An image that this node will probably be asked to restore soon, or a later one like it."""

    job: int
    rank: int
    manifest: str
    final: bool = False
    """Whether it is the very image that the replica was stored in to come here, should the move
    not be called off: it is made ready to be restored from.
    """


class DesiredState(Struct, tag="desired"):
    """Everything that should be on the node; what is not named here is wanted absent."""

    number: int
    replicas: list[Desired]
    prefetch: list[Prefetch] = []
    """Hints only: what follows from them may take its time, or fail."""


class Welcome(Struct, tag="welcome"):
    """The portal's answer to a Hello."""

    node: str
    lease_s: float
    """The node is given up after this many seconds of silence; freeze before."""
    output: dict[str, int] = {}
    """For each ``job/rank``, how many bytes of output the portal holds."""
    version: int = VERSION


class Ping(Struct, tag="ping"):
    """Renews the lease; answered by a Pong with the same number."""

    number: int


class Pong(Struct, tag="pong"):
    number: int
    desired: int = 0
    """The newest desired number, so that a lost message is noticed."""


class DeviceInfo(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One accelerator as the agent declares it."""

    id: str
    kind: str
    """``cpu`` for a share of the machine's cores, else the model's name in short, e.g. ``H100``."""
    memory: int = 0
    index: int = 0
    sick: str = ""
    """Why it must not be used; empty when it is well."""


class Ability(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Something that a node can or cannot do, with the reason."""

    able: bool
    reason: str = ""


class Hello(Struct, tag="hello"):
    """First message of an agent: what its node is and can do."""

    node: str
    version: int = VERSION
    agent: str = ""
    """The agent's release."""
    boot: str = ""
    """Changes when the machine was restarted."""
    address: str = ""
    """Underlay address that other nodes reach it by."""
    cpus: float = 0.0
    memory: int = 0
    devices: list[DeviceInfo] = []
    driver: str = ""
    abilities: dict[str, Ability] = {}
    """``run, pause, checkpoint, migrate, device_checkpoint, network, profile``."""


class ProfilePoint(msgspec.Struct, omit_defaults=True, kw_only=True, frozen=True):
    """How a replica did with so many CPUs."""

    cpus: float
    pace: float
    """Relative to its pace with its whole share."""
    used: float = 0.0
    """CPUs that it used."""
    held_back: float = 0.0
    """Part of the scheduler's periods in which it was stopped at its quota, 0 to 1."""


class Profile(msgspec.Struct, omit_defaults=True, kw_only=True, frozen=True):
    """What one replica gains from CPUs, measured while it ran; sizes in bytes."""

    number: int
    at: float
    """Wall clock of the node at its end."""
    seconds: float = 0.0
    """How long the measuring took."""
    source: str = ""
    """What told its pace: ``device`` (busy time of its GPUs) or ``cpu`` (CPU time)."""
    share: float = 0.0
    """CPUs that belong to its devices: where its pace is 1."""
    points: list[ProfilePoint] = []
    working: int = 0
    """Memory that it holds besides cached files."""
    cached: int = 0
    """Cached files that it has in use."""
    read: float = 0.0
    """Bytes a second that it reads, cached or not; 0 where the node cannot tell."""
    storage: float = 0.0
    """Bytes a second that the node's storage is taken to deliver."""
    error: str = ""
    """Why there are no points; empty when there are."""


class ReplicaFact(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What one replica is. A fact with an old epoch changes nothing."""

    job: int
    rank: int
    epoch: int
    state: State
    exit_code: int | None = None
    error: str = ""
    """A stable id, e.g. ``command-not-found``, ``out-of-memory``, ``image-damaged``.

    With ``failed`` it says why; with ``exited``, ``out-of-memory`` only. With ``frozen`` the
    checkpoint that was asked for could not be made: the replica stands frozen and unharmed, and is
    not dumped again under the same number. With ``running`` a periodic checkpoint was lost on its
    way to the store. The error goes when something else is wanted.
    """
    detail: str = ""
    """The sentence that goes with the error; with ``preparing``, what is tried again just now."""
    checkpoint: int = 0
    """Number of the last checkpoint stored here."""
    manifest: str = ""
    """Key of its manifest, when stored."""
    outputs: str = ""
    """Key of the manifest of the workspace, once it has ended."""
    phases: dict[str, float] = {}
    """Seconds of the last act's phases: gate freeze dump store fetch restore resume launch."""
    bytes_raw: int = 0
    bytes_new: int = 0
    """Bytes of chunks that were not there before, uncompressed."""
    bytes_stored: int = 0
    """Compressed bytes written for them."""
    started_at: float = 0.0
    """Wall clock at which the command (or restored process) ran, by the node's clock."""
    stopped_at: float = 0.0
    """Wall clock at which it was last frozen or ended."""
    profile: Profile | None = None
    """The last one that was asked for, once it was measured or given up."""


class Facts(Struct, tag="facts"):
    """All replicas that the agent knows of, having obeyed desired state ``number`` so far."""

    number: int
    replicas: list[ReplicaFact]
    prefetched: list[str] = []
    """Manifests of the hints that are done with: their images are here, or cannot be had."""


class DeviceUse(msgspec.Struct, omit_defaults=True, kw_only=True):
    id: str
    utilisation: float = 0.0
    """0 to 1."""
    memory: int = 0
    power: float = 0.0
    """Watts; 0 where unknown."""


class ReplicaUse(msgspec.Struct, omit_defaults=True, kw_only=True):
    job: int
    rank: int
    cpus: float = 0.0
    memory: int = 0


class Telemetry(Struct, tag="telemetry"):
    """One second of the node."""

    at: float
    devices: list[DeviceUse] = []
    replicas: list[ReplicaUse] = []
    cpus: float = 0.0
    memory: int = 0


class Output(Struct, tag="output"):
    """A piece of a replica's output, stdout and stderr as one stream."""

    job: int
    rank: int
    offset: int
    """Where in the whole output of this replica it belongs, over all its placements."""
    data: bytes
    epoch: int = 0
    """Of the placement that printed it: one that was superseded has nothing to say any more."""


class OutputHeld(Struct, tag="held"):
    """The portal holds the output up to here."""

    job: int
    rank: int
    offset: int


Down = DesiredState | Welcome | Pong | OutputHeld
Up = Hello | Facts | Telemetry | Output | Ping

encode = msgspec.msgpack.Encoder().encode
_down: msgspec.msgpack.Decoder[Down] = msgspec.msgpack.Decoder(Down)
_up: msgspec.msgpack.Decoder[Up] = msgspec.msgpack.Decoder(Up)


def decode_down(frame: bytes) -> Down:
    """Read a message from the portal; ``msgspec.ValidationError`` names the field that is wrong."""
    return _down.decode(frame)


def decode_up(frame: bytes) -> Up:
    """Read a message from an agent; ``msgspec.ValidationError`` names the field that is wrong."""
    return _up.decode(frame)
