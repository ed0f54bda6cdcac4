"""Jobs of the sample fleet, in every state, with what was decided about them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime

from agents.protocol import State, Want
from portal.choices import CheckpointState, JobState, MoveKind, PlacementState, Remedy
from portal.models import Checkpoint, Job, Move, PlacedReplica, Placement
from portal.samples.fleet import GIB, Sample, long_ago

SPANS = {"gate": (0.01, 0.05), "freeze": (0.01, 0.05), "resume": (0.01, 0.05)}
PHASES = ("gate", "freeze", "dump", "store", "fetch", "restore", "resume")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A job in one line: who, what, where, since when (minutes ago)."""

    name: str
    owner: str
    tier: str
    state: JobState
    ago: float
    seats: tuple[tuple[int, int, int], ...] = ()
    """(node, first device, devices) of each replica."""
    size: tuple[int, int] = (1, 1)
    moves: tuple[tuple[MoveKind, float, str], ...] = ()
    """(kind, minutes ago, sentence)."""
    sentence: str = ""
    fewest: int | None = None
    tags: tuple[str, ...] = ()


S, M = JobState, MoveKind
SKETCHES = (
    Sketch(
        name="vit-huge-pretrain",
        owner="mira",
        tier="premium",
        state=S.RUNNING,
        ago=1460,
        size=(2, 8),
        seats=((1, 0, 8), (3, 0, 8)),
        tags=("imagenet", "paper"),
        moves=((M.MIGRATE, 610, "Moved so that its two replicas stand in one rack."),),
    ),
    Sketch(
        name="llm-7b-finetune",
        owner="ben",
        tier="standard",
        state=S.RUNNING,
        ago=380,
        size=(1, 6),
        seats=((2, 0, 6),),
        tags=("sft",),
        moves=(
            (M.PREEMPT, 205, "Made room for premium job vit-huge-pretrain."),
            (M.MIGRATE, 92, "Left node-5, which is being drained."),
        ),
    ),
    Sketch(
        name="wav2vec-sweep-11",
        owner="noor",
        tier="basic",
        state=S.RUNNING,
        ago=174,
        size=(4, 1),
        seats=((4, 0, 1), (4, 1, 1), (4, 2, 1), (4, 3, 1)),
        fewest=1,
        tags=("sweep-11",),
        moves=((M.RESIZE, 66, "Grew from 2 to 4 devices that were idle."),),
    ),
    Sketch(
        name="ranker-distill",
        owner="tom",
        tier="premium",
        state=S.RUNNING,
        ago=47,
        size=(1, 4),
        seats=((4, 4, 4),),
    ),
    Sketch(
        name="diffusion-ablation",
        owner="ana",
        tier="basic",
        state=S.RUNNING,
        ago=233,
        size=(1, 4),
        seats=((6, 0, 4),),
        tags=("ablation",),
        moves=((M.PREEMPT, 140, "Made room for standard job llm-7b-finetune."),),
    ),
    Sketch(
        name="grasp-policy-3",
        owner="kai",
        tier="standard",
        state=S.RUNNING,
        ago=21,
        size=(1, 2),
        seats=((6, 4, 2),),
    ),
    Sketch(
        name="tokenizer-eval",
        owner="lea",
        tier="basic",
        state=S.MOVING,
        ago=95,
        size=(1, 2),
        seats=((5, 0, 2),),
        moves=((M.MIGRATE, 0.1, "Leaves node-5, which is being drained."),),
    ),
    Sketch(
        name="asr-align",
        owner="noor",
        tier="standard",
        state=S.STARTING,
        ago=0.3,
        size=(1, 1),
        seats=((2, 7, 1),),
    ),
    Sketch(
        name="moe-scaling-13b",
        owner="lea",
        tier="standard",
        state=S.WAITING,
        ago=12,
        size=(2, 8),
        sentence="Needs 16 devices; 2 are free, and language may use 16 more of its quota.",
    ),
    Sketch(
        name="segment-anything-ft",
        owner="ana",
        tier="basic",
        state=S.WAITING,
        ago=34,
        size=(1, 8),
        sentence="Needs 8 devices on one node; the most that are free on one is 2.",
    ),
    Sketch(
        name="search-embeddings",
        owner="tom",
        tier="basic",
        state=S.WAITING,
        ago=3,
        size=(1, 4),
        sentence="Waits its turn behind 2 jobs of higher tiers.",
    ),
    Sketch(
        name="pose-baseline",
        owner="mira",
        tier="standard",
        state=S.PAUSED,
        ago=300,
        size=(1, 2),
        sentence="Paused by its owner; resume it to have it wait for devices.",
        moves=((M.PAUSE, 120, "Paused by its owner."),),
    ),
)
ENDED = (
    "resnet-baseline",
    "bert-probe",
    "lr-sweep",
    "clip-eval",
    "vocoder",
    "reranker-eval",
    "gripper-sim",
    "data-filter",
)


