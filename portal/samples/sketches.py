"""What the sample's jobs are, in a line each."""

from __future__ import annotations

import random
from dataclasses import dataclass

from portal.choices import JobState, MoveKind


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


def nodes_at(sketch: Sketch, epoch: int, present: int) -> list[int]:
    """Indices of the nodes under each replica, in the present placement or an earlier one."""
    seats = sketch.seats or ((4, 0, sketch.size[1]),)
    return [node - 1 if epoch == present else (node + 2 * epoch) % 6 for node, _, _ in seats]
