"""What the agent keeps of one replica, in memory and in its journal."""

from __future__ import annotations

from typing import Any

import msgspec

from agents.lifecycle import STATES, Stage
from agents.protocol import Desired, ReplicaFact


class Record(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One replica, as far as it must survive the agent."""

    desired: Desired
    """What it was last wanted to be, without its launch: that holds secrets."""
    stage: Stage
    fact: ReplicaFact
    tried: int = 0
    """Number of the last checkpoint that was tried."""
    boot: str = ""
    """The machine's boot in which it was made."""
    marks: list[tuple[int, int]] = []
    """Where output file and whole output meet: (offset in the file, offset in the whole)."""

    @property
    def key(self) -> str:
        """Its name on the node."""
        return key_of(self.desired)

    def moved(self, stage: Stage, **changes: Any) -> Record:
        """The same replica at another stage, with changes to its fact."""
        fact = msgspec.structs.replace(self.fact, state=STATES[stage], **changes)
        return msgspec.structs.replace(self, stage=stage, fact=fact)


def key_of(desired: Desired) -> str:
    """The name of a replica's placement on a node, e.g. ``j7-r0-e2``."""
    return f"j{desired.job}-r{desired.rank}-e{desired.epoch}"


def owner_of(desired: Desired) -> str:
    """The name of a replica on whatever node and in whatever placement, e.g. ``j7-r0``."""
    return owner_name(desired.job, desired.rank)


def owner_name(job: int, rank: int) -> str:
    """The same by its numbers."""
    return f"j{job}-r{rank}"


def new_record(desired: Desired, boot: str) -> Record:
    """The record of a replica that was never here."""
    return Record(
        desired=without_launch(desired),
        stage=Stage.NEW,
        fact=ReplicaFact(
            job=desired.job, rank=desired.rank, epoch=desired.epoch, state=STATES[Stage.NEW]
        ),
        boot=boot,
        marks=[(0, desired.output_from)],
    )


def without_launch(desired: Desired) -> Desired:
    """What may be written to disk."""
    return msgspec.structs.replace(desired, launch=None)