def lay_jobs(sample: Sample, now: datetime, seed: int = 7) -> list[Job]:
    """Make the sketched jobs and a history of ended ones; the same seed gives the same jobs."""
    die = random.Random(seed)
    ended = [end(lay_job(sketch, sample, now), sketch, sample, now, die) for sketch in past(die)]
    return ended + [lay(sketch, sample, now, die) for sketch in SKETCHES]


def past(die: random.Random) -> list[Sketch]:
    owners = ("mira", "ana", "ben", "lea", "noor", "tom", "kai")
    states = [S.SUCCEEDED] * 8 + [S.FAILED, S.CANCELLED]
    return [
        Sketch(
            name=f"{die.choice(ENDED)}-{number}",
            owner=die.choice(owners),
            tier=die.choice(("premium", "standard", "basic")),
            state=die.choice(states),
            ago=60 * die.uniform(3, 40),
            size=(1, die.choice((1, 1, 2, 4, 8))),
        )
        for number in range(1, 39)
    ]


def lay_job(sketch: Sketch, sample: Sample, now: datetime) -> Job:
    owner = sample.people[sketch.owner]
    begun = long_ago(now, sketch.ago)
    started = begun if sketch.seats or sketch.moves else None
    ran_s = sketch.ago * 60
    fraction = 1.0 if sketch.tier == "premium" else 0.93 if sketch.tier == "standard" else 0.71
    return Job.objects.create(
        name=sketch.name,
        tenant=owner.tenants.get(),
        owner=owner,
        tier=sample.tiers[sketch.tier],
        command=["python", "train.py", "--config", f"configs/{sketch.name}.yaml"],
        environment={"SEED": "7"},
        replicas=sketch.size[0],
        gpus_per_replica=sketch.size[1],
        fewest_devices=sketch.fewest,
        tags=list(sketch.tags),
        state=sketch.state,
        remedy=Remedy.TRANSPARENT,
        submitted_at=begun,
        started_at=started,
        running_since=started if sketch.state == S.RUNNING else None,
        waiting_since=begun if sketch.state == S.WAITING else None,
        sentence=sketch.sentence,
        moves=len(sketch.moves),
        entitled=ran_s,
        delivered=ran_s * fraction,
        expected_s=36000,
    )


def lay(sketch: Sketch, sample: Sample, now: datetime, die: random.Random) -> Job:
    """Make a job that lives: its placements, moves and checkpoints."""
    job = lay_job(sketch, sample, now)
    edges = [sketch.ago - 0.4, *(minutes for _, minutes, _ in sketch.moves)]
    alive = sketch.state in {S.RUNNING, S.MOVING, S.STARTING}
    last = len(edges) - (2 if sketch.state in {S.MOVING, S.PAUSED} else 1)
    for epoch, (kind, minutes, sentence) in enumerate(sketch.moves, start=1):
        lay_move(job, (kind, minutes, sentence), epoch, sample, now, die, over=epoch <= last)
    for epoch, minutes in enumerate(edges[: last + 1], start=1):
        present = alive and epoch == last + 1
        ends = None if present else long_ago(now, edges[epoch] if epoch < len(edges) else 0)
        place(job, sketch, sample, now, epoch, minutes, ends)
    return job


