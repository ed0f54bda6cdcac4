"""What the fleet's admins choose: weights, limits, switches, and named presets of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

HOUR = 3600.0
DAY = 24 * HOUR


class Ordering(StrEnum):
    """Who is next among those who wait."""

    TIERS = "tiers"
    """Reserved before borrowed, then tier, owed promise, fair share, age."""
    FIFO = "fifo"
    SJF = "sjf"
    """Shortest expected time in all first."""
    SRTF = "srtf"
    """Shortest remaining time first."""
    SRSF = "srsf"
    """Smallest remaining time x devices first."""
    LAS = "las"
    """Least attained service (time x devices) first, in steps of ``las_steps`` (2D-LAS)."""
    FAIR = "fair"
    """The tenant with the least weighted share first."""


class Backfill(StrEnum):
    """What those behind a job that does not fit may do."""

    NONE = "none"
    """Nothing: strict order."""
    SKIP = "skip"
    """Start if they fit; one that has waited longer than ``patience_s`` gets a reservation."""
    EASY = "easy"
    """Start if that does not delay the first that does not fit, by expected times."""


class Push(StrEnum):
    """Who may push a running job off."""

    RANK = "rank"
    """A higher tier, a tenant that takes back what it lent, a promise that is being broken."""
    ORDER = "order"
    """Whoever comes earlier in the ordering."""


class Sharing(StrEnum):
    """How the CPUs of a node are shared among the jobs on its devices."""

    OFF = "off"
    """Each has what its devices bring or what it asked for."""
    PROPORTIONAL = "proportional"
    """Every device has the same part of its node's CPUs."""
    TUNE = "tune"
    """Who gains nothing from its part lends what it does not need to who gains most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All that steers the planner besides the facts. Times are seconds, sizes bytes."""

    name: str = "default"
    ordering: Ordering = Ordering.TIERS
    backfill: Backfill = Backfill.SKIP
    push: Push = Push.RANK
    preemption: bool = True
    migration: bool = True
    elasticity: bool = True
    defragmentation: bool = True
    tiers: bool = True
    """Off: every job has the same rank and no promise."""
    promises: bool = True
    """Whether a job below its promise may push off one of its own tier that is above."""
    quotas: bool = True
    drains: bool = True
    """Whether jobs on draining nodes and sick devices are moved away."""
    sharing: Sharing = Sharing.OFF
    """How CPUs are shared among running jobs."""
    least_share: float = 0.5
    """The part of its CPUs that a job always keeps under ``Sharing.TUNE``."""
    profiling: bool = False
    """Whether jobs are measured of themselves (applied by whoever asks the agents)."""
    by_cluster: bool = False
    """Whether the planners of clusters share the live fleet (applied by whoever takes turns)."""
    pool: bool = False
    """Idealised: one counted pool of devices without place or kind; decisions carry no seats."""
    explain: bool = True
    """Whether those who wait are answered with a Hold; off saves time in simulations."""
    minimum_run_s: float = 300.0
    """A job that started is left alone for so long."""
    cooling_s: float = 600.0
    """A job that was moved or resized is not moved or resized again for so long."""
    moves_per_hour: int = 120
    """Budget of background moves of the whole fleet: to make a gap and to tidy up."""
    moves_per_cycle: int = 16
    """How many jobs may be moved in one cycle to tidy up."""
    patience_s: float = HOUR
    """After so long a waiting job that does not fit gets a reservation (``Backfill.SKIP``)."""
    half_life_s: float = 7 * DAY
    """Half-life of the usage that fair share looks at (applied by whoever fills ``usage``)."""
    promise_window_s: float = 7 * DAY
    """Window of the promised GPU fraction (applied by whoever fills ``delivered``)."""
    promise_margin: float = 0.02
    """By how much one must be above its promise to give for another's."""
    owed_step_s: float = 600.0
    """Debts of promises are compared in steps of this size, fair share decides within one."""
    gain_horizon_s: float = HOUR
    """How long a better placement is assumed to last when no expected time is known."""
    move_s: float = 20.0
    """Default cost of a move, besides its transfer."""
    bandwidth: float = 1e9
    """Default bandwidth of a transfer, bytes/s."""
    las_steps: tuple[float, ...] = (HOUR, 10 * HOUR, 100 * HOUR)
    """Upper ends of the attained service of each queue but the last, device-seconds."""


IDEAL = Policy(
    name="ideal",
    pool=True,
    ordering=Ordering.FIFO,
    preemption=False,
    migration=False,
    elasticity=False,
    defragmentation=False,
    tiers=False,
    promises=False,
    quotas=False,
    drains=False,
    minimum_run_s=0.0,
    cooling_s=0.0,
    patience_s=float("inf"),
)
"""One counted pool, first come first served, nothing moves: the ground of the exact figures."""

BASE = replace(IDEAL, name="base", pool=False, tiers=True, quotas=True, drains=True)
"""Real nodes, nothing moves."""


def _presets() -> dict[str, Policy]:
    """Presets by name; those named ``pool-`` are idealised."""
    found = [
        Policy(),
        # Without a protected time, equals would take each other's place every few seconds.
        Policy(
            name="eager", minimum_run_s=0.0, cooling_s=0.0, moves_per_hour=10_000, promises=False
        ),
        replace(BASE, name="fifo", backfill=Backfill.NONE),
        replace(BASE, name="fifo-backfill"),
        replace(BASE, name="fifo-easy", backfill=Backfill.EASY),
        replace(BASE, name="sjf", ordering=Ordering.SJF),
        replace(BASE, name="srtf", ordering=Ordering.SRTF, preemption=True, push=Push.ORDER),
        replace(BASE, name="srsf", ordering=Ordering.SRSF, preemption=True, push=Push.ORDER),
        replace(BASE, name="las", ordering=Ordering.LAS, preemption=True, push=Push.ORDER),
        replace(BASE, name="fair", ordering=Ordering.FAIR),
        replace(IDEAL, name="pool-fifo", backfill=Backfill.NONE),
        replace(IDEAL, name="pool-fifo-backfill"),
        replace(IDEAL, name="pool-sjf", ordering=Ordering.SJF),
        replace(IDEAL, name="pool-srtf", ordering=Ordering.SRTF, preemption=True, push=Push.ORDER),
        replace(IDEAL, name="pool-srsf", ordering=Ordering.SRSF, preemption=True, push=Push.ORDER),
        replace(IDEAL, name="pool-las", ordering=Ordering.LAS, preemption=True, push=Push.ORDER),
    ]
    return {policy.name: policy for policy in found}


PRESETS: dict[str, Policy] = _presets()
