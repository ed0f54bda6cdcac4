"""Mean waits against the closed forms of queueing theory."""

import math
import random

import pytest

from scheduler.simulator.arrivals import Arrival, Trace, in_order
from scheduler.simulator.fleets import pool
from scheduler.simulator.measures import measure
from tests.simulator.scenes import play

JOBS = 1_500


def poisson(rate: float, service_s: float | None, seed: int) -> Trace:
    """Arrivals at a rate; services exponential with mean 1, or all alike."""
    die = random.Random(seed)
    at = 0.0
    arrivals = []
    for number in range(JOBS):
        at += die.expovariate(rate)
        duration = die.expovariate(1.0) if service_s is None else service_s
        arrivals.append(Arrival(id=str(number), submitted_at=at, duration_s=duration))
    return in_order("poisson", arrivals)


def mean_wait(servers: int, rate: float, service_s: float | None) -> tuple[float, float]:
    """The mean wait over a few seeds, and the half-width of its 99 % interval."""
    means = [
        measure(play(poisson(rate, service_s, seed), pool(servers), "pool-fifo"))["wait_s"]["mean"]
        for seed in range(4)
    ]
    mean = sum(means) / len(means)
    spread = math.sqrt(sum((each - mean) ** 2 for each in means) / (len(means) - 1))
    return mean, 5.841 * spread / math.sqrt(len(means))


def erlang_c(servers: int, load: float) -> float:
    """The probability of having to wait in M/M/c, ``load`` in Erlang."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


@pytest.mark.slow
@pytest.mark.parametrize(("servers", "rate"), [(1, 0.5), (4, 3.0)])
def test_exponential_services_wait_as_erlang_says(servers: int, rate: float):
    expected = erlang_c(servers, rate) / (servers - rate)
    mean, width = mean_wait(servers, rate, None)
    assert abs(mean - expected) <= width


@pytest.mark.slow
def test_equal_services_wait_half_as_long():
    rate = 0.7
    expected = rate / (2 * (1 - rate))
    mean, width = mean_wait(1, rate, 1.0)
    assert abs(mean - expected) <= width
