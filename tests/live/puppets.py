"""A small fleet whose agents are puppets: they do what is wanted at once, or as a test says.

Rows, actions and cycles are the real ones; only the processes are missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from msgspec.structs import replace

from agents.protocol import (
    Ability,
    Desired,
    DeviceInfo,
    Facts,
    Hello,
    Profile,
    ReplicaFact,
    State,
    Want,
)
from portal.actions.desired import desired_state
from portal.actions.facts import accept_facts
from portal.actions.linking import hello
from portal.actions.submitting import JobRequest, submit_job
from portal.models import Job, Node, Settings, User
from scheduler.cycle import run_cycle
from scheduler.live.cluster import LiveCluster
from scheduler.live.observing import Watch
from scheduler.live.reconciling import reconcile
from scheduler.planner import PRESETS, Memory, Policy

ABLE = {
    name: Ability(able=True)
    for name in ("run", "pause", "checkpoint", "migrate", "network", "profile")
}
RESTING = Ability(able=False, reason="runc is not there")
STILL = dict.fromkeys(("checkpoint", "migrate", "network"), RESTING)


@dataclass
class Puppet:
    """One node's agent. ``obeys`` off: it hears but does nothing."""

    node: Node
    obeys: bool = True
    fetches: bool = True
    """Off: it takes no hint."""
    ahead: list[str] = field(default_factory=list)
    """Manifests that it has fetched on a hint."""
    replicas: dict[tuple[int, int, int], ReplicaFact] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    """Job -> exit code with which its replicas end as soon as they run."""
    fails: dict[Want, tuple[str, str]] = field(default_factory=dict)
    """What it cannot do: want -> (error id, detail)."""
    profiles: dict[int, Profile] = field(default_factory=dict)
    """Job -> what it finds when it is asked to measure."""
    computed: list[tuple[int, int, int]] = field(default_factory=list)
    """(job, rank, epoch) each time that one began to run."""

    def step(self) -> bool:
        """Obey once and report; whether anything changed."""
        if not self.obeys:
            return False
        state = desired_state(self.node.id)
        before = dict(self.replicas)
        wanted = {(d.job, d.rank, d.epoch): d for d in state.replicas}
        for key in list(self.replicas):
            if key not in wanted:
                del self.replicas[key]
        for key, desired in wanted.items():
            self.replicas[key] = self._obey(desired, self.replicas.get(key))
        ahead = [hint.manifest for hint in state.prefetch] if self.fetches else []
        changed = (self.replicas, ahead) != (before, self.ahead)
        self.ahead = ahead
        if changed:
            replicas = list(self.replicas.values())
            accept_facts(
                self.node.id, Facts(number=state.number, replicas=replicas, prefetched=ahead)
            )
        return changed

    def _obey(self, desired: Desired, present: ReplicaFact | None) -> ReplicaFact:
        key = (desired.job, desired.rank, desired.epoch)
        was = present.state if present else State.ABSENT
        if was == State.EXITED and desired.want != Want.ABSENT:
            return present  # type: ignore[return-value]
        fact: dict[str, Any] = {"job": key[0], "rank": key[1], "epoch": key[2]}
        if desired.want in self.fails:
            error, detail = self.fails[desired.want]
            stays = State.FAILED if desired.want == Want.RUNNING else State.FROZEN
            return ReplicaFact(**fact, state=stays, error=error, detail=detail)
        match desired.want:
            case Want.RUNNING if desired.hold and was in (State.ABSENT, State.READY):
                return ReplicaFact(**fact, state=State.READY)
            case Want.RUNNING if was != State.RUNNING:
                self.computed.append(key)
                return ReplicaFact(**fact, state=State.RUNNING, started_at=1000.0)
            case Want.RUNNING if desired.job in self.ends:
                code = self.ends[desired.job]
                return ReplicaFact(**fact, state=State.EXITED, exit_code=code, outputs="m/out")
            case Want.RUNNING if desired.job in self.profiles and desired.profile:
                found = replace(self.profiles[desired.job], number=desired.profile)
                return ReplicaFact(**fact, state=was, started_at=1000.0, profile=found)
            case Want.FROZEN:
                return ReplicaFact(**fact, state=State.FROZEN, stopped_at=999.0)
            case Want.STORED:
                state = State.RUNNING if desired.run_on else State.STORED
                return ReplicaFact(
                    **fact, state=state, checkpoint=desired.checkpoint,
                    manifest=f"m/{key[0]}-{key[1]}-{desired.checkpoint}", bytes_raw=100,
                    bytes_new=10, bytes_stored=5, stopped_at=999.0, phases={"dump": 0.5},
                )  # fmt: skip
            case Want.ABSENT:
                return ReplicaFact(**fact, state=State.ABSENT)
        return present or ReplicaFact(**fact, state=State.PREPARING)


class Town:
    """Nodes with puppets, a clock, and cycles when asked."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.passed = timedelta(0)
        self.puppets: dict[str, Puppet] = {}
        self.watch, self.memory = Watch(), Memory()
        Settings.objects.create(pk=1, listening_since=self.now - timedelta(days=1))

    def node(
        self, name: str, devices: int = 2, *, abilities: dict[str, Ability] | None = None,
        kind: str = "cpu",
    ) -> Puppet:  # fmt: skip
        """Add a node and have its agent say hello."""
        row = Node.objects.create(name=name, token_digest=name)
        message = Hello(
            node=name,
            cpus=64,
            memory=2**40,
            devices=[DeviceInfo(id=f"d{i}", kind=kind, index=i) for i in range(devices)],
            abilities=ABLE | (abilities or {}),
            address="127.0.0.1",
        )
        puppet = self.puppets[name] = Puppet(hello(row.id, message))
        return puppet

    def submit(self, tier: str = "basic", **fields: Any) -> Job:
        request = JobRequest(
            **{"tenant": "vision", "tier": tier, "command": ["python", "train.py"], **fields}
        )
        return submit_job(self.user, request)

    @property
    def now(self) -> datetime:
        """The real time and what a test let pass besides."""
        return timezone.now() + self.passed

    def pass_time(self, seconds: float) -> None:
        self.passed += timedelta(seconds=seconds)

    def cycle(self, policy: Policy = PRESETS["eager"]) -> None:
        run_cycle(LiveCluster(self.now, self.watch), policy, self.memory)

    def rest(self, rounds: int = 40, policy: Policy = PRESETS["eager"]) -> None:
        """Let agents and planner act until nothing changes any more."""
        for _ in range(rounds):
            reconcile(self.now)
            self.cycle(policy)
            changed = [puppet.step() for puppet in self.puppets.values()]
            if not any(changed):
                return
        raise AssertionError("the fleet does not come to rest")

    def where(self, job: Job) -> list[str]:
        """Names of the nodes that a job computes on, by rank."""
        job.refresh_from_db()
        placement = job.placements.filter(state="active").first()
        if placement is None:
            return []
        return list(placement.replicas.order_by("rank").values_list("node__name", flat=True))

    @property
    def listening_since(self) -> datetime | None:
        return Settings.objects.get(pk=1).listening_since
