"""Jobs of the sample fleet, in every state, with what was decided about them."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from agents.protocol import State, Want
from portal.choices import CheckpointState, JobState, MoveKind, PlacementState, Remedy
from portal.models import Checkpoint, Job, Move, PlacedReplica, Placement
from portal.samples.fleet import GIB, Sample, long_ago
from portal.samples.sketches import SKETCHES, Sketch, nodes_at, past

SPANS = {"gate": (0.01, 0.05), "freeze": (0.01, 0.05), "resume": (0.01, 0.05)}
PHASES = ("gate", "freeze", "dump", "store", "fetch", "restore", "resume")
S, M = JobState, MoveKind


def lay_jobs(sample: Sample, now: datetime, seed: int = 7) -> list[Job]:
    """Make the sketched jobs and a history of ended ones; the same seed gives the same jobs."""
    die = random.Random(seed)
    ended = [end(lay_job(sketch, sample, now), sketch, sample, now, die) for sketch in past(die)]
    return ended + [lay(sketch, sample, now, die) for sketch in SKETCHES]


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
    begins = long_ago(now, sketch.ago - 0.4)
    alive = sketch.state in {S.RUNNING, S.MOVING, S.STARTING}
    unfinished = sketch.state in {S.MOVING, S.PAUSED}
    present = len(sketch.moves) + (1 if alive and not unfinished else 0)
    for epoch in range(1, present + 1):
        move = None
        if epoch <= len(sketch.moves):
            over = not (unfinished and epoch == present)
            move = lay_move(job, sketch, epoch, sample, now, die, over=over)
        stays = alive and epoch == present
        ends = None if stays or move is None else move.began_at
        place(job, sketch, sample, epoch, begins, ends, seats=nodes_at(sketch, epoch, present))
        if move and move.resumed_at:
            begins = datetime.fromtimestamp(move.resumed_at - 2, tz=now.tzinfo)
    return job


def place(
    job: Job, sketch: Sketch, sample: Sample, epoch: int, begins: datetime,
    ends: datetime | None, *, seats: list[int],
) -> None:  # fmt: skip
    running = None if sketch.state == S.STARTING else begins + timedelta(seconds=2)
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
    held = sketch.seats or ((4, 0, job.devices),)
    for rank, ((_, first, count), node) in enumerate(zip(held, seats, strict=True)):
        PlacedReplica.objects.create(
            placement=placement,
            rank=rank,
            node=sample.nodes[node],
            devices=[f"GPU-{node + 1}{place}" for place in range(first, first + count)],
            state=State.ABSENT if ends else State.RUNNING,
        )


def lay_move(
    job: Job, sketch: Sketch, number: int, sample: Sample, now: datetime, die: random.Random,
    *, over: bool,
) -> Move:  # fmt: skip
    kind, minutes, sentence = sketch.moves[number - 1]
    began = long_ago(now, minutes)
    phases = {name: round(die.uniform(*SPANS.get(name, (0.6, 2.4))), 3) for name in PHASES}
    raw = int(job.devices * die.uniform(9, 14) * GIB)
    still = sum(phases.values()) + (die.uniform(300, 900) if kind == M.PREEMPT else 0.0)
    present = len(sketch.moves) + (sketch.state in {S.RUNNING, S.STARTING})
    names = [sorted({sample.nodes[node].name for node in nodes_at(sketch, epoch, present)})
             for epoch in (number, number + 1)]  # fmt: skip
    move = Move.objects.create(
        job=job,
        kind=kind,
        sentence=sentence,
        from_nodes=names[0],
        to_nodes=names[1] if over else [],
        from_devices=2 if kind == M.RESIZE else job.devices,
        to_devices=job.devices if over else 0,
        began_at=began,
        stopped_at=began.timestamp() + 0.2,
        left_at=began + timedelta(seconds=4),
        resumed_at=began.timestamp() + 0.2 + still if over else None,
        phases=phases if over else {name: phases[name] for name in PHASES[:4]},
        bytes_raw=raw,
        bytes_new=raw // 9,
        bytes_stored=raw // 14,
    )
    lay_cuts(move, number, now, minutes)
    return move


def lay_cuts(move: Move, number: int, now: datetime, minutes: float) -> None:
    """Make the checkpoint of a move, and a periodic one before it."""
    for cut in (2 * number - 1, 2 * number):
        at = long_ago(now, minutes + (15 if cut % 2 else 0))
        Checkpoint.objects.create(
            job=move.job,
            number=cut,
            state=CheckpointState.COMMITTED,
            periodic=bool(cut % 2),
            began_at=at,
            committed_at=at,
            bytes_raw=move.bytes_raw,
            bytes_new=move.bytes_new,
            bytes_stored=move.bytes_stored,
            phases={name: move.phases[name] for name in PHASES[:4]},
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