def place(
    job: Job, sketch: Sketch, sample: Sample, now: datetime, epoch: int, minutes: float,
    ends: datetime | None,
) -> None:  # fmt: skip
    begins = long_ago(now, minutes)
    running = None if sketch.state == S.STARTING else long_ago(now, minutes - 0.08)
    placement = Placement.objects.create(
        job=job,
        epoch=epoch,
        state=PlacementState.ENDED if ends else PlacementState.ACTIVE,
        want=Want.RUNNING,
        want_since=begins,
        devices=sum(count for _, _, count in sketch.seats) or job.devices,
        created_at=begins,
        running_at=running,
        ended_at=ends,
    )
    seats = sketch.seats or ((4, 0, job.devices),)
    for rank, (node, first, count) in enumerate(seats):
        # An earlier placement was somewhere else; which devices is of no interest any more.
        where = node - 1 if not ends else (node + 2 * epoch) % 6
        PlacedReplica.objects.create(
            placement=placement,
            rank=rank,
            node=sample.nodes[where],
            devices=[f"GPU-{where + 1}{place}" for place in range(first, first + count)],
            state=State.RUNNING if not ends else State.ABSENT,
        )


def lay_move(
    job: Job, told: tuple[MoveKind, float, str], number: int, sample: Sample,
    now: datetime, die: random.Random, *, over: bool,
) -> None:  # fmt: skip
    kind, minutes, sentence = told
    began = long_ago(now, minutes)
    phases = {name: round(die.uniform(*SPANS.get(name, (0.6, 2.4))), 3) for name in PHASES}
    raw = int(job.devices * die.uniform(9, 14) * GIB)
    still = sum(phases.values()) + (die.uniform(300, 900) if kind == M.PREEMPT else 0.0)
    Move.objects.create(
        job=job,
        kind=kind,
        sentence=sentence,
        from_nodes=[sample.nodes[die.randrange(6)].name],
        to_nodes=[sample.nodes[die.randrange(6)].name] if over else [],
        from_devices=2 if kind == M.RESIZE else job.devices,
        to_devices=job.devices if over else 0,
        began_at=began,
        stopped_at=began.timestamp() + 0.2,
        left_at=datetime.fromtimestamp(began.timestamp() + 4, tz=began.tzinfo),
        resumed_at=began.timestamp() + 0.2 + still if over else None,
        phases=phases if over else {name: phases[name] for name in PHASES[:4]},
        bytes_raw=raw,
        bytes_new=raw // 9,
        bytes_stored=raw // 14,
    )
    for cut in (2 * number - 1, 2 * number):
        at = long_ago(now, minutes + (15 if cut % 2 else 0))
        Checkpoint.objects.create(
            job=job,
            number=cut,
            state=CheckpointState.COMMITTED,
            periodic=bool(cut % 2),
            began_at=at,
            committed_at=at,
            bytes_raw=raw,
            bytes_new=raw // 9,
            bytes_stored=raw // 14,
            phases={name: phases[name] for name in PHASES[:4]},
        )


def end(job: Job, sketch: Sketch, sample: Sample, now: datetime, die: random.Random) -> Job:
    """Let a job have ended some time after it was submitted."""
    minutes = sketch.ago * die.uniform(0.15, 0.85)
    job.started_at = long_ago(now, sketch.ago - 0.2)
    job.ended_at = long_ago(now, sketch.ago - minutes)
    job.exit_code = {S.SUCCEEDED: 0, S.FAILED: 1}.get(sketch.state)
    if sketch.state == S.FAILED:
        job.detail = "Its command ended with exit code 1."
    job.save()
    placement = Placement.objects.create(
        job=job,
        epoch=1,
        state=PlacementState.ENDED,
        want_since=job.started_at,
        devices=job.devices,
        created_at=job.started_at,
        running_at=job.started_at,
        ended_at=job.ended_at,
    )
    node = die.choice(sample.nodes)
    PlacedReplica.objects.create(placement=placement, rank=0, node=node, state=State.ABSENT)
    return job
