"""What a profile says of programs of known kinds, played on a bench without a clock."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import pytest

from agents.drivers.base import Strain
from agents.profiling import DisturbedError, UnsteadyError, measure
from agents.protocol import Profile

pytestmark = pytest.mark.asyncio

WINDOW_S = 2.0


class Played:
    """A program that wants ``demand`` CPUs, more or less by ``mood`` from window to window.

    One that ``spins`` burns whatever it is given; ``device`` is how busy its GPU is when it has all
    the CPUs that it wants.
    """

    def __init__(
        self,
        demand: float,
        *,
        mood: Iterator[float] = repeat(1.0),  # noqa: B008
        spins: bool = False,
        device: float | None = None,
        idle: float = 8.0,
        ends_at: float = 1e9,
        crowd: float = 0.0,
    ) -> None:
        self.crowd, self.waited_s = crowd, 0.0
        self.demand, self.mood, self.spins, self.device = demand, mood, spins, device
        self.idle, self.ends_at = idle, ends_at
        self.cpus, self.now, self.wanted = 0.0, 0.0, demand
        self.cpu_s, self.periods, self.held_back, self.tried = 0.0, 0, 0, [0.0]

    async def give(self, cpus: float) -> None:
        self.cpus, self.wanted = cpus, self.demand * next(self.mood)
        self.tried.append(cpus)

    async def look(self) -> Strain:
        return Strain(
            at=self.now, cpu_s=self.cpu_s, periods=self.periods, held_back=self.held_back,
            waited_s=self.waited_s, cached=7, read=int(100 * self.now),
        )  # fmt: skip

    async def busy(self) -> float | None:
        return None if self.device is None else self.device * min(1.0, self.cpus / self.wanted)

    async def wait(self, seconds: float) -> None:
        self.now += seconds
        if self.now > self.ends_at:
            raise DisturbedError
        wanted = max(self.wanted, self.cpus) if self.spins else self.wanted
        had = min(wanted, self.cpus) * (1 - self.crowd)
        self.cpu_s += seconds * had
        self.waited_s += seconds * (wanted - had)
        self.periods += int(seconds * 100)
        self.held_back += int(seconds * 100) if wanted > self.cpus and not self.crowd else 0

    async def spare(self) -> float:
        return self.idle


async def profile(bench: Played, *, share: float = 4.0, most: float = 16.0) -> Profile:
    return await measure(bench, number=3, share=share, most=most, window_s=WINDOW_S, storage=1e8)


def paces(found: Profile) -> dict[float, float]:
    return {point.cpus: point.pace for point in found.points}


async def test_a_job_that_uses_half_a_cpu_gains_nothing_from_four() -> None:
    bench = Played(0.5)
    found = await profile(bench)
    assert paces(found) == {1.0: 1.0, 4.0: 1.0}
    assert bench.tried[1:] == [4.0, 1.0, 4.0], "two amounts, and the whole share again"
    assert (found.number, found.source, found.share, found.cached) == (3, "cpu", 4.0, 7)
    assert found.read == pytest.approx(100, rel=0.02)


async def test_a_job_that_wants_all_it_can_get_is_tried_with_more() -> None:
    found = await profile(Played(100.0))
    assert paces(found) == {1.0: 0.25, 2.0: 0.5, 3.0: 0.75, 4.0: 1.0, 6.0: 1.5, 8.0: 2.0}
    assert found.points[0].held_back == 1.0


async def test_the_neighbours_cpus_are_left_alone() -> None:
    assert max(paces(await profile(Played(100.0, idle=1.0)))) == 4.0
    assert max(paces(await profile(Played(100.0), most=6.0))) == 6.0


async def test_what_lies_beyond_its_demand_is_flat() -> None:
    assert paces(await profile(Played(2.0))) == {1.0: 0.5, 2.0: 1.0, 3.0: 1.0, 4.0: 1.0}


async def test_busy_devices_tell_the_pace_where_there_are_some() -> None:
    found = await profile(Played(1.5, spins=True, device=0.9))
    assert found.source == "device"
    assert paces(found)[1.0] == pytest.approx(1 / 1.5, abs=1e-3)
    assert paces(found)[2.0] == 1.0
    idle = await profile(Played(1.5, device=0.0))
    assert idle.source == "cpu", "a GPU that does nothing tells nothing"


async def test_spinning_makes_a_job_look_hungrier_never_more_content() -> None:
    for cpus, pace in paces(await profile(Played(2.0, spins=True), most=4.0)).items():
        assert pace <= min(1.0, cpus / 2.0) + 1e-9


async def test_a_pace_that_changes_by_itself_is_not_mistaken_for_a_loss() -> None:
    steady = paces(await profile(Played(8.0, mood=iter([1.0, 1.0, 0.1] + [1.0] * 50))))
    assert steady[1.0] == 0.25, "the first try is thrown away"
    with pytest.raises(UnsteadyError, match="by itself"):
        await profile(Played(3.0, mood=iter([1.0, 0.3, 0.4] * 50)))


async def test_it_breaks_off_as_soon_as_something_else_is_wanted() -> None:
    bench = Played(100.0, ends_at=3.0)
    with pytest.raises(DisturbedError):
        await profile(bench)
    assert bench.now < 3.0 + WINDOW_S


async def test_whoever_waits_for_cores_that_others_use_is_not_called_content() -> None:
    with pytest.raises(UnsteadyError, match="Others used"):
        await profile(Played(100.0, crowd=0.9))
    assert set(paces(await profile(Played(0.5, crowd=0.05))).values()) == {1.0}
